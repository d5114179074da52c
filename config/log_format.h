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
#define ENCORE_LOG_FIELDS(X)                                                                  \
  X(kTime, "time", "when its head was complete, by UTC, to the microsecond")                  \
  X(kClient, "client", "the client's address, as access lists see it")                        \
  X(kUser, "user", "who has logged in")                                                       \
  X(kListener, "listener", "the listener's address, as the config has it")                    \
  X(kMethod, "method", "as it came")                                                          \
  X(kUrl, "url", "the target as it came, redacted")                                           \
  X(kHost, "host", "the field `Host`")                                                        \
  X(kVersion, "version", "the client's protocol, `HTTP/1.1`")                                 \
  X(kStatus, "status", "of the response; 0: there was none")                                  \
  X(kBytes, "bytes", "sent to the client, head and framing included")                         \
  X(kBodyBytes, "body_bytes", "of these the content")                                         \
  X(kRequestBytes, "request_bytes", "that came from the client, head and content")            \
  X(kDuration, "duration_us", "microseconds until the last byte was handed to the system")    \
  X(kFirstByte, "first_byte_us", "until the first one was")                                   \
  X(kOutcome, "outcome", "what became of it, a word of the table below")                      \
  X(kDetail, "detail", "why, a word of the table below that")                                 \
  X(kRequestId, "request_id", "what it is known by, see below")                               \
  X(kTraceparent, "traceparent", "the field, where it is one of W3C Trace Context")           \
  X(kOrigin, "origin", "the address and port that was connected to")                          \
  X(kServer, "server", "of an `[[origin]]` the server, as the config has it")                 \
  X(kOriginVersion, "origin_version", "the protocol that its server was asked in, `HTTP/2`")  \
  X(kConnect, "connect_us", "for a new connection: from the search for the name to its end")  \
  X(kOriginTime, "origin_us", "from the request sent to an origin until its response's head") \
  X(kContentType, "content_type", "of the response")                                          \
  X(kReferer, "referer", "the field, redacted as a URL")                                      \
  X(kUserAgent, "user_agent", "the field")                                                    \
  X(kTlsVersion, "tls_version", "of the client's connection, `TLSv1.3`")                      \
  X(kTlsCipher, "tls_cipher", "of it")                                                        \
  X(kTlsResumed, "tls_resumed", "whether it has taken up an earlier session")                 \
  X(kTlsServerName, "tls_server_name", "that the client has asked for by TLS")                \
  X(kClientSubject, "client_subject", "of the client's certificate")                          \
  X(kClientFingerprint, "client_fingerprint", "the SHA-256 of it")                            \
  X(kIntercepted, "intercepted", "true: it came inside a CONNECT that is decrypted")
// Fields that only the formats of other programs have.
#define ENCORE_LOG_FORMS(X)                                                 \
  X(kEpoch, "epoch", "`time` as seconds, with milliseconds behind a point") \
  X(kOriginIp, "origin_ip", "`origin` without its port")                    \
  X(kSquidCode, "squid_code", "`outcome` as Squid says it, `TCP_MEM_HIT`")  \
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
