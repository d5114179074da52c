// ReinsertRequested: fresh objects that were requested since they were written are written again,
// as far as the share of their shard goes. One that is in memory when its segment is the oldest was
// requested since, too: the memory is smaller than the disk.
#pragma once

#include "cache/disk_policy.h"

namespace encore::cache {

class ReinsertRequested final : public DiskPolicy {
 public:
  std::optional<std::uint32_t> move(const DiskObject& object, MonotonicTime now,
                                    ReinsertBudget& room) const override {
    const bool is_worth =
        !object.part && now < object.view.fresh_until && (object.view.visited || object.in_memory);
    const bool moves = object.being_read ||
                       (is_worth && room.is_within_share(object.shard, object.view.place.bytes));
    return moves ? std::optional(0U) : std::nullopt;
  }
};

}  // namespace encore::cache
