// The part of the kernel that is not on the path of a request: bounded sweeps, reload, saved state,
// statistics.
#include <algorithm>
#include <iterator>
#include <optional>
#include <utility>

#include "base/check.h"
#include "cache/journal.h"
#include "cache/kernel.h"
#include "cache/saved_admission.h"
#include "cache/shard_probation.h"

namespace encore::cache {
namespace {

std::uint32_t slots_of(const Shard& shard, const Kernel::Cursor& cursor)
    ENCORE_REQUIRES(shard.mutex) {
  return cursor.on_disk ? shard.disk->slots() : shard.table.slots();
}

// The visitor's verdict on the place that the cursor is at.
Verdict ask(const Shard& shard, const Kernel::Cursor& at, Visitor& visitor)
    ENCORE_REQUIRES(shard.mutex) {
  if (at.on_disk) {
    return shard.disk->visit(at.slot, visitor);
  }
  return shard.table.holds(at.slot) ? visitor.visit(shard.table.view(at.slot)) : Verdict::kKeep;
}

// Says which entry is at that place.
Event purge_event(const Shard& shard, const Kernel::Cursor& at) ENCORE_REQUIRES(shard.mutex) {
  if (at.on_disk) {
    const auto [key, place] = shard.disk->slot(at.slot);
    return {.shard = shard.number, .key = {key.mixed, key.tag}, .place = place};
  }
  const EntryView view = shard.table.view(at.slot);
  return {.shard = shard.number, .key = view.key, .variant = view.variant};
}

// Evicts for so much room; what waits leaves after all else.
Table::Evicted evict_for(Shard& shard, const Kernel::Room& wanted, Removals& gone,
                         MonotonicTime now, const Budget& budget,
                         const std::unique_ptr<DiskTier>& tier)
    ENCORE_REQUIRES(shard.mutex, budget.mutex, tier->mutex) {
  const Table::Evicted last = shard.evict(wanted.bytes, wanted.victims_max, gone);
  while (shard.runs_probation() && gone.bytes() < wanted.bytes &&
         gone.count() < wanted.victims_max && !shard.table.waiting().empty() &&
         leave_oldest(shard, gone, now, budget, *tier) != Left::kNothing) {
  }
  return last;
}

}  // namespace

bool Kernel::for_each(Cursor& cursor, std::uint32_t slots_max, Visitor& visitor,
                      MonotonicTime now) {
  if (cursor.shard >= options_.shards) {
    return false;
  }
  Shard& shard = *shards_[cursor.shard];
  Removals gone(hooks_.owner);
  OptionalLock lock(shard.mutex);
  std::uint32_t acted = 0;  // on disk
  for (; slots_max != 0 && cursor.slot < slots_of(shard, cursor); ++cursor.slot, --slots_max) {
    // One critical section removes no more; the cursor stays here.
    if (gone.count() + acted == Removals::kVictimsMax) {
      return true;
    }
    const Verdict verdict = ask(shard, cursor, visitor);
    if (verdict != Verdict::kKeep) {
      Event event = purge_event(shard, cursor);
      event.kind = verdict == Verdict::kRemove ? EventKind::kPurge : EventKind::kPurgeSoftly;
      event.now = now;
      purge(shard, cursor.slot, gone, event);
      acted += cursor.on_disk ? 1U : 0U;
    }
  }
  if (cursor.slot >= slots_of(shard, cursor)) {
    const bool to_disk = shard.disk != nullptr && !cursor.on_disk;
    cursor = {.shard = cursor.shard + (to_disk ? 0U : 1U), .slot = 0, .on_disk = to_disk};
  }
  return cursor.shard < options_.shards;
}

void Kernel::purge(Shard& shard, std::uint32_t slot, Removals& gone, Event& event) {
  const bool softly = event.kind == EventKind::kPurgeSoftly;
  if (event.place != DiskPlace{}) {
    OptionalLock budget_lock(budget_->mutex);
    OptionalLock tier_lock(tier_->mutex);
    shard.disk->apply(slot, softly ? Verdict::kMarkStale : Verdict::kRemove, event.now, *budget_,
                      *tier_);
    event.disk_entries = 1;
    publish(event);
  } else if (softly) {
    shard.table.mark_stale(slot, event.now);
    publish(event);
  } else {
    Removals one(nullptr);
    one.add(shard.table.view(slot));
    shard.table.erase(slot, Removal::kRemoved, gone);
    settle_removals(shard, one, event, {}, nullptr);
  }
}

void Kernel::purge_step(const Event& event) {
  const bool on_disk = event.place != DiskPlace{};
  Shard& shard = on_disk ? *shards_[event.shard] : shard_for(event.key);
  Removals gone(hooks_.owner);
  OptionalLock lock(shard.mutex);
  const EntryRef ref =
      on_disk
          ? shard.disk->find({{event.key.lo, static_cast<std::uint8_t>(event.key.hi)}, event.place})
          : shard.table.find(event.key, event.variant);
  if (ref != kNoEntry) {
    Event repeated{.kind = event.kind,
                   .shard = shard.number,
                   .now = event.now,
                   .key = event.key,
                   .variant = event.variant,
                   .place = event.place};
    purge(shard, ref, gone, repeated);
  }
}

Kernel::Reclaimed Kernel::reclaim(std::uint32_t victims_max, MonotonicTime now) {
  ENCORE_CHECK(victims_max != 0, "a reclaim may evict something");
  const std::uint32_t allowed = victims_max;
  for (std::uint32_t tried = 0; tried < options_.shards; ++tried) {
    std::uint32_t number = 0;
    {
      OptionalLock budget_lock(budget_->mutex);
      if (!budget_->is_shrinking()) {
        return Reclaimed::kAll;
      }
      number = budget_->reclaim_shard();
      budget_->reclaim_shard() = (number + 1) & (options_.shards - 1);
    }
    const std::uint32_t step = std::min(victims_max, Removals::kVictimsMax);
    const ReclaimStep done = reclaim_step(number, step, now);
    if (done.finished) {
      return Reclaimed::kAll;
    }
    victims_max -= done.victims;
    if (victims_max == 0) {
      return Reclaimed::kSome;
    }
  }
  // Every shard was asked: where none had a victim, none has one a moment later.
  return victims_max < allowed ? Reclaimed::kSome : Reclaimed::kNothing;
}

Kernel::ReclaimStep Kernel::reclaim_step(std::uint32_t number, std::uint32_t victims_max,
                                         MonotonicTime now) {
  Shard& shard = *shards_[number];
  Removals gone(hooks_.owner);
  OptionalLock lock(shard.mutex);
  OptionalLock budget_lock(budget_->mutex);
  OptionalLock tier_lock(tier_, shard.runs_probation());
  const std::uint64_t excess = budget_->excess();
  evict_for(shard, {.bytes = excess, .victims_max = victims_max}, gone, now, *budget_, tier_);
  budget_->free(gone.bytes());
  budget_->lower_limit();
  if (hooks_.observer != nullptr) [[unlikely]] {
    Event event{.kind = EventKind::kReclaim, .shard = number, .now = now, .requests = victims_max};
    put_removals(gone, event);
    publish(event);
  }
  return {gone.count(), !budget_->is_shrinking()};
}

Kernel::Freed Kernel::make_room(const Room& wanted, MonotonicTime now) {
  Freed freed;
  for (std::uint32_t tried = 0; tried < options_.shards; ++tried) {
    if (freed.bytes >= wanted.bytes || freed.victims >= wanted.victims_max) {
      break;
    }
    std::uint32_t number = 0;
    {
      OptionalLock budget_lock(budget_->mutex);
      number = budget_->reclaim_shard();
      budget_->reclaim_shard() = (number + 1) & (options_.shards - 1);
    }
    const Freed step = make_room_step(
        number,
        {.bytes = wanted.bytes - freed.bytes,
         .victims_max = std::min(wanted.victims_max - freed.victims, Removals::kVictimsMax)},
        now);
    freed.bytes += step.bytes;
    freed.victims += step.victims;
  }
  return freed;
}

Kernel::Freed Kernel::make_room_step(std::uint32_t number, const Room& wanted, MonotonicTime now) {
  Shard& shard = *shards_[number];
  Removals gone(hooks_.owner);
  OptionalLock lock(shard.mutex);
  OptionalLock budget_lock(budget_->mutex);
  OptionalLock tier_lock(tier_, shard.runs_probation());
  const Table::Evicted last = evict_for(shard, wanted, gone, now, *budget_, tier_);
  budget_->free(gone.bytes());
  // An empty shard, asked again and again while memory is short, is no event; one in which nothing
  // was found yet is: it was searched.
  const bool is_empty = gone.count() == 0 && last == Table::Evicted::kNothingLeft;
  if (!is_empty && hooks_.observer != nullptr) [[unlikely]] {
    Event event{.kind = EventKind::kMakeRoom,
                .shard = number,
                .now = now,
                .charge_bytes = wanted.bytes,
                .requests = wanted.victims_max};
    put_removals(gone, event);
    publish(event);
  }
  return {gone.bytes(), gone.count()};
}

// --- reload --------------------------------------------------------------------------------------

Result<void> Kernel::reconfigure(const ReloadOptions& options, MonotonicTime now) {
  if (auto accepted = check_options(options); !accepted) {
    return accepted;
  }
  // The reasons for which a shard could refuse are tried on a separate filter first.
  if (auto tried = Admission::create(Admission::settings_of(options_, options), now); !tried) {
    return std::unexpected(tried.error());
  }
  // The budget first, then shard by shard: there is no moment at which all of them are locked.
  reload_step(options, now);
  for (std::uint32_t number = 0; number < options_.shards; ++number) {
    if (auto done = reload_shard_step(number, now); !done) {
      return done;
    }
  }
  return {};
}

void Kernel::reload_step(const ReloadOptions& options, MonotonicTime now) {
  OptionalLock lock(shards_.front()->mutex);
  OptionalLock budget_lock(budget_->mutex);
  budget_->reload(options);
  on_probation_ = tier_ != nullptr && options.admission.policy == AdmissionPolicy::kProbation;
  if (hooks_.observer != nullptr) [[unlikely]] {
    const std::string text = encode_reload(options, options_.identity_seed);
    Event event{.kind = EventKind::kReload, .now = now, .text = text};
    publish(event);
  }
}

Result<void> Kernel::reload_shard_step(std::uint32_t number, MonotonicTime now) {
  Shard& shard = *shards_[number];
  OptionalLock lock(shard.mutex);
  OptionalLock budget_lock(budget_->mutex);
  const ReloadOptions& options = budget_->options();
  shard.variants_max = options.variants_max;
  shard.max_object_bytes = effective_max_object(options);
  shard.table.change_policy(options.eviction, {.now = now});
  auto done = shard.admission.reconfigure(Admission::settings_of(options_, options), now);
  shard.configure_disk();
  shard.count_waiting();
  Event event{.kind = EventKind::kReloadShard,
              .outcome = done ? std::uint8_t{0} : std::uint8_t{1},
              .shard = number,
              .now = now};
  publish(event);
  return done;
}

// --- saved state ---------------------------------------------------------------------------------

std::string Kernel::save_admission(MonotonicTime now) const {
  // With room for all, so that a large memory is copied once.
  constexpr std::uint64_t kHeadsOfShard = 4096;
  std::string out;
  out.reserve(admission_statistics(0).memory_bytes + options_.shards * kHeadsOfShard);
  AdmissionWriter writer;
  out += writer.begin(options_.identity_seed, options_.shards);
  for (std::uint32_t number = 0; number < options_.shards; ++number) {
    out += writer.shard(save_admission_of(number, now));
  }
  return out += writer.end();
}

Result<void> Kernel::restore_admission(std::string_view bytes, MonotonicTime now) {
  const auto saved = decode_admission(bytes);
  if (!saved) {
    return std::unexpected(saved.error());
  }
  if (saved->shards.size() != options_.shards) {
    return fail("the saved admission memory is that of " + std::to_string(saved->shards.size()) +
                " shards, here " + std::to_string(options_.shards));
  }
  for (std::uint32_t number = 0; number < options_.shards; ++number) {
    if (auto done = restore_step(number, saved->shards[number], now); !done) {
      return fail("shard " + std::to_string(number) + ": " + done.error().message);
    }
  }
  return {};
}

Result<void> Kernel::restore_step(std::uint32_t number, std::string_view bytes, MonotonicTime now) {
  Shard& shard = *shards_[number];
  OptionalLock lock(shard.mutex);
  if (auto done = shard.admission.restore(bytes, now); !done) {
    return done;
  }
  Event event{.kind = EventKind::kRestore,
              .shard = number,
              .now = now,
              .charge_bytes = bytes.size(),
              .removed_digest = state_checksum(bytes)};
  publish(event);
  return {};
}

std::string Kernel::save_admission_of(std::uint32_t number, MonotonicTime now) const {
  const Shard& shard = *shards_[number];
  OptionalLock lock(shard.mutex);
  return shard.admission.save(now);
}

// --- adoption ------------------------------------------------------------------------------------

Result<Kernel::Adoption> Kernel::adopt(const Adoptable& adoptable, std::uint64_t held_bytes_max,
                                       MonotonicTime now) {
  release_adopted();
  {
    Shard& shard = *shards_.front();
    OptionalLock lock(shard.mutex);
    if (const auto able = shard.admission.can_adopt(); !able) {
      return std::unexpected(able.error());
    }
  }
  {
    const MutexLock lock(adopted_mutex_);
    const std::uint64_t own = adoptable.memory->memory_bytes();
    if (own > held_bytes_max) {
      return fail("it takes " + std::to_string(own) + " bytes, accepted: up to " +
                  std::to_string(held_bytes_max) +
                  " bytes in all, as admission.adopted_memory has it");
    }
    std::uint64_t held = own;
    for (const auto& memory : adopted_) {
      held += memory->memory_bytes();
    }
    if (adopted_.size() >= filter::kAdoptedMax || held > held_bytes_max) {
      return fail("it would be adopted memory " + std::to_string(adopted_.size() + 1) + ", of " +
                  std::to_string(held) + " bytes with those before it; accepted: up to " +
                  std::to_string(filter::kAdoptedMax) + " memories of " +
                  std::to_string(held_bytes_max) +
                  " bytes in all; they leave as the filter rotates");
    }
    adopted_.push_back(adoptable.memory);
    ++adoptions_;
  }
  Adoption adoption;
  for (std::uint32_t number = 0; number < options_.shards; ++number) {
    if (const auto taken = adopt_step(number, adoptable, now)) {
      ++adoption.shards;
      adoption.generations = std::max(adoption.generations, *taken);
    }
  }
  return adoption;
}

Result<std::uint32_t> Kernel::adopt_step(std::uint32_t number, const Adoptable& adoptable,
                                         MonotonicTime now) {
  Shard& shard = *shards_[number];
  OptionalLock lock(shard.mutex);
  auto taken = shard.admission.adopt(adoptable.memory);
  Event event{.kind = EventKind::kAdopt,
              .outcome = taken ? std::uint8_t{0} : std::uint8_t{1},
              .shard = number,
              .now = now,
              .charge_bytes = adoptable.size_bytes,
              .requests = taken.value_or(0),
              .removed_digest = adoptable.checksum};
  publish(event);
  return taken;
}

void Kernel::release_adopted() {
  // Before the lock: filters of many megabytes are freed when it is free again.
  Memories gone;
  const MutexLock lock(adopted_mutex_);
  const auto unused =
      std::ranges::partition(adopted_, [](const auto& memory) { return memory.use_count() > 1; });
  std::ranges::move(unused, std::back_inserter(gone));
  adopted_.erase(unused.begin(), unused.end());
}

// --- statistics ----------------------------------------------------------------------------------

KernelStatistics Kernel::statistics() const {
  KernelStatistics sum;
  for (const auto& shard : shards_) {
    const ShardCounters& counters = shard->counters;
#define ENCORE_ADD(id, meaning) sum.counters.id += counters.id.get();
    ENCORE_KERNEL_COUNTERS(ENCORE_ADD)
#undef ENCORE_ADD
    for (std::size_t i = 0; i < kAdmitReasonCount; ++i) {
      sum.counters.admissions[i] += counters.admissions[i].get();
    }
    sum.objects += counters.objects.get();
    sum.index_bytes += counters.index_bytes.get();
    sum.waiting_objects += counters.waiting_objects.get();
    sum.waiting_bytes += counters.waiting_bytes.get();
    sum.waiting_hits += shard->waiting_hits().get();
  }
  OptionalLock lock(budget_->mutex);
  if (tier_ != nullptr) {
    OptionalLock tier_lock(tier_->mutex);
    tier_->add_to(sum.disk);
    sum.rule = tier_->rule;
    sum.waiting_max_bytes = on_probation_ ? waiting_max(*budget_, *tier_) : 0;
    for (const auto& shard : shards_) {
      sum.disk.counters.fresh_hits += shard->counters.disk_fresh_hits.get();
      sum.disk.counters.stale_hits += shard->counters.disk_stale_hits.get();
      sum.disk.counters.storable_bytes += shard->counters.storable_bytes.get();
    }
  }
  sum.used_bytes = budget_->used();
  sum.reserved_bytes = budget_->reserved();
  sum.capacity_bytes = budget_->options().capacity_bytes;
  sum.max_object_bytes = budget_->max_object();
  return sum;
}

AdmissionStatistics Kernel::admission_statistics(std::uint64_t lines_max) const {
  AdmissionStatistics statistics;
  const std::uint64_t lines = std::max<std::uint64_t>(1, lines_max / options_.shards);
  for (const auto& shard : shards_) {
    OptionalLock lock(shard->mutex);
    shard->admission.add_to(statistics, lines);
  }
  const auto shards = static_cast<double>(options_.shards);
  statistics.mean_bytes /= shards;
  for (filter::GenerationStatistics& generation : statistics.generations) {
    generation.fill /= shards;
    generation.fpr_theory /= shards;
  }
  statistics.fpr_theory /= shards;
  statistics.fpr_bits /= shards;
  statistics.adopted.fpr_theory /= shards;
  statistics.adopted.fpr_bits /= shards;
  {
    const MutexLock held(adopted_mutex_);
    statistics.adoptions = adoptions_;
    for (const auto& memory : adopted_) {
      statistics.adopted_memory_bytes += memory->memory_bytes();
    }
  }
  statistics.size_parameter /= shards;
  return statistics;
}

void Kernel::peek(const Key& key, Visitor& visitor) const {
  const Shard& shard = shard_for(key.hash);
  OptionalLock lock(shard.mutex);
  for (EntryRef ref = shard.table.find(key.hash); ref != kNoEntry; ref = shard.table.next(ref)) {
    visitor.visit(shard.table.view(ref));
  }
  if (shard.disk != nullptr) {
    shard.disk->peek(key, visitor);
  }
}

RequestHistory Kernel::recall(const Key& key, const AdmissionRule& rule) const {
  const Shard& shard = shard_for(key.hash);
  OptionalLock lock(shard.mutex);
  return shard.admission.recall(key, rule);
}

void Kernel::prefetch(const Key& key) const {
  const Shard& shard = shard_for(key.hash);
  OptionalLock lock(shard.mutex);
  shard.table.prefetch(key.hash);
}

}  // namespace encore::cache
