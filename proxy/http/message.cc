#include "proxy/http/message.h"

#include <algorithm>

namespace encore::http {

Method classify_method(std::string_view text) noexcept {
  switch (text.size()) {
    case 3:
      return text == "GET" ? Method::kGet : text == "PUT" ? Method::kPut : Method::kOther;
    case 4:
      return text == "HEAD" ? Method::kHead : text == "POST" ? Method::kPost : Method::kOther;
    case 5:
      return text == "TRACE" ? Method::kTrace : text == "PATCH" ? Method::kPatch : Method::kOther;
    case 6:
      return text == "DELETE" ? Method::kDelete : Method::kOther;
    case 7:
      return text == "CONNECT"   ? Method::kConnect
             : text == "OPTIONS" ? Method::kOptions
                                 : Method::kOther;
    default:
      return Method::kOther;
  }
}

const Field* Fields::find(FieldId id) const noexcept {
  if (!has(id)) return nullptr;
  const auto field = std::ranges::find(lines_, id, &Field::id);
  return field == lines_.end() ? nullptr : &*field;
}

const Field* Fields::find(std::string_view lower_name) const noexcept {
  for (const Field& field : lines_) {
    if (equals_lower(field.name, lower_name)) return &field;
  }
  return nullptr;
}

std::size_t Fields::count(FieldId id) const noexcept {
  if (!has(id)) return 0;
  return static_cast<std::size_t>(std::ranges::count(lines_, id, &Field::id));
}

bool Fields::list_has(FieldId id, std::string_view lower_token) const noexcept {
  bool found = false;
  for_each_member(
      id, [&](std::string_view member) { found = found || equals_lower(member, lower_token); });
  return found;
}

std::string_view reason_phrase(unsigned status) noexcept {
  switch (status) {
    case 100:
      return "Continue";
    case 101:
      return "Switching Protocols";
    case 103:
      return "Early Hints";
    case 200:
      return "OK";
    case 201:
      return "Created";
    case 202:
      return "Accepted";
    case 203:
      return "Non-Authoritative Information";
    case 204:
      return "No Content";
    case 205:
      return "Reset Content";
    case 206:
      return "Partial Content";
    case 300:
      return "Multiple Choices";
    case 301:
      return "Moved Permanently";
    case 302:
      return "Found";
    case 303:
      return "See Other";
    case 304:
      return "Not Modified";
    case 307:
      return "Temporary Redirect";
    case 308:
      return "Permanent Redirect";
    case 400:
      return "Bad Request";
    case 401:
      return "Unauthorized";
    case 403:
      return "Forbidden";
    case 404:
      return "Not Found";
    case 405:
      return "Method Not Allowed";
    case 406:
      return "Not Acceptable";
    case 407:
      return "Proxy Authentication Required";
    case 408:
      return "Request Timeout";
    case 409:
      return "Conflict";
    case 410:
      return "Gone";
    case 411:
      return "Length Required";
    case 412:
      return "Precondition Failed";
    case 413:
      return "Content Too Large";
    case 414:
      return "URI Too Long";
    case 415:
      return "Unsupported Media Type";
    case 416:
      return "Range Not Satisfiable";
    case 417:
      return "Expectation Failed";
    case 421:
      return "Misdirected Request";
    case 426:
      return "Upgrade Required";
    case 429:
      return "Too Many Requests";
    case 431:
      return "Request Header Fields Too Large";
    case 500:
      return "Internal Server Error";
    case 501:
      return "Not Implemented";
    case 502:
      return "Bad Gateway";
    case 503:
      return "Service Unavailable";
    case 504:
      return "Gateway Timeout";
    case 505:
      return "HTTP Version Not Supported";
    case 508:
      return "Loop Detected";
    default:
      return "Unknown";
  }
}

}  // namespace encore::http
