// JSON lines: encore's access log, Caddy's, and others with given field names.
#include <chrono>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "sim/trace/line_parser.h"

namespace encore::sim {
namespace {

using Json = nlohmann::json;

// The first path that is there wins.
using Paths = std::vector<std::string>;

const Json* find(const Json& document, std::string_view path) {
  const Json* at = &document;
  while (!path.empty()) {
    const std::string name(take_field(path, '.'));
    if (!at->is_object()) {
      return nullptr;
    }
    const auto next = at->find(name);
    if (next == at->end()) {
      return nullptr;
    }
    at = &*next;
  }
  return at;
}

const Json* find(const Json& document, const Paths& paths) {
  for (const std::string& path : paths) {
    if (const Json* found = find(document, path)) {
      return found;
    }
  }
  return nullptr;
}

bool read_unsigned(const Json& value, std::uint64_t& number) {
  if (value.is_number_unsigned()) {
    number = value.get<std::uint64_t>();
    return true;
  }
  return value.is_string() && read_number(value.get_ref<const std::string&>(), number);
}

// Keeps whole numbers that 64 bits do not hold as text: as reals several would be the same.
class WholeNumbers : public nlohmann::detail::json_sax_dom_parser<Json> {
 public:
  using nlohmann::detail::json_sax_dom_parser<Json>::json_sax_dom_parser;
  bool number_float(double value, const std::string& text) {
    if (text.find_first_not_of("-0123456789") != std::string::npos) {
      return json_sax_dom_parser::number_float(value, text);
    }
    std::string whole = text;
    return string(whole);
  }
};

class JsonParser final : public LineParser {
 public:
  JsonParser(const TraceOptions& options, bool caddy)
      : time_(paths(options, "time", {"time", "ts", "timestamp", "@timestamp"})),
        key_(paths(options, "key", {"key", "url", "uri", "target", "request.uri"})),
        host_(options.columns.contains("key") ? Paths{} : Paths{"host", "request.host"}),
        // The body alone first: what is before it varies with the request.
        size_(paths(options, "size", {"body_bytes", "bytes", "size", "bytes_sent"})),
        ttl_(paths(options, "ttl", {"ttl"})),
        method_(paths(options, "method", {"method", "request.method"})),
        status_(paths(options, "status", {"status", "response.status"})) {
    if (caddy) {
      key_ = {"request.uri"};
      method_ = {"request.method"};
      time_ = {"ts"};
      size_ = {"size"};
    }
  }

  const char* parse(std::string_view line, LineFields& fields) override {
    Json document;
    WholeNumbers numbers(document, false);
    if (!Json::sax_parse(line, &numbers) || !document.is_object()) {
      return "no JSON object";
    }
    const Json* key = find(document, key_);
    if (key == nullptr && is_unparsed(document)) {
      fields.key = fields.method = "-";
      return parse_numbers(document, fields);
    }
    if (key == nullptr || !(key->is_string() || key->is_number())) {
      return "no field for the key";
    }
    key_text_ = key->is_string() ? key->get_ref<const std::string&>() : key->dump();
    // A path is one only on its host; a forward proxy's target has it already.
    const Json* host = key_text_.starts_with('/') ? find(document, host_) : nullptr;
    if (host != nullptr && host->is_string()) {
      key_text_.insert(0, host->get_ref<const std::string&>());
    }
    fields.key = key_text_;
    if (const Json* method = find(document, method_); method != nullptr && method->is_string()) {
      // Without one the request could not be parsed: it is none of those that count.
      method_text_ = method->get_ref<const std::string&>();
      if (method_text_.empty()) {
        method_text_ = "-";
      }
      fields.method = method_text_;
    }
    return parse_numbers(document, fields);
  }

 private:
  static Paths paths(const TraceOptions& options, const char* role, Paths usual) {
    const auto given = options.columns.find(role);
    return given == options.columns.end() ? std::move(usual) : Paths{given->second};
  }

  // A request that the server could not parse has no method either: none of those that count.
  bool is_unparsed(const Json& document) const {
    const Json* method = find(document, method_);
    return method != nullptr && method->is_string() &&
           (method->get_ref<const std::string&>().empty() ||
            method->get_ref<const std::string&>() == "-");
  }

  const char* parse_numbers(const Json& document, LineFields& fields) const {
    if (const Json* time = find(document, time_)) {
      if (!read_json_time(*time, fields.time_ns)) {
        return "no time in its field";
      }
    }
    if (const Json* status = find(document, status_)) {
      std::uint64_t number = 0;
      if (!read_unsigned(*status, number) || number > 999) {
        return "no number in the status' field";
      }
      fields.status = static_cast<int>(number);
    }
    if (const Json* size = find(document, size_)) {
      fields.has_size = true;
      if (!read_unsigned(*size, fields.size_bytes)) {
        return "no number in the size's field";
      }
    }
    if (const Json* ttl = find(document, ttl_)) {
      std::uint64_t seconds = 0;
      if (!read_unsigned(*ttl, seconds)) {
        return "no number in the ttl's field";
      }
      fields.ttl_seconds = static_cast<std::uint32_t>(std::min<std::uint64_t>(seconds, kNoTtl));
    }
    return nullptr;
  }

  static bool read_json_time(const Json& value, std::int64_t& time_ns) {
    if (value.is_string()) {
      return read_text_time(value.get_ref<const std::string&>(), time_ns);
    }
    return value.is_number() && read_time(value.dump(), time_ns);
  }

  // Seconds as text, or RFC 3339: 2026-11-21T06:55:00.123Z.
  static bool read_text_time(std::string_view text, std::int64_t& time_ns) {
    if (read_time(text, time_ns)) {
      return true;
    }
    if (text.size() < 19 || text[4] != '-' || text[10] != 'T') {
      return false;
    }
    int year = 0;
    unsigned month = 0;
    unsigned day = 0;
    std::int64_t hour = 0;
    std::int64_t minute = 0;
    std::int64_t second = 0;
    std::int64_t fraction = 0;
    if (!read_number(text.substr(0, 4), year) || !read_number(text.substr(5, 2), month) ||
        !read_number(text.substr(8, 2), day) || !read_number(text.substr(11, 2), hour) ||
        !read_number(text.substr(14, 2), minute) || !read_number(text.substr(17, 2), second)) {
      return false;
    }
    if (text.size() > 19 && text[19] == '.') {
      const std::string_view digits =
          text.substr(20, text.find_first_not_of("0123456789", 20) - 20);
      if (!read_time("0." + std::string(digits.empty() ? "0" : digits), fraction)) {
        return false;
      }
    }
    const std::chrono::year_month_day date{std::chrono::year{year}, std::chrono::month{month},
                                           std::chrono::day{day}};
    if (!date.ok()) {
      return false;
    }
    const auto days = std::chrono::sys_days{date}.time_since_epoch().count();
    time_ns = (((days * 24 + hour) * 60 + minute) * 60 + second) * 1'000'000'000 + fraction;
    return true;
  }

  Paths time_;
  Paths key_;
  Paths host_;
  Paths size_;
  Paths ttl_;
  Paths method_;
  Paths status_;
  std::string key_text_;
  std::string method_text_;
};

}  // namespace

std::unique_ptr<LineParser> make_json_parser(const TraceOptions& options, bool caddy) {
  return std::make_unique<JsonParser>(options, caddy);
}

}  // namespace encore::sim
