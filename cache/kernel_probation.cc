// Probation in the kernel: locks and events around what waits in memory before disks. Locks, in
// this order: a shard's, the budget's, the tier's; what reads how full the disks are has its event
// numbered under the tier's.
#include <bit>
#include <optional>

#include "cache/kernel.h"
#include "cache/shard_probation.h"

namespace encore::cache {
namespace {

// The bound of one critical section.
constexpr std::uint32_t kLeavesMax = 32;

}  // namespace

Result<void> Kernel::follow(const ProbationRule& rule, MonotonicTime now) {
  if (auto accepted = check_rule(rule); !accepted) {
    return accepted;
  }
  if (tier_ == nullptr) {
    return {};
  }
  OptionalLock lock(shards_.front()->mutex);
  OptionalLock tier_lock(tier_->mutex);
  tier_->rule = rule;
  Event event{.kind = EventKind::kFollow,
              .outcome = rule.all ? std::uint8_t{1} : std::uint8_t{0},
              .now = now,
              .variant = std::bit_cast<std::uint64_t>(rule.window),
              .reserved_bytes = std::bit_cast<std::uint64_t>(rule.chance)};
  publish(event);
  return {};
}

bool Kernel::end_waits(MonotonicTime now) {
  if (!on_probation_.load(std::memory_order_relaxed)) {
    return false;
  }
  Nanoseconds wait_max{0};
  {
    OptionalLock budget_lock(budget_->mutex);
    wait_max = budget_->options().admission.wait_max;
  }
  const auto is_over = [&](const Shard& shard) {
    const MonotonicTime since(
        Nanoseconds(static_cast<std::int64_t>(shard.counters.oldest_waiting_since.get())));
    return wait_max.count() != 0 && shard.counters.oldest_waiting.get() != 0 &&
           now - since >= wait_max;
  };
  bool more = false;
  for (const auto& shard : shards_) {
    // By its counters, which take no lock; the step looks again under it.
    if (is_over(*shard)) {
      leave_step(shard->number, Leave::kWhoseTimeIsOver, now);
      more = more || is_over(*shard);
    }
  }
  return more;
}

void Kernel::end_all_waits(MonotonicTime now) {
  while (on_probation_.load(std::memory_order_relaxed)) {
    const WaitingTotals waits = look_at_waiting(shards_);
    if (!waits.oldest) {
      return;
    }
    leave_step(*waits.oldest, Leave::kAll, now);
  }
}

void Kernel::leave_step(std::uint32_t number, Leave which, MonotonicTime now) {
  Shard& shard = *shards_[number];
  Removals gone(hooks_.owner);
  OptionalLock lock(shard.mutex);
  OptionalLock budget_lock(budget_->mutex);
  OptionalLock tier_lock(tier_->mutex);
  const Nanoseconds wait_max = budget_->options().admission.wait_max;
  for (std::uint32_t n = 0; n < kLeavesMax; ++n) {
    const auto oldest = shard.oldest_waiting();
    if (!oldest || (which != Leave::kAll && now - oldest->since < wait_max)) {
      break;
    }
    leave_oldest(shard, gone, now, *budget_, *tier_);
  }
  budget_->free(gone.bytes());
  // The next to ask finds what is left, where a reload came between.
  shard.count_waiting();
  Event event{.kind = EventKind::kLeave,
              .outcome = static_cast<std::uint8_t>(which),
              .shard = number,
              .now = now};
  put_removals(gone, event);
  publish(event);
}

}  // namespace encore::cache
