#include "proxy/origin/cross_origin.h"

#include <algorithm>
#include <array>
#include <string>
#include <string_view>

#include "proxy/http/head_text.h"
#include "proxy/http/parser.h"
#include "proxy/http/uri.h"

namespace encore::server {
namespace {

// Resolves `location` against `from`; unchanged if it cannot be resolved.
std::string whole(std::string_view location, const http::Target& from) {
  std::string storage;
  http::Target to;
  if (!http::resolve_reference(location, from, storage, to) || to.authority.host.empty()) {
    return std::string(location);
  }
  std::string text(http::key_bytes_max(to), '\0');
  text.resize(http::write_key(to, {}, text).bytes);
  // A URI to be requested has no fragment; a Location may have one (RFC 9110 10.2.2).
  const std::size_t fragment = std::min(location.find('#'), location.size());
  return text.append(location.substr(fragment));
}

}  // namespace

bool is_of_its_host(std::string_view name) {
  static constexpr std::array<std::string_view, 5> kNames = {
      "set-cookie", "set-cookie2", "clear-site-data", "strict-transport-security", "alt-svc"};
  return std::ranges::any_of(
      kNames, [name](std::string_view lower) { return http::equals_lower(name, lower); });
}

bool strip_host_specific_fields(const RequestContext& request, ReceivedResponse& received) {
  http::ResponseHead& head = received.head;
  std::string text;
  http::append_status_line(head.status, head.reason, text);
  for (const http::Field& field : head.fields) {
    if (is_of_its_host(field.name)) continue;
    if (field.id == http::FieldId::kLocation) {
      http::append_field(field.name, whole(field.value, request.target), text);
    } else {
      http::append_field(field.name, field.value, text);
    }
  }
  text += "\r\n";
  // The new text is in our version; whether the connection persists depends on the origin's.
  const http::Version version = head.version;
  received.kept = std::move(text);
  received.head_bytes = received.kept;
  http::ParseError error;
  if (http::parse_response(received.kept, request.runtime->head_limits, head, error) !=
      http::ParseStatus::kComplete) {
    return false;
  }
  head.version = version;
  return true;
}

}  // namespace encore::server
