// The order in which the addresses of a name are tried. For net/ only. Thread-safe.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "proxy/net/address.h"

namespace encore::net {

// The address that the kernel would send from to reach a destination; empty: it knows no way.
using SourceOf = std::function<std::optional<Address>(const Address& destination)>;

// Asks the kernel: a datagram socket is connected, and nothing is sent.
std::optional<Address> source_of(const Address& destination);

// Sorts by RFC 6724 6, rules 1, 2, 5, 6, 8, 9 and 10; what the others need (deprecated, home and
// tunnelled addresses) the kernel does not tell. Rule 9 is for IPv6: an IPv4 prefix in common says
// nothing of the distance. Then the two families take turns (RFC 8305 4), so that one of them
// without a way costs a single attempt.
void order_addresses(std::vector<Address>& addresses, const SourceOf& source);

}  // namespace encore::net
