#include "proxy/h2/malformed.h"

#include "proxy/http/list.h"
#include "proxy/http/scan.h"

namespace encore::h2 {
namespace {

constexpr std::array<std::string_view, kMalformedReasons> kReasonNames = {
#define ENCORE_H2_REASON(id, name) name,
    ENCORE_H2_MALFORMED(ENCORE_H2_REASON)
#undef ENCORE_H2_REASON
};

// Characters of a token (RFC 9110 5.6.2) that a name in lower case may have.
constexpr std::array<bool, 256> lower_token_characters() {
  std::array<bool, 256> is = {};
  for (std::size_t c = '0'; c <= '9'; ++c) is[c] = true;
  for (std::size_t c = 'a'; c <= 'z'; ++c) is[c] = true;
  for (const char c : std::string_view("!#$%&'*+-.^_`|~")) is[static_cast<unsigned char>(c)] = true;
  return is;
}
constexpr std::array<bool, 256> kLowerToken = lower_token_characters();

bool is_sound_name(std::string_view name) noexcept {
  if (name.empty()) return false;
  for (const char c : name) {
    if (!kLowerToken[static_cast<unsigned char>(c)]) return false;
  }
  return true;
}

bool is_space(char c) { return c == ' ' || c == '\t'; }

constexpr http::FieldSet kConnectionFields = {
    http::FieldId::kConnection, http::FieldId::kKeepAlive, http::FieldId::kProxyConnection,
    http::FieldId::kTransferEncoding, http::FieldId::kUpgrade};

}  // namespace

std::string_view to_string(Malformed reason) noexcept {
  return kReasonNames[static_cast<std::size_t>(reason)];
}

bool is_sound_value(std::string_view value) noexcept {
  if (value.empty()) return true;
  if (is_space(value.front()) || is_space(value.back())) return false;
  const char* const begin = value.data();
  const char* const end = begin + value.size();
  for (const char* at = begin; at != end; ++at) {
    at = http::scan::find<http::scan::Control>(begin, at, end);
    if (at == end) break;
    if (*at == '\0' || *at == '\r' || *at == '\n') return false;
  }
  return true;
}

Malformed check_field(std::string_view name, std::string_view value, http::FieldId& id) noexcept {
  if (!is_sound_name(name)) return Malformed::kBadName;
  if (!is_sound_value(value)) return Malformed::kBadValue;
  id = http::classify_field(name);
  if (id != http::FieldId::kOther) {
    if (kConnectionFields.has(id)) return Malformed::kConnectionField;
    if (id == http::FieldId::kTe && !http::equals_lower(value, "trailers"))
      return Malformed::kBadTe;
  }
  return Malformed::kNone;
}

void append_line(std::string_view name, std::string_view value, std::string& text) {
  text.append(name).append(": ").append(value).append("\r\n");
}

}  // namespace encore::h2
