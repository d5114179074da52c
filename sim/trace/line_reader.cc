#include <algorithm>
#include <deque>
#include <utility>

#include "sim/trace/line_parser.h"
#include "sim/trace/record_format.h"

namespace encore::sim {
namespace {

constexpr std::size_t kBadShown = 5;
// A share of fewer lines than this says nothing.
constexpr std::uint64_t kLinesForShare = 100;
// A read that found nothing waits for its write over so many lines.
constexpr std::uint64_t kLinesAhead = 1024;

char capital(char c) { return c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c; }

// "http://a.example:80/b" has "a.example", and so has "a.example/b"; empty: no host.
std::string_view host_in(std::string_view key) {
  const std::size_t scheme = key.find("://");
  if (scheme != std::string_view::npos) key.remove_prefix(scheme + 3);
  key = key.substr(0, key.find_first_of("/?#"));
  return key.substr(0, key.starts_with('[') ? key.find(']') + 1 : key.find(':'));
}

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
      if (blocks_.first != blocks_.end) {
        out[made++] = next_block();
        continue;
      }
      if (take_waiting()) {
        out[made++] = last_;
        continue;
      }
      std::string_view line;
      const auto more = input_.next_line(line);
      if (!more) {
        return std::unexpected(more.error());
      }
      if (!*more) {
        ended_ = true;
        if (waiting_.empty()) break;
        continue;
      }
      if (take(line) && blocks_.first == blocks_.end) {
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
  // A request whose size is not known yet, or that stands behind one.
  struct Waiting {
    Request request;
    std::uint64_t count = 1;
    std::uint64_t line = 0;
    bool awaits_size = false;
  };
  // The first of them, to last_, if it waits no more.
  bool take_waiting() {
    if (waiting_.empty() || (waiting_.front().awaits_size && !ended_ &&
                             waiting_.front().line + kLinesAhead > counts_.lines)) {
      return false;
    }
    last_ = waiting_.front().request;
    repeat_ = waiting_.front().count - 1;
    waiting_.pop_front();
    return true;
  }
  // A write has the size of what the reads of its key did not find.
  void tell_waiting(const Request& write) {
    for (Waiting& read : waiting_) {
      if (read.awaits_size && read.request.key == write.key) {
        read.request.size_bytes = write.size_bytes;
        read.request.ttl_seconds = write.ttl_seconds;
        read.awaits_size = false;
      }
    }
  }

  // True if the line is a request, which is last_ then.
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
    const bool is_counted = counts(fields) && fields.count != 0;
    counts_.skipped += is_counted ? 0 : 1;
    if (!is_counted && (!fields.is_write || waiting_.empty())) {
      return false;
    }
    const Request request = {
        .key = filter::identify(options_.identity_seed, whole_key(fields.key)).hash,
        .time_ns = fields.time_ns,
        .size_bytes = fields.has_size ? fields.size_bytes : options_.default_size_bytes,
        .ttl_seconds = fields.ttl_seconds};
    if (fields.is_write) {
      tell_waiting(request);
    }
    if (!is_counted) {
      return false;
    }
    counts_.without_size += fields.has_size ? 0 : 1;
    note_first(fields);
    if (options_.block_bytes != 0) {
      volume_ = fields.volume;
      last_ = request;
      return split_into_blocks(fields.offset_bytes, request.size_bytes, options_.block_bytes,
                               blocks_);
    }
    if (fields.awaits_size || !waiting_.empty()) {
      waiting_.push_back({request, fields.count, counts_.lines, fields.awaits_size});
      return false;
    }
    last_ = request;
    repeat_ = fields.count - 1;
    return true;
  }

  // A block has its number in its volume for a name.
  Request next_block() {
    Request block = last_;
    key_ = options_.key_prefix + volume_ + ":" + std::to_string(blocks_.first++);
    block.key = filter::identify(options_.identity_seed, key_).hash;
    block.size_bytes = options_.block_bytes;
    return block;
  }

  // A user who names the columns sees the result.
  void note_first(const LineFields& fields) {
    if (options_.columns.empty() || !counts_.first_row.empty()) {
      return;
    }
    constexpr std::size_t kShown = 60;
    counts_.first_row = "key \"" + std::string(fields.key.substr(0, kShown)) + "\"";
    if (fields.has_size) counts_.first_row += ", size " + std::to_string(fields.size_bytes);
    if (fields.time_ns != 0) {
      counts_.first_row += ", time " + std::to_string(fields.time_ns / 1'000'000'000) + " s";
    }
    if (fields.ttl_seconds != kNoTtl) {
      counts_.first_row += ", ttl " + std::to_string(fields.ttl_seconds) + " s";
    }
    if (!fields.method.empty()) counts_.first_row += ", method " + std::string(fields.method);
    if (fields.status >= 0) counts_.first_row += ", status " + std::to_string(fields.status);
    if (fields.count != 1) counts_.first_row += ", count " + std::to_string(fields.count);
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
    if (wrong != nullptr || fields.size_bytes > kSizeMax) {
      return wrong != nullptr ? wrong : "a size above a petabyte";
    }
    BlockRange range;
    return options_.block_bytes != 0 && !split_into_blocks(fields.offset_bytes, fields.size_bytes,
                                                           options_.block_bytes, range)
               ? "a request of more than a million blocks"
               : nullptr;
  }

  bool counts(const LineFields& fields) const {
    if (options_.all_lines) {
      return true;
    }
    const bool method = fields.method.empty() ||
                        std::ranges::any_of(options_.methods, [&](const std::string& wanted) {
                          return std::ranges::equal(wanted, fields.method, {}, capital, capital);
                        });
    const bool status = fields.status < 0 || std::ranges::find(options_.statuses, fields.status) !=
                                                 options_.statuses.end();
    return method && status && (options_.hosts.empty() || is_of_hosts(fields.key));
  }

  bool is_of_hosts(std::string_view key) const {
    const std::string_view host = host_in(key);
    return std::ranges::any_of(options_.hosts, [&](std::string_view wanted) {
      std::string_view tail = host;
      if (wanted.starts_with('.') && tail.size() > wanted.size()) {
        tail.remove_prefix(tail.size() - wanted.size());
      }
      return std::ranges::equal(wanted, tail, {}, capital, capital);
    });
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
  std::string volume_;
  BlockRange blocks_;  // the blocks of last_ that are still to come
  std::deque<Waiting> waiting_;
  bool ended_ = false;
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
      if (is_published(format)) {
        return make_published_parser(input, format, options.delimiter);
      }
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
