#include "cache/kernel.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "base/check.h"
#include "cache/budget.h"
#include "cache/candidate.h"
#include "cache/shard.h"

namespace encore::cache {
namespace {

// Victims of one critical section of a reservation: a few microseconds.
constexpr std::uint32_t kReserveVictims = 32;
// A freshening that lost its room to others so often gives up.
constexpr int kFreshenAttempts = 4;

struct TakeFirst {
  Match operator()(Payload /*payload*/) const { return Match::kYes; }
};

void count_lookup(ShardCounters& counters, const LookupResult& result) {
  Counter& counter = result.state == LookupState::kMiss    ? counters.misses
                     : result.state == LookupState::kFresh ? counters.fresh_hits
                                                           : counters.stale_hits;
  counter.add();
}

// Whether a decision depends on the room that is left. REQUIRES: the shard's lock.
bool reads_budget(const Shard& shard) ENCORE_NO_THREAD_SAFETY_ANALYSIS {
  return shard.admission.compares() || shard.table.knows_future();
}

void put_removals(const Removals& gone, Event& event) {
  event.removed = gone.count();
  event.freed_bytes = gone.bytes();
  event.removed_digest = gone.digest();
}

void put_stored(const Stored& stored, std::uint64_t reserved_bytes, Event& event) {
  event.variant = stored.variant;
  event.charge_bytes = stored.charge_bytes;
  event.reserved_bytes = reserved_bytes;
  event.fresh_until = stored.fresh_until;
  event.keep_until = stored.keep_until;
}

}  // namespace

Kernel::Kernel(const KernelOptions& options, Hooks hooks)
    : options_(options), hooks_(hooks), budget_(std::make_unique<Budget>(options)) {}

Result<std::unique_ptr<Kernel>> Kernel::create(const KernelOptions& options, Hooks hooks,
                                               MonotonicTime now) {
  if (auto accepted = check_options(options); !accepted) {
    return std::unexpected(accepted.error());
  }
  std::unique_ptr<Kernel> kernel(new Kernel(options, hooks));
  for (std::uint32_t number = 0; number < options.shards; ++number) {
    auto admission =
        Admission::create(Admission::settings_of(options, reload_options(options)), now);
    if (!admission) {
      return std::unexpected(admission.error());
    }
    kernel->shards_.push_back(std::make_unique<Shard>(
        Shard::Settings{.number = number,
                        .variants_max = options.variants_max,
                        .max_object_bytes = effective_max_object(reload_options(options)),
                        .eviction = options.eviction,
                        .concurrent = options.concurrent},
        std::move(*admission)));
  }
  return kernel;
}

// The owner is called without a lock here as well: nobody else is left to take one, but what it
// does may.
Kernel::~Kernel() {
  if (hooks_.owner == nullptr) {
    return;
  }
  for (const auto& shard : shards_) {
    EntryRef next = 0;
    while (release_slice(*shard, next)) {
    }
  }
}

bool Kernel::release_slice(Shard& shard, std::uint32_t& next) {
  Removals gone(hooks_.owner);
  OptionalLock lock(shard.mutex);
  const std::uint32_t end = std::min(shard.table.slots(), next + Removals::kVictimsMax);
  for (; next < end; ++next) {
    if (shard.table.holds(next)) {
      gone.add_payload(shard.table.payload(next));
    }
  }
  return next < shard.table.slots();
}

Shard& Kernel::shard_for(const filter::Hash128& key) const {
  return *shards_[filter::shard_of(key, options_.shards)];
}

void Kernel::publish(Event& event) const {
  if (hooks_.observer != nullptr) [[unlikely]] {
    event.sequence = budget_->next_sequence();
    hooks_.observer->record(event);
  }
}

// --- requests -----------------------------------------------------------------------------------

template <typename Matches>
LookupResult Kernel::lookup_with(const Key& key, const LookupArguments& arguments,
                                 Matches&& matches) {
  Shard& shard = shard_for(key.hash);
  Removals gone(hooks_.owner);
  OptionalLock lock(shard.mutex);
  const LookupResult result =
      shard.table.lookup(key.hash, {.now = arguments.now, .hint = arguments.hint}, matches, gone);
  if (result.is_undecided) [[unlikely]] {
    return result;
  }
  count_lookup(shard.counters, result);
  if (result.state != LookupState::kMiss) {
    shard.admission.used(key);
  }
  if (gone.count() == 0 && hooks_.observer == nullptr) [[likely]] {
    return result;
  }
  Event event{.kind = EventKind::kLookup,
              .outcome = static_cast<std::uint8_t>(result.state),
              .any_resident = result.any_resident,
              .shard = shard.number,
              .now = arguments.now,
              .key = key.hash,
              .variant = result.variant,
              .fresh_until = result.fresh_until};
  put_removals(gone, event);
  if (gone.count() == 0) {
    publish(event);
    return result;
  }
  shard.counters.expirations.add(gone.count());
  shard.count_entries();
  OptionalLock budget_lock(budget_->mutex);
  budget_->free(gone.bytes());
  publish(event);
  return result;
}

LookupResult Kernel::lookup(const Key& key, MonotonicTime now, Selector& selector) {
  return lookup_with(key, {now, 0}, [&](Payload payload) {
    if (selector.matches(payload)) {
      return Match::kYes;
    }
    return selector.is_undecided() ? Match::kUndecided : Match::kNo;
  });
}

LookupResult Kernel::lookup(const Key& key, MonotonicTime now, std::uint64_t hint) {
  return lookup_with(key, {now, hint}, TakeFirst{});
}

bool Kernel::would_admit(const Key& key, MonotonicTime now, std::uint64_t size_bytes) const {
  const Shard& shard = shard_for(key.hash);
  OptionalLock lock(shard.mutex);
  return size_bytes <= shard.max_object_bytes &&
         (shard.table.find(key.hash) != kNoEntry ||
          shard.admission.would_admit({.key = key, .now = now, .size_bytes = size_bytes}));
}

AdmitReason Kernel::decide(Shard& shard, const Key& key, const AdmitRequest& request,
                           MonotonicTime now) const {
  if (request.size_bytes > shard.max_object_bytes) {
    return AdmitReason::kTooLarge;
  }
  if (shard.table.find(key.hash) != kNoEntry) {
    return AdmitReason::kResident;
  }
  Candidate candidate{
      .key = key,
      .now = now,
      .size_bytes = request.size_bytes == 0 ? shard.max_object_bytes : request.size_bytes};
  const std::uint64_t charge = request.size_bytes + options_.entry_overhead_bytes;
  const bool needs_room = reads_budget(shard) && budget_->missing(charge) != 0;
  if (needs_room && shard.admission.compares()) {
    candidate.has_victim = shard.table.next_victim(candidate.victim);
  }
  const AdmitReason reason = shard.admission.admit(candidate, request.requests);
  return is_stored(reason) && shard.table.bypasses({charge, request.hint, needs_room})
             ? AdmitReason::kPolicyRefuses
             : reason;
}

AdmitReason Kernel::admit(const Key& key, const AdmitRequest& request, MonotonicTime now) {
  Shard& shard = shard_for(key.hash);
  OptionalLock lock(shard.mutex);
  // Whoever reads the budget is numbered under its lock.
  std::optional<OptionalLock> budget_lock;
  if (reads_budget(shard)) {
    budget_lock.emplace(budget_->mutex);
  }
  const AdmitReason reason = decide(shard, key, request, now);
  shard.counters.admissions[static_cast<std::size_t>(reason)].add();
  if (hooks_.observer != nullptr) [[unlikely]] {
    Event event{.kind = EventKind::kAdmit,
                .outcome = static_cast<std::uint8_t>(reason),
                .shard = shard.number,
                .now = now,
                .key = key.hash,
                .variant = request.variant,
                .charge_bytes = request.size_bytes,
                .requests = request.requests,
                .text = key.bytes};
    publish(event);
  }
  return reason;
}

std::uint8_t Kernel::reserve_step(const Key& key, const ReserveStep& step, MonotonicTime now) {
  Shard& shard = *shards_[step.shard];
  Removals gone(hooks_.owner);
  OptionalLock lock(shard.mutex);
  OptionalLock budget_lock(budget_->mutex);
  auto outcome = static_cast<std::uint8_t>(ReserveOutcome::kReserved);
  if (step.bytes > budget_->max_object()) {
    outcome = static_cast<std::uint8_t>(ReserveOutcome::kTooLarge);
  } else {
    if (const std::uint64_t missing = budget_->missing(step.bytes); missing != 0) {
      const Table::Evicted last = shard.evict(missing, kReserveVictims, gone);
      budget_->free(gone.bytes());
      if (budget_->missing(step.bytes) != 0) {
        outcome = last != Table::Evicted::kNothingLeft ? kReserveSameShard
                  : step.last ? static_cast<std::uint8_t>(ReserveOutcome::kFull)
                              : kReserveNextShard;
      }
    }
    if (outcome == static_cast<std::uint8_t>(ReserveOutcome::kReserved)) {
      budget_->take_reservation(step.bytes);
    }
  }
  if (outcome == static_cast<std::uint8_t>(ReserveOutcome::kTooLarge) ||
      outcome == static_cast<std::uint8_t>(ReserveOutcome::kFull)) {
    shard.counters.reserve_failures.add();
  }
  if (hooks_.observer != nullptr) [[unlikely]] {
    Event event{.kind = EventKind::kReserve,
                .outcome = outcome,
                .shard = step.shard,
                .now = now,
                .key = key.hash,
                .charge_bytes = step.bytes,
                .requests = step.last ? 1U : 0U};
    put_removals(gone, event);
    publish(event);
  }
  return outcome;
}

ReserveOutcome Kernel::reserve(const Key& key, std::uint64_t bytes, MonotonicTime now) {
  const std::uint32_t first = filter::shard_of(key.hash, options_.shards);
  // Around once, and the key's own shard again.
  for (std::uint32_t tried = 0; tried <= options_.shards; ++tried) {
    const ReserveStep step{.shard = (first + tried) & (options_.shards - 1),
                           .bytes = bytes,
                           .last = tried == options_.shards};
    std::uint8_t outcome = kReserveSameShard;
    while (outcome == kReserveSameShard) {
      outcome = reserve_step(key, step, now);
    }
    if (outcome != kReserveNextShard) {
      return static_cast<ReserveOutcome>(outcome);
    }
  }
  panic(__FILE__, __LINE__, "outcome", "the last step of a reservation ends it");
}

void Kernel::abort(const Key& key, std::uint64_t reserved_bytes, MonotonicTime now) {
  if (reserved_bytes == 0) {
    return;
  }
  Shard& shard = shard_for(key.hash);
  OptionalLock lock(shard.mutex);
  OptionalLock budget_lock(budget_->mutex);
  budget_->give_back_reservation(reserved_bytes);
  Event event{.kind = EventKind::kAbort,
              .shard = shard.number,
              .now = now,
              .key = key.hash,
              .charge_bytes = reserved_bytes};
  publish(event);
}

CommitOutcome Kernel::commit(const Key& key, const Stored& stored, std::uint64_t reserved_bytes,
                             MonotonicTime now) {
  const std::uint64_t total = stored.charge_bytes + options_.entry_overhead_bytes;
  if (total > reserved_bytes) {
    const ReserveOutcome outcome = reserve(key, total - reserved_bytes, now);
    if (outcome != ReserveOutcome::kReserved) {
      abort(key, reserved_bytes, now);
      return outcome == ReserveOutcome::kFull ? CommitOutcome::kFull : CommitOutcome::kTooLarge;
    }
    reserved_bytes = total;
  }
  return commit_step(key, stored, reserved_bytes, now);
}

CommitOutcome Kernel::commit_step(const Key& key, const Stored& stored,
                                  std::uint64_t reserved_bytes, MonotonicTime now) {
  Shard& shard = shard_for(key.hash);
  Removals gone(hooks_.owner);
  Stored complete = stored;
  complete.charge_bytes += options_.entry_overhead_bytes;
  OptionalLock lock(shard.mutex);
  CommitOutcome outcome = CommitOutcome::kTooLarge;
  if (complete.charge_bytes <= shard.max_object_bytes) {
    switch (shard.table.insert(key.hash, complete, {.now = now, .hint = stored.hint},
                               {.variants_max = shard.variants_max}, gone)) {
      case Table::Inserted::kNew:
        outcome = CommitOutcome::kStored;
        break;
      case Table::Inserted::kReplaced:
        outcome = CommitOutcome::kReplaced;
        break;
      case Table::Inserted::kOutOfMemory:
        outcome = CommitOutcome::kFull;
        break;
    }
  }
  const bool is_stored = outcome == CommitOutcome::kStored || outcome == CommitOutcome::kReplaced;
  if (is_stored) {
    const std::uint32_t replaced = outcome == CommitOutcome::kReplaced ? 1 : 0;
    shard.counters.commits.add();
    shard.counters.replacements.add(replaced);
    shard.counters.variants_dropped.add(gone.count() - replaced);
    shard.count_entries();
  }
  OptionalLock budget_lock(budget_->mutex);
  budget_->give_back_reservation(reserved_bytes);
  budget_->grow(is_stored ? complete.charge_bytes : 0);
  budget_->free(gone.bytes());
  if (hooks_.observer != nullptr) [[unlikely]] {
    Event event{.kind = EventKind::kCommit,
                .outcome = static_cast<std::uint8_t>(outcome),
                .shard = shard.number,
                .now = now,
                .key = key.hash};
    put_stored(stored, reserved_bytes, event);
    put_removals(gone, event);
    publish(event);
  }
  return outcome;
}

FreshenOutcome Kernel::freshen(const Key& key, const Stored& stored, MonotonicTime now) {
  std::uint64_t reserved_bytes = 0;
  for (int attempt = 0; attempt < kFreshenAttempts; ++attempt) {
    const FreshenStep step = freshen_step(key, stored, reserved_bytes, now);
    if (step.outcome != kFreshenNeedsRoom) {
      return static_cast<FreshenOutcome>(step.outcome);
    }
    const ReserveOutcome reserved = reserve(key, step.needs_bytes, now);
    if (reserved != ReserveOutcome::kReserved) {
      abort(key, reserved_bytes, now);
      return reserved == ReserveOutcome::kFull ? FreshenOutcome::kFull : FreshenOutcome::kTooLarge;
    }
    reserved_bytes += step.needs_bytes;
  }
  abort(key, reserved_bytes, now);
  return FreshenOutcome::kFull;
}

Kernel::FreshenStep Kernel::freshen_step(const Key& key, const Stored& stored,
                                         std::uint64_t reserved_bytes, MonotonicTime now) {
  Shard& shard = shard_for(key.hash);
  Removals gone(hooks_.owner);
  Stored complete = stored;
  complete.charge_bytes += options_.entry_overhead_bytes;
  OptionalLock lock(shard.mutex);
  OptionalLock budget_lock(budget_->mutex);
  FreshenStep step{static_cast<std::uint8_t>(FreshenOutcome::kFreshened), 0};
  const EntryRef ref = shard.table.find(key.hash, stored.variant);
  const std::uint64_t before = ref == kNoEntry ? 0 : shard.table.charge(ref);
  const std::uint64_t covered = before + reserved_bytes;
  if (ref == kNoEntry) {
    step.outcome = static_cast<std::uint8_t>(FreshenOutcome::kAbsent);
  } else if (complete.charge_bytes > budget_->max_object()) {
    step.outcome = static_cast<std::uint8_t>(FreshenOutcome::kTooLarge);
  } else if (complete.charge_bytes > covered &&
             budget_->missing(complete.charge_bytes - covered) != 0) {
    step = {kFreshenNeedsRoom, complete.charge_bytes - covered};
  }
  if (step.outcome != kFreshenNeedsRoom) {
    budget_->give_back_reservation(reserved_bytes);
  }
  if (step.outcome == static_cast<std::uint8_t>(FreshenOutcome::kFreshened)) {
    budget_->grow(complete.charge_bytes);
    budget_->free(before);
    shard.table.update(ref, complete, gone);
    shard.counters.freshens.add();
  }
  if (hooks_.observer != nullptr) [[unlikely]] {
    Event event{.kind = EventKind::kFreshen,
                .outcome = step.outcome,
                .shard = shard.number,
                .now = now,
                .key = key.hash};
    put_stored(stored, reserved_bytes, event);
    event.freed_bytes = step.needs_bytes;
    publish(event);
  }
  return step;
}

// --- removal
// --------------------------------------------------------------------------------------

std::uint32_t Kernel::invalidate(const Key& key, MonotonicTime now) {
  Shard& shard = shard_for(key.hash);
  Removals gone(hooks_.owner);
  OptionalLock lock(shard.mutex);
  for (EntryRef ref = shard.table.find(key.hash); ref != kNoEntry;
       ref = shard.table.find(key.hash)) {
    shard.table.erase(ref, Removal::kRemoved, gone);
  }
  Event event{.kind = EventKind::kInvalidate, .shard = shard.number, .now = now, .key = key.hash};
  settle_removals(shard, gone, event);
  return gone.count();
}

bool Kernel::remove(const Key& key, std::uint64_t variant, MonotonicTime now) {
  Shard& shard = shard_for(key.hash);
  Removals gone(hooks_.owner);
  OptionalLock lock(shard.mutex);
  const EntryRef ref = shard.table.find(key.hash, variant);
  if (ref != kNoEntry) {
    shard.table.erase(ref, Removal::kRemoved, gone);
  }
  Event event{.kind = EventKind::kRemove,
              .shard = shard.number,
              .now = now,
              .key = key.hash,
              .variant = variant};
  settle_removals(shard, gone, event);
  return ref != kNoEntry;
}

void Kernel::settle_removals(Shard& shard, const Removals& gone, Event& event) {
  shard.counters.invalidations.add(gone.count());
  shard.count_entries();
  put_removals(gone, event);
  OptionalLock budget_lock(budget_->mutex);
  budget_->free(gone.bytes());
  publish(event);
}

std::uint32_t Kernel::mark_stale(const Key& key, MonotonicTime now) {
  Shard& shard = shard_for(key.hash);
  OptionalLock lock(shard.mutex);
  std::uint32_t marked = 0;
  for (EntryRef ref = shard.table.find(key.hash); ref != kNoEntry; ref = shard.table.next(ref)) {
    shard.table.mark_stale(ref, now);
    ++marked;
  }
  Event event{.kind = EventKind::kMarkStale,
              .shard = shard.number,
              .now = now,
              .key = key.hash,
              .requests = marked};
  publish(event);
  return marked;
}

bool Kernel::relocate(const filter::Hash128& key, Payload from, Payload to) {
  Shard& shard = shard_for(key);
  OptionalLock lock(shard.mutex);
  for (EntryRef ref = shard.table.find(key); ref != kNoEntry; ref = shard.table.next(ref)) {
    if (shard.table.payload(ref) == from) {
      shard.table.set_payload(ref, to);
      return true;
    }
  }
  return false;
}

}  // namespace encore::cache
