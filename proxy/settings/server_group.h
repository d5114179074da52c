// ServerGroup: the servers of one origin, which of them is asked, and what is known of each. That
// is shared by all workers. Thread-safe after the last add().
//
// A server that failed is not asked for a while, unless no other is left. When its time is up one
// request tries it, and the others wait for what comes of that: a dead server costs one attempt now
// and then, not one a request. One that checks found down is not even tried.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "base/time.h"
#include "config/config.h"
#include "proxy/net/tls.h"
#include "proxy/observe/server_counters.h"
#include "proxy/settings/balance.h"
#include "proxy/settings/hot_keys.h"
#include "proxy/settings/server_health.h"

namespace encore::server {

// One server of an origin, as connections to it are made and pooled.
struct OriginServer {
  std::string host;  // name or address, without brackets
  std::uint16_t port = 80;
  std::string url;                       // "http://host:port", for people
  std::string socket_file = {};          // Unix socket, in place of host and port; empty: none
  std::string authority;                 // "host[:port]" as a Host field has it
  std::string pool_key;                  // unique for host, port, TLS and its settings
  const net::TlsContext* tls = nullptr;  // borrowed of the router; null: plain
  std::string tls_name;                  // name that the certificate must match
  bool http2 = false;                    // it is asked over HTTP/2
  std::uint32_t weight = 1;
  bool backup = false;  // used if none of the others is available
};

// A server and a request in progress to it, as the group counts them. It ends before its group.
class ServerLease {
 public:
  ServerLease() = default;
  ServerLease(const OriginServer& server, std::atomic<std::uint32_t>& active)
      : server_(&server), active_(&active) {
    active.fetch_add(1, std::memory_order_relaxed);
  }
  ServerLease(ServerLease&& other) noexcept
      : server_(std::exchange(other.server_, nullptr)),
        active_(std::exchange(other.active_, nullptr)) {}
  ServerLease& operator=(ServerLease&& other) noexcept {
    std::swap(server_, other.server_);
    std::swap(active_, other.active_);
    return *this;
  }
  ~ServerLease() {
    if (active_ != nullptr) active_->fetch_sub(1, std::memory_order_relaxed);
  }
  explicit operator bool() const { return server_ != nullptr; }
  const OriginServer* server() const { return server_; }

 private:
  const OriginServer* server_ = nullptr;
  std::atomic<std::uint32_t>* active_ = nullptr;
};

class ServerGroup {
 public:
  struct Options {
    config::Balance balance = config::Balance::kRoundRobin;
    double hot_share = 0;  // if balanced by hash; 0: no key is hot
    Nanoseconds slow_start{};
    EjectionPolicy ejection;
    std::size_t workers = 1;  // that count
  };
  explicit ServerGroup(const Options& options) : options_(options) {}
  ServerGroup(const ServerGroup&) = delete;
  ServerGroup& operator=(const ServerGroup&) = delete;

  // REQUIRES, as the next two: no other thread knows of it yet.
  void add(OriginServer server);
  std::vector<OriginServer>& servers() { return servers_; }
  // All servers are added. Takes over another group's state of the servers that both have, and the
  // requests in progress to them; null: there is none. Its checks count if this one has them as
  // well.
  enum class Checks : std::uint8_t { kKept, kForgotten };
  void begin(const ServerGroup* before, Checks checks);
  // REQUIRES, too: no other thread knows of it yet. Servers for which `has_series` says no are
  // counted with `others` as well.
  void count_others(const std::function<bool(const OriginServer&)>& has_series,
                    const std::shared_ptr<ServerCounters>& others);
  const std::vector<OriginServer>& servers() const { return servers_; }
  bool is_hashed() const { return options_.balance == config::Balance::kHash || is_by_client(); }
  bool is_by_client() const { return options_.balance == config::Balance::kClient; }

  // Counts a request for a key; call it once for each. True if the key is hot (Options::hot_share):
  // its requests go to all servers, for they are too many for one.
  bool count_hot(std::uint64_t hash) const;

  struct Choice {
    std::span<const OriginServer* const> tried = {};  // not these
    std::uint64_t hash = 0;  // if is_hashed(): of the key, or of the client if is_by_client()
    bool is_hot = false;     // as count_hot() said
    ServerHealth::ProbeFailover trier = ServerHealth::ProbeFailover::kCanGoOn;
    bool last_resort = true;  // if no other is left, one that is set aside, too
  };
  // The server that is to be asked; of those that are out, the one whose time ends first where it
  // is the last resort. Empty: none is left.
  ServerLease next(MonotonicTime now, const Choice& choice) const;
  // It failed. True: it is set aside now, and was not before.
  bool note_failure(const OriginServer& server, MonotonicTime now) const;
  // It answers. True: it was set aside.
  bool note_answer(const OriginServer& server, MonotonicTime now) const;
  // Checks found it down, or up again. True: that is news.
  bool set_down(const OriginServer& server, bool down, MonotonicTime now) const;

  enum class Standing : std::uint8_t { kUp, kAside, kDown };
  struct Seen {
    Standing standing = Standing::kUp;
    std::uint32_t active = 0;
  };
  // States of all servers, in their order.
  std::vector<Seen> look() const;
  // Its counters for all workers. Servers with the same URL have the same.
  const std::shared_ptr<ServerCounters>& counters(const OriginServer& server) const {
    return counters_[index_of(server)];
  }
  // Its counters in a worker.
  ServerTally tally(const OriginServer& server, std::size_t worker) const {
    const std::size_t index = index_of(server);
    return {counters_[index].get(), others_[index].get(), worker};
  }
  // Owners of its counters, for units that count longer than this group exists.
  std::array<std::shared_ptr<const ServerCounters>, 2> kept(const OriginServer& server) const {
    const std::size_t index = index_of(server);
    return {counters_[index], others_[index]};
  }

 private:
  struct State {
    ServerHealth health;
    std::shared_ptr<std::atomic<std::uint32_t>> active;
  };
  // The servers that a search considers.
  enum class Rank : std::uint8_t { kFirst, kBackup };

  void begin_hot(const ServerGroup* before);
  std::size_t index_of(const OriginServer& server) const;
  ServerLease lease(std::size_t index) const ENCORE_REQUIRES(mutex_);
  bool is_tried(std::size_t index, std::span<const OriginServer* const> tried) const;
  ServerLease next_of(Rank rank, MonotonicTime now, const Choice& choice) const
      ENCORE_REQUIRES(mutex_);
  ServerLease last_resort(const Choice& choice) const ENCORE_REQUIRES(mutex_);
  std::size_t pick(std::span<const ServerCandidate> candidates, const Choice& choice) const
      ENCORE_REQUIRES(mutex_);
  std::uint64_t random() const ENCORE_REQUIRES(mutex_);

  const Options options_;
  std::vector<OriginServer> servers_;
  cache::HashRing ring_;  // if the group is hashed
  // Flags: something is known against each. Behind pointers: atomics do not move.
  std::vector<std::unique_ptr<std::atomic<bool>>> suspect_;
  std::vector<std::shared_ptr<ServerCounters>> counters_;
  std::vector<std::shared_ptr<ServerCounters>> others_;  // null: it has series of its own

  mutable Mutex mutex_;
  mutable std::vector<State> states_ ENCORE_GUARDED_BY(mutex_);
  mutable RoundRobin turns_ ENCORE_GUARDED_BY(mutex_);
  mutable std::uint64_t random_ ENCORE_GUARDED_BY(mutex_) = 0;
  // Apart: its scan takes longer than a choice.
  mutable Mutex hot_mutex_;
  mutable std::optional<HotKeys> hot_ ENCORE_GUARDED_BY(hot_mutex_);
};

}  // namespace encore::server
