#include "sim/trace/open_trace.h"

#include <utility>

#include "sim/trace/detect.h"
#include "sim/trace/input.h"
#include "sim/trace/line_parser.h"
#include "sim/trace/record_format.h"

namespace encore::sim {
namespace {

bool is_binary(TraceFormat format) {
  switch (format) {
    case TraceFormat::kEncore:
    case TraceFormat::kOracleGeneral:
    case TraceFormat::kLcs:
    case TraceFormat::kInt32:
    case TraceFormat::kInt64:
    case TraceFormat::kInt32Little:
    case TraceFormat::kInt64Little:
    case TraceFormat::kVscsi:
      return true;
    default:
      return false;
  }
}

// One file after the other; a file is opened when the one before is through.
class Chain final : public TraceReader {
 public:
  Chain(std::vector<std::string> paths, TraceOptions options, std::unique_ptr<TraceReader> first)
      : paths_(std::move(paths)), options_(std::move(options)), reader_(std::move(first)) {
    add_source(reader_->sources().front());
  }

  Result<std::size_t> read(std::span<Request> out) override {
    while (true) {
      auto count = reader_->read(out);
      if (!count) {
        return fail(paths_[at_] + ": " + count.error().message);
      }
      if (auto fits = add_bytes(out.first(*count)); !fits) {
        return std::unexpected(fits.error());
      }
      counts_ = finished_;
      add(counts_, reader_->counts());
      if (*count != 0 || at_ + 1 == paths_.size() || stopped()) {
        return count;
      }
      finished_ = counts_;
      auto next = open_trace(paths_[++at_], options_);
      if (!next && stopped()) {
        return 0;
      }
      if (!next) {
        return std::unexpected(next.error());
      }
      reader_ = std::move(*next);
      add_source(reader_->sources().front());
    }
  }
  const TraceCounts& counts() const override { return counts_; }
  TraceFormat format() const override { return reader_->format(); }

 private:
  // Everything that sums bytes rests on it: the sum of all sizes is far from 2^64.
  Result<void> add_bytes(std::span<const Request> requests) {
    constexpr std::uint64_t kBytesMax = std::uint64_t{1} << 62U;
    for (const Request& request : requests) {
      bytes_ += request.size_bytes;  // each at most kSizeMax
      if (bytes_ > kBytesMax) {
        return fail(paths_[at_] +
                    ": the sizes of all requests add up to more than 4 EiB (2^62 bytes), accepted: "
                    "less (is it of another format, or is the size in another column?)");
      }
    }
    return {};
  }
  bool stopped() const { return options_.monitor != nullptr && options_.monitor->stopped(); }
  void add(TraceCounts& sum, const TraceCounts& counts) const {
    sum.lines += counts.lines;
    sum.counted += counts.counted;
    sum.skipped += counts.skipped;
    sum.bad += counts.bad;
    sum.without_size += counts.without_size;
    if (sum.first_row.empty()) sum.first_row = counts.first_row;
    for (const std::string& bad : counts.bad_shown) {
      sum.bad_shown.push_back(paths_.size() == 1 ? bad : paths_[at_] + ", " + bad);
    }
  }

  std::vector<std::string> paths_;
  TraceOptions options_;
  std::unique_ptr<TraceReader> reader_;
  std::size_t at_ = 0;
  std::uint64_t bytes_ = 0;
  TraceCounts finished_;  // counts of the files before this one
  TraceCounts counts_;
};

}  // namespace

Result<std::unique_ptr<TraceReader>> open_trace(const std::string& path,
                                                const TraceOptions& options) {
  auto bytes = open_bytes(path, options.monitor);
  if (!bytes) {
    return std::unexpected(bytes.error());
  }
  Input input(std::move(*bytes), options.monitor);
  const auto head = input.peek(kHeadBytes);
  if (!head) {
    return fail("cannot read " + path + ": " + head.error().message);
  }
  if (input.interrupted()) {
    return fail(path + ": interrupted before the format was recognised");
  }
  Detection detected{.format = options.format, .confidence = Confidence::kGiven, .reason = {}};
  if (head->empty()) {
    return fail(path + ": the trace is empty");
  }
  if (options.format == TraceFormat::kAuto) {
    auto told =
        detect_format({.bytes = *head, .whole = head->size() < kHeadBytes, .path = path}, options);
    if (!told) {
      return fail(path + ": " + told.error().message);
    }
    detected = std::move(*told);
  }
  if (!is_binary(detected.format) && head->starts_with(kByteOrderMark)) {
    if (auto taken = input.next_bytes(kByteOrderMark.size()); !taken) {
      return std::unexpected(taken.error());
    }
  }
  if (is_binary(detected.format) && !options.key_prefix.empty()) {
    return fail(path + ": a prefix of the keys of format " +
                std::string(to_string(detected.format)) +
                ", which has numbers for keys; accepted with formats of lines");
  }
  if (is_binary(detected.format) && !options.hosts.empty()) {
    return fail(path + ": --hosts with format " + std::string(to_string(detected.format)) +
                ", which has numbers for keys; accepted with formats of lines");
  }
  if (options.block_bytes != 0 && !is_of_blocks(detected.format)) {
    return fail(path + ": --split-blocks with format " + std::string(to_string(detected.format)) +
                ", accepted with traces of blocks: tencent-block, alibaba-block, vscsi, msr, spc");
  }
  TraceOptions read_as = options;
  read_as.delimiter = detected.delimiter != 0 ? detected.delimiter : options.delimiter;
  auto reader =
      detected.format == TraceFormat::kVscsi ? make_vscsi_reader(std::move(input), read_as)
      : is_binary(detected.format) ? make_record_reader(std::move(input), detected.format, read_as)
                                   : make_line_reader(std::move(input), detected.format, read_as);
  if (!reader) {
    return fail(path + ": " + reader.error().message);
  }
  (*reader)->add_source({.path = path,
                         .format = detected.format,
                         .confidence = detected.confidence,
                         .reason = std::move(detected.reason)});
  return reader;
}

Result<std::unique_ptr<TraceReader>> open_traces(const std::vector<std::string>& paths,
                                                 const TraceOptions& options) {
  if (paths.empty()) {
    return fail("no trace given");
  }
  if (options.monitor != nullptr) {
    begin_reading(*options.monitor, paths);
  }
  auto first = open_trace(paths.front(), options);
  if (!first) {
    return first;
  }
  return std::make_unique<Chain>(paths, options, std::move(*first));
}

}  // namespace encore::sim
