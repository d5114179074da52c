// Objects that wait in the memory of shards that run probation in front of disks: which are
// admitted, and which leave first. ProbationAdmission says whether a key is known.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "cache/budget.h"
#include "cache/disk_tier.h"
#include "cache/removals.h"
#include "cache/shard.h"

namespace encore::cache {

// The most bytes that may wait.
std::uint64_t waiting_max(const Budget& budget, const DiskTier& tier)
    ENCORE_REQUIRES(budget.mutex, tier.mutex);

// Nothing where it is decided as without probation.
std::optional<AdmitReason> decide_on_probation(Shard& shard, const Key& key,
                                               const AdmitRequest& request, MonotonicTime now,
                                               Budget& budget, const DiskTier& tier)
    ENCORE_REQUIRES(shard.mutex, budget.mutex, tier.mutex);

// The oldest object or key that waits leaves.
enum class Left : std::uint8_t { kNothing, kKey, kObject };
Left leave_oldest(Shard& shard, Removals& gone, MonotonicTime now, const Budget& budget,
                  const DiskTier& tier) ENCORE_REQUIRES(shard.mutex, budget.mutex, tier.mutex);

// Waiting entries of all shards, a moment ago.
struct WaitingTotals {
  std::optional<std::uint32_t> oldest;  // the shard of the oldest
  std::uint64_t bytes = 0;
  bool has_others = false;  // entries that do not wait
};
WaitingTotals look_at_waiting(std::span<const std::unique_ptr<Shard>> shards);

}  // namespace encore::cache
