#include "proxy/h2/response_text.h"

#include <algorithm>
#include <utility>

#include "base/recycled.h"
#include "proxy/http/framing.h"
#include "proxy/http/list.h"
#include "proxy/http/message.h"

namespace encore::h2 {

ResponseText::ResponseText(ListSize limit) : text_(take_text()), size_(limit) {}

ResponseText::~ResponseText() { give_text(std::move(text_)); }

bool ResponseText::on_field(std::string_view name, std::string_view value) {
  if (!size_.add(name, value)) return false;
  if (malformed_ != Malformed::kNone) return true;
  if (name.starts_with(':')) {
    malformed_ = on_status(name, value);
    return true;
  }
  has_fields_ = true;
  http::FieldId id = http::FieldId::kOther;
  malformed_ = check_field(name, value, id);
  if (malformed_ != Malformed::kNone) return true;
  if (status_ == 0) {
    malformed_ = Malformed::kMissingPseudoField;
  } else if (id == http::FieldId::kContentLength) {
    std::uint64_t length = 0;
    if (length_ || !http::parse_decimal(value, length)) malformed_ = Malformed::kBadLength;
    length_ = length;
  }
  if (malformed_ == Malformed::kNone) append_line(name, value, text_);
  return true;
}

Malformed ResponseText::on_status(std::string_view name, std::string_view value) {
  if (name != ":status") return Malformed::kUnknownPseudoField;
  if (has_fields_) return Malformed::kLatePseudoField;
  if (status_ != 0) return Malformed::kRepeatedPseudoField;
  const bool is_sound = value.size() == 3 && value.front() != '0' &&
                        std::all_of(value.begin(), value.end(), http::is_digit);
  // 101 is not for HTTP/2 (RFC 9113 8.6).
  if (!is_sound || value == "101") return Malformed::kBadStatus;
  for (const char c : value) status_ = status_ * 10 + static_cast<unsigned>(c - '0');
  text_.append("HTTP/1.1 ").append(value).append(" ");
  text_.append(http::reason_phrase(status_)).append("\r\n");
  return Malformed::kNone;
}

Malformed ResponseText::finish(bool has_content) {
  if (malformed_ != Malformed::kNone) return malformed_;
  if (status_ == 0) return malformed_ = Malformed::kMissingPseudoField;
  const bool may_have_content = status_ >= 200 && status_ != 204 && status_ != 304;
  if (has_content && may_have_content && !length_) text_ += "transfer-encoding: chunked\r\n";
  text_ += "\r\n";
  return Malformed::kNone;
}

}  // namespace encore::h2
