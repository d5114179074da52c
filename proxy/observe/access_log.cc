#include "proxy/observe/access_log.h"

#include "proxy/observe/access_line.h"
#include "proxy/observe/access_text.h"
#include "proxy/observe/json_line.h"

namespace encore::server {
namespace {

// The URL of a request that could not be parsed, as in Squid's log.
constexpr std::string_view kNoUrl = "error:invalid-request";

// `name` is what stands before a text: R"(,"url":")".
[[gnu::always_inline]] inline void append_json_value(JsonLine& line, std::string_view name,
                                                     const LogValue& value,
                                                     const Redaction& redaction,
                                                     std::string& storage) {
  if (!value.shown) return;
  const std::string_view bare = name.substr(0, name.size() - 1);
  switch (value.kind) {
    case LogValue::Kind::kText:
    case LogValue::Kind::kUser:
      return line.text(name, value.text);
    case LogValue::Kind::kUrl:
      return line.text(name, redaction.url(value.text, storage));
    case LogValue::Kind::kNumber:
      return line.number(bare, static_cast<std::uint64_t>(value.number));
    case LogValue::Kind::kTime:
      return line.time(bare, Nanoseconds(value.number));
    case LogValue::Kind::kInstant:
      return;
    case LogValue::Kind::kFlag:
      line.raw(bare);
      return line.raw(value.number != 0 ? "true" : "false");
  }
}

// The time is the first field, and written before the line takes the text over.
void append_json(std::string& out, const LoggedRequest& request, const Redaction& redaction) {
  static_assert(config::kLogFields[0].field == config::LogField::kTime);
  std::string storage;
  out += R"({"time":")";
  append_iso_time(out, request.received);
  JsonLine line(out);
  line.raw("\"");
#define ENCORE_APPEND(id, name, text)                                                             \
  append_json_value(line, ",\"" name "\":\"", value_of(config::LogField::id, request), redaction, \
                    storage);
  ENCORE_LOG_FIELDS(ENCORE_APPEND)
#undef ENCORE_APPEND
  line.raw("}");
  line.finish();
}

// Appends "outcome/detail", for which the formats of Squid and web servers have no place.
void append_why(std::string& out, const RequestRecord& record) {
  out += ' ';
  out += to_string(record.outcome);
  out += '/';
  append_plain(out, record.detail, FieldQuoting::kWord);
}

// time elapsed client code/status bytes method URL user hierarchy/peer type
void append_squid(std::string& out, const LoggedRequest& request, const Redaction& redaction) {
  const RequestRecord& record = request.record;
  std::string storage;
  append_epoch(out, request.received);
  out += ' ';
  append_padded(out, request.duration.count() / 1'000'000, 6, ' ');
  out += ' ';
  append_plain(out, request.client, FieldQuoting::kWord);
  out += ' ';
  out += squid_code(record);
  out += '/';
  append_padded(out, record.status, 3);
  out += ' ';
  append_number(out, record.sent_bytes);
  out += ' ';
  append_plain(out, request.method(), FieldQuoting::kWord);
  out += ' ';
  const std::string_view url = redaction.url(request.url, storage);
  append_plain(out, url.empty() ? kNoUrl : url, FieldQuoting::kWord);
  out += ' ';
  append_user(out, record.user);
  out += ' ';
  out += squid_hierarchy(record);
  out += '/';
  append_plain(out, squid_peer(record), FieldQuoting::kWord);
  out += ' ';
  append_plain(out, record.content_type.substr(0, record.content_type.find(';')),
               FieldQuoting::kWord);
  append_why(out, record);
}

// client - user [time] "request" status bytes "referer" "user agent"
void append_combined(std::string& out, const LoggedRequest& request, const Redaction& redaction) {
  const RequestRecord& record = request.record;
  std::string storage;
  append_plain(out, request.client, FieldQuoting::kWord);
  out += " - ";
  append_user(out, record.user);
  out += " [";
  out += log_time(request.received);
  out += "] \"";
  if (!request.method().empty()) {
    append_plain(out, request.method(), FieldQuoting::kQuotes);
    out += ' ';
    append_plain(out, redaction.url(request.url, storage), FieldQuoting::kWord);
    out += ' ';
    append_plain(out, request.version(), FieldQuoting::kQuotes);
  } else {
    out += '-';
  }
  out += "\" ";
  append_number(out, std::int64_t{record.status});
  out += ' ';
  append_number(out, record.body_bytes);
  out += " \"";
  append_plain(out, redaction.url(request.field(http::FieldId::kReferer), storage),
               FieldQuoting::kQuotes);
  out += "\" \"";
  append_plain(out, request.field(http::FieldId::kUserAgent), FieldQuoting::kQuotes);
  out += '"';
  append_why(out, record);
}

}  // namespace

void append_access_record(std::string& out, const config::LogFormat& format,
                          const LoggedRequest& request, const Redaction& redaction) {
  switch (format.style) {
    case config::LogFormat::Style::kJson:
      append_json(out, request, redaction);
      break;
    case config::LogFormat::Style::kSquid:
      append_squid(out, request, redaction);
      break;
    case config::LogFormat::Style::kCombined:
      append_combined(out, request, redaction);
      break;
    case config::LogFormat::Style::kLine:
      append_line(out, format, request, redaction);
      break;
  }
  out += '\n';
}

}  // namespace encore::server
