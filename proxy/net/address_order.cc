#include "proxy/net/address_order.h"

#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <cstring>
#include <tuple>

#include "proxy/net/socket.h"
#include "proxy/net/syscalls.h"

namespace encore::net {
namespace {

using Bytes = std::array<std::uint8_t, 16>;

struct Policy {
  Bytes prefix;
  int bits;
  int precedence;
  int label;
};

// RFC 6724 2.1, the longest prefix first.
constexpr Policy kPolicies[] = {
    {{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1}, 128, 50, 0},  // ::1
    {{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff}, 96, 35, 4},         // IPv4
    {{}, 96, 1, 3},                                                  // IPv4-compatible
    {{0x20, 0x01}, 32, 5, 5},                                        // Teredo
    {{0x20, 0x02}, 16, 30, 2},                                       // 6to4
    {{0x3f, 0xfe}, 16, 1, 12},                                       // 6bone
    {{0xfe, 0xc0}, 10, 1, 11},                                       // site-local
    {{0xfc}, 7, 3, 13},                                              // unique local
    {{}, 0, 40, 1},
};

int common_bits(const Bytes& a, const Bytes& b) {
  for (std::size_t i = 0; i < a.size(); ++i) {
    const auto differs = static_cast<std::uint8_t>(a.at(i) ^ b.at(i));
    if (differs != 0) return static_cast<int>(i) * 8 + std::countl_zero(differs);
  }
  return 128;
}

const Policy& policy_of(const Bytes& address) {
  return *std::ranges::find_if(kPolicies, [&](const Policy& policy) {
    return common_bits(address, policy.prefix) >= policy.bits;
  });
}

// RFC 6724 3.1 and 3.2, in the numbers of RFC 4291 2.7.
int scope_of(const Address& address) {
  constexpr int kLinkLocal = 2;
  constexpr int kSiteLocal = 5;
  constexpr int kGlobal = 14;
  const Bytes bytes = address.mapped_bytes();
  if (address.canonical().is_v4()) {
    const bool local = bytes[12] == 127 || (bytes[12] == 169 && bytes[13] == 254);
    return local ? kLinkLocal : kGlobal;
  }
  if (bytes[0] == 0xff) return bytes[1] & 0x0f;
  if (bytes[0] == 0xfe && (bytes[1] & 0xc0) == 0x80) return kLinkLocal;
  if (bytes[0] == 0xfe && (bytes[1] & 0xc0) == 0xc0) return kSiteLocal;
  return policy_of(bytes).bits == 128 ? kLinkLocal : kGlobal;
}

// The properties that the rules compare, so that the lesser comes first.
struct Ranked {
  Address address;
  std::tuple<bool, bool, bool, int, int, int> rank;
};

Ranked ranked(const Address& address, const SourceOf& source_of_address) {
  const std::optional<Address> source = source_of_address(address);
  const Bytes bytes = address.mapped_bytes();
  const Policy& policy = policy_of(bytes);
  const int scope = scope_of(address);
  Ranked all{.address = address, .rank = {true, true, true, -policy.precedence, scope, 0}};
  if (!source) return all;
  const Bytes from = source->mapped_bytes();
  // Bits behind the first 64 name an interface, not a network (RFC 6724 2.2).
  const int common = address.is_v4() ? 0 : std::min(common_bits(bytes, from), 64);
  all.rank = {false,
              scope_of(*source) != scope,
              policy_of(from).label != policy.label,
              -policy.precedence,
              scope,
              -common};
  return all;
}

}  // namespace

std::optional<Address> source_of(const Address& destination) {
  const Socket socket(
      syscalls.socket(destination.family(), SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!socket) return std::nullopt;
  Address peer = destination;
  peer.set_port(53);  // the kernel wants one, and any will do
  if (syscalls.connect(socket.get(), peer.data(), peer.size()) != 0) return std::nullopt;
  sockaddr_storage bound{};
  socklen_t size = sizeof bound;
  auto* any = reinterpret_cast<sockaddr*>(&bound);
  if (::getsockname(socket.get(), any, &size) != 0) return std::nullopt;
  return Address::from_sockaddr(any, size);
}

void order_addresses(std::vector<Address>& addresses, const SourceOf& source) {
  if (addresses.size() < 2) return;
  std::vector<Ranked> all;
  all.reserve(addresses.size());
  for (const Address& address : addresses) all.push_back(ranked(address, source));
  std::ranges::stable_sort(all, {}, &Ranked::rank);
  const bool v4_first = all.front().address.is_v4();
  std::vector<Address> first;
  std::vector<Address> second;
  for (const Ranked& each : all) {
    (each.address.is_v4() == v4_first ? first : second).push_back(each.address);
  }
  addresses.clear();
  for (std::size_t i = 0; i < std::max(first.size(), second.size()); ++i) {
    if (i < first.size()) addresses.push_back(first[i]);
    if (i < second.size()) addresses.push_back(second[i]);
  }
}

}  // namespace encore::net
