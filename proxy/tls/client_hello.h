// ClientHello: what a TLS client says first, in the clear (RFC 8446 4.1.2, RFC 5246 7.4.1.2): the
// host that it wants, the protocols and the versions that it speaks. Pure, thread-safe.
//
// Strict, for its result decides the treatment of a connection, and another reader of the same
// bytes follows. A length that does not fit, a repeated extension, or an invalid name makes all of
// it malformed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace encore::tls {

struct ClientHello {
  std::string server_name;             // a host name, lower case; empty: none is said
  std::vector<std::string> protocols;  // from ALPN, in the client's order; empty: none
  // In the client's order; without supported_versions the one of the message itself.
  std::vector<std::uint16_t> versions;

  bool offers(std::string_view protocol) const;
  bool speaks(std::uint16_t version) const;
};

inline constexpr std::uint16_t kTls12 = 0x0303;
inline constexpr std::uint16_t kTls13 = 0x0304;

enum class HelloStatus : std::uint8_t {
  kIncomplete,  // it may become one
  kComplete,
  kNotTls,     // something else than a handshake of TLS begins here
  kMalformed,  // one, but not to the letter, or beyond a limit
};

// Limits of the message, and of the records that it may be cut into. Real ones take 200 to 2,000
// bytes and a record or two.
inline constexpr std::size_t kHelloBytesMax = 16 * 1024;
inline constexpr std::size_t kHelloRecordsMax = 64;
inline constexpr std::size_t kRecordHeaderBytes = 5;
// A buffer of this size is always enough for a decision.
inline constexpr std::size_t kHelloInputMax =
    kHelloBytesMax + kHelloRecordsMax * kRecordHeaderBytes;

// Reads the message at the beginning of `input`, which may end anywhere. Says kNotTls and
// kMalformed as soon as no continuation of the records read so far could make it good. `hello` is
// set where it is complete. Bytes behind the record in which it ends are ignored.
HelloStatus parse_client_hello(std::string_view input, ClientHello& hello);

// True if `name` may stand in an SNI (RFC 6066 3): a host name in lower case, no address, no dot at
// its end.
bool is_server_name(std::string_view name);

}  // namespace encore::tls
