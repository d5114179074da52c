// ClientCounter: how many connections each client address has, for limits.connections_per_client.
// Asked only where that limit is set. Thread-safe.
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
  // Addresses with at least one connection. IPv4 as IPv4-mapped.
  std::map<std::array<std::uint8_t, 16>, std::uint32_t> counts_ ENCORE_GUARDED_BY(mutex_);
};

}  // namespace encore::server
