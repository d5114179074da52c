// Rejections: who does not take our certificate for which host, and so goes through unread for a
// time. One refusal may be a look, or a browser that ends: several within a time are needed, and
// the first pause is short. Each refusal behind it begins another one, twice as long as the last. A
// client is an IPv4 address or an IPv6 network of 64 bits. Bounded; thread-safe. Why pairs of
// client and host: docs/decisions/0261. Why several refusals, and a short pause:
// docs/decisions/0318.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <list>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/mutex.h"
#include "base/time.h"
#include "proxy/net/address.h"

namespace encore::server {

class Rejections {
 public:
  // Pairs in all; the one noted longest ago leaves where there are too many. One client has no more
  // than its share of them, so that it drives out nobody else's.
  static constexpr std::size_t kPairsMax = 65'536;
  static constexpr std::size_t kPairsPerClient = 1'024;

  explicit Rejections(std::size_t pairs_max = kPairsMax, std::size_t per_client = kPairsPerClient)
      : pairs_max_(pairs_max), per_client_(per_client) {}
  Rejections(const Rejections&) = delete;
  Rejections& operator=(const Rejections&) = delete;

  struct Terms {
    std::uint32_t after = 3;                      // refusals until the first pause
    Nanoseconds first = std::chrono::minutes(1);  // that pause
    Nanoseconds longest = std::chrono::hours(1);  // any pause, and how long a refusal counts
  };
  // A client has refused. Returns the pause that begins with it; nothing: it is only counted, or a
  // pause is in progress.
  std::optional<Nanoseconds> note(const net::Address& client, std::string_view host,
                                  MonotonicTime now, const Terms& terms);
  bool is_paused(const net::Address& client, std::string_view host, MonotonicTime now);

  struct Pair {
    std::string client;
    std::string host;
    std::uint32_t refusals = 0;  // since it is known
    Nanoseconds left{};          // rest of its pause; 0: it is decrypted
  };
  // Pairs in a pause.
  std::size_t paused(MonotonicTime now);
  // All that are known, the newest first.
  std::vector<Pair> newest(std::size_t count, MonotonicTime now);

  // Which pairs are meant; what is not said holds for all.
  struct Which {
    std::optional<net::Address> client = {};
    std::string host = {};  // lower case
  };
  // Forgets them, and returns how many they were: they are decrypted again, and begin anew.
  std::size_t clear(const Which& which);

 private:
  using Network = std::array<std::uint8_t, 16>;
  struct Entry;
  using Order = std::list<Entry>;  // the one noted longest ago in front
  using Ends = std::multimap<MonotonicTime, Order::iterator>;
  struct Entry {
    Network network{};
    std::string client;  // as it is shown
    std::string host;
    std::uint32_t refusals = 0;
    std::uint32_t counted = 0;  // towards the next pause
    Nanoseconds pause{};        // the last one
    MonotonicTime paused_until{};
    Ends::iterator end{};  // until when it is known
  };
  static std::string key_of(const Network& network, std::string_view host);
  // Nothing: this client has its share. One that it makes is known until know_until() says.
  std::optional<Order::iterator> find_or_make(const net::Address& client, std::string_view host)
      ENCORE_REQUIRES(mutex_);
  void know_until(Order::iterator entry, MonotonicTime end) ENCORE_REQUIRES(mutex_);
  void drop(Order::iterator entry) ENCORE_REQUIRES(mutex_);
  void drop_old(MonotonicTime now) ENCORE_REQUIRES(mutex_);

  const std::size_t pairs_max_;
  const std::size_t per_client_;
  Mutex mutex_;
  Order order_ ENCORE_GUARDED_BY(mutex_);
  Ends ends_ ENCORE_GUARDED_BY(mutex_);
  std::unordered_map<std::string, Order::iterator> places_ ENCORE_GUARDED_BY(mutex_);
  std::map<Network, std::size_t> counts_ ENCORE_GUARDED_BY(mutex_);
};

}  // namespace encore::server
