#include "proxy/http/message.h"

#include <algorithm>
#include <array>

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

namespace {

struct Phrase {
  unsigned status;
  std::string_view text;
};
// Those of IANA's registry that are in use, in the order of the codes.
constexpr std::array kPhrases = {
    Phrase{100, "Continue"},
    Phrase{101, "Switching Protocols"},
    Phrase{102, "Processing"},
    Phrase{103, "Early Hints"},
    Phrase{200, "OK"},
    Phrase{201, "Created"},
    Phrase{202, "Accepted"},
    Phrase{203, "Non-Authoritative Information"},
    Phrase{204, "No Content"},
    Phrase{205, "Reset Content"},
    Phrase{206, "Partial Content"},
    Phrase{207, "Multi-Status"},
    Phrase{208, "Already Reported"},
    Phrase{226, "IM Used"},
    Phrase{300, "Multiple Choices"},
    Phrase{301, "Moved Permanently"},
    Phrase{302, "Found"},
    Phrase{303, "See Other"},
    Phrase{304, "Not Modified"},
    Phrase{305, "Use Proxy"},
    Phrase{307, "Temporary Redirect"},
    Phrase{308, "Permanent Redirect"},
    Phrase{400, "Bad Request"},
    Phrase{401, "Unauthorized"},
    Phrase{402, "Payment Required"},
    Phrase{403, "Forbidden"},
    Phrase{404, "Not Found"},
    Phrase{405, "Method Not Allowed"},
    Phrase{406, "Not Acceptable"},
    Phrase{407, "Proxy Authentication Required"},
    Phrase{408, "Request Timeout"},
    Phrase{409, "Conflict"},
    Phrase{410, "Gone"},
    Phrase{411, "Length Required"},
    Phrase{412, "Precondition Failed"},
    Phrase{413, "Content Too Large"},
    Phrase{414, "URI Too Long"},
    Phrase{415, "Unsupported Media Type"},
    Phrase{416, "Range Not Satisfiable"},
    Phrase{417, "Expectation Failed"},
    Phrase{421, "Misdirected Request"},
    Phrase{422, "Unprocessable Content"},
    Phrase{423, "Locked"},
    Phrase{424, "Failed Dependency"},
    Phrase{425, "Too Early"},
    Phrase{426, "Upgrade Required"},
    Phrase{428, "Precondition Required"},
    Phrase{429, "Too Many Requests"},
    Phrase{431, "Request Header Fields Too Large"},
    Phrase{451, "Unavailable For Legal Reasons"},
    Phrase{500, "Internal Server Error"},
    Phrase{501, "Not Implemented"},
    Phrase{502, "Bad Gateway"},
    Phrase{503, "Service Unavailable"},
    Phrase{504, "Gateway Timeout"},
    Phrase{505, "HTTP Version Not Supported"},
    Phrase{506, "Variant Also Negotiates"},
    Phrase{507, "Insufficient Storage"},
    Phrase{508, "Loop Detected"},
    Phrase{511, "Network Authentication Required"},
};
static_assert(std::ranges::is_sorted(kPhrases, {}, &Phrase::status));

}  // namespace

std::string_view reason_phrase(unsigned status) noexcept {
  // Nearly all responses have it.
  if (status == 200) return "OK";
  const auto at = std::ranges::lower_bound(kPhrases, status, {}, &Phrase::status);
  return at != kPhrases.end() && at->status == status ? at->text : std::string_view("Unknown");
}

}  // namespace encore::http
