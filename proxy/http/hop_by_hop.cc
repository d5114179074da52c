#include "proxy/http/hop_by_hop.h"

#include <algorithm>
#include <array>

#include "proxy/http/list.h"

namespace encore::http {
namespace {

// RFC 9110 7.6.1, and the proxy's own authentication (11.7), which ends here.
constexpr FieldSet kAlwaysDropped = {
    FieldId::kConnection,
    FieldId::kKeepAlive,
    FieldId::kProxyConnection,
    FieldId::kTe,
    FieldId::kTransferEncoding,
    FieldId::kUpgrade,
    FieldId::kProxyAuthenticate,
    FieldId::kProxyAuthorization,
    FieldId::kProxyAuthenticationInfo,
    FieldId::kHttp2Settings,
};

// For all recipients, whatever Connection says (RFC 9110 7.6.1: "never appropriate").
constexpr FieldSet kProtected = {
    FieldId::kAge,
    FieldId::kAuthorization,
    FieldId::kCacheControl,
    FieldId::kCacheStatus,
    FieldId::kCdnCacheControl,
    FieldId::kCdnLoop,
    FieldId::kContentEncoding,
    FieldId::kContentLength,
    FieldId::kContentLocation,
    FieldId::kContentRange,
    FieldId::kContentType,
    FieldId::kCookie,
    FieldId::kDate,
    FieldId::kEtag,
    FieldId::kExpect,
    FieldId::kExpires,
    FieldId::kForwarded,
    FieldId::kHost,
    FieldId::kIfMatch,
    FieldId::kIfModifiedSince,
    FieldId::kIfNoneMatch,
    FieldId::kIfRange,
    FieldId::kIfUnmodifiedSince,
    FieldId::kLastModified,
    FieldId::kLocation,
    FieldId::kMaxForwards,
    FieldId::kPragma,
    FieldId::kRange,
    FieldId::kSetCookie,
    FieldId::kTrailer,
    FieldId::kVary,
    FieldId::kVia,
    FieldId::kWwwAuthenticate,
    FieldId::kXForwardedFor,
    FieldId::kXForwardedHost,
    FieldId::kXForwardedProto,
};

// RFC 9110 6.5.1.
constexpr FieldSet kNotInTrailer = {
    FieldId::kAge,
    FieldId::kAuthorization,
    FieldId::kCacheControl,
    FieldId::kContentLength,
    FieldId::kContentEncoding,
    FieldId::kContentRange,
    FieldId::kContentType,
    FieldId::kCookie,
    FieldId::kDate,
    FieldId::kExpect,
    FieldId::kExpires,
    FieldId::kForwarded,
    FieldId::kHost,
    FieldId::kIfMatch,
    FieldId::kIfModifiedSince,
    FieldId::kIfNoneMatch,
    FieldId::kIfRange,
    FieldId::kIfUnmodifiedSince,
    FieldId::kLocation,
    FieldId::kMaxForwards,
    FieldId::kPragma,
    FieldId::kRange,
    FieldId::kRetryAfter,
    FieldId::kSetCookie,
    FieldId::kTrailer,
    FieldId::kVary,
    FieldId::kWwwAuthenticate,
    FieldId::kCdnCacheControl,
    FieldId::kXForwardedFor,
    FieldId::kXForwardedHost,
    FieldId::kXForwardedProto,
};

bool persists(const Fields& fields, FieldId connection, Version version) noexcept {
  if (fields.list_has(connection, "close")) return false;
  return version != Version::kHttp10 || fields.list_has(connection, "keep-alive");
}

}  // namespace

HopByHop::HopByHop(const Fields& fields) noexcept : fields_(fields), dropped_(kAlwaysDropped) {
  fields.for_each_member(FieldId::kConnection, [this](std::string_view member) {
    const FieldId id = classify_field(member);
    if (id == FieldId::kOther) {
      ++others_;
    } else if (!kProtected.has(id)) {
      dropped_.insert(id);
    }
  });
}

// REQUIRES: a name outside the table.
bool HopByHop::is_listed(const Field& field) const noexcept {
  if (others_ > kListedNamesMax) return true;
  bool listed = false;
  fields_.for_each_member(FieldId::kConnection, [&](std::string_view member) {
    listed = listed || equals_ignoring_case(member, field.name);
  });
  return listed;
}

bool keep_alive(const RequestHead& head) noexcept {
  const FieldId connection =
      head.fields.has(FieldId::kConnection) ? FieldId::kConnection : FieldId::kProxyConnection;
  return persists(head.fields, connection, head.version);
}

bool keep_alive(const ResponseHead& head) noexcept {
  return persists(head.fields, FieldId::kConnection, head.version);
}

namespace {

// name[/version], of tokens.
bool is_protocol(std::string_view member) noexcept {
  const std::size_t slash = member.find('/');
  return is_token(member.substr(0, slash)) &&
         (slash == std::string_view::npos || is_token(member.substr(slash + 1)));
}

bool is_http_or_tls(std::string_view protocol) noexcept {
  const std::string_view name = protocol.substr(0, protocol.find('/'));
  return std::ranges::any_of(std::to_array<std::string_view>({"h2c", "h2", "http", "tls"}),
                             [name](std::string_view known) { return equals_lower(name, known); });
}

}  // namespace

std::string asked_upgrade(const RequestHead& head) {
  std::string asked;
  if (!head.fields.has(FieldId::kUpgrade) || head.version == Version::kHttp10 ||
      !head.fields.list_has(FieldId::kConnection, "upgrade")) {
    return asked;
  }
  std::size_t protocols = 0;
  head.fields.for_each_member(FieldId::kUpgrade, [&](std::string_view member) {
    if (!is_protocol(member) || is_http_or_tls(member)) return;
    if (++protocols > kUpgradeProtocolsMax) return;
    if (!asked.empty()) asked += ", ";
    asked += member;
  });
  return asked;
}

std::string switched_protocol(std::string_view asked, const ResponseHead& head) {
  std::string switched;
  bool all_asked = true;
  head.fields.for_each_member(FieldId::kUpgrade, [&](std::string_view member) {
    ListReader offers(asked);
    std::string_view offer;
    bool found = false;
    while (!found && offers.next(offer)) found = equals_ignoring_case(offer, member);
    all_asked = all_asked && found;
    if (!found) return;
    if (!switched.empty()) switched += ", ";
    switched += member;
  });
  return all_asked ? switched : std::string();
}

bool accepts_trailers(const RequestHead& head) noexcept {
  return head.version != Version::kHttp10 && head.fields.list_has(FieldId::kTe, "trailers");
}

bool allowed_in_trailer(const Field& field) noexcept {
  return field.id == FieldId::kOther ||
         (!kNotInTrailer.has(field.id) && !kAlwaysDropped.has(field.id));
}

}  // namespace encore::http
