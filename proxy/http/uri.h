// Request targets, Host and the primary cache key (RFC 9112 3.2 and 3.3, RFC 9110 4.2 and 7.2,
// RFC 3986 5 and 6.2.2). Pure functions without allocation, thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "proxy/http/message.h"

namespace encore::http {

enum class TargetForm : std::uint8_t {
  kOrigin,     // /path?query
  kAbsolute,   // http://host:port/path?query
  kAuthority,  // host:port, of CONNECT only
  kAsterisk,   // *, only for OPTIONS
};

enum class Scheme : std::uint8_t { kHttp, kHttps };
constexpr std::uint16_t default_port(Scheme scheme) noexcept {
  return scheme == Scheme::kHttp ? 80 : 443;
}
constexpr std::string_view to_string(Scheme scheme) noexcept {
  return scheme == Scheme::kHttp ? "http" : "https";
}

struct Authority {
  std::string_view host;   // as sent; an IPv6 literal without its brackets
  std::uint16_t port = 0;  // 0: none given
  bool ipv6 = false;
};

// Reads host[:port]. Hosts are letters, digits, '-', '.', '_' or an IPv6 literal in brackets;
// percent-encoding, sub-delimiters and user information are refused, as are ports outside
// 1..65535. "host:" counts as without port. False if malformed or the host is empty.
bool parse_authority(std::string_view text, Authority& authority) noexcept;

// The target URI of a request. Views point into the head.
struct Target {
  TargetForm form = TargetForm::kOrigin;
  Scheme scheme = Scheme::kHttp;
  Authority authority;     // empty host: HTTP/1.0 without Host, or "*" with an empty Host
  std::string_view path;   // begins with '/', or empty
  std::string_view query;  // without '?'
  bool has_query = false;
  std::uint16_t port() const noexcept {
    return authority.port != 0 ? authority.port : default_port(scheme);
  }
  void rebase(const Rebase& rebase) noexcept {
    rebase(authority.host);
    rebase(path);
    rebase(query);
  }
};

enum class TargetStatus : std::uint8_t {
  kOk,
  kBadTarget,          // 400: no valid form, or a form its method may not have
  kBadHost,            // 400: Host is malformed
  kSeveralHosts,       // 400
  kMissingHost,        // 400: HTTP/1.1 without Host, or with an empty one where one is needed
  kUserinfo,           // 400: user information in the authority (RFC 9110 4.2.4)
  kUnsupportedScheme,  // 400: not http or https
};
std::string_view to_string(TargetStatus status) noexcept;

// Finds the target URI. The authority of an absolute-form wins over Host, which the forwarder
// must then replace by it (RFC 9112 3.2.2); a Host that differs is no error, an invalid one is.
// `scheme` is the listener's, used where the target names none.
TargetStatus resolve_target(const RequestHead& head, Scheme scheme, Target& target) noexcept;

// Reads an http or https URI outside a request line (Location, purge): a fragment is dropped.
// Relative references are resolved against `base`. The path that results is written to
// `storage` where it cannot be a view. False if malformed, or of another scheme.
bool resolve_reference(std::string_view reference, const Target& base, std::string& storage,
                       Target& target);

// True if two URIs share scheme, host (in any case) and port (RFC 9110 4.3.1).
bool same_origin(const Target& a, const Target& b) noexcept;

// Makes it a URI of `scheme`: a port that was its own scheme's default stays the default. For
// those who answer for http and https as one, whatever stands in front of them.
void set_scheme(Target& target, Scheme scheme) noexcept;

struct KeyOptions {
  bool sort_query = false;  // parameters in byte order, stable
  std::vector<std::string> drop_query =
      {};  // parameters to leave out: a name, or a prefix with '*'
  // Removes all parameters except these; nothing: keeps all. An empty list removes all.
  std::optional<std::vector<std::string>> keep_query = {};
  // The scheme of all URIs, whatever they say; nothing: the one that they say.
  std::optional<Scheme> scheme = {};
};

// The bytes that write_key may need for this target.
std::size_t key_bytes_max(const Target& target) noexcept;

// Offsets of the parts of a normalised target URI, and its length.
struct KeyText {
  std::size_t authority = 0;  // "host[:port]"
  std::size_t path = 0;       // "/path[?query]"
  std::size_t bytes = 0;
};

// The host of a normalised target URI, without its port.
std::string_view host_of(std::string_view uri, const KeyText& parts) noexcept;

// Writes the normalised target URI "scheme://host[:port]/path[?query]" and returns its parts.
// Normal form has scheme and host in lower case, default port omitted, percent-encoded unreserved
// characters decoded and the other escapes in capitals, dot segments removed, and the query byte
// for byte unless options change it. REQUIRES: out.size() >= key_bytes_max(target); the form is
// kOrigin or kAbsolute.
KeyText write_key(const Target& target, const KeyOptions& options, std::span<char> out);

// Returns the target in the request line to an origin server: path and query as write_key() has
// written them (`key_path`), so that the response belongs to the key; "*" for the asterisk-form and
// for OPTIONS without path and query (RFC 9112 3.2.4). Why not the path as it was sent:
// docs/decisions/0052.
std::string_view origin_form(const Target& target, Method method,
                             std::string_view key_path) noexcept;

// Writes "host[:port]" for a Host field, the port only where it is not the scheme's default.
// REQUIRES: out.size() >= host size + 8, or kHostTextBytesMax.
inline constexpr std::size_t kHostBytesMax = 255;  // longer ones are refused
inline constexpr std::size_t kHostTextBytesMax = kHostBytesMax + 8;
std::size_t write_host(const Target& target, std::span<char> out) noexcept;

}  // namespace encore::http
