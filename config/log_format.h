// The parts of a line of the access log. Constant data, a pure function and a value, thread-safe.
// Why Apache's syntax: docs/decisions/0290.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace encore::config {

// Facts about a request that has ended. The name is that of the json format and of "%{name}x"; the
// words are those of the documentation.
//  enumerator          name                  what it is
#define ENCORE_LOG_FIELDS(X)                                                                    \
  X(kTime, "time", "arrival of the head, UTC, to the microsecond")                              \
  X(kClient, "client", "address of the client, as access lists see it")                         \
  X(kUser, "user", "name of the login")                                                         \
  X(kListener, "listener", "configured address of the listener")                                \
  X(kMethod, "method", "unchanged")                                                             \
  X(kUrl, "url", "request target, redacted")                                                    \
  X(kHost, "host", "the field `Host`")                                                          \
  X(kVersion, "version", "protocol of the client, `HTTP/1.1`")                                  \
  X(kStatus, "status", "status of the response; 0: no response")                                \
  X(kBytes, "bytes", "bytes sent to the client, head and framing included")                     \
  X(kBodyBytes, "body_bytes", "content bytes sent to the client")                               \
  X(kRequestBytes, "request_bytes", "bytes received from the client, head and content")         \
  X(kDuration, "duration_us", "microseconds until the system had the last byte")                \
  X(kFirstByte, "first_byte_us", "microseconds until the system had the first byte")            \
  X(kOutcome, "outcome", "a word of the [table](#outcomes)")                                    \
  X(kDetail, "detail", "the reason, a word of the [table](#details)")                           \
  X(kRequestId, "request_id", "[id](#ids) of the request")                                      \
  X(kTraceparent, "traceparent", "the field, if it is valid W3C Trace Context")                 \
  X(kOrigin, "origin", "connected address and port")                                            \
  X(kServer, "server", "configured URL of the `[[origin]]` server")                             \
  X(kOriginVersion, "origin_version", "protocol to the server, `HTTP/2`")                       \
  X(kConnect, "connect_us", "microseconds to open a new connection, lookup included")           \
  X(kOriginTime, "origin_us", "microseconds from the sent request to the head of the response") \
  X(kContentType, "content_type", "media type of the response")                                 \
  X(kReferer, "referer", "the field, redacted")                                                 \
  X(kUserAgent, "user_agent", "the field")                                                      \
  X(kTlsVersion, "tls_version", "TLS version of the client, `TLSv1.3`")                         \
  X(kTlsCipher, "tls_cipher", "TLS cipher of the client")                                       \
  X(kTlsResumed, "tls_resumed", "true: a resumed TLS session")                                  \
  X(kTlsServerName, "tls_server_name", "name requested by TLS (SNI)")                           \
  X(kClientSubject, "client_subject", "subject of the client's certificate")                    \
  X(kClientFingerprint, "client_fingerprint", "SHA-256 of the client's certificate")            \
  X(kIntercepted, "intercepted", "true: inside a decrypted CONNECT")
// Fields that only the formats of other programs have.
#define ENCORE_LOG_FORMS(X)                                                \
  X(kEpoch, "epoch", "`time` in seconds, with milliseconds after a point") \
  X(kOriginIp, "origin_ip", "`origin` without its port")                   \
  X(kSquidCode, "squid_code", "`outcome` in Squid's words, `TCP_MEM_HIT`") \
  X(kSquidHierarchy, "squid_hierarchy", "`HIER_DIRECT`, `FIRSTUP_PARENT` or `HIER_NONE`")

enum class LogField : std::uint8_t {
#define ENCORE_ENUMERATOR(id, name, text) id,
  ENCORE_LOG_FIELDS(ENCORE_ENUMERATOR) ENCORE_LOG_FORMS(ENCORE_ENUMERATOR)
#undef ENCORE_ENUMERATOR
  // Directives of Apache that are none of the fields above.
  kLiteral,       // text
  kNothing,       // "-"
  kLogTime,       // "[21/Nov/2026:12:57:36 +0000]"
  kRequestLine,   // method, URL and version
  kBodyOrDash,    // body_bytes, "-" where there are none
  kMilliseconds,  // the duration
  kSeconds,
  kRequestField,   // field of that name
  kResponseField,  // field of that name
  kServerName,     // the host without port
  kPort,           // the listener's
  kConnection,     // "X" cut, "+" kept, "-" closed
  kPath,           // the URL's path, without query
  kQuery,          // the URL's query, with its '?'
};

struct LogFieldText {
  LogField field;
  std::string_view name;
  std::string_view text;
};
inline constexpr auto kLogFields = std::to_array<LogFieldText>({
#define ENCORE_TEXT(id, name, text) {LogField::id, name, text},
    ENCORE_LOG_FIELDS(ENCORE_TEXT)
#undef ENCORE_TEXT
});
inline constexpr auto kLogForms = std::to_array<LogFieldText>({
#define ENCORE_TEXT(id, name, text) {LogField::id, name, text},
    ENCORE_LOG_FORMS(ENCORE_TEXT)
#undef ENCORE_TEXT
});

struct LogPart {
  LogField field = LogField::kLiteral;
  std::string text = {};  // a literal, or the name of a request's or response's field, lower case
  bool quoted = false;    // it stands between quotation marks, and may have spaces
};

struct LogFormat {
  enum class Style : std::uint8_t { kJson, kSquid, kCombined, kLine };
  Style style = Style::kJson;
  std::vector<LogPart> parts = {};  // parts of kLine

  // True if a record has the field.
  bool has(LogField field) const;
};

// "json", "squid", "combined", or a line with directives, of which at least one:
//   %h %a %l %u %t %r %s %>s %b %B %O %I %D %T %{us}T %{ms}T %{s}T %m %U %q %H %v %p %X %%
//   %{Name}i %{Name}o   the field of request or response
//   %{name}x            what ENCORE_LOG_FIELDS and ENCORE_LOG_FORMS name
// Errors: what is none of these, a control character, more than kLogLineBytesMax bytes.
Result<LogFormat> parse_log_format(std::string_view text);
inline constexpr std::size_t kLogLineBytesMax = 4096;

}  // namespace encore::config
