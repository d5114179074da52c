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
  // Counts one more of the client's, unless it has `limit` already: then false.
  bool enter(const net::Address& client, std::uint32_t limit);
  // One of them has ended. REQUIRES: enter() answered true for it.
  void leave(const net::Address& client);

  // One of a client's, for as long as this lives. REQUIRES: the counter outlives it.
  class Seat {
   public:
    Seat() = default;
    ~Seat() { leave(); }
    Seat(const Seat&) = delete;
    Seat& operator=(const Seat&) = delete;

    // False: it has `limit` already. REQUIRES: not taken.
    bool take(ClientCounter& counter, const net::Address& client, std::uint32_t limit);
    void leave();

   private:
    ClientCounter* counter_ = nullptr;  // null: not taken
    net::Address client_;
  };

 private:
  using Key = std::array<std::uint8_t, 16>;
  static constexpr std::size_t kShards = 16;
  struct Shard {
    Mutex mutex;
    // Clients with at least one of them. IPv4 as IPv4-mapped.
    std::map<Key, std::uint32_t> counts ENCORE_GUARDED_BY(mutex);
  };
  Shard& shard_of(const Key& key);

  std::array<Shard, kShards> shards_;
};

}  // namespace encore::server
