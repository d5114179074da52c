// TraceStatistics: what a trace is made of: objects, bytes, how many are asked for once, at what
// distance objects come again. Deterministic; thread-compatible.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "sim/replay/flat_map.h"
#include "sim/replay/working_set.h"
#include "sim/trace/request.h"

namespace encore::sim {

struct TraceSummary {
  std::uint64_t requests = 0;
  std::uint64_t objects = 0;
  std::uint64_t bytes_requested = 0;  // sum over the requests
  std::uint64_t bytes_unique = 0;     // sum over the objects of the largest size seen
  std::uint64_t one_hit_objects = 0;  // asked for once
  std::uint64_t one_hit_bytes = 0;    // their sizes
  std::uint64_t repeat_bytes = 0;     // for requests for earlier objects
  std::int64_t first_ns = 0;
  std::int64_t last_ns = 0;
  std::uint64_t with_ttl = 0;
  std::uint64_t size_changes = 0;  // requests whose size differs from the object's last one
  std::uint64_t most_requested = 0;
  double zipf_alpha = 0;  // fitted to the counts of the ranks 10 to 1000; 0: too few objects
  // Requests for an object that was last requested within 2^i requests (but not 2^(i-1)).
  std::array<std::uint64_t, 64> reuse_distances{};
  WorkingSet working_set;

  double one_hit_objects_share() const;
  double one_hit_requests_share() const;
  double infinite_hit_ratio() const;
  double infinite_byte_hit_ratio() const;
};

class TraceStatistics {
 public:
  void add(const Request& request);
  // Reads all objects.
  TraceSummary summary() const;
  std::size_t memory_bytes() const { return objects_.memory_bytes(); }

 private:
  struct Object {
    std::uint64_t size_max = 0;
    std::uint64_t last_at = 0;
    std::uint64_t size_last = 0;
    std::uint32_t count = 0;
  };
  FlatMap<Object> objects_;
  TraceSummary running_;
};

}  // namespace encore::sim
