#include "sim/trace/trace_reader.h"

#include <utility>

#include "sim/trace/input.h"
#include "sim/trace/record_format.h"

namespace encore::sim {
namespace {

struct NamedFormat {
  TraceFormat format;
  std::string_view name;
};
constexpr std::array kFormats = {
#define ENCORE_NAMED(id, name, what) NamedFormat{TraceFormat::id, name},
    ENCORE_TRACE_FORMATS(ENCORE_NAMED)
#undef ENCORE_NAMED
};

bool is_binary(TraceFormat format) {
  switch (format) {
    case TraceFormat::kEncore:
    case TraceFormat::kOracleGeneral:
    case TraceFormat::kLcs:
    case TraceFormat::kInt32:
    case TraceFormat::kInt64:
      return true;
    default:
      return false;
  }
}

// One file after the other; a file is opened when the one before is through.
class Chain final : public TraceReader {
 public:
  Chain(std::vector<std::string> paths, TraceOptions options, std::unique_ptr<TraceReader> first)
      : paths_(std::move(paths)), options_(std::move(options)), reader_(std::move(first)) {}

  Result<std::size_t> read(std::span<Request> out) override {
    while (true) {
      auto count = reader_->read(out);
      if (!count) {
        return fail(paths_[at_] + ": " + count.error().message);
      }
      counts_ = finished_;
      add(counts_, reader_->counts());
      if (*count != 0 || at_ + 1 == paths_.size()) {
        return count;
      }
      finished_ = counts_;
      auto next = open_trace(paths_[++at_], options_);
      if (!next) {
        return std::unexpected(next.error());
      }
      reader_ = std::move(*next);
    }
  }
  const TraceCounts& counts() const override { return counts_; }
  TraceFormat format() const override { return reader_->format(); }

 private:
  static void add(TraceCounts& sum, const TraceCounts& counts) {
    sum.lines += counts.lines;
    sum.counted += counts.counted;
    sum.skipped += counts.skipped;
    sum.bad += counts.bad;
    sum.without_size += counts.without_size;
    sum.bad_shown.insert(sum.bad_shown.end(), counts.bad_shown.begin(), counts.bad_shown.end());
  }

  std::vector<std::string> paths_;
  TraceOptions options_;
  std::unique_ptr<TraceReader> reader_;
  std::size_t at_ = 0;
  TraceCounts finished_;  // of the files before this one
  TraceCounts counts_;
};

}  // namespace

std::string_view to_string(TraceFormat format) noexcept {
  for (const NamedFormat& entry : kFormats) {
    if (entry.format == format) {
      return entry.name;
    }
  }
  return "auto";
}

Result<TraceFormat> parse_trace_format(std::string_view name) {
  if (name == "auto") {
    return TraceFormat::kAuto;
  }
  std::string accepted = "auto";
  for (const NamedFormat& entry : kFormats) {
    if (entry.name == name) {
      return entry.format;
    }
    accepted += ", " + std::string(entry.name);
  }
  return fail("unknown trace format \"" + std::string(name) + "\", accepted: " + accepted);
}

Result<std::unique_ptr<TraceReader>> open_trace(const std::string& path,
                                                const TraceOptions& options) {
  auto bytes = open_bytes(path);
  if (!bytes) {
    return std::unexpected(bytes.error());
  }
  Input input(std::move(*bytes));
  const auto head = input.peek(4096);
  if (!head) {
    return fail("cannot read " + path + ": " + head.error().message);
  }
  TraceFormat format = options.format;
  if (format == TraceFormat::kAuto) {
    const auto detected = detect_format(*head);
    if (!detected) {
      return fail(path + ": " + detected.error().message);
    }
    format = *detected;
  } else if (head->empty()) {
    return fail(path + ": the trace is empty");
  }
  auto reader = is_binary(format) ? make_record_reader(std::move(input), format, options)
                                  : make_line_reader(std::move(input), format, options);
  if (!reader) {
    return fail(path + ": " + reader.error().message);
  }
  return reader;
}

Result<std::unique_ptr<TraceReader>> open_traces(const std::vector<std::string>& paths,
                                                 const TraceOptions& options) {
  if (paths.empty()) {
    return fail("no trace is given");
  }
  auto first = open_trace(paths.front(), options);
  if (!first) {
    return first;
  }
  return std::make_unique<Chain>(paths, options, std::move(*first));
}

}  // namespace encore::sim
