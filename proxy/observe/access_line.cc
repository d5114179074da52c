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

// A host without its port.
std::string_view name_of(std::string_view host) {
  if (host.starts_with('[')) return host.substr(0, host.find(']') + 1);
  return host.substr(0, host.find(':'));
}

class Line {
 public:
  Line(std::string& out, const LoggedRequest& request, const Redaction& redaction)
      : out_(out), request_(request), record_(request.record), redaction_(redaction) {}

  void add(const config::LogPart& part);

 private:
  void value(const LogValue& value);
  void add_form(LogField form);
  void add_own(const config::LogPart& part);
  void text(std::string_view value) { append_plain(out_, value, within_); }
  void url(std::string_view value) { text(redaction_.url(value, storage_)); }
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
    const std::size_t colon = record_.listener_name.rfind(':');
    return colon == std::string_view::npos ? std::string_view()
                                           : record_.listener_name.substr(colon + 1);
  }

  std::string& out_;
  const LoggedRequest& request_;
  const RequestRecord& record_;
  const Redaction& redaction_;
  FieldQuoting within_ = FieldQuoting::kWord;
  std::string storage_;
};

void Line::add(const config::LogPart& part) {
  within_ = part.quoted ? FieldQuoting::kQuotes : FieldQuoting::kWord;
  if (part.field < LogField::kEpoch) {
    value(value_of(part.field, request_));
  } else if (part.field < LogField::kLiteral) {
    add_form(part.field);
  } else {
    add_own(part);
  }
}

void Line::value(const LogValue& value) {
  switch (value.kind) {
    case LogValue::Kind::kText:
      return text(value.text);
    case LogValue::Kind::kUrl:
      return url(value.text);
    case LogValue::Kind::kUser:
      return append_user(out_, value.text);
    case LogValue::Kind::kNumber:
      return append_number(out_, value.number);
    case LogValue::Kind::kTime:
      return time(Nanoseconds(value.number));
    case LogValue::Kind::kInstant:
      return append_iso_time(out_, request_.received);
    case LogValue::Kind::kFlag:
      out_ += value.number != 0 ? "true" : "false";
      return;
  }
}

void Line::add_form(LogField form) {
  switch (form) {
    case LogField::kEpoch:
      return append_epoch(out_, request_.received);
    case LogField::kOriginIp:
      return text(ip_of(origin_of(record_)));
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
      out_ += log_time(request_.received);
      out_ += ']';
      return;
    case LogField::kRequestLine:
      return request_line();
    case LogField::kBodyOrDash:
      if (record_.body_bytes == 0) break;
      return append_number(out_, record_.body_bytes);
    case LogField::kMilliseconds:
      return append_number(out_, std::int64_t{request_.duration.count() / 1'000'000});
    case LogField::kSeconds:
      return append_number(out_, std::int64_t{request_.duration.count() / 1'000'000'000});
    case LogField::kRequestField:
      return request_field(part.text);
    case LogField::kResponseField:
      return response_field(part.text);
    case LogField::kServerName:
      return text(name_of(request_.field(http::FieldId::kHost)));
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
  if (request_.method().empty()) {
    out_ += '-';
    return;
  }
  const FieldQuoting within = within_;
  text(request_.method());
  out_ += within == FieldQuoting::kQuotes ? " " : "%20";
  // A space in it would be one between the parts.
  within_ = FieldQuoting::kWord;
  url(request_.url);
  within_ = within;
  out_ += within == FieldQuoting::kQuotes ? " " : "%20";
  text(request_.version());
}

// Behind the authority, where the target has one.
std::string_view Line::path_and_query() const {
  const std::string_view url = request_.url;
  const std::size_t scheme = url.find("://");
  if (url.starts_with('/') || scheme == std::string_view::npos) return url;
  const std::size_t path = url.find_first_of("/?", scheme + 3);
  return path == std::string_view::npos ? "/" : url.substr(path);
}

void Line::request_field(std::string_view lower_name) {
  std::string value;
  if (record_.head != nullptr) {
    for (const http::Field& field : record_.head->fields) {
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

void append_line(std::string& out, const config::LogFormat& format, const LoggedRequest& request,
                 const Redaction& redaction) {
  Line line(out, request, redaction);
  for (const config::LogPart& part : format.parts) line.add(part);
}

}  // namespace encore::server
