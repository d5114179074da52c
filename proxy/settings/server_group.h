// ServerGroup: the servers of one origin, whose turn it is, and which are set aside because they
// failed. What is known of their failures is shared by all workers. Thread-safe after the last
// add().
//
// A server that failed is not asked for a while, unless no other is left. When its time is up one
// request tries it, and the others wait for what comes of that: a dead server costs one attempt now
// and then, not one a request.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/time.h"
#include "proxy/net/tls.h"

namespace encore::server {

// One server of an origin, as connections to it are made and pooled.
struct OriginServer {
  std::string host;  // name or address, without brackets
  std::uint16_t port = 80;
  std::string authority;                 // "host[:port]" as a Host field has it
  std::string pool_key;                  // unique for host, port, TLS and its settings
  const net::TlsContext* tls = nullptr;  // borrowed of the router; null: plain
  std::string tls_name;                  // what the certificate must be for
};

class ServerGroup {
 public:
  void add(OriginServer server);
  // REQUIRES: no other thread knows of it yet.
  std::vector<OriginServer>& servers() { return servers_; }
  const std::vector<OriginServer>& servers() const { return servers_; }

  struct Choice {
    std::span<const OriginServer* const> tried = {};  // not these
    Nanoseconds rest{};       // how long others leave one alone that is tried after its time is up
    bool last_resort = true;  // where no other is left, one that is set aside, too
  };
  // The server whose turn it is; of those set aside, the one whose time is up, or ends first where
  // it is the last resort. Null: none is left.
  const OriginServer* next(MonotonicTime now, const Choice& choice) const;
  // It failed: it is set aside for `rest`, unless all others are. False where it stays in turn, or
  // was set aside before.
  bool set_aside(const OriginServer& server, MonotonicTime now, Nanoseconds rest) const;
  // It answers: it is in turn again.
  void put_back(const OriginServer& server) const;

 private:
  using Until = std::atomic<std::int64_t>;  // MonotonicTime in nanoseconds; 0: in turn
  std::size_t index_of(const OriginServer& server) const;
  bool is_tried(std::size_t index, std::span<const OriginServer* const> tried) const;

  std::vector<OriginServer> servers_;
  // Until when each is set aside. Behind pointers: atomics do not move.
  std::vector<std::unique_ptr<Until>> aside_until_;
  mutable std::atomic<std::size_t> turn_ = 0;
};

}  // namespace encore::server
