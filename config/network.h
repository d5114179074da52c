// Addresses as they are written in a config. Pure functions, thread-safe; nothing is resolved.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/error.h"

namespace encore::config {

// A numeric address and a port, or a file: where something listens.
struct Endpoint {
  std::string address;  // "127.0.0.1", "::1": without brackets
  std::uint16_t port = 0;
  std::string socket = {};  // absolute, of a Unix socket; empty: address and port
  friend bool operator==(const Endpoint&, const Endpoint&) = default;
};

// Reads "127.0.0.1:3128", "[::1]:3128", "*:3128" (every IPv6 and IPv4 address: "::"). Port 0 is
// any free port. Errors: not of these forms; a host name, for nothing is resolved here.
Result<Endpoint> parse_endpoint(std::string_view text);
std::string to_string(const Endpoint& endpoint);

// The same, or "unix:/run/encore.sock". Errors: a file name that is not absolute or has more than
// kSocketNameBytesMax bytes.
Result<Endpoint> parse_listen_endpoint(std::string_view text);
inline constexpr std::size_t kSocketNameBytesMax = 100;  // 107 is what the system takes

// The permissions of a file: "0660". Errors: no octal number, more than 0777.
Result<unsigned> parse_socket_mode(std::string_view text);

// Parses the address of a name server: "192.0.2.53", "2001:db8::1" (port 53), or with a port as
// parse_endpoint() has it. Errors: not of these forms, port 0, "*".
Result<Endpoint> parse_nameserver(std::string_view text);

// Address of an origin.
struct ServerUrl {
  bool tls = false;
  std::string host;  // a name in lower case or a numeric address without brackets
  std::uint16_t port = 80;
  std::string socket = {};  // absolute, of a Unix socket; empty: host and port
  friend bool operator==(const ServerUrl&, const ServerUrl&) = default;
};

// Reads "http://host[:port]" and "https://host[:port]", with or without a final "/". Errors: any
// other scheme, user information, a path, a query, an empty host, a port outside 1..65535.
Result<ServerUrl> parse_server_url(std::string_view text);

// The same, or "unix:/run/app.sock", whose host is "localhost". Errors as parse_listen_endpoint().
Result<ServerUrl> parse_origin_server(std::string_view text);

// A server of an origin, and its part in it.
inline constexpr std::uint32_t kWeightMax = 100;
struct ServerEntry : ServerUrl {
  std::uint32_t weight = 1;  // 1 .. kWeightMax
  bool backup = false;       // used if none of the others is available
  friend bool operator==(const ServerEntry&, const ServerEntry&) = default;
};

// Reads a URL as parse_origin_server() has it and, behind it, "weight=N" and "backup", in any
// order, each once, with spaces between. Errors: those of the URL; anything else behind it.
Result<ServerEntry> parse_server(std::string_view text);

// A block of addresses. IPv4 is kept as IPv4-mapped IPv6, so that a client seen as
// ::ffff:10.0.0.1 matches 10.0.0.0/8.
struct Cidr {
  std::array<std::uint8_t, 16> address{};
  std::uint8_t prefix_bits = 128;  // 96 + n for IPv4
  bool contains(const std::array<std::uint8_t, 16>& other) const noexcept;
  friend bool operator==(const Cidr&, const Cidr&) = default;
};

// Reads "10.0.0.0/8", "192.0.2.7", "2001:db8::/32". Errors: not an address, a prefix that is too
// long, bits set behind the prefix (the message shows the block that was probably meant).
Result<Cidr> parse_cidr(std::string_view text);

// Ports, closed.
struct PortRange {
  std::uint16_t first = 0;
  std::uint16_t last = 0;
  bool contains(std::uint16_t port) const noexcept { return first <= port && port <= last; }
  friend bool operator==(const PortRange&, const PortRange&) = default;
};

// Reads "443" and "1025-65535". Errors: no port of 1..65535, an end in front of the beginning.
Result<PortRange> parse_port_range(std::string_view text);

// How many of the connections that there may be one client may use: "50%", "100", or "0" for all of
// them.
struct ClientShare {
  std::uint32_t percent = 100;    // 1 .. 100
  std::uint32_t connections = 0;  // 0: as many as the percentage says
};
Result<ClientShare> parse_client_share(std::string_view text);

}  // namespace encore::config
