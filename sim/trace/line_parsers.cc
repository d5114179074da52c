// The line formats with fixed places: Squid, common and combined, LRB, wikibench.
#include <array>
#include <chrono>
#include <string>

#include "base/http_date.h"
#include "sim/trace/line_parser.h"

namespace encore::sim {
namespace {

// "time.ms elapsed client code/status bytes method URL user hierarchy/peer type"
class SquidParser final : public LineParser {
 public:
  const char* parse(std::string_view line, LineFields& fields) override {
    if (!read_time(take_word(line), fields.time_ns)) {
      return "no time in the first field";
    }
    take_word(line);
    take_word(line);
    const std::string_view result = take_word(line);
    const std::size_t slash = result.find('/');
    if (slash == std::string_view::npos || !read_number(result.substr(slash + 1), fields.status)) {
      return "no code/status in the fourth field";
    }
    if (!read_number(take_word(line), fields.size_bytes)) {
      return "no number of bytes in the fifth field";
    }
    fields.has_size = true;
    fields.method = take_word(line);
    fields.key = take_word(line);
    return fields.key.empty() ? "no URL in the seventh field" : nullptr;
  }
};

// "10/Oct/2000:13:55:36 -0700"
bool read_log_time(std::string_view text, std::int64_t& time_ns) {
  if (text.size() < 20) {
    return false;
  }
  unsigned day = 0;
  int year = 0;
  std::int64_t hour = 0;
  std::int64_t minute = 0;
  std::int64_t second = 0;
  unsigned month = 0;
  while (month < 12 && kMonthNames[month] != text.substr(3, 3)) {
    ++month;
  }
  if (month == 12 || !read_number(text.substr(0, 2), day) ||
      !read_number(text.substr(7, 4), year) || !read_number(text.substr(12, 2), hour) ||
      !read_number(text.substr(15, 2), minute) || !read_number(text.substr(18, 2), second)) {
    return false;
  }
  std::int64_t zone = 0;
  if (text.size() >= 26 && (text[21] == '+' || text[21] == '-')) {
    std::int64_t hhmm = 0;
    if (!read_number(text.substr(22, 4), hhmm)) {
      return false;
    }
    zone = (hhmm / 100 * 60 + hhmm % 100) * 60 * (text[21] == '-' ? -1 : 1);
  }
  const std::chrono::year_month_day date{std::chrono::year{year}, std::chrono::month{month + 1},
                                         std::chrono::day{day}};
  const std::int64_t days = std::chrono::sys_days{date}.time_since_epoch().count();
  time_ns = (((days * 24 + hour) * 60 + minute) * 60 + second - zone) * 1'000'000'000;
  return true;
}

// 'host ident user [date] "METHOD URL HTTP/x" status bytes ...'
class CombinedParser final : public LineParser {
 public:
  const char* parse(std::string_view line, LineFields& fields) override {
    const std::size_t open = line.find('[');
    const std::size_t close = line.find(']', open == std::string_view::npos ? 0 : open);
    if (open == std::string_view::npos || close == std::string_view::npos ||
        !read_log_time(line.substr(open + 1, close - open - 1), fields.time_ns)) {
      return "no [date]";
    }
    line.remove_prefix(close + 1);
    const std::size_t quote = line.find('"');
    const std::size_t end = end_of_quoted(line, quote);
    if (end == std::string_view::npos) {
      return "no quoted request line";
    }
    std::string_view request = line.substr(quote + 1, end - quote - 1);
    line.remove_prefix(end + 1);
    const std::string_view whole = request;
    fields.method = take_word(request);
    // Some clients send blanks in a URL: it ends where the version begins.
    if (const std::size_t version = request.rfind(" HTTP/"); version != std::string_view::npos) {
      request = request.substr(0, version);
    } else if (request.starts_with("HTTP/")) {
      request = {};
    }
    fields.key = trimmed(request);
    // A request that the server could not parse, TLS on a plain port for one, is none of those that
    // count, however many there are.
    if (fields.key.empty()) {
      fields.method = "-";
      fields.key = whole.empty() ? fields.method : whole;
    }
    if (!read_number(take_word(line), fields.status)) {
      return "no status after the request line";
    }
    const std::string_view bytes = take_word(line);
    fields.has_size = bytes != "-";
    if (fields.has_size && !read_number(bytes, fields.size_bytes)) {
      return "no number of bytes after the status";
    }
    return nullptr;
  }

 private:
  static std::string_view trimmed(std::string_view text) {
    const std::size_t begin = text.find_first_not_of(" \t");
    return begin == std::string_view::npos
               ? std::string_view{}
               : text.substr(begin, text.find_last_not_of(" \t") - begin + 1);
  }
  // Returns the end of the quoted text that begins at `quote`; a backslash escapes.
  static std::size_t end_of_quoted(std::string_view line, std::size_t quote) {
    if (quote == std::string_view::npos) {
      return quote;
    }
    for (std::size_t i = quote + 1; i < line.size(); ++i) {
      if (line[i] == '\\') {
        ++i;
      } else if (line[i] == '"') {
        return i;
      }
    }
    return std::string_view::npos;
  }
};

class LrbParser final : public LineParser {
 public:
  const char* parse(std::string_view line, LineFields& fields) override {
    if (!read_time(take_word(line), fields.time_ns)) {
      return "no time in the first field";
    }
    fields.key = take_word(line);
    if (fields.key.empty() || !read_number(take_word(line), fields.size_bytes)) {
      return "no id and size in the second and third field";
    }
    fields.has_size = true;
    return nullptr;
  }
};

class WikibenchParser final : public LineParser {
 public:
  const char* parse(std::string_view line, LineFields& fields) override {
    take_word(line);
    if (!read_time(take_word(line), fields.time_ns)) {
      return "no time in the second field";
    }
    fields.key = take_word(line);
    return fields.key.empty() ? "no URL in the third field" : nullptr;
  }
};

}  // namespace

bool read_time(std::string_view text, std::int64_t& time_ns) {
  const std::size_t point = text.find('.');
  std::int64_t whole = 0;
  if (!read_number(text.substr(0, point), whole) || whole < 0) {
    return false;
  }
  std::int64_t unit = 1'000'000'000;
  for (const std::int64_t limit : {100'000'000'000, 100'000'000'000'000, 100'000'000'000'000'000}) {
    unit = whole >= limit ? unit / 1000 : unit;
  }
  std::int64_t fraction = 0;
  if (point != std::string_view::npos) {
    std::int64_t place = unit;
    for (const char digit : text.substr(point + 1)) {
      if (digit < '0' || digit > '9') {
        return false;
      }
      place /= 10;
      fraction += (digit - '0') * place;
    }
  }
  time_ns = whole * unit + fraction;
  return true;
}

std::string_view take_word(std::string_view& rest) {
  const std::size_t begin = rest.find_first_not_of(" \t");
  if (begin == std::string_view::npos) {
    rest = {};
    return {};
  }
  const std::size_t end = rest.find_first_of(" \t", begin);
  const std::string_view word = rest.substr(begin, end - begin);
  rest = end == std::string_view::npos ? std::string_view{} : rest.substr(end + 1);
  return word;
}

std::unique_ptr<LineParser> make_squid_parser() { return std::make_unique<SquidParser>(); }
std::unique_ptr<LineParser> make_combined_parser() { return std::make_unique<CombinedParser>(); }
std::unique_ptr<LineParser> make_lrb_parser() { return std::make_unique<LrbParser>(); }
std::unique_ptr<LineParser> make_wikibench_parser() { return std::make_unique<WikibenchParser>(); }

}  // namespace encore::sim
