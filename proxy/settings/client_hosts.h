// ClientHosts: pairs of a client and a host that are remembered for a time: who does not take our
// certificate, who may not, and who has taken it. A client is an IPv4 address or an IPv6 network of
// 64 bits. So a machine that was not told of the authority, or a program that trusts nobody but its
// own, works as without us, and takes nothing from others. Bounded; thread-safe.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/mutex.h"
#include "base/time.h"
#include "proxy/net/address.h"

namespace encore::server {

class ClientHosts {
 public:
  // Pairs in all; the one noted longest ago leaves where there are too many. One client has no more
  // than its share of them, so that it drives out nobody else's.
  static constexpr std::size_t kPairsMax = 65'536;
  static constexpr std::size_t kPairsPerClient = 1'024;

  explicit ClientHosts(std::size_t pairs_max = kPairsMax, std::size_t per_client = kPairsPerClient)
      : pairs_max_(pairs_max), per_client_(per_client) {}
  ClientHosts(const ClientHosts&) = delete;
  ClientHosts& operator=(const ClientHosts&) = delete;

  // True: it is news, so that it may be said. False: it was known, or this client has its share.
  bool note(const net::Address& client, std::string_view host, MonotonicTime now,
            Nanoseconds memory);
  // When a pair with connections was noted last: what comes often notes it by this, without a lock.
  using Latest = std::atomic<MonotonicTime>;
  // Notes it, and that it has one connection more, or one less, of which it was noted. Null: this
  // client has its share.
  std::shared_ptr<Latest> open(const net::Address& client, std::string_view host, MonotonicTime now,
                               Nanoseconds memory);
  void close(const net::Address& client, std::string_view host);
  // True if it has such connections, as far as it is known.
  bool is_open(const net::Address& client, std::string_view host);
  // When it was noted last; empty: it is not, or no longer, known.
  std::optional<MonotonicTime> noted_at(const net::Address& client, std::string_view host,
                                        MonotonicTime now);

  struct Pair {
    std::string client;
    std::string host;
    Nanoseconds left{};
  };
  std::size_t size(MonotonicTime now);
  // The newest first.
  std::vector<Pair> newest(std::size_t count, MonotonicTime now);

 private:
  using Network = std::array<std::uint8_t, 16>;
  struct Entry {
    Network network{};
    std::string client;  // as it is shown
    std::string host;
    MonotonicTime noted{};
    Nanoseconds memory{};
    MonotonicTime until{};  // as far as is known without looking at the latest
    std::size_t connections = 0;
    std::shared_ptr<Latest> latest = {};  // once it had connections
    MonotonicTime last() const {
      return latest == nullptr ? noted : std::max(noted, latest->load(std::memory_order_relaxed));
    }
  };
  using Order = std::list<Entry>;  // the oldest in front
  static std::string key_of(const Network& network, std::string_view host);
  bool note_locked(const net::Address& client, std::string_view host, MonotonicTime now,
                   Nanoseconds memory) ENCORE_REQUIRES(mutex_);
  // Null: it is not known.
  Entry* find(const net::Address& client, std::string_view host) ENCORE_REQUIRES(mutex_);
  void drop(Order::iterator entry) ENCORE_REQUIRES(mutex_);
  void drop_old(MonotonicTime now) ENCORE_REQUIRES(mutex_);

  const std::size_t pairs_max_;
  const std::size_t per_client_;
  Mutex mutex_;
  Order order_ ENCORE_GUARDED_BY(mutex_);
  std::unordered_map<std::string, Order::iterator> places_ ENCORE_GUARDED_BY(mutex_);
  std::map<Network, std::size_t> counts_ ENCORE_GUARDED_BY(mutex_);
};

}  // namespace encore::server
