// ReinsertByVisits: the objects of all shards compete, and those with the most visits are written
// again (probation's policy). A stale object can be validated, so it competes as well; one that was
// requested twice is requested again. Visits halve with each move, so that fame fades.
#pragma once

#include <algorithm>

#include "cache/disk_policy.h"

namespace encore::cache {

class ReinsertByVisits final : public DiskPolicy {
 public:
  bool compares() const override { return true; }

  void count(const DiskObject& object, MonotonicTime now, ReinsertBudget& room) const override {
    if (is_worth(object, now)) {
      room.count(object.visits, object.view.place.bytes);
    }
  }

  std::optional<std::uint32_t> move(const DiskObject& object, MonotonicTime now,
                                    ReinsertBudget& room) const override {
    const std::uint64_t bytes = object.view.place.bytes;
    if (object.being_read) {
      room.take_any(bytes);
    } else if (!is_worth(object, now) || !room.take(object.visits, object.shard, bytes)) {
      return std::nullopt;
    }
    return object.visits / 2;
  }

 private:
  static constexpr std::uint32_t kVisitsMin = 2;

  static bool is_worth(const DiskObject& object, MonotonicTime now) {
    return !object.part && object.visits >= kVisitsMin &&
           now < std::max(object.view.fresh_until, object.view.keep_until);
  }
};

}  // namespace encore::cache
