#include "proxy/disk/disk_log.h"

#include <optional>
#include <utility>

#include "base/check.h"
#include "proxy/disk/open.h"

namespace encore::disk {

bool DiskLog::add_tombstone(const Purge& purge) {
  const MutexLock lock(mutex_);
  ++waiting_;
  buried_.push_back(purge);
  return buried_.size() == kBuriedMax;
}

void DiskLog::begin_run(const RunHistory& runs) {
  runs_ = runs;
  (void)remember_runs();
}

// The other process may have begun a run of its own: that is forgotten.
Result<void> DiskLog::resume_run() {
  const auto found = find_disk(state_.file);
  if (!found) return std::unexpected(found.error());
  if (!*found || (*found)->runs == superblock_.runs) return {};
  superblock_.generation = (*found)->generation;
  auto remembered = disk::remember_runs(state_.file, superblock_, runs_);
  if (!remembered) return std::unexpected(remembered.error());
  superblock_ = *remembered;
  return {};
}

std::vector<Purge> DiskLog::take_tombstones() {
  const MutexLock lock(mutex_);
  waiting_ -= buried_.size();
  return std::exchange(buried_, {});
}

Result<void> DiskLog::remember_runs() {
  if (superblock_.runs == runs_) return {};
  auto remembered = disk::remember_runs(state_.file, superblock_, runs_);
  if (!remembered) return std::unexpected(remembered.error());
  superblock_ = *remembered;
  return {};
}

Result<void> DiskLog::note_purge() { return has_purge_ ? Result<void>() : append_twice({}); }

Result<void> DiskLog::remember_purge() {
  if (has_purge_) return {};
  runs_.note_purge();
  if (auto remembered = remember_runs(); !remembered) return remembered;
  state_.common->witness.note_purge();
  has_purge_ = true;
  return {};
}

Result<void> DiskLog::append_tombstones() {
  if (state_.common->has_purge) {
    if (auto noted = note_purge(); !noted) return noted;
  }
  if (auto forgotten = forget_records(); !forgotten) return forgotten;
  std::vector<Purge> buried;
  {
    const MutexLock lock(mutex_);
    buried = std::exchange(buried_, {});
  }
  if (buried.empty()) return {};
  // Their records were placed before: each lies in the newest turn of now, or in an older one.
  const auto sequence = state_.common->kernel.use(
      [&](cache::Kernel& kernel) { return std::optional(kernel.disk_sequence(state_.number)); });
  if (!sequence) return fail("disk " + state_.file.path() + ": stopped with purges left");
  for (Purge& purge : buried) purge.sequence = *sequence;
  // Nothing comes back if nothing was ever written; an absent disk may have anything.
  auto appended = *sequence == 0 ? note_purge() : append_all(buried, false);
  ENCORE_CHECK(waiting_ >= buried.size(), "what is appended was waiting");
  // Only now: a purge without entries of its own completes immediately if nothing waits.
  waiting_ -= buried.size();
  return appended;
}

Result<void> DiskLog::forget_records() {
  // The index has forgotten its records, and hears of no purge of them: the next start is to find
  // none (docs/decisions/0440).
  if (!state_.is_offline() || is_without_records_) return {};
  Purge all;
  all.kind = PurgeKind::kPrefix;  // each key begins with nothing
  const bool is_known = state_.common->kernel.use([&](cache::Kernel& kernel) {
    all.version = kernel.purge_rule(state_.common->clocks.monotonic());
    all.sequence = kernel.disk_sequence(state_.number);
    return true;
  });
  if (!is_known) return fail("disk " + state_.file.path() + ": stopped with purges left");
  auto appended = append_all(std::span(&all, 1), false);
  is_without_records_ = appended.has_value();
  return appended;
}

Result<void> DiskLog::append(std::span<const Purge> purges) { return append_all(purges, true); }

Result<void> DiskLog::append_all(std::span<const Purge> purges, bool is_answered) {
  auto appended = append_twice(purges);
  if (appended) state_.common->witness.note(state_.number, log_->position(), is_answered);
  entries_.store(log_->entries(), std::memory_order_relaxed);
  overflows_.store(log_->overflows(), std::memory_order_relaxed);
  return appended;
}

Result<void> DiskLog::append_twice(std::span<const Purge> purges) {
  if (has_failed_) {
    // If nothing is found any more, nothing can return.
    return is_forgotten_ ? Result<void>() : give_up({"its purge log has failed before"});
  }
  const auto append_once = [&]() -> Result<void> {
    if (auto remembered = remember_purge(); !remembered) return remembered;
    return purges.empty() ? Result<void>() : log_->append(purges);
  };
  auto appended = append_once();
  // It mends itself.
  if (!appended) appended = append_once();
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
