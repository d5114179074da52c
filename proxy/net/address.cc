#include "proxy/net/address.h"

#include <arpa/inet.h>

#include <algorithm>
#include <cstring>

#include "base/check.h"

namespace encore::net {
namespace {

using Bytes16 = std::array<std::uint8_t, 16>;

// A block of addresses; `bytes` has as many as the prefix needs, zeroes behind.
struct Block {
  Bytes16 bytes;
  unsigned prefix_bits;
  Scope scope;
};

// Each byte in decimal digits, as few as will do, with a dot in front.
struct DottedByte {
  std::array<char, 4> text{};
  std::uint32_t size = 0;
};
constexpr auto kDottedBytes = [] {
  std::array<DottedByte, 256> table{};
  for (std::uint32_t byte = 0; byte < table.size(); ++byte) {
    DottedByte& entry = table[byte];
    const auto put = [&](std::uint32_t digit) {
      entry.text[entry.size++] = static_cast<char>('0' + digit % 10);
    };
    entry.text[entry.size++] = '.';
    if (byte >= 100) put(byte / 100);
    if (byte >= 10) put(byte / 10);
    put(byte);
  }
  return table;
}();

// Each request has its client's address written: twenty times faster than inet_ntop.
std::string dotted(const std::uint8_t* bytes) {
  std::array<char, 4 * sizeof(DottedByte::text)> text;
  char* end = text.data();
  for (int i = 0; i < 4; ++i) {
    const DottedByte& each = kDottedBytes[bytes[i]];
    std::ranges::copy(each.text, end);
    end += each.size;
  }
  return {text.data() + 1, end};
}

constexpr unsigned kV4Bits = 96;  // prefix of the mapped form, before the IPv4 address itself

// Each request asks for the scope of an IPv4 address: a block is two words for that.
struct V4Block {
  std::uint32_t network;
  std::uint32_t mask;
  Scope scope;
};
constexpr std::uint32_t v4_word(std::uint8_t a, std::uint8_t b, std::uint8_t c, std::uint8_t d) {
  return std::uint32_t{a} << 24U | std::uint32_t{b} << 16U | std::uint32_t{c} << 8U | d;
}
constexpr V4Block v4(std::uint8_t a, std::uint8_t b, std::uint8_t c, unsigned prefix, Scope scope) {
  return {v4_word(a, b, c, 0), ~std::uint32_t{0} << (32 - prefix), scope};
}

// IANA's special-purpose registries (RFC 6890 and after). The first match counts.
constexpr V4Block kV4Blocks[] = {
    v4(0, 0, 0, 8, Scope::kUnspecified),    v4(10, 0, 0, 8, Scope::kPrivate),
    v4(100, 64, 0, 10, Scope::kPrivate),    v4(127, 0, 0, 8, Scope::kLoopback),
    v4(169, 254, 0, 16, Scope::kLinkLocal), v4(172, 16, 0, 12, Scope::kPrivate),
    v4(192, 0, 0, 24, Scope::kReserved),    v4(192, 0, 2, 24, Scope::kReserved),
    v4(192, 88, 99, 24, Scope::kReserved),  v4(192, 168, 0, 16, Scope::kPrivate),
    v4(198, 18, 0, 15, Scope::kReserved),   v4(198, 51, 100, 24, Scope::kReserved),
    v4(203, 0, 113, 24, Scope::kReserved),  v4(224, 0, 0, 4, Scope::kMulticast),
    v4(240, 0, 0, 4, Scope::kReserved),
};

constexpr Block kV6Blocks[] = {
    {{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1}, 128, Scope::kLoopback},
    {{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}, 128, Scope::kUnspecified},
    {{0x01}, 64, Scope::kReserved},                    // 100::/64, discard
    {{0x20, 0x01, 0x0d, 0xb8}, 32, Scope::kReserved},  // documentation
    {{0x20, 0x01, 0x00, 0x02}, 48, Scope::kReserved},  // benchmarking
    {{0x20, 0x01, 0x00, 0x10}, 28, Scope::kReserved},  // ORCHID
    {{0x20, 0x01, 0x00, 0x20}, 28, Scope::kReserved},  // ORCHIDv2
    {{0x3f, 0xff}, 20, Scope::kReserved},              // documentation
    {{0x5f, 0x00}, 16, Scope::kReserved},              // segment routing
    {{0xfc}, 7, Scope::kPrivate},
    {{0xfe, 0x80}, 10, Scope::kLinkLocal},
    {{0xfe, 0xc0}, 10, Scope::kPrivate},  // site-local, withdrawn but still routed inside sites
    {{0xff}, 8, Scope::kMulticast},
    {{0x20}, 3, Scope::kGlobal},                     // all that is given out: 2000::/3
    {{0x00, 0x64, 0xff, 0x9b}, 96, Scope::kGlobal},  // NAT64, as what it carries
    {{0x00, 0x64, 0xff, 0x9b, 0x00, 0x01}, 48, Scope::kReserved},      // NAT64 of a site
    {{0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0, 0}, 96, Scope::kGlobal},  // IPv4-translated
    {{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}, 96, Scope::kReserved},      // IPv4-compatible
    {{0}, 0, Scope::kReserved},                                        // the rest is not in use
};

bool in_block(const Bytes16& bytes, const Bytes16& network, unsigned prefix_bits) {
  const unsigned whole = prefix_bits / 8;
  if (std::memcmp(bytes.data(), network.data(), whole) != 0) return false;
  const unsigned rest = prefix_bits % 8;
  return rest == 0 || ((bytes[whole] ^ network[whole]) >> (8 - rest)) == 0;
}

Scope v4_scope(std::uint32_t word) {
  for (const V4Block& block : kV4Blocks) {
    if ((word & block.mask) == block.network) return block.scope;
  }
  return Scope::kGlobal;
}

Scope v4_scope_at_end(const Bytes16& bytes) {
  return v4_scope(v4_word(bytes[12], bytes[13], bytes[14], bytes[15]));
}

Scope v6_scope(const Bytes16& bytes) {
  for (const Block& block : kV6Blocks) {
    if (in_block(bytes, block.bytes, block.prefix_bits)) return block.scope;
  }
  return Scope::kGlobal;
}

bool starts_with(const Bytes16& bytes, std::initializer_list<std::uint8_t> prefix) {
  return std::equal(prefix.begin(), prefix.end(), bytes.begin());
}

Address v4_at(const Bytes16& bytes, std::size_t offset, std::uint16_t port, std::uint8_t mask = 0) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  std::uint8_t quad[4];
  for (std::size_t i = 0; i < 4; ++i) {
    quad[i] = static_cast<std::uint8_t>(bytes[offset + i] ^ mask);
  }
  std::memcpy(&address.sin_addr, quad, sizeof quad);
  return Address(address);
}

bool is_mapped(const Bytes16& bytes) {
  return starts_with(bytes, {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff});
}

}  // namespace

std::string_view to_string(Scope scope) {
  switch (scope) {
    case Scope::kGlobal:
      return "global";
    case Scope::kLoopback:
      return "loopback";
    case Scope::kPrivate:
      return "private";
    case Scope::kLinkLocal:
      return "link-local";
    case Scope::kUnspecified:
      return "unspecified";
    case Scope::kMulticast:
      return "multicast";
    case Scope::kReserved:
      return "reserved";
  }
  return "unknown";
}

Address::Address()
    : Address(sockaddr_in{.sin_family = AF_INET, .sin_port = 0, .sin_addr = {}, .sin_zero = {}}) {}

Address::Address(const sockaddr_in& v4) : storage_{} { storage_.v4 = v4; }

Address::Address(const sockaddr_in6& v6) : storage_{} { storage_.v6 = v6; }

std::optional<Address> Address::from_sockaddr(const sockaddr* address, socklen_t size) {
  if (size >= sizeof(sockaddr_in) && address->sa_family == AF_INET) {
    sockaddr_in v4;
    std::memcpy(&v4, address, sizeof v4);
    return Address(v4);
  }
  if (size >= sizeof(sockaddr_in6) && address->sa_family == AF_INET6) {
    sockaddr_in6 v6;
    std::memcpy(&v6, address, sizeof v6);
    return Address(v6);
  }
  return std::nullopt;
}

Address Address::loopback_v4(std::uint16_t port) { return *parse_ip("127.0.0.1", port); }

Address Address::loopback_v6(std::uint16_t port) { return *parse_ip("::1", port); }

std::optional<Address> Address::parse_ip(std::string_view text, std::uint16_t port) {
  if (text.size() >= 2 && text.front() == '[' && text.back() == ']') {
    text = text.substr(1, text.size() - 2);
    if (text.find(':') == std::string_view::npos) return std::nullopt;
  }
  char buffer[INET6_ADDRSTRLEN];
  if (text.size() >= sizeof buffer || text.find('\0') != std::string_view::npos) return {};
  std::memcpy(buffer, text.data(), text.size());
  buffer[text.size()] = '\0';
  sockaddr_in v4{};
  if (inet_pton(AF_INET, buffer, &v4.sin_addr) == 1) {
    v4.sin_family = AF_INET;
    v4.sin_port = htons(port);
    return Address(v4);
  }
  sockaddr_in6 v6{};
  if (inet_pton(AF_INET6, buffer, &v6.sin6_addr) == 1) {
    v6.sin6_family = AF_INET6;
    v6.sin6_port = htons(port);
    return Address(v6);
  }
  return std::nullopt;
}

std::uint16_t Address::port() const {
  return ntohs(is_v4() ? storage_.v4.sin_port : storage_.v6.sin6_port);
}

void Address::set_port(std::uint16_t port) {
  if (is_v4()) {
    storage_.v4.sin_port = htons(port);
  } else {
    storage_.v6.sin6_port = htons(port);
  }
}

std::string Address::ip_string() const {
  if (is_v4()) return dotted(reinterpret_cast<const std::uint8_t*>(&storage_.v4.sin_addr));
  char buffer[INET6_ADDRSTRLEN];
  return inet_ntop(AF_INET6, &storage_.v6.sin6_addr, buffer, sizeof buffer);
}

std::string Address::to_string() const {
  const std::string ip = ip_string();
  return (is_v4() ? ip : "[" + ip + "]") + ":" + std::to_string(port());
}

std::string Address::client_string() const {
  if (is_v4()) return ip_string();
  const Bytes16 bytes = network_bytes();
  constexpr std::size_t kV4Offset = 12;
  if (is_mapped(bytes)) return dotted(bytes.data() + kV4Offset);
  std::array<char, INET6_ADDRSTRLEN> text{};
  ::inet_ntop(AF_INET6, bytes.data(), text.data(), text.size());
  return std::string(text.data()) + "/64";
}

Bytes16 Address::mapped_bytes() const {
  Bytes16 bytes{};
  if (is_v4()) {
    bytes[10] = bytes[11] = 0xff;
    std::memcpy(bytes.data() + 12, &storage_.v4.sin_addr, 4);
  } else {
    std::memcpy(bytes.data(), &storage_.v6.sin6_addr, 16);
  }
  return bytes;
}

std::optional<Address> Address::embedded_v4() const {
  if (is_v4()) return *this;
  const Bytes16 bytes = mapped_bytes();
  if (is_mapped(bytes)) return v4_at(bytes, 12, port());
  // IPv4-translated (RFC 2765), ::ffff:0:a.b.c.d
  if (starts_with(bytes, {0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0, 0}))
    return v4_at(bytes, 12, port());
  // NAT64 (RFC 6052, RFC 8215); in the site's block the address of a /96 prefix is what is used.
  if (starts_with(bytes, {0x00, 0x64, 0xff, 0x9b, 0, 0, 0, 0, 0, 0, 0, 0}) ||
      starts_with(bytes, {0x00, 0x64, 0xff, 0x9b, 0, 1})) {
    return v4_at(bytes, 12, port());
  }
  if (starts_with(bytes, {0x20, 0x02})) return v4_at(bytes, 2, port());  // 6to4 (RFC 3056)
  // Teredo (RFC 4380): the client's address stands complemented at the end.
  if (starts_with(bytes, {0x20, 0x01, 0, 0})) return v4_at(bytes, 12, port(), 0xff);
  // IPv4-compatible (RFC 4291 2.5.5.1), but not :: and ::1
  if (starts_with(bytes, {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}) &&
      (bytes[12] != 0 || bytes[13] != 0 || bytes[14] != 0 || bytes[15] > 1)) {
    return v4_at(bytes, 12, port());
  }
  return std::nullopt;
}

Address Address::canonical() const {
  if (is_v4()) return *this;
  const Bytes16 bytes = mapped_bytes();
  return is_mapped(bytes) ? v4_at(bytes, 12, port()) : *this;
}

Scope Address::scope() const {
  if (is_v4()) return v4_scope(ntohl(storage_.v4.sin_addr.s_addr));
  const Bytes16 bytes = mapped_bytes();
  if (is_mapped(bytes)) return v4_scope_at_end(bytes);
  const Scope outer = v6_scope(bytes);
  if (const auto inner = embedded_v4()) {
    const Scope carried = v4_scope_at_end(inner->mapped_bytes());
    if (carried != Scope::kGlobal) return carried;
  }
  return outer;
}

Bytes16 Address::network_bytes(NetworkBits bits) const {
  Bytes16 bytes = mapped_bytes();
  const unsigned kept = is_mapped(bytes) ? kV4Bits + bits.v4 : bits.v6;
  for (unsigned bit = kept; bit < bytes.size() * 8; bit = (bit | 7U) + 1) {
    bytes.at(bit / 8) &= static_cast<std::uint8_t>(0xff00U >> (bit % 8));
  }
  return bytes;
}

bool Address::same_ip(const Address& other) const { return mapped_bytes() == other.mapped_bytes(); }

bool operator==(const Address& a, const Address& b) { return a.port() == b.port() && a.same_ip(b); }

}  // namespace encore::net
