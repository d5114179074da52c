// Address: an IPv4 or IPv6 address with a port. A value, thread-compatible, no I/O: names are the
// Resolver's.
//
// scope() says what an address may reach. It unwraps the forms that carry an IPv4 address inside an
// IPv6 one, so that ::ffff:127.0.0.1 is as much loopback as 127.0.0.1.
#pragma once

#include <netinet/in.h>
#include <sys/socket.h>

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace encore::net {

// The destination of packets to an address. Anything but kGlobal is special (RFC 6890 and the
// registries it points to).
enum class Scope : std::uint8_t {
  kGlobal,
  kLoopback,     // 127.0.0.0/8, ::1
  kPrivate,      // RFC 1918, 100.64.0.0/10 (RFC 6598), fc00::/7, fec0::/10
  kLinkLocal,    // 169.254.0.0/16, fe80::/10
  kUnspecified,  // 0.0.0.0/8, ::
  kMulticast,    // 224.0.0.0/4, ff00::/8
  kReserved,     // broadcast, 240.0.0.0/4, benchmarking, documentation, discard, ...
};
std::string_view to_string(Scope scope);

class Address {
 public:
  // 0.0.0.0 port 0.
  Address();
  // REQUIRES: family AF_INET or AF_INET6 with the size that goes with it; use from_sockaddr
  // where the source is not the kernel.
  explicit Address(const sockaddr_in& v4);
  explicit Address(const sockaddr_in6& v6);
  // Empty for other families (AF_UNIX) and short sizes.
  static std::optional<Address> from_sockaddr(const sockaddr* address, socklen_t size);
  static Address loopback_v4(std::uint16_t port);
  static Address loopback_v6(std::uint16_t port);

  // Reads a bare "127.0.0.1" or "::1" (brackets accepted). Strict dotted decimal: "127.1",
  // "0x7f.0.0.1" and "0177.0.0.1" are not addresses. Empty: not an address.
  static std::optional<Address> parse_ip(std::string_view text, std::uint16_t port);

  bool is_v4() const { return storage_.v4.sin_family == AF_INET; }
  bool is_v6() const { return !is_v4(); }
  int family() const { return storage_.v4.sin_family; }
  std::uint16_t port() const;
  void set_port(std::uint16_t port);

  // "127.0.0.1:80" or "[::1]:80".
  std::string to_string() const;
  // "127.0.0.1" or "::1".
  std::string ip_string() const;

  // One client, as limits count it: "127.0.0.1", or the network of 64 bits, "2001:db8:0:1::/64".
  std::string client_string() const;

  // The IPv4 address inside: this one, or what an IPv4-mapped, IPv4-compatible, IPv4-translated,
  // NAT64 (64:ff9b::/96, 64:ff9b:1::/48), 6to4 (2002::/16) or Teredo (2001::/32: the client's)
  // address carries. The port is kept.
  std::optional<Address> embedded_v4() const;
  // IPv4-mapped becomes IPv4, everything else stays: the form in which addresses are compared.
  Address canonical() const;

  // The scope of the address; where one IPv4 address is embedded and its scope is special, that
  // one.
  Scope scope() const;
  bool is_loopback() const { return scope() == Scope::kLoopback; }
  bool is_private() const { return scope() == Scope::kPrivate; }
  bool is_link_local() const { return scope() == Scope::kLinkLocal; }
  bool is_unspecified() const { return scope() == Scope::kUnspecified; }
  bool is_multicast() const { return scope() == Scope::kMulticast; }
  bool is_global() const { return scope() == Scope::kGlobal; }

  const sockaddr* data() const { return &storage_.any; }
  socklen_t size() const { return is_v4() ? sizeof(sockaddr_in) : sizeof(sockaddr_in6); }

  // The 16 bytes of the IPv6 address, or of the IPv4-mapped one: what blocks of addresses are
  // compared with. An IPv4-mapped address and its IPv4 address give the same.
  std::array<std::uint8_t, 16> mapped_bytes() const;

  // The same with what stands behind the network's bits cleared: what makes one client.
  struct NetworkBits {
    unsigned v4 = 32;
    unsigned v6 = 64;  // the network of one subscriber
  };
  std::array<std::uint8_t, 16> network_bytes(NetworkBits bits) const;
  std::array<std::uint8_t, 16> network_bytes() const { return network_bytes(NetworkBits()); }

  // Compares canonical IP and port.
  friend bool operator==(const Address& a, const Address& b);
  // Compares canonical IPs only.
  bool same_ip(const Address& other) const;

 private:
  union Storage {
    sockaddr any;
    sockaddr_in v4;
    sockaddr_in6 v6;
  } storage_;
};

}  // namespace encore::net
