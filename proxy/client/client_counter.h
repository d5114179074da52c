// ClientCounter: how many connections, or requests under way, each client has: an IPv4 address or
// an IPv6 network of 64 bits. For limits.connections_per_client and transfers_per_client.
// Thread-safe.
#pragma once

#include <array>
#include <cstdint>
#include <map>

#include "base/mutex.h"
#include "proxy/net/address.h"

namespace encore::server {

class ClientCounter {
 public:
  // Counts one more connection of the address, unless it has `limit` already: then false.
  bool enter(const net::Address& client, std::uint32_t limit);
  // One of its connections has ended. REQUIRES: enter() answered true for it.
  void leave(const net::Address& client);

 private:
  Mutex mutex_;
  // Clients with at least one of them. IPv4 as IPv4-mapped.
  std::map<std::array<std::uint8_t, 16>, std::uint32_t> counts_ ENCORE_GUARDED_BY(mutex_);
};

}  // namespace encore::server
