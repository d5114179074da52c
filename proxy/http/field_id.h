// FieldId: the field names the proxy knows, each classified once by the parser, so that nothing
// behind it compares strings. Pure, thread-safe.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string_view>

namespace encore::http {

// One line a field: enumerator, name in lower case. At most 63 lines: a set of fields is one
// 64-bit word.
#define ENCORE_HTTP_FIELDS(X)                              \
  X(kAccept, "accept")                                     \
  X(kAcceptEncoding, "accept-encoding")                    \
  X(kAcceptLanguage, "accept-language")                    \
  X(kAcceptRanges, "accept-ranges")                        \
  X(kAge, "age")                                           \
  X(kAllow, "allow")                                       \
  X(kAltSvc, "alt-svc")                                    \
  X(kAuthenticationInfo, "authentication-info")            \
  X(kAuthorization, "authorization")                       \
  X(kCacheControl, "cache-control")                        \
  X(kCacheStatus, "cache-status")                          \
  X(kCacheTag, "cache-tag")                                \
  X(kCdnCacheControl, "cdn-cache-control")                 \
  X(kCdnLoop, "cdn-loop")                                  \
  X(kConnection, "connection")                             \
  X(kContentDisposition, "content-disposition")            \
  X(kContentEncoding, "content-encoding")                  \
  X(kContentLanguage, "content-language")                  \
  X(kContentLength, "content-length")                      \
  X(kContentLocation, "content-location")                  \
  X(kContentRange, "content-range")                        \
  X(kContentType, "content-type")                          \
  X(kCookie, "cookie")                                     \
  X(kDate, "date")                                         \
  X(kEtag, "etag")                                         \
  X(kExpect, "expect")                                     \
  X(kExpires, "expires")                                   \
  X(kForwarded, "forwarded")                               \
  X(kHost, "host")                                         \
  X(kHttp2Settings, "http2-settings")                      \
  X(kIfMatch, "if-match")                                  \
  X(kIfModifiedSince, "if-modified-since")                 \
  X(kIfNoneMatch, "if-none-match")                         \
  X(kIfRange, "if-range")                                  \
  X(kIfUnmodifiedSince, "if-unmodified-since")             \
  X(kKeepAlive, "keep-alive")                              \
  X(kLastModified, "last-modified")                        \
  X(kLocation, "location")                                 \
  X(kMaxForwards, "max-forwards")                          \
  X(kPragma, "pragma")                                     \
  X(kProxyAuthenticate, "proxy-authenticate")              \
  X(kProxyAuthenticationInfo, "proxy-authentication-info") \
  X(kProxyAuthorization, "proxy-authorization")            \
  X(kProxyConnection, "proxy-connection")                  \
  X(kRange, "range")                                       \
  X(kReferer, "referer")                                   \
  X(kRetryAfter, "retry-after")                            \
  X(kServer, "server")                                     \
  X(kSetCookie, "set-cookie")                              \
  X(kSurrogateControl, "surrogate-control")                \
  X(kSurrogateKey, "surrogate-key")                        \
  X(kTe, "te")                                             \
  X(kTrailer, "trailer")                                   \
  X(kTransferEncoding, "transfer-encoding")                \
  X(kUpgrade, "upgrade")                                   \
  X(kUserAgent, "user-agent")                              \
  X(kVary, "vary")                                         \
  X(kVia, "via")                                           \
  X(kWwwAuthenticate, "www-authenticate")                  \
  X(kXForwardedFor, "x-forwarded-for")                     \
  X(kXForwardedHost, "x-forwarded-host")                   \
  X(kXForwardedProto, "x-forwarded-proto")

enum class FieldId : std::uint8_t {
  kOther = 0,  // a name that is not in the table
#define ENCORE_HTTP_FIELD(id, name) id,
  ENCORE_HTTP_FIELDS(ENCORE_HTTP_FIELD)
#undef ENCORE_HTTP_FIELD
      kCount_
};
static_assert(static_cast<unsigned>(FieldId::kCount_) <= 64);

// The id of a field name in any case; kOther for a name that is not in the table. A name that is
// found is made of letters and '-' only, so it is a valid token.
FieldId classify_field(std::string_view name) noexcept;

// The name in lower case; empty for kOther.
std::string_view field_name(FieldId id) noexcept;

// A set of FieldIds in one word.
class FieldSet {
 public:
  constexpr FieldSet() = default;
  constexpr FieldSet(std::initializer_list<FieldId> ids) noexcept {
    for (const FieldId id : ids) insert(id);
  }
  constexpr void insert(FieldId id) noexcept { bits_ |= bit(id); }
  constexpr void insert(FieldSet other) noexcept { bits_ |= other.bits_; }
  constexpr bool has(FieldId id) const noexcept { return (bits_ & bit(id)) != 0; }
  constexpr bool intersects(FieldSet other) const noexcept { return (bits_ & other.bits_) != 0; }
  constexpr bool empty() const noexcept { return bits_ == 0; }
  constexpr void erase(FieldId id) noexcept { bits_ &= ~bit(id); }
  constexpr void clear() noexcept { bits_ = 0; }

 private:
  static constexpr std::uint64_t bit(FieldId id) noexcept {
    return std::uint64_t{1} << static_cast<unsigned>(id);
  }
  std::uint64_t bits_ = 0;
};

}  // namespace encore::http
