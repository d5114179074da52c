// The part of the kernel that is not on the path of a request: bounded sweeps, reload, saved state,
// statistics.
#include <algorithm>
#include <utility>

#include "base/check.h"
#include "cache/budget.h"
#include "cache/journal.h"
#include "cache/kernel.h"
#include "cache/saved_admission.h"
#include "cache/shard.h"

namespace encore::cache {

bool Kernel::for_each(Cursor& cursor, std::uint32_t slots_max, Visitor& visitor,
                      MonotonicTime now) {
  if (cursor.shard >= options_.shards) {
    return false;
  }
  Shard& shard = *shards_[cursor.shard];
  Removals gone(hooks_.owner);
  OptionalLock lock(shard.mutex);
  for (; slots_max != 0 && cursor.slot < shard.table.slots(); ++cursor.slot, --slots_max) {
    if (gone.count() == Removals::kVictimsMax) {
      return true;
    }
    if (shard.table.holds(cursor.slot)) {
      visit_entry(shard, cursor.slot, visitor, {gone, now});
    }
  }
  if (cursor.slot >= shard.table.slots()) {
    cursor = {cursor.shard + 1, 0};
  }
  return cursor.shard < options_.shards;
}

void Kernel::visit_entry(Shard& shard, std::uint32_t ref, Visitor& visitor, const Visit& visit) {
  const EntryView view = shard.table.view(ref);
  const Verdict verdict = visitor.visit(view);
  if (verdict == Verdict::kKeep) {
    return;
  }
  Event event{.kind = verdict == Verdict::kRemove ? EventKind::kPurge : EventKind::kPurgeSoftly,
              .shard = shard.number,
              .now = visit.now,
              .key = view.key,
              .variant = view.variant};
  apply_verdict(shard, ref, visit, event);
}

void Kernel::apply_verdict(Shard& shard, std::uint32_t ref, const Visit& visit, Event& event) {
  if (event.kind == EventKind::kPurgeSoftly) {
    shard.table.mark_stale(ref, visit.now);
    publish(event);
    return;
  }
  Removals one(nullptr);
  one.add(shard.table.view(ref));
  shard.table.erase(ref, Removal::kRemoved, visit.gone);
  settle_removals(shard, one, event);
}

void Kernel::purge_step(const Event& event) {
  Shard& shard = shard_for(event.key);
  Removals gone(hooks_.owner);
  OptionalLock lock(shard.mutex);
  const EntryRef ref = shard.table.find(event.key, event.variant);
  if (ref != kNoEntry) {
    Event repeated{.kind = event.kind,
                   .shard = shard.number,
                   .now = event.now,
                   .key = event.key,
                   .variant = event.variant};
    apply_verdict(shard, ref, {gone, event.now}, repeated);
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
  shard.evict(budget_->excess(), victims_max, gone);
  budget_->free(gone.bytes());
  budget_->lower_limit();
  if (hooks_.observer != nullptr) [[unlikely]] {
    Event event{.kind = EventKind::kReclaim, .shard = number, .now = now, .requests = victims_max};
    event.removed = gone.count();
    event.freed_bytes = gone.bytes();
    event.removed_digest = gone.digest();
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
  shard.evict(wanted.bytes, wanted.victims_max, gone);
  budget_->free(gone.bytes());
  // An empty shard, asked again and again while memory is short, is no event.
  if (gone.count() != 0 && hooks_.observer != nullptr) [[unlikely]] {
    Event event{.kind = EventKind::kMakeRoom,
                .shard = number,
                .now = now,
                .charge_bytes = wanted.bytes,
                .requests = wanted.victims_max};
    event.removed = gone.count();
    event.freed_bytes = gone.bytes();
    event.removed_digest = gone.digest();
    publish(event);
  }
  return {gone.bytes(), gone.count()};
}

// --- reload
// ---------------------------------------------------------------------------------------

Result<void> Kernel::reconfigure(const ReloadOptions& options, MonotonicTime now) {
  if (auto accepted = check_options(options); !accepted) {
    return accepted;
  }
  // What a shard could refuse beyond that is tried on a filter of its own first.
  if (auto tried = Admission::create(Admission::settings_of(options_, options), now); !tried) {
    return std::unexpected(tried.error());
  }
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
  Event event{.kind = EventKind::kReloadShard,
              .outcome = done ? std::uint8_t{0} : std::uint8_t{1},
              .shard = number,
              .now = now};
  publish(event);
  return done;
}

// --- saved state
// ----------------------------------------------------------------------------------

std::string Kernel::save_admission(MonotonicTime now) const {
  SavedAdmission saved{.identity_seed = options_.identity_seed};
  for (const auto& shard : shards_) {
    OptionalLock lock(shard->mutex);
    saved.shards.push_back(shard->admission.save(now));
  }
  return encode(saved);
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

// --- statistics
// -----------------------------------------------------------------------------------

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
  }
  OptionalLock lock(budget_->mutex);
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
  for (filter::GenerationStatistics& generation : statistics.generations) {
    generation.fill /= shards;
    generation.fpr_theory /= shards;
  }
  statistics.fpr_theory /= shards;
  statistics.fpr_bits /= shards;
  statistics.size_parameter /= shards;
  return statistics;
}

void Kernel::prefetch(const Key& key) const {
  const Shard& shard = shard_for(key.hash);
  OptionalLock lock(shard.mutex);
  shard.table.prefetch(key.hash);
}

}  // namespace encore::cache
