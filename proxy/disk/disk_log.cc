#include "proxy/disk/disk_log.h"

#include <optional>
#include <utility>

#include "proxy/disk/open.h"

namespace encore::disk {

bool DiskLog::bury(const Purge& purge) {
  const MutexLock lock(mutex_);
  ++waiting_;
  buried_.push_back(purge);
  return buried_.size() == kBuriedMax;
}

Result<void> DiskLog::append_buried() {
  std::vector<Purge> buried;
  {
    const MutexLock lock(mutex_);
    buried = std::exchange(buried_, {});
  }
  if (buried.empty()) return {};
  // What they are of was placed before: it lies in the newest turn of now, or in an older one.
  const auto sequence = state_.common->kernel.use(
      [&](cache::Kernel& kernel) { return std::optional(kernel.disk_sequence(state_.number)); });
  if (!sequence) return fail("disk " + state_.file.path() + ": stopped with purges left");
  for (Purge& purge : buried) purge.sequence = *sequence;
  // Where nothing was ever written, nothing comes back.
  auto appended = *sequence == 0 ? Result<void>() : append(buried);
  waiting_ -= buried.size();
  return appended;
}

Result<void> DiskLog::append(std::span<const Purge> purges) {
  auto appended = append_twice(purges);
  entries_.store(log_->entries(), std::memory_order_relaxed);
  overflows_.store(log_->overflows(), std::memory_order_relaxed);
  return appended;
}

Result<void> DiskLog::append_twice(std::span<const Purge> purges) {
  if (has_failed_) {
    // Where nothing is found any more, nothing comes back.
    return is_forgotten_ ? Result<void>() : give_up({"its purge log has failed before"});
  }
  auto appended = log_->append(purges);
  // It mends itself.
  if (!appended) appended = log_->append(purges);
  if (!appended) {
    has_failed_ = true;
    state_.take_offline();
    (void)give_up(appended.error());
  }
  return appended;
}

Result<void> DiskLog::give_up(const Error& error) {
  is_forgotten_ = forget_disk(state_.file, state_.superblock).has_value();
  if (is_forgotten_) return {};
  return fail("disk " + state_.file.path() +
              " is out of service, and what was purged may be on it (" + error.message +
              "); empty it with --clear-disk");
}

Result<void> DiskLog::prune(std::uint64_t sequence_min) {
  if (has_failed_) return {};
  auto pruned = log_->prune(sequence_min);
  entries_.store(log_->entries(), std::memory_order_relaxed);
  if (pruned) state_.rules.forget_below(sequence_min);
  return pruned;
}

}  // namespace encore::disk
