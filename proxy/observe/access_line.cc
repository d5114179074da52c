#include "proxy/observe/access_line.h"

#include <algorithm>
#include <array>
#include <cstdint>

#include "proxy/http/list.h"
#include "proxy/observe/access_text.h"

namespace encore::server {
namespace {

using config::LogField;

// Calls f(value) for each line of that name. `lines` have CRLF each; what is no field is passed by.
template <typename F>
void for_each_line(std::string_view lines, std::string_view lower_name, F&& f) {
  while (!lines.empty()) {
    const std::size_t end = std::min(lines.find("\r\n"), lines.size());
    const std::string_view line = lines.substr(0, end);
    lines.remove_prefix(std::min(end + 2, lines.size()));
    const std::size_t colon = line.find(':');
    if (colon == std::string_view::npos) continue;
    if (http::equals_lower(line.substr(0, colon), lower_name))
      f(http::trim_ows(line.substr(colon + 1)));
  }
}

class Line {
 public:
  Line(std::string& out, const AccessRecord& record, const Redaction& redaction)
      : out_(out), record_(record), redaction_(redaction) {}

  void add(const config::LogPart& part);

 private:
  void add_named(LogField field);
  void add_own(const config::LogPart& part);
  void text(std::string_view value) { append_plain(out_, value, within_); }
  void url(std::string_view value) { text(redaction_.url(value, storage_)); }
  void flag(bool value) { out_ += value ? "true" : "false"; }
  void time(Nanoseconds value) {
    if (value.count() < 0) {
      out_ += '-';
    } else {
      append_number(out_, microseconds(value));
    }
  }
  void request_line();
  void request_field(std::string_view lower_name);
  void response_field(std::string_view lower_name);
  void field(std::string_view lower_name, const std::string& value);
  std::string_view path_and_query() const;
  std::string_view port() const {
    const std::size_t colon = record_.listener.rfind(':');
    return colon == std::string_view::npos ? std::string_view()
                                           : record_.listener.substr(colon + 1);
  }

  std::string& out_;
  const AccessRecord& record_;
  const Redaction& redaction_;
  Within within_ = Within::kWord;
  std::string storage_;
};

void Line::add(const config::LogPart& part) {
  within_ = part.quoted ? Within::kQuotes : Within::kWord;
  if (part.field < LogField::kLiteral) {
    add_named(part.field);
  } else {
    add_own(part);
  }
}

// Writes a value unescaped.
template <typename Value>
struct Kept {
  LogField field;
  Value AccessRecord::* value;
};
constexpr auto kTexts = std::to_array<Kept<std::string_view>>({
    {LogField::kClient, &AccessRecord::client},
    {LogField::kListener, &AccessRecord::listener},
    {LogField::kMethod, &AccessRecord::method},
    {LogField::kHost, &AccessRecord::host},
    {LogField::kVersion, &AccessRecord::version},
    {LogField::kDetail, &AccessRecord::detail},
    {LogField::kRequestId, &AccessRecord::request_id},
    {LogField::kOrigin, &AccessRecord::origin},
    {LogField::kServer, &AccessRecord::server},
    {LogField::kContentType, &AccessRecord::content_type},
    {LogField::kUserAgent, &AccessRecord::user_agent},
    {LogField::kTlsVersion, &AccessRecord::tls_version},
    {LogField::kTlsCipher, &AccessRecord::tls_cipher},
    {LogField::kTlsServerName, &AccessRecord::tls_server_name},
    {LogField::kClientSubject, &AccessRecord::client_subject},
    {LogField::kClientFingerprint, &AccessRecord::client_fingerprint},
});
constexpr auto kNumbers = std::to_array<Kept<std::uint64_t>>({
    {LogField::kBytes, &AccessRecord::sent_bytes},
    {LogField::kBodyBytes, &AccessRecord::body_bytes},
    {LogField::kRequestBytes, &AccessRecord::taken_bytes},
});
constexpr auto kTimes = std::to_array<Kept<Nanoseconds>>({
    {LogField::kDuration, &AccessRecord::duration},
    {LogField::kConnect, &AccessRecord::connect},
    {LogField::kOriginTime, &AccessRecord::answer},
});

// Null: it is none of these.
template <typename Table>
auto kept(const Table& table, LogField field) {
  const auto* const found = std::ranges::find(table, field, &Table::value_type::field);
  return found == table.end() ? nullptr : found->value;
}

void Line::add_named(LogField field) {
  if (const auto value = kept(kTexts, field)) return text(record_.*value);
  if (const auto value = kept(kNumbers, field)) return append_number(out_, record_.*value);
  if (const auto value = kept(kTimes, field)) return time(record_.*value);
  switch (field) {
    case LogField::kTime:
      return append_iso_time(out_, record_.received);
    case LogField::kUser:
      return append_user(out_, record_.user);
    case LogField::kUrl:
      return url(record_.url);
    case LogField::kStatus:
      return append_number(out_, std::int64_t{record_.status});
    case LogField::kFirstByte:
      return time(first_byte_of(record_));
    case LogField::kOutcome:
      return text(to_string(record_.outcome));
    case LogField::kTraceparent:
      return text(is_traceparent(record_.traceparent) ? record_.traceparent : std::string_view());
    case LogField::kReferer:
      return url(record_.referer);
    case LogField::kTlsResumed:
      return flag(record_.tls_resumed);
    case LogField::kIntercepted:
      return flag(record_.intercepted);
    case LogField::kEpoch:
      return append_epoch(out_, record_.received);
    case LogField::kOriginIp:
      return text(ip_of(record_.origin));
    case LogField::kSquidCode:
      return text(squid_code(record_));
    case LogField::kSquidHierarchy:
      return text(squid_hierarchy(record_));
    default:
      return;
  }
}

void Line::add_own(const config::LogPart& part) {
  switch (part.field) {
    case LogField::kLiteral:
      out_ += part.text;
      return;
    case LogField::kLogTime:
      out_ += '[';
      out_ += log_time(record_.received);
      out_ += ']';
      return;
    case LogField::kRequestLine:
      return request_line();
    case LogField::kBodyOrDash:
      if (record_.body_bytes == 0) break;
      return append_number(out_, record_.body_bytes);
    case LogField::kMilliseconds:
      return append_number(out_, std::int64_t{record_.duration.count() / 1'000'000});
    case LogField::kSeconds:
      return append_number(out_, std::int64_t{record_.duration.count() / 1'000'000'000});
    case LogField::kRequestField:
      return request_field(part.text);
    case LogField::kResponseField:
      return response_field(part.text);
    case LogField::kServerName:
      return text(record_.host.starts_with('[') ? record_.host.substr(0, record_.host.find(']') + 1)
                                                : record_.host.substr(0, record_.host.find(':')));
    case LogField::kPort:
      return text(port());
    case LogField::kConnection:
      out_ += record_.connection == ClientConnectionEnd::kCut    ? 'X'
              : record_.connection == ClientConnectionEnd::kKept ? '+'
                                                                 : '-';
      return;
    case LogField::kPath: {
      const std::string_view path = path_and_query();
      return text(path.substr(0, path.find('?')));
    }
    case LogField::kQuery: {
      const std::string_view path = path_and_query();
      const std::size_t query = path.find('?');
      // Nothing is no "-" here: it stands behind a path.
      if (query != std::string_view::npos) url(path.substr(query));
      return;
    }
    default:
      break;
  }
  out_ += '-';
}

void Line::request_line() {
  if (record_.method.empty()) {
    out_ += '-';
    return;
  }
  const Within within = within_;
  text(record_.method);
  out_ += within == Within::kQuotes ? " " : "%20";
  // A space in it would be one between the parts.
  within_ = Within::kWord;
  url(record_.url);
  within_ = within;
  out_ += within == Within::kQuotes ? " " : "%20";
  text(record_.version);
}

// Behind the authority, where the target has one.
std::string_view Line::path_and_query() const {
  const std::string_view url = record_.url;
  const std::size_t scheme = url.find("://");
  if (url.starts_with('/') || scheme == std::string_view::npos) return url;
  const std::size_t path = url.find_first_of("/?", scheme + 3);
  return path == std::string_view::npos ? "/" : url.substr(path);
}

void Line::request_field(std::string_view lower_name) {
  std::string value;
  if (record_.fields != nullptr) {
    for (const http::Field& field : *record_.fields) {
      if (!http::equals_lower(field.name, lower_name)) continue;
      if (!value.empty()) value += ", ";
      value += field.value;
    }
  }
  field(lower_name, value);
}

void Line::response_field(std::string_view lower_name) {
  std::string value;
  for_each_line(record_.response_fields, lower_name, [&](std::string_view each) {
    if (!value.empty()) value += ", ";
    value += each;
  });
  field(lower_name, value);
}

void Line::field(std::string_view lower_name, const std::string& value) {
  if (!value.empty() && is_secret_field(lower_name)) return text(Redaction::kHidden);
  if (is_url_field(lower_name)) return url(value);
  text(value);
}

}  // namespace

void append_line(std::string& out, const config::LogFormat& format, const AccessRecord& record,
                 const Redaction& redaction) {
  Line line(out, record, redaction);
  for (const config::LogPart& part : format.parts) line.add(part);
}

}  // namespace encore::server
