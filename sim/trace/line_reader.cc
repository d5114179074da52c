#include <algorithm>
#include <utility>

#include "sim/trace/line_parser.h"
#include "sim/trace/record_format.h"

namespace encore::sim {
namespace {

constexpr std::size_t kBadShown = 5;
// A share of fewer lines than this says nothing.
constexpr std::uint64_t kLinesForShare = 100;

class LineReader final : public TraceReader {
 public:
  LineReader(Input input, TraceFormat format, std::unique_ptr<LineParser> parser,
             const TraceOptions& options)
      : input_(std::move(input)), format_(format), parser_(std::move(parser)), options_(options) {}

  Result<std::size_t> read(std::span<Request> out) override {
    std::size_t made = 0;
    while (made < out.size()) {
      if (repeat_ != 0) {
        --repeat_;
        out[made++] = last_;
        continue;
      }
      std::string_view line;
      const auto more = input_.next_line(line);
      if (!more) {
        return std::unexpected(more.error());
      }
      if (!*more) {
        break;
      }
      if (take(line)) {
        out[made++] = last_;
      }
      if (counts_.bad != 0 && counts_.lines % kLinesForShare == 0 && too_many_bad()) {
        return refuse();
      }
    }
    counts_.counted += made;
    if (made == 0 && too_many_bad()) {
      return refuse();
    }
    return made;
  }
  const TraceCounts& counts() const override { return counts_; }
  TraceFormat format() const override { return format_; }

 private:
  // Whether the line is a request, which is last_ then.
  bool take(std::string_view line) {
    ++counts_.lines;
    if (line.empty() || line.front() == '#') {
      ++counts_.skipped;
      return false;
    }
    LineFields fields;
    if (const char* wrong = wrong_with(line, fields)) {
      ++counts_.bad;
      if (counts_.bad_shown.size() < kBadShown) {
        constexpr std::size_t kShown = 60;
        counts_.bad_shown.push_back("line " + std::to_string(input_.line_number()) + ": " + wrong +
                                    ": \"" + std::string(line.substr(0, kShown)) + "\"");
      }
      return false;
    }
    if (!counts(fields) || fields.count == 0) {
      ++counts_.skipped;
      return false;
    }
    last_ = {.key = filter::identify(options_.identity_seed, whole_key(fields.key)).hash,
             .time_ns = fields.time_ns,
             .size_bytes = fields.has_size ? fields.size_bytes : options_.default_size_bytes,
             .ttl_seconds = fields.ttl_seconds};
    counts_.without_size += fields.has_size ? 0 : 1;
    repeat_ = fields.count - 1;
    return true;
  }

  std::string_view whole_key(std::string_view key) {
    if (options_.key_prefix.empty()) {
      return key;
    }
    key_ = options_.key_prefix;
    return key_ += key;
  }

  const char* wrong_with(std::string_view line, LineFields& fields) {
    if (line.find('\0') != std::string_view::npos) {
      return "a zero byte, which no text has";
    }
    const char* wrong = parser_->parse(line, fields);
    return wrong == nullptr && fields.size_bytes > kSizeMax ? "a size above a petabyte" : wrong;
  }

  bool counts(const LineFields& fields) const {
    if (options_.all_lines) {
      return true;
    }
    const bool method =
        fields.method.empty() ||
        std::ranges::find(options_.methods, fields.method) != options_.methods.end();
    const bool status = fields.status < 0 || std::ranges::find(options_.statuses, fields.status) !=
                                                 options_.statuses.end();
    return method && status;
  }

  bool too_many_bad() const {
    return static_cast<double>(counts_.bad) >
           options_.bad_share_max * static_cast<double>(counts_.lines);
  }
  std::unexpected<Error> refuse() const {
    return fail(std::to_string(counts_.bad) + " of " + std::to_string(counts_.lines) +
                " lines are no " + std::string(to_string(format_)) + "; " +
                (counts_.bad_shown.empty() ? std::string() : counts_.bad_shown.front()));
  }

  Input input_;
  TraceFormat format_;
  std::unique_ptr<LineParser> parser_;
  TraceOptions options_;
  TraceCounts counts_;
  std::string key_;  // with its prefix
  Request last_;
  std::uint64_t repeat_ = 0;
};

Result<std::unique_ptr<LineParser>> make_parser(Input& input, TraceFormat format,
                                                const TraceOptions& options) {
  switch (format) {
    case TraceFormat::kJson:
      return make_json_parser(options, false);
    case TraceFormat::kCaddy:
      return make_json_parser(options, true);
    case TraceFormat::kSquid:
      return make_squid_parser();
    case TraceFormat::kCombined:
      return make_combined_parser();
    case TraceFormat::kCsv:
      return make_separated_parser(input, options.delimiter == 0 ? ',' : options.delimiter,
                                   options);
    case TraceFormat::kTsv:
      return make_separated_parser(input, '\t', options);
    case TraceFormat::kLrb:
      return make_lrb_parser();
    case TraceFormat::kWikibench:
      return make_wikibench_parser();
    default:
      return fail("no format of lines: " + std::string(to_string(format)));
  }
}

}  // namespace

Result<std::unique_ptr<TraceReader>> make_line_reader(Input input, TraceFormat format,
                                                      const TraceOptions& options) {
  auto parser = make_parser(input, format, options);
  if (!parser) {
    return std::unexpected(parser.error());
  }
  return std::make_unique<LineReader>(std::move(input), format, std::move(*parser), options);
}

}  // namespace encore::sim
