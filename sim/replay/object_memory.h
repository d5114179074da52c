// ObjectMemory: decides which objects of a streamed trace the table of objects (trace_object.h)
// remembers, so that its memory follows the caches and not the trace. Once the table is full it
// forgets each object that no cache holds and no request to come has. A sample by a hash of the key
// stays (SHARDS, cache/spatial_sample.h): counts of objects are estimated from it. Why and with
// which error: docs/decisions/0615. Deterministic; thread-compatible.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "cache/spatial_sample.h"
#include "sim/replay/trace_object.h"

namespace encore::sim {

// A count of the whole trace. The true one is within `error` of it in 19 of 20 samples.
struct EstimatedCount {
  double value = 0;
  double error = 0;
};

class ObjectMemory {
 public:
  static constexpr std::uint64_t kObjectsMin = 1024;
  static constexpr std::uint64_t kObjectsUsual = 1024 * 1024;

  // Remembers so many objects, and twice as many as are kept where that is more; 0: all.
  // REQUIRES: 0, or at least kObjectsMin.
  explicit ObjectMemory(std::uint64_t objects_max);

  bool is_full(const ObjectTable& table) const {
    return objects_max_ != 0 && table.known_objects() > room_;
  }
  // `to_come`: requests that are numbered and that no cache has had yet. `holds(object)`: whether a
  // cache does. `forgotten(object)` is called for each number that goes.
  template <typename Holds, typename Forgotten>
  void forget(ObjectTable& table, std::span<const ReplayRequest> to_come, Holds holds,
              Forgotten forgotten) {
    narrow_sample(table);
    std::vector<bool> keep(table.objects());
    for (const ReplayRequest& request : to_come) {
      keep[request.object] = true;
    }
    for (std::uint32_t object = 0; object < table.objects(); ++object) {
      if (table.requests_of(object) == 0) {
        continue;
      }
      keep[object] = keep[object] || has_sampled(table, object) || holds(object);
      if (!keep[object]) {
        forgotten(object);
      }
    }
    table.forget_except(keep);
    room_ = std::max(objects_max_, 2 * table.known_objects());
    has_forgotten_ = true;
  }

  bool has_forgotten() const { return has_forgotten_; }
  // Share of the objects from which counts are estimated; 1: all.
  double rate() const { return sample_.rate(); }
  // True if counts of objects rest on this one. REQUIRES: the table knows it.
  bool has_sampled(const ObjectTable& table, std::uint32_t object) const {
    return sample_.contains(table.key_of(object));
  }
  // Objects of the whole trace, and the sum of their sizes.
  EstimatedCount objects(const ObjectTable& table) const;
  EstimatedCount footprint_bytes(const ObjectTable& table) const;

 private:
  // Lowers the rate until few enough of the table's objects are in the sample.
  void narrow_sample(const ObjectTable& table);

  std::uint64_t objects_max_;
  std::uint64_t sampled_max_;
  std::uint64_t room_;
  cache::SpatialSample sample_{cache::SampleOptions{}};
  bool has_forgotten_ = false;
};

}  // namespace encore::sim
