// Balancer: the node of a fleet that gets a request. Hashing is the proxy's own ring
// (cache/hash_ring.h), with and without bounded loads. Thread-compatible, deterministic.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "cache/draws.h"
#include "cache/hash_ring.h"
#include "sim/replay/fleet_options.h"
#include "sim/replay/trace_object.h"

namespace encore::sim {

class Balancer {
 public:
  // The nodes' points on the ring are those of "NAME-0", "NAME-1", ...
  Balancer(const BalanceOptions& options, const std::string& name);

  // The number of the node that gets the next request.
  std::uint32_t next(const ReplayRequest& request);
  // Requests that another node got than the one that they belong to: that one had its maximum in
  // progress.
  std::uint64_t passed_on() const { return passed_on_; }

 private:
  // The first node has gone, and with it what it had in progress.
  void lose_first();
  // By the ring, without regard to loads. Kept by object.
  std::uint32_t owner(const ReplayRequest& request);
  std::uint32_t next_bounded(const ReplayRequest& request);

  BalanceOptions options_;
  cache::Draws draws_;
  cache::HashRing ring_;
  std::uint64_t seen_ = 0;
  std::uint32_t first_ = 0;  // number of the first node that is there
  std::vector<cache::ServerCandidate> candidates_;
  std::vector<std::uint16_t> owners_;  // by object, number + 1; 0: not known
  std::deque<std::uint32_t> window_;   // nodes of the requests in progress, the oldest first
  std::uint64_t passed_on_ = 0;
};

// Returns the place of a key on the ring. Its bits are those that nothing else takes
// (filter/hash.h): else a node would have the keys of few of its shards.
constexpr std::uint64_t ring_place(const filter::Hash128& key) { return filter::remix(key) << 24U; }

}  // namespace encore::sim
