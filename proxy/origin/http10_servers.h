// Http10Servers: which servers have answered with HTTP/1.0 lately. Such a server knows no chunks
// (RFC 9112 6.1): a request is sent to it with a length, or not at all. A table of fixed size: of
// two servers that share a slot the one that answered last is known, and the other one is as if it
// had not answered. Thread-safe. Why not all get a length: docs/decisions/0403.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/time.h"
#include "filter/hash.h"
#include "proxy/http/message.h"

namespace encore::server {

class Http10Servers {
 public:
  static constexpr std::size_t kSlots = 4096;
  // For so long after an answer: a server may be replaced by a newer one.
  static constexpr Nanoseconds kMemory = std::chrono::minutes(10);

  // A server, as its connections are pooled. `seed` keeps clients, who choose the servers of a
  // forward proxy, from choosing slots.
  struct Server {
    std::string_view pool_key;
    const filter::Seed& seed;
  };
  // It has answered with that version.
  void note(const Server& server, http::Version version, MonotonicTime now);
  bool is_old(const Server& server, MonotonicTime now) const;

 private:
  static std::uint64_t hash_of(const Server& server);

  // The upper half of a server's hash, and the second until which it holds; 0: free.
  std::array<std::atomic<std::uint64_t>, kSlots> slots_{};
  std::atomic<bool> has_any_ = false;  // was ever used: most servers are of this century
};

}  // namespace encore::server
