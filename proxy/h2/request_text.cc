#include "proxy/h2/request_text.h"

#include <utility>

#include "base/recycled.h"
#include "proxy/http/framing.h"
#include "proxy/http/list.h"
#include "proxy/http/uri.h"

namespace encore::h2 {
namespace {

constexpr std::array<std::string_view, 5> kPseudoNames = {":method", ":scheme", ":authority",
                                                          ":path", ":protocol"};

bool is_scheme(std::string_view text) {
  if (text.empty() || http::is_digit(text.front())) return false;
  for (const char c : text) {
    const char lower = http::to_lower(c);
    const bool is_sound =
        (lower >= 'a' && lower <= 'z') || http::is_digit(c) || c == '+' || c == '-' || c == '.';
    if (!is_sound) return false;
  }
  return true;
}

// A space would end the target, and with a control character in it so would the line.
bool is_path(std::string_view text) {
  if (text.empty() || text.front() != '/') return false;
  for (const char c : text) {
    if (static_cast<unsigned char>(c) <= ' ' || c == '\x7f') return false;
  }
  return true;
}

bool is_authority(std::string_view text) {
  http::Authority authority;
  return http::parse_authority(text, authority);
}

}  // namespace

RequestText::RequestText(const Form& form, ListSize limit)
    : text_(take_text()), size_(limit), form_(form) {}

RequestText::~RequestText() { give_text(std::move(text_)); }

bool RequestText::on_field(std::string_view name, std::string_view value) {
  if (!size_.add(name, value)) return false;
  // The rest of a malformed block is decoded for the decoder's sake.
  if (malformed_ != Malformed::kNone) return true;
  malformed_ = name.starts_with(':') ? on_pseudo(name, value) : on_regular(name, value);
  return true;
}

Malformed RequestText::on_pseudo(std::string_view name, std::string_view value) {
  if (has_begun_) return Malformed::kLatePseudoField;
  std::size_t which = 0;
  while (which != kPseudoNames.size() && kPseudoNames[which] != name) ++which;
  if (which == kPseudoNames.size()) return Malformed::kUnknownPseudoField;
  Place& place = places_[which];
  if (place.is_there) return Malformed::kRepeatedPseudoField;
  place = {.begin = static_cast<std::uint32_t>(values_.size()),
           .bytes = static_cast<std::uint32_t>(value.size()),
           .is_there = true};
  values_ += value;
  return Malformed::kNone;
}

Malformed RequestText::on_regular(std::string_view name, std::string_view value) {
  if (!has_begun_) {
    const Malformed reason = begin();
    if (reason != Malformed::kNone) return reason;
  }
  http::FieldId id = http::FieldId::kOther;
  const Malformed reason = check_field(name, value, id);
  if (reason != Malformed::kNone) return reason;
  switch (id) {
    case http::FieldId::kContentLength:
      return on_length(value);
    case http::FieldId::kHost:
      return on_host(value);
    case http::FieldId::kCookie:
      add_cookie(value);
      return Malformed::kNone;
    default:
      break;
  }
  if (name == "priority") {
    priority_ = has_priority_ ? Priority{} : parse_priority(value);
    has_priority_ = true;
  }
  append_line(name, value, text_);
  return Malformed::kNone;
}

Malformed RequestText::on_length(std::string_view value) {
  std::uint64_t length = 0;
  if (length_ || !http::parse_decimal(value, length)) return Malformed::kBadLength;
  length_ = length;
  // A tunnel carries no content, and at the next hop the length would frame one.
  if (kind_ == Kind::kRequest) append_line("content-length", value, text_);
  return Malformed::kNone;
}

Malformed RequestText::on_host(std::string_view value) {
  if (!has(Pseudo::kAuthority)) {
    if (!is_authority(value)) return Malformed::kBadAuthority;
    append_line("host", value, text_);
    return Malformed::kNone;
  }
  return http::equals_ignoring_case(value, authority()) ? Malformed::kNone
                                                        : Malformed::kHostDiffers;
}

void RequestText::add_cookie(std::string_view value) {
  if (!cookies_.empty()) cookies_ += "; ";
  cookies_ += value;
}

Malformed RequestText::begin() {
  has_begun_ = true;
  const std::string_view method = pseudo(Pseudo::kMethod);
  if (!has(Pseudo::kMethod)) return Malformed::kMissingPseudoField;
  if (!http::is_token(method)) return Malformed::kBadMethod;
  if (has(Pseudo::kAuthority) && !is_authority(authority())) return Malformed::kBadAuthority;
  const Malformed reason = method == "CONNECT" ? check_connect() : check_request();
  if (reason != Malformed::kNone) return reason;
  text_ += kind_ == Kind::kExtended ? "GET" : method;
  text_ += ' ';
  append_target();
  text_ += " HTTP/1.1\r\n";
  if (has(Pseudo::kAuthority)) append_line("host", authority(), text_);
  if (kind_ == Kind::kExtended) {
    text_ += "connection: upgrade\r\n";
    append_line("upgrade", protocol(), text_);
  }
  return Malformed::kNone;
}

Malformed RequestText::check_connect() {
  if (!has(Pseudo::kAuthority)) return Malformed::kMissingPseudoField;
  if (!has(Pseudo::kProtocol)) {
    kind_ = Kind::kConnect;
    return has(Pseudo::kScheme) || has(Pseudo::kPath) ? Malformed::kMisplacedPseudoField
                                                      : Malformed::kNone;
  }
  if (!form_.takes_protocols) return Malformed::kMisplacedPseudoField;
  kind_ = Kind::kExtended;
  if (!http::is_token(protocol())) return Malformed::kBadProtocol;
  return check_request();
}

Malformed RequestText::check_request() const {
  if (has(Pseudo::kProtocol) && kind_ != Kind::kExtended) return Malformed::kMisplacedPseudoField;
  if (!has(Pseudo::kScheme) || !has(Pseudo::kPath)) return Malformed::kMissingPseudoField;
  if (!is_scheme(scheme())) return Malformed::kBadScheme;
  const std::string_view path = pseudo(Pseudo::kPath);
  const bool is_asterisk = path == "*" && pseudo(Pseudo::kMethod) == "OPTIONS";
  return is_asterisk || is_path(path) ? Malformed::kNone : Malformed::kBadPath;
}

void RequestText::append_target() {
  if (kind_ == Kind::kConnect) {
    text_ += authority();
    return;
  }
  const std::string_view path = pseudo(Pseudo::kPath);
  const bool is_http =
      http::equals_lower(scheme(), "http") || http::equals_lower(scheme(), "https");
  // The parser of targets decides about another scheme.
  if (!is_http || (form_.is_absolute && has(Pseudo::kAuthority))) {
    text_.append(scheme()).append("://").append(authority());
    if (path == "*") return;
  }
  text_ += path;
}

Malformed RequestText::finish(bool has_content) {
  if (malformed_ == Malformed::kNone && !has_begun_) malformed_ = begin();
  if (malformed_ != Malformed::kNone) return malformed_;
  if (kind_ != Kind::kRequest) {
    length_.reset();
  } else if (!has_content && length_.value_or(0) != 0) {
    return malformed_ = Malformed::kLengthMismatch;
  } else if (has_content && !length_) {
    text_ += "transfer-encoding: chunked\r\n";
  }
  if (!cookies_.empty()) append_line("cookie", cookies_, text_);
  text_ += "\r\n";
  return Malformed::kNone;
}

TrailerText::TrailerText(ListSize limit) : text_(take_text()), size_(limit) {}

TrailerText::~TrailerText() { give_text(std::move(text_)); }

bool TrailerText::on_field(std::string_view name, std::string_view value) {
  if (!size_.add(name, value)) return false;
  if (malformed_ != Malformed::kNone) return true;
  http::FieldId id = http::FieldId::kOther;
  malformed_ =
      name.starts_with(':') ? Malformed::kMisplacedPseudoField : check_field(name, value, id);
  if (malformed_ == Malformed::kNone) append_line(name, value, text_);
  return true;
}

}  // namespace encore::h2
