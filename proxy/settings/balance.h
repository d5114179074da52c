// Which of several servers gets a request: each in its turn, or one of two that has less to do.
// Pure: what may be asked is given as candidates, randomness by the caller. (Always the same one
// for a key: cache/hash_ring.h.)
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "cache/hash_ring.h"

namespace encore::server {

using cache::ServerCandidate;

// Smooth weighted round robin: in any stretch of turns each server has its share of them, spread
// evenly. Each turn gives every server credit by its weight, and the one with most pays for all. A
// server that is left out for a while keeps its credit. Thread-compatible.
class RoundRobin {
 public:
  explicit RoundRobin(std::size_t servers = 0) : credit_(servers) {}
  enum class Turn : std::uint8_t { kTaken, kLeft };  // kLeft: whose turn it is, and stays
  // The position of one of `candidates`. REQUIRES: there is one.
  std::size_t pick(std::span<const ServerCandidate> candidates, Turn turn);

 private:
  std::vector<std::int64_t> credit_;
};

// The power of two choices (Mitzenmacher 2001): two candidates are drawn by weight, and the one
// with fewer requests in progress for its weight is taken. Returns its position. REQUIRES: there is
// one.
std::size_t pick_least_requests(std::span<const ServerCandidate> candidates, std::uint64_t random);

}  // namespace encore::server
