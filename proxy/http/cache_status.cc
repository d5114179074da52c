#include "proxy/http/cache_status.h"

#include <array>
#include <charconv>
#include <cstring>

#include "proxy/http/list.h"
#include "proxy/http/structured.h"

namespace encore::http {
namespace {

constexpr std::array<std::string_view, 9> kForwardedNames = {
    "", "bypass", "method", "uri-miss", "vary-miss", "miss", "request", "stale", "partial"};

// Longer than all parameters with their numbers, key and detail apart.
constexpr std::size_t kFixedBytes = 128;

char* put(char* out, std::string_view text) noexcept {
  if (!text.empty()) std::memcpy(out, text.data(), text.size());
  return out + text.size();
}

template <typename Number>
char* put_number(char* out, Number number) noexcept {
  return std::to_chars(out, out + 20, number).ptr;
}

// A structured-field string (RFC 8941 3.3.3); what it cannot hold is left out.
char* put_string(char* out, std::string_view text) noexcept {
  *out++ = '"';
  for (const char c : text) {
    if (c < 0x20 || c > 0x7e) continue;
    if (c == '"' || c == '\\') *out++ = '\\';
    *out++ = c;
  }
  *out++ = '"';
  return out;
}

bool is_plain_token(std::string_view text) noexcept {
  const char first = to_lower(text.front());
  return first >= 'a' && first <= 'z' && is_token(text);
}

}  // namespace

std::string_view to_string(Forwarded forwarded) noexcept {
  return kForwardedNames[static_cast<std::size_t>(forwarded)];
}

std::size_t cache_status_bytes_max(std::string_view name, const CacheStatus& status) noexcept {
  return kFixedBytes + name.size() + 2 * (status.key.size() + status.detail.size());
}

std::size_t write_cache_status(std::string_view name, const CacheStatus& status, char* out) {
  char* p = put(out, name);
  if (status.hit) p = put(p, "; hit");
  if (status.forwarded != Forwarded::kNo) {
    p = put(put(p, "; fwd="), to_string(status.forwarded));
  }
  if (status.forward_status != 0) p = put_number(put(p, "; fwd-status="), status.forward_status);
  if (status.ttl) p = put_number(put(p, "; ttl="), *status.ttl);
  if (status.stored) p = put(p, *status.stored ? "; stored" : "; stored=?0");
  if (status.collapsed) p = put(p, "; collapsed");
  if (!status.key.empty()) p = put_string(put(p, "; key="), status.key);
  if (!status.detail.empty()) {
    p = put(p, "; detail=");
    p = is_plain_token(status.detail) ? put(p, status.detail) : put_string(p, status.detail);
  }
  return static_cast<std::size_t>(p - out);
}

std::optional<ReceivedCacheStatus> last_cache_status(const Fields& fields) {
  using Type = StructuredMember::Type;
  std::optional<ReceivedCacheStatus> last;
  bool is_malformed = false;
  fields.for_each(FieldId::kCacheStatus, [&](const Field& field) {
    const auto end = parameters_of_last(field.value);
    is_malformed = is_malformed || !end;
    if (is_malformed || !end->has_member) return;
    last.emplace();
    for (const StructuredMember& each : end->parameters) {
      const bool is_text = each.type == Type::kToken || each.type == Type::kString;
      if (each.key == "hit") last->hit = each.type == Type::kBoolean && each.boolean;
      if (each.key == "collapsed") last->collapsed = each.type == Type::kBoolean && each.boolean;
      if (each.key == "fwd") last->forwarded = is_text ? each.text : std::string_view();
      if (each.key == "detail") last->detail = is_text ? each.text : std::string_view();
    }
  });
  return is_malformed ? std::nullopt : last;
}

bool tells_of_earlier_request(const ReceivedCacheStatus& status) noexcept {
  return status.hit || status.collapsed || status.forwarded == to_string(Forwarded::kStale) ||
         status.detail == "second-request" || status.detail == "parent-hint";
}

}  // namespace encore::http
