// TransferMemory: the memory that each client makes the proxy hold by not reading its responses:
// bytes of bodies on their way, of stored ones that are kept for it alone, and of replies that it
// has not read. Only memory that is held longer than a turn of the loop counts, so a client that
// keeps up costs nothing here. A client is an IPv4 address, or an IPv6 network of 64 bits: that is
// what one subscriber has.
//
// Thread-safe; a Holding is confined to its worker.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <map>
#include <memory>

#include "base/mutex.h"
#include "proxy/net/address.h"

namespace encore::server {

class TransferMemory {
 private:
  using Key = std::array<std::uint8_t, 16>;
  struct Account {
    Key key{};
    std::atomic<std::uint64_t> bytes = 0;
    std::uint32_t holdings = 0;  // guarded by the shard's mutex
  };

 public:
  // The memory that one connection holds, by its latest report. It is returned when the Holding
  // ends. REQUIRES: the TransferMemory outlives it, and is the same in all calls.
  class Holding {
   public:
    Holding() = default;
    ~Holding() { close(); }
    Holding(const Holding&) = delete;
    Holding& operator=(const Holding&) = delete;

    void set(TransferMemory& memory, const net::Address& client, std::uint64_t bytes);
    // From here on it is another client's. REQUIRES: it holds nothing.
    void reset() {
      close();
      account_ = nullptr;
    }
    std::uint64_t bytes() const { return bytes_; }
    // All that the client's connections hold; 0 where this one has never held anything.
    std::uint64_t bytes_of_client() const {
      return account_ == nullptr ? 0 : account_->bytes.load(std::memory_order_relaxed);
    }
    // The client holds more than `share`; with 0 none does.
    bool is_over(std::uint64_t share) const { return share != 0 && bytes_of_client() > share; }

   private:
    void close();

    TransferMemory* memory_ = nullptr;
    Account* account_ = nullptr;
    std::uint64_t bytes_ = 0;
  };

  std::uint64_t bytes() const { return bytes_.load(std::memory_order_relaxed); }
  // Addresses that have an account: a connection of theirs holds something, or has.
  std::size_t clients() const;

 private:
  static constexpr std::size_t kShards = 16;
  struct Shard {
    mutable Mutex mutex;
    std::map<Key, std::unique_ptr<Account>> accounts ENCORE_GUARDED_BY(mutex);
  };

  static Key key_of(const net::Address& client);
  Shard& shard_of(const Key& key);
  Account* enter(const net::Address& client);
  void leave(Account* account);

  std::array<Shard, kShards> shards_;
  std::atomic<std::uint64_t> bytes_ = 0;
};

}  // namespace encore::server
