// HashRing: consistent hashing with bounded loads (Mirrokni, Thorup, Zadimoghaddam 2018). Each
// server has points on a ring by its name and weight; a key belongs to the server of the next
// point. A server with its maximum of requests in progress passes the request on to the next one on
// the ring. So no key, however often it is requested, overloads a server; and a server that leaves
// takes only its own keys with it. Immutable, thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace encore::cache {

// A server that may be asked.
struct ServerCandidate {
  std::size_t server = 0;    // its place in the group
  std::uint32_t weight = 1;  // its share relative to the others', at least 1
  std::uint32_t active = 0;  // requests in progress
};

// The most that a server may have in progress, in percent of its share: the proxy's own bound. Why
// 5/4 and no less: docs/decisions/0200.
inline constexpr std::uint32_t kLoadPercent = 125;

// Points per unit of weight: a server's share of the keys is then within some 8 % (one sigma, 1
// over the root of the points) of its part by weight.
inline constexpr std::size_t kPointsPerWeight = 160;

class HashRing {
 public:
  struct Server {
    std::string_view name;  // its points are derived from it; unique
    std::uint32_t weight = 1;
  };
  HashRing() = default;
  explicit HashRing(std::span<const Server> servers);

  // The position of the candidate that comes first for a key's hash, of those that have room if
  // loads are bounded. `candidates` are of the ring's servers, each once. REQUIRES: there is one;
  // load_percent is at least 100.
  enum class Load : std::uint8_t { kBounded, kAny };
  std::size_t pick(std::uint64_t hash, std::span<const ServerCandidate> candidates, Load load,
                   std::uint32_t load_percent = kLoadPercent) const;

 private:
  struct Point {
    std::uint64_t at = 0;
    std::uint32_t server = 0;
  };
  std::vector<Point> points_;  // in their order
  std::size_t servers_ = 0;
};

// Returns how many requests a candidate may have in progress, with one more than all of them have
// now: so many percent of its share by weight, rounded up. The bounds of all add up to more than
// the requests, so one has capacity.
std::uint64_t load_bound(const ServerCandidate& of, std::span<const ServerCandidate> candidates,
                         std::uint32_t load_percent = kLoadPercent);

}  // namespace encore::cache
