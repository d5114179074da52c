#include "cache/kernel.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "base/check.h"
#include "cache/candidate.h"
#include "cache/shard_probation.h"

namespace encore::cache {
namespace {

// Victims of one critical section of a reservation: a few microseconds.
constexpr std::uint32_t kReserveVictims = 32;

// Selectors of a lookup, in memory and on disk.
class TakeFirst {
 public:
  explicit TakeFirst(DiskView* found) : found_(found) {}
  Match operator()(Payload /*payload*/) const { return Match::kYes; }
  static Selector* selector() { return nullptr; }
  DiskView* found() const { return found_; }

 private:
  DiskView* found_;
};

class AskSelector {
 public:
  explicit AskSelector(Selector& selector) : selector_(selector) {}
  Match operator()(Payload payload) const {
    if (selector_.matches(payload)) {
      return Match::kYes;
    }
    return selector_.is_undecided() ? Match::kUndecided : Match::kNo;
  }
  Selector* selector() const { return &selector_; }
  static DiskView* found() { return nullptr; }

 private:
  Selector& selector_;
};

void count_hit(ShardCounters& counters, const LookupResult& result) {
  (result.state == LookupState::kFresh ? counters.fresh_hits : counters.stale_hits).add();
  if (result.is_first_use) [[unlikely]] {
    counters.reused.add();
  }
}

// True if the entry that was to grow is not there any more. REQUIRES: the lock of the key's shard,
// which a lambda cannot say.
bool is_grown_gone(const Shard& shard, const Key& key,
                   std::uint64_t variant) ENCORE_NO_THREAD_SAFETY_ANALYSIS {
  return shard.table.find(key.hash, variant) == kNoEntry;
}

// True if a decision depends on the capacity that is left.
bool reads_budget(const Shard& shard) ENCORE_REQUIRES(shard.mutex) {
  return shard.admission.compares() || shard.table.knows_future();
}

// Reads the budget only if a decision depends on it.
AdmitReason decide(Shard& shard, const Key& key, const AdmitRequest& request, MonotonicTime now,
                   const Budget& budget, std::uint64_t overhead_bytes)
    ENCORE_REQUIRES(shard.mutex, budget.mutex) {
  if (request.size_bytes > shard.max_object_bytes && !request.disk_only) {
    return AdmitReason::kTooLarge;
  }
  // An unknown size is taken for the largest.
  const std::uint64_t size = request.size_bytes == 0 ? shard.max_object_bytes : request.size_bytes;
  if (shard.table.find(key.hash) != kNoEntry || shard.is_on_disk(key)) {
    return shard.admission.may_replace(size, request.rule) ? AdmitReason::kResident
                                                           : AdmitReason::kPolicyRefuses;
  }
  Candidate candidate{.key = key, .now = now, .size_bytes = size};
  const std::uint64_t charge = request.size_bytes + overhead_bytes;
  const bool needs_room = reads_budget(shard) && !request.disk_only && budget.missing(charge) != 0;
  if (needs_room && shard.admission.compares()) {
    candidate.has_victim = shard.table.next_victim(candidate.victim);
  }
  const AdmitReason reason = shard.admission.admit(
      candidate, {.requests = request.requests, .hinted = request.hinted}, request.rule);
  return is_stored(reason) && shard.table.bypasses({charge, request.hint, needs_room})
             ? AdmitReason::kPolicyRefuses
             : reason;
}

// Gives back the payloads of some places from `next` on; false at the end.
bool release_slice(Shard& shard, EntryRef& next, PayloadOwner* owner) {
  Removals gone(owner);
  OptionalLock lock(shard.mutex);
  const std::uint32_t end = std::min(shard.table.slots(), next + Removals::kVictimsMax);
  for (; next < end; ++next) {
    if (shard.table.holds(next)) {
      gone.add_payload(shard.table.payload(next));
    }
  }
  return next < shard.table.slots();
}

}  // namespace

Kernel::Kernel(const KernelOptions& options, Hooks hooks)
    : options_(options), hooks_(hooks), budget_(std::make_unique<Budget>(options)) {
  if (!options.disks.empty()) {
    tier_ = std::make_unique<DiskTier>(options);
  }
}

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
                        .eviction_settings = options.eviction_settings,
                        .concurrent = options.concurrent},
        std::move(*admission)));
    if (!options.disks.empty()) {
      Shard& shard = *kernel->shards_.back();
      OptionalLock lock(shard.mutex);
      shard.give_disks(options.disks);
    }
  }
  kernel->on_probation_ =
      options.admission.policy == AdmissionPolicy::kProbation && !options.disks.empty();
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
    while (release_slice(*shard, next, hooks_.owner)) {
    }
  }
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
  // In this order in all steps: payloads go back to their owner when the locks are free again.
  Removals gone(hooks_.owner);
  OptionalLock lock(shard.mutex);
  const LookupResult result =
      shard.table.lookup(key.hash, {.now = arguments.now, .hint = arguments.hint}, matches, gone);
  // An undecided lookup counts for nothing: it comes again.
  if (result.is_undecided) [[unlikely]] {
    return result;
  }
  if (result.state != LookupState::kMiss) {
    count_hit(shard.counters, result);
    shard.admission.used(key);
  } else if (shard.disk == nullptr) {
    shard.counters.misses.add();
  } else {
    return lookup_on_disk(shard, key, {arguments.now, matches.selector(), matches.found()},
                          {result, gone});
  }
  if (gone.count() == 0 && hooks_.observer == nullptr) [[likely]] {
    return result;
  }
  end_lookup(shard, key, arguments.now, {result, gone}, {});
  return result;
}

void Kernel::end_lookup(Shard& shard, const Key& key, MonotonicTime now, const LookupOutput& looked,
                        const DiskPlace& place) {
  const LookupResult& result = looked.result;
  const Removals& gone = looked.gone;
  Event event{.kind = EventKind::kLookup,
              .outcome = static_cast<std::uint8_t>(result.state),
              .any_resident = result.any_resident,
              .shard = shard.number,
              .now = now,
              .key = key.hash,
              .variant = result.variant,
              .fresh_until = result.fresh_until};
  if (result.on_disk()) {
    event.disk_flags = result.promote() ? kFoundOnDisk | kPromote : kFoundOnDisk;
    event.place = place;
  }
  put_removals(gone, event);
  if (gone.count() == 0) {
    publish(event);
    return;
  }
  shard.counters.expirations.add(gone.count());
  shard.count_entries();
  OptionalLock budget_lock(budget_->mutex);
  budget_->free(gone.bytes());
  publish(event);
}

LookupResult Kernel::lookup(const Key& key, MonotonicTime now, Selector& selector) {
  return lookup_with(key, {now, 0}, AskSelector(selector));
}

LookupResult Kernel::lookup(const Key& key, MonotonicTime now, std::uint64_t hint,
                            DiskView* found) {
  return lookup_with(key, {now, hint}, TakeFirst(found));
}

bool Kernel::would_admit(const Key& key, MonotonicTime now, std::uint64_t size_bytes,
                         const AdmissionRule& rule) const {
  const Shard& shard = shard_for(key.hash);
  OptionalLock lock(shard.mutex);
  if (shard.runs_probation() && rule.kind == AdmissionRule::Kind::kPolicy) [[unlikely]] {
    OptionalLock tier_lock(tier_->mutex);
    // A new object waits in memory, unless it is too large for that and its key is not known.
    const ProbationAdmission& probation = *shard.admission.probation();
    if (tier_->bytes_in_service() != 0) {
      return size_bytes > shard.max_object_bytes
                 ? probation.would_admit({.key = key})
                 : size_bytes != 0 || !probation.key_waits(key.hash);
    }
  }
  return size_bytes <= shard.max_object_bytes &&
         (((shard.table.find(key.hash) != kNoEntry || shard.is_on_disk(key)) &&
           shard.admission.may_replace(size_bytes, rule)) ||
          shard.admission.would_admit({.key = key, .now = now, .size_bytes = size_bytes}, rule));
}

AdmitReason Kernel::admit(const Key& key, const AdmitRequest& request, MonotonicTime now) {
  Shard& shard = shard_for(key.hash);
  OptionalLock lock(shard.mutex);
  const bool on_probation = shard.runs_probation();
  // An event that reads the budget gets its number under the budget's lock.
  OptionalLock budget_lock(budget_, reads_budget(shard) || on_probation);
  OptionalLock tier_lock(tier_, on_probation);
  std::optional<AdmitReason> decided;
  if (on_probation) [[unlikely]] {
    decided = decide_on_probation(shard, key, request, now, *budget_, *tier_);
  }
  const AdmitReason reason =
      decided ? *decided
              : decide(shard, key, request, now, *budget_, options_.entry_overhead_bytes);
  shard.counters.admissions[static_cast<std::size_t>(reason)].add();
  if (shard.disk != nullptr) {
    shard.counters.storable_bytes.add(request.size_bytes);
  }
  if (hooks_.observer != nullptr) [[unlikely]] {
    Event event{.kind = EventKind::kAdmit,
                .outcome = static_cast<std::uint8_t>(reason),
                .shard = shard.number,
                .now = now,
                .key = key.hash,
                .variant = request.variant,
                .charge_bytes = request.size_bytes,
                .reserved_bytes = request.rule.encoded(),
                .requests = request.requests,
                .disk_flags = static_cast<std::uint8_t>((request.disk_only ? kDiskOnly : 0U) |
                                                        (request.hinted ? kHinted : 0U)),
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
  OptionalLock tier_lock(tier_, step.from_waiting);
  auto outcome = static_cast<std::uint8_t>(ReserveOutcome::kReserved);
  std::uint32_t flags = (step.last ? kReserveLast : 0) | (step.grows ? kReserveGrows : 0) |
                        (step.from_waiting ? kReserveWaiting : 0);
  const bool may_go = step.grows && step.shard == filter::shard_of(key.hash, options_.shards);
  // An entry that grows may be the next victim itself: docs/decisions/0341.
  const auto has_gone = [&] { return may_go && is_grown_gone(shard, key, *step.grows); };
  if (step.bytes > budget_->max_object()) {
    outcome = static_cast<std::uint8_t>(ReserveOutcome::kTooLarge);
  } else {
    if (const std::uint64_t missing = budget_->missing(step.bytes); missing != 0) {
      flags |= step.spares ? kReserveSpares : 0;
      // It holds less than half of its share (docs/decisions/0190).
      const bool is_lean =
          step.spares && shard.table.charged_bytes() * 2 * options_.shards < budget_->used();
      const auto used = step.spares ? Table::Used::kSpare : Table::Used::kEvict;
      Table::Evicted last = Table::Evicted::kEachUsed;
      if (step.from_waiting) [[unlikely]] {
        // Keys take no room of it: the next one may be of an object.
        for (std::uint32_t n = 0; n < kReserveVictims; ++n) {
          if (leave_oldest(shard, gone, now, *budget_, *tier_) != Left::kKey) break;
        }
      } else if (!is_lean) {
        last = shard.evict_until(missing, kReserveVictims, gone, used, has_gone);
      }
      budget_->free(gone.bytes());
      if (has_gone()) {
        outcome = kReserveGone;
      } else if (budget_->missing(step.bytes) != 0) {
        const bool is_done =
            last == Table::Evicted::kNothingLeft || last == Table::Evicted::kEachUsed;
        outcome = !is_done    ? kReserveSameShard
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
                .variant = step.grows.value_or(0),
                .charge_bytes = step.bytes,
                .requests = flags};
    put_removals(gone, event);
    publish(event);
  }
  return outcome;
}

ReserveOutcome Kernel::reserve(const Key& key, std::uint64_t bytes, MonotonicTime now) {
  return static_cast<ReserveOutcome>(reserve_steps(key, bytes, {}, now));
}

bool Kernel::reserve_growth(const Key& key, std::uint64_t variant, std::uint64_t bytes,
                            MonotonicTime now) {
  return reserve_steps(key, bytes, variant, now) ==
         static_cast<std::uint8_t>(ReserveOutcome::kReserved);
}

// Around all shards twice, from the key's own on, and that again. With probation the oldest that
// waits goes first while more waits than may, and goes in any case after all else.
std::uint8_t Kernel::reserve_steps(const Key& key, std::uint64_t bytes,
                                   const std::optional<std::uint64_t>& grows, MonotonicTime now) {
  const bool on_probation = on_probation_.load(std::memory_order_relaxed);
  std::uint64_t waiting_most = 0;
  if (on_probation) [[unlikely]] {
    OptionalLock budget_lock(budget_->mutex);
    OptionalLock tier_lock(tier_->mutex);
    waiting_most = waiting_max(*budget_, *tier_);
  }
  const std::uint32_t first = filter::shard_of(key.hash, options_.shards);
  const std::uint32_t last = 2 * options_.shards;
  std::uint32_t tried = 0;
  while (true) {
    WaitingTotals waits;
    if (on_probation) [[unlikely]] {
      waits = look_at_waiting(shards_);
    }
    const bool from_waiting =
        waits.oldest && (waits.bytes > waiting_most || !waits.has_others || tried > last);
    const ReserveStep step{
        .shard = from_waiting ? *waits.oldest : (first + tried) & (options_.shards - 1),
        .bytes = bytes,
        .last = !waits.oldest && tried >= last,
        .spares = !from_waiting && tried < options_.shards,
        .from_waiting = from_waiting,
        .grows = grows};
    const std::uint8_t outcome = reserve_step(key, step, now);
    if (outcome != kReserveSameShard && outcome != kReserveNextShard) {
      return outcome;
    }
    tried += outcome == kReserveSameShard || from_waiting ? 0 : 1;
  }
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

// --- removal -------------------------------------------------------------------------------------

std::uint32_t Kernel::invalidate(const Key& key, MonotonicTime now, DiskTombstone* tombstone) {
  Shard& shard = shard_for(key.hash);
  Removals gone(hooks_.owner);
  OptionalLock lock(shard.mutex);
  const std::uint32_t on_disk_alone = shard.disk == nullptr ? 0 : shard.disk->count_alone(key);
  for (EntryRef ref = shard.table.find(key.hash); ref != kNoEntry;
       ref = shard.table.find(key.hash)) {
    shard.table.erase(ref, Removal::kRemoved, gone);
  }
  if (ProbationAdmission* const probation = shard.admission.probation()) [[unlikely]] {
    // A key that waits is gone as well, and the pair is not told of it (docs/decisions/0425).
    probation->forget(key.hash);
  }
  Event event{.kind = EventKind::kInvalidate, .shard = shard.number, .now = now, .key = key.hash};
  settle_removals(shard, gone, event, {.key = &key}, tombstone);
  return gone.count() + on_disk_alone;
}

bool Kernel::remove(const Key& key, std::uint64_t variant, MonotonicTime now,
                    DiskTombstone* tombstone) {
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
  settle_removals(shard, gone, event, {.key = &key, .variant = static_cast<std::uint32_t>(variant)},
                  tombstone);
  return gone.count() != 0 || event.disk_entries != 0;
}

void Kernel::settle_removals(Shard& shard, const Removals& gone, Event& event, const OnDisk& meant,
                             DiskTombstone* tombstone) {
  shard.counters.invalidations.add(gone.count());
  shard.count_entries();
  put_removals(gone, event);
  OptionalLock budget_lock(budget_->mutex);
  budget_->free(gone.bytes());
  if (tier_ == nullptr || meant.key == nullptr) [[likely]] {
    publish(event);
    return;
  }
  OptionalLock tier_lock(tier_->mutex);
  event.disk_entries = shard.disk->remove(*meant.key, meant.variant, *budget_, *tier_);
  event.version = tier_->version_of_removal(event.disk_entries);
  if (tombstone != nullptr) {
    *tombstone = {event.version};
  }
  publish(event);
}

std::uint32_t Kernel::mark_stale(const Key& key, MonotonicTime now, DiskTombstone* tombstone) {
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
  if (tier_ == nullptr) [[likely]] {
    publish(event);
    return marked;
  }
  const std::uint32_t on_disk_alone = shard.disk->count_alone(key);
  OptionalLock tier_lock(tier_->mutex);
  event.disk_entries = shard.disk->mark_stale(key, now);
  event.version = tier_->version_of_removal(event.disk_entries);
  if (tombstone != nullptr) {
    *tombstone = {event.version};
  }
  publish(event);
  return marked + on_disk_alone;
}

// Bytes move and nothing is decided, so that the journal has no event for it.
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
