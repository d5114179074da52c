#include "proxy/observe/access_log.h"

#include "proxy/observe/access_line.h"
#include "proxy/observe/access_text.h"
#include "proxy/observe/json_line.h"

namespace encore::server {
namespace {

// The URL of a request that could not be parsed, as in Squid's log.
constexpr std::string_view kNoUrl = "error:invalid-request";

void append_json_tls(JsonLine& line, const AccessRecord& record) {
  if (record.tls_version.empty()) return;
  line.text(R"(,"tls_version":")", record.tls_version);
  line.text(R"(,"tls_cipher":")", record.tls_cipher);
  line.raw(record.tls_resumed ? R"(,"tls_resumed":true)" : R"(,"tls_resumed":false)");
  line.text_if_any(R"(,"tls_server_name":")", record.tls_server_name);
  line.text_if_any(R"(,"client_subject":")", record.client_subject);
  line.text_if_any(R"(,"client_fingerprint":")", record.client_fingerprint);
}

// The fields in the order of ENCORE_LOG_FIELDS.
void append_json(std::string& out, const AccessRecord& record, const Redaction& redaction) {
  std::string storage;
  out += R"({"time":")";
  append_iso_time(out, record.received);
  JsonLine line(out);
  line.text(R"(","client":")", record.client);
  line.text_if_any(R"(,"user":")", record.user);
  line.text_if_any(R"(,"listener":")", record.listener);
  line.text(R"(,"method":")", record.method);
  line.text(R"(,"url":")", redaction.url(record.url, storage));
  line.text_if_any(R"(,"host":")", record.host);
  line.text(R"(,"version":")", record.version);
  line.number(R"(,"status":)", static_cast<std::uint64_t>(record.status));
  line.number(R"(,"bytes":)", record.sent_bytes);
  line.number(R"(,"body_bytes":)", record.body_bytes);
  line.number(R"(,"request_bytes":)", record.taken_bytes);
  line.time(R"(,"duration_us":)", record.duration);
  line.time(R"(,"first_byte_us":)", first_byte_of(record));
  line.text(R"(,"outcome":")", to_string(record.outcome));
  line.text_if_any(R"(,"detail":")", record.detail);
  line.text_if_any(R"(,"request_id":")", record.request_id);
  if (is_traceparent(record.traceparent)) line.text(R"(,"traceparent":")", record.traceparent);
  line.text_if_any(R"(,"origin":")", record.origin);
  line.text_if_any(R"(,"server":")", record.server);
  line.time_if_any(R"(,"connect_us":)", record.connect);
  line.time_if_any(R"(,"origin_us":)", record.answer);
  line.text_if_any(R"(,"content_type":")", record.content_type);
  line.text_if_any(R"(,"referer":")", redaction.url(record.referer, storage));
  line.text_if_any(R"(,"user_agent":")", record.user_agent);
  append_json_tls(line, record);
  if (record.intercepted) line.raw(R"(,"intercepted":true)");
  line.raw("}");
  line.finish();
}

// Appends "outcome/detail", for which the formats of Squid and web servers have no place.
void append_why(std::string& out, const AccessRecord& record) {
  out += ' ';
  out += to_string(record.outcome);
  out += '/';
  append_plain(out, record.detail, Within::kWord);
}

// time elapsed client code/status bytes method URL user hierarchy/peer type
void append_squid(std::string& out, const AccessRecord& record, const Redaction& redaction) {
  std::string storage;
  append_epoch(out, record.received);
  out += ' ';
  append_padded(out, record.duration.count() / 1'000'000, 6, ' ');
  out += ' ';
  append_plain(out, record.client, Within::kWord);
  out += ' ';
  out += squid_code(record);
  out += '/';
  append_padded(out, record.status, 3);
  out += ' ';
  append_number(out, record.sent_bytes);
  out += ' ';
  append_plain(out, record.method, Within::kWord);
  out += ' ';
  const std::string_view url = redaction.url(record.url, storage);
  append_plain(out, url.empty() ? kNoUrl : url, Within::kWord);
  out += ' ';
  append_user(out, record.user);
  out += ' ';
  out += squid_hierarchy(record);
  out += '/';
  append_plain(out, squid_peer(record), Within::kWord);
  out += ' ';
  append_plain(out, record.content_type.substr(0, record.content_type.find(';')), Within::kWord);
  append_why(out, record);
}

// client - user [time] "request" status bytes "referer" "user agent"
void append_combined(std::string& out, const AccessRecord& record, const Redaction& redaction) {
  std::string storage;
  append_plain(out, record.client, Within::kWord);
  out += " - ";
  append_user(out, record.user);
  out += " [";
  out += log_time(record.received);
  out += "] \"";
  if (!record.method.empty()) {
    append_plain(out, record.method, Within::kQuotes);
    out += ' ';
    append_plain(out, redaction.url(record.url, storage), Within::kWord);
    out += ' ';
    append_plain(out, record.version, Within::kQuotes);
  } else {
    out += '-';
  }
  out += "\" ";
  append_number(out, std::int64_t{record.status});
  out += ' ';
  append_number(out, record.body_bytes);
  out += " \"";
  append_plain(out, redaction.url(record.referer, storage), Within::kQuotes);
  out += "\" \"";
  append_plain(out, record.user_agent, Within::kQuotes);
  out += '"';
  append_why(out, record);
}

}  // namespace

void append_access_record(std::string& out, const config::LogFormat& format,
                          const AccessRecord& record, const Redaction& redaction) {
  switch (format.style) {
    case config::LogFormat::Style::kJson:
      append_json(out, record, redaction);
      break;
    case config::LogFormat::Style::kSquid:
      append_squid(out, record, redaction);
      break;
    case config::LogFormat::Style::kCombined:
      append_combined(out, record, redaction);
      break;
    case config::LogFormat::Style::kLine:
      append_line(out, format, record, redaction);
      break;
  }
  out += '\n';
}

}  // namespace encore::server
