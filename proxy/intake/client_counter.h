// ClientCounter: how many connections, or requests in progress, each client has: an IPv4 address or
// an IPv6 network of 64 bits. For limits.connections_per_client and transfers_per_client.
// Thread-safe. Why a client has a share by default: docs/decisions/0212.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <map>

#include "base/mutex.h"
#include "config/network.h"
#include "proxy/net/address.h"

namespace encore::server {

// How many of `all` one client may have; 0: no limit. A share is at least one, or nobody would be
// served.
std::uint32_t client_limit(const config::ClientShare& share, std::uint32_t all);

// Tells how many client connections, over all workers, the config and the descriptors allow. Why
// shares are of these: docs/decisions/0417.
class ConnectionsAllowed {
 public:
  virtual std::uint32_t connections_allowed() const = 0;

 protected:
  ~ConnectionsAllowed() = default;
};

class ClientCounter {
 public:
  ClientCounter() = default;
  // REQUIRES: no seat is left.
  ~ClientCounter();
  ClientCounter(const ClientCounter&) = delete;
  ClientCounter& operator=(const ClientCounter&) = delete;

 private:
  using Key = std::array<std::uint8_t, 16>;  // IPv4 as IPv4-mapped
  // Count of one client, for as long as a seat refers to it.
  struct Record {
    std::atomic<std::uint32_t> count = 0;
    std::uint32_t seats = 0;  // with the mutex of its shard
  };

 public:
  // A place for one of a client's, taken and left any number of times. The client's record is
  // looked for, with a lock, where it is taken for another client than before; else it costs one
  // atomic operation, and so does leaving it. Thread-compatible. REQUIRES: the counter outlives it.
  class Seat {
   public:
    Seat() = default;
    ~Seat() { reset(); }
    Seat(Seat&& other) noexcept;
    Seat& operator=(Seat&& other) noexcept;

    // False: the client has `limit` already. REQUIRES: it is not taken; always of one counter.
    bool take(ClientCounter& counter, const net::Address& client, std::uint32_t limit);
    void leave();

   private:
    void reset();

    ClientCounter* counter_ = nullptr;
    Record* record_ = nullptr;  // record of `client_`; null: nobody's yet
    net::Address client_;
    bool taken_ = false;
  };

 private:
  static constexpr std::size_t kShards = 16;
  struct Shard {
    Mutex mutex;
    std::map<Key, Record> records ENCORE_GUARDED_BY(mutex);  // never moved
  };
  Shard& shard_of(const Key& key);
  // Its record, which stays until it is let go as often.
  Record& hold(const net::Address& client);
  void let_go(const net::Address& client);

  std::array<Shard, kShards> shards_;
};

}  // namespace encore::server
