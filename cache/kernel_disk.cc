// The disk tier's part of the kernel: what of a shard lies on disk, and what comes and goes there.
// Locks, in this order: a shard's, the budget's, the tier's. What changes anything of the tier has
// its event numbered under the tier's.
#include <algorithm>
#include <utility>

#include "base/check.h"
#include "cache/budget.h"
#include "cache/disk_codec.h"
#include "cache/disk_tier.h"
#include "cache/kernel.h"
#include "cache/shard.h"

namespace encore::cache {
namespace {

MixedKey mixed_of(const Key& key) { return EntryKeys::mixed_key(key.hash); }
std::uint32_t low_half(std::uint64_t variant) { return static_cast<std::uint32_t>(variant); }

// Entries of a segment of which at most so many are compared in one critical section.
constexpr std::uint32_t kCompared = 4096;

// Of a place, for digests: no two places have the same.
std::uint64_t mix_of(const DiskPlace& place) {
  return filter::scrambled((std::uint64_t{place.disk} << 42U) ^
                           (std::uint64_t{place.segment} << 22U) ^ place.unit);
}

}  // namespace

void Kernel::give_disks(Shard& shard) {
  if (tier_ != nullptr) {
    shard.disk = std::make_unique<DiskTable>(options_.disks);
    shard.table.keep_waiting(options_.admission.policy == AdmissionPolicy::kProbation);
  }
}

std::uint32_t Kernel::charge_of_disk_entry() const { return kDiskEntryBytes; }

std::string_view Kernel::disk_names(std::uint16_t number) const { return tier_->names(number); }

bool Kernel::is_index_full() const {
  return budget_->missing(kDiskEntryBytes) != 0 || !tier_->has_room(kDiskEntryBytes, index_max());
}

std::uint64_t Kernel::index_max() const {
  return budget_->options().capacity_bytes / kDiskIndexShare;
}

// --- requests
// ---------------------------------------------------------------------------------------

bool Kernel::is_on_disk(const Shard& shard, const Key& key) {
  return shard.disk != nullptr && shard.disk->find(mixed_of(key)) != kNoEntry;
}

bool Kernel::is_variant_on_disk(const Shard& shard, const Key& key, std::uint64_t variant) {
  return shard.disk != nullptr && shard.disk->find(mixed_of(key), low_half(variant)) != kNoEntry;
}

bool Kernel::is_on_disk_at(const Shard& shard, const Key& key, const DiskPlace& place) {
  return shard.disk != nullptr && shard.disk->find_at(mixed_of(key), place) != kNoEntry;
}

LookupResult Kernel::lookup_on_disk(Shard& shard, const Key& key, const DiskQuestion& question,
                                    Looked looked) {
  const DiskView view = find_on_disk(shard, key, question, looked.result);
  if (question.found != nullptr) {
    *question.found = view;
  }
  if (looked.result.state == LookupState::kMiss) {
    shard.counters.misses.add(looked.result.is_undecided ? 0 : 1);
  } else {
    const bool is_fresh = looked.result.state == LookupState::kFresh;
    (is_fresh ? shard.counters.fresh_hits : shard.counters.stale_hits).add();
    (is_fresh ? shard.counters.disk_fresh_hits : shard.counters.disk_stale_hits).add();
    shard.admission.used(key);
  }
  // What is undecided is recorded only where something has expired on the way: as a miss.
  if (looked.gone.count() != 0 || (hooks_.observer != nullptr && !looked.result.is_undecided)) {
    end_lookup(shard, key, question.now, looked, view.place);
  }
  return looked.result;
}

DiskView Kernel::find_on_disk(Shard& shard, const Key& key, const DiskQuestion& question,
                              LookupResult& result) {
  DiskTable& table = *shard.disk;
  for (EntryRef ref = table.find(mixed_of(key)); ref != kNoEntry; ref = table.next(ref)) {
    const DiskView view = table.view(ref);
    if (question.now >= view.fresh_until && question.now >= view.keep_until) {
      continue;  // goes with its segment
    }
    result.any_resident = true;
    if (!table.written(ref)) {
      continue;
    }
    if (question.selector != nullptr && !question.selector->matches_disk(view)) {
      if (question.selector->is_undecided()) {
        result.is_undecided = true;
        return {};
      }
      continue;
    }
    result.state = question.now < view.fresh_until ? LookupState::kFresh : LookupState::kStale;
    result.disk = view.visited ? DiskHit::kAgain : DiskHit::kFirst;
    result.variant = view.variant;
    result.fresh_until = view.fresh_until;
    table.visit(ref);
    return view;
  }
  return {};
}

void Kernel::commit_to_disk(Shard& shard, const Key& key, const Stored& stored, MonotonicTime now,
                            DiskDecision& decision) {
  DiskTable& table = *shard.disk;
  const MixedKey mixed = mixed_of(key);
  if (stored.from_disk) {
    ++tier_->counters.promotions;
    return;
  }
  const EntryRef same = table.find(mixed, low_half(stored.variant));
  PlacedRecord placed;
  if (stored.disk_bytes != 0) {
    const bool is_new = same == kNoEntry;
    decision.outcome =
        is_new && table.variants(mixed) >= shard.variants_max ? DiskOutcome::kVariants
        : is_new && is_index_full()
            ? DiskOutcome::kIndexFull
            : tier_->place({.key = key.hash,
                            .bytes = stored.disk_bytes,
                            .names = stored.disk_names,
                            .queue_full = stored.disk_queue_full,
                            .waits = stored.waits,
                            .useless_from = std::max(stored.fresh_until, stored.keep_until),
                            .now = now},
                           placed);
  }
  const bool is_placed = decision.outcome == DiskOutcome::kPlaced;
  // A later place on the same disk outlives what it replaces; else a restart would bring it back.
  bool comes_back =
      is_placed ? tier_->is_unknown_beside(placed.place.disk) : tier_->hides_records();
  if (same != kNoEntry) {
    comes_back = comes_back || !is_placed || table.place(same).disk != placed.place.disk;
    erase_on_disk(shard, same);
    ++tier_->counters.replaced;
  }
  if (is_placed || comes_back) {
    decision.version = tier_->next_version();
    decision.tombstone = {comes_back ? decision.version : 0};
  }
  if (is_placed) {
    decision.place = placed.place;
    decision.turn = placed.turn;
    decision.order = placed.order;
    const EntryRef ref =
        table.insert({.key = mixed,
                      .variant = low_half(stored.variant),
                      .names = stored.disk_names,
                      .place = placed.place,
                      .fresh_until = stored.fresh_until,
                      .keep_until = stored.keep_until,
                      .filled = stored.waits && tier_->is_filling(placed.place.disk)});
    ENCORE_CHECK(ref != kNoEntry, "memory for an entry on disk");
    tier_->entry_came({.place = placed.place});
    tier_->counters.stored_alone += stored.disk_only ? 1 : 0;
    budget_->grow(kDiskEntryBytes);
  }
  ++tier_->counters.outcomes[static_cast<std::size_t>(decision.outcome)];
}

bool Kernel::freshen_on_disk(Shard& shard, const Key& key, const Freshened& freshened) {
  const Stored& stored = freshened.stored;
  const EntryRef ref = shard.disk->find(mixed_of(key), low_half(stored.variant));
  if (ref == kNoEntry) {
    return false;
  }
  // Behind what is freshened in memory the record has the fields of before, and nobody writes it
  // anew: it is to be validated first (RFC 9111 4.3.4).
  shard.disk->set_times(
      ref, freshened.in_memory ? std::min(stored.fresh_until, freshened.now) : stored.fresh_until,
      stored.keep_until);
  return true;
}

// --- removal
// ----------------------------------------------------------------------------------------

std::uint32_t Kernel::count_on_disk_alone(const Shard& shard, const Key& key) {
  std::uint32_t count = 0;
  for (EntryRef ref = shard.disk->find(mixed_of(key)); ref != kNoEntry;
       ref = shard.disk->next(ref)) {
    const std::uint32_t variant = shard.disk->view(ref).variant;
    EntryRef in_memory = shard.table.find(key.hash);
    while (in_memory != kNoEntry && low_half(shard.table.view(in_memory).variant) != variant) {
      in_memory = shard.table.next(in_memory);
    }
    count += in_memory == kNoEntry ? 1 : 0;
  }
  return count;
}

void Kernel::erase_on_disk(Shard& shard, std::uint32_t ref) {
  tier_->entry_went({shard.disk->place(ref), shard.disk->is_part(ref)});
  budget_->free(kDiskEntryBytes);
  shard.disk->erase(ref);
}

void Kernel::count_loss(const Shard& shard, std::uint32_t ref, DiskLoss loss) const {
  DiskCounters& counters = tier_->counters;
  ++(shard.disk->is_part(ref) ? counters.part_losses
                              : counters.losses)[static_cast<std::size_t>(loss)];
}

void Kernel::remove_on_disk(Shard& shard, const OnDisk& meant, Event& event) {
  const MixedKey mixed = mixed_of(*meant.key);
  DiskTable& table = *shard.disk;
  const auto next = [&] {
    return meant.variant ? table.find(mixed, *meant.variant) : table.find(mixed);
  };
  for (EntryRef ref = next(); ref != kNoEntry; ref = next()) {
    erase_on_disk(shard, ref);
    ++event.disk_entries;
  }
  tier_->counters.invalidations += event.disk_entries;
  event.version = event.disk_entries != 0 || tier_->hides_records() ? tier_->next_version() : 0;
}

void Kernel::mark_stale_on_disk(Shard& shard, const Key& key, Event& event) {
  for (EntryRef ref = shard.disk->find(mixed_of(key)); ref != kNoEntry;
       ref = shard.disk->next(ref)) {
    shard.disk->mark_stale(ref, event.now);
    ++event.disk_entries;
  }
  event.version = event.disk_entries != 0 || tier_->hides_records() ? tier_->next_version() : 0;
}

std::uint32_t Kernel::slots_of(const Shard& shard, const Cursor& cursor) {
  return cursor.on_disk ? shard.disk->slots() : shard.table.slots();
}

bool Kernel::visit_disk_slot(Shard& shard, Cursor& cursor, Visitor& visitor, MonotonicTime now) {
  // A part has neither names nor text: who purges objects is not asked about it.
  if (!shard.disk->holds(cursor.slot) || shard.disk->is_part(cursor.slot)) {
    return false;
  }
  const Verdict verdict = visitor.visit_disk(shard.disk->view(cursor.slot));
  if (verdict == Verdict::kKeep) {
    return false;
  }
  const MixedKey mixed = shard.disk->key(cursor.slot);
  Event event{.kind = verdict == Verdict::kRemove ? EventKind::kPurge : EventKind::kPurgeSoftly,
              .shard = shard.number,
              .now = now,
              .key = {mixed.mixed, mixed.tag},
              .place = shard.disk->place(cursor.slot)};
  apply_disk_verdict(shard, cursor.slot, event);
  return true;
}

void Kernel::apply_disk_verdict(Shard& shard, std::uint32_t ref, Event& event) {
  OptionalLock budget_lock(budget_->mutex);
  OptionalLock tier_lock(tier_->mutex);
  if (event.kind == EventKind::kPurgeSoftly) {
    shard.disk->mark_stale(ref, event.now);
  } else {
    erase_on_disk(shard, ref);
    ++tier_->counters.invalidations;
  }
  event.disk_entries = 1;
  publish(event);
}

void Kernel::purge_disk_step(const Event& event) {
  Shard& shard = *shards_[event.shard];
  OptionalLock lock(shard.mutex);
  const EntryRef ref =
      shard.disk->find_at({event.key.lo, static_cast<std::uint8_t>(event.key.hi)}, event.place);
  if (ref != kNoEntry) {
    Event repeated{.kind = event.kind,
                   .shard = event.shard,
                   .now = event.now,
                   .key = event.key,
                   .place = event.place};
    apply_disk_verdict(shard, ref, repeated);
  }
}

// --- what came of writing and reading
// ---------------------------------------------------------------

DiskTombstone Kernel::written(const Key& key, const DiskPlace& place, Write write,
                              MonotonicTime now) {
  Event event{.kind = EventKind::kWritten,
              .outcome = static_cast<std::uint8_t>(write),
              .now = now,
              .key = key.hash,
              .place = place};
  if (write == Write::kFailed) {
    return end_record(key, event, DiskLoss::kWriteFailed);
  }
  Shard& shard = shard_for(key.hash);
  OptionalLock lock(shard.mutex);
  const EntryRef ref = shard.disk->find_at(mixed_of(key), place);
  if (ref != kNoEntry) {
    shard.disk->set_written(ref);
  }
  event.shard = shard.number;
  event.disk_entries = ref == kNoEntry ? 0 : 1;
  publish(event);
  return {};
}

DiskTombstone Kernel::lost(const Key& key, const DiskPlace& place, MonotonicTime now) {
  Event event{.kind = EventKind::kLost, .now = now, .key = key.hash, .place = place};
  return end_record(key, event, DiskLoss::kUnreadable);
}

DiskTombstone Kernel::end_record(const Key& key, Event& event, DiskLoss loss) {
  Shard& shard = shard_for(key.hash);
  OptionalLock lock(shard.mutex);
  OptionalLock budget_lock(budget_->mutex);
  OptionalLock tier_lock(tier_->mutex);
  const EntryRef ref = shard.disk->find_at(mixed_of(key), event.place);
  if (ref != kNoEntry) {
    // Of a part there is no older one that could be found again.
    event.version = shard.disk->is_part(ref) ? 0 : tier_->next_version();
    event.disk_entries = 1;
    count_loss(shard, ref, loss);
    erase_on_disk(shard, ref);
  }
  event.shard = shard.number;
  publish(event);
  return {event.version};
}

// --- reclaiming
// -------------------------------------------------------------------------------------

DiskReclaim Kernel::reclaim_disk(std::uint16_t disk, std::span<const DiskPlace> being_read,
                                 MonotonicTime now) {
  std::optional<std::uint32_t> shard;
  {
    OptionalLock budget_lock(budget_->mutex);
    OptionalLock tier_lock(tier_->mutex);
    shard = tier_->reclaim_shard(disk, index_max());
  }
  return shard ? reclaim_disk_step({disk, *shard, being_read}, now) : DiskReclaim{};
}

// Who is in memory now, when the oldest of a disk goes, was asked for since: the memory is smaller.
// A part never is: moving some of a body, and hardly ever all of it fits the cap, keeps others out.
bool Kernel::is_worth_a_move(const Shard& shard, std::uint32_t ref, MonotonicTime now) const {
  const DiskView view = shard.disk->view(ref);
  return !shard.disk->is_part(ref) && now < view.fresh_until &&
         (view.visited || shard.table.find_mixed(shard.disk->key(ref)) != kNoEntry);
}

std::vector<Kernel::ByVisits> Kernel::entries_by_visits(const Shard& shard, std::uint16_t disk,
                                                        std::uint32_t segment) {
  std::vector<ByVisits> entries;
  const DiskTable& table = *shard.disk;
  table.each_of(disk, segment, kCompared, [&](EntryRef ref) {
    entries.push_back({.ref = ref, .visits = visits_of(shard, ref), .unit = table.place(ref).unit});
  });
  const std::size_t wanted = std::min<std::size_t>(entries.size(), kReclaimEntries);
  std::ranges::partial_sort(entries, entries.begin() + static_cast<std::ptrdiff_t>(wanted),
                            [](const ByVisits& a, const ByVisits& b) {
                              return a.visits != b.visits ? a.visits > b.visits : a.unit < b.unit;
                            });
  entries.resize(wanted);
  return entries;
}

// Hits on a copy in memory do not come to the entry on disk.
std::uint32_t Kernel::visits_of(const Shard& shard, std::uint32_t ref) {
  constexpr std::uint32_t kVisitsOfCopy = 2;
  const std::uint32_t visits = shard.disk->visits(ref);
  const EntryRef copy = shard.table.find_mixed(shard.disk->key(ref));
  const bool was_used = copy != kNoEntry && !shard.table.waits(copy) && shard.table.was_used(copy);
  return std::min(DiskEntry::kVisitsMax, visits + (was_used ? kVisitsOfCopy : 0));
}

// A stale object can be validated, and one requested twice is requested again.
bool Kernel::is_worth_a_move_by_visits(const Shard& shard, const ByVisits& entry,
                                       MonotonicTime now) {
  const DiskView view = shard.disk->view(entry.ref);
  return !shard.disk->is_part(entry.ref) && entry.visits >= kMoveVisits &&
         now < std::max(view.fresh_until, view.keep_until);
}

void Kernel::count_moves(const Shard& shard, const DiskStep& step, std::uint32_t segment,
                         MonotonicTime now) {
  MoveChoice& choice = tier_->choice(step.disk);
  const DiskTable& table = *shard.disk;
  table.each_of(step.disk, segment, kCompared, [&](EntryRef ref) {
    const ByVisits entry{.ref = ref, .visits = visits_of(shard, ref)};
    if (table.written(ref) && is_worth_a_move_by_visits(shard, entry, now)) {
      choice.count(entry.visits, table.place(ref).bytes);
    }
  });
  tier_->shard_counted(step.disk, step.shard);
}

// An entry that is being read moves in any case, and uses its share of the capacity.
bool Kernel::wins_move(Shard& shard, const DiskStep& step, const ByVisits& entry, bool by_visits,
                       MonotonicTime now) {
  const DiskPlace from = shard.disk->place(entry.ref);
  const bool is_read = std::ranges::find(step.being_read, from) != step.being_read.end();
  if (!by_visits) {
    return is_read || (is_worth_a_move(shard, entry.ref, now) &&
                       tier_->may_move(step.disk, step.shard, from.bytes));
  }
  MoveChoice& choice = tier_->choice(step.disk);
  if (is_read) {
    choice.take_any(from.bytes);
    return true;
  }
  return is_worth_a_move_by_visits(shard, entry, now) &&
         choice.take(entry.visits, step.shard, from.bytes);
}

void Kernel::drop_reclaimed(Shard& shard, std::uint32_t ref, const Dropping& how, DiskReclaim& done,
                            Event& event) {
  const DiskPlace from = shard.disk->place(ref);
  const bool is_part = shard.disk->is_part(ref);
  if (how.has_older && !is_part) {
    done.buried.push_back(from);
  }
  count_loss(shard, ref, how.offline ? DiskLoss::kOffline : DiskLoss::kDropped);
  if (!is_part && !shard.disk->is_filled(ref)) {
    ++tier_->counters.settled;
    tier_->counters.settled_visited += shard.disk->was_visited(ref) ? 1U : 0U;
  }
  done.parts_dropped += is_part ? 1U : 0U;
  erase_on_disk(shard, ref);
  ++done.dropped;
  event.freed_bytes += from.bytes;
  event.removed_digest ^= mix_of(from);
}

DiskReclaim Kernel::reclaim_disk_step(const DiskStep& step, MonotonicTime now) {
  Shard& shard = *shards_[step.shard];
  OptionalLock lock(shard.mutex);
  OptionalLock budget_lock(budget_->mutex);
  OptionalLock tier_lock(tier_->mutex);
  if (tier_->reclaim_shard(step.disk, index_max()) != step.shard) {
    return {};
  }
  DiskReclaim done{
      .state = DiskReclaim::State::kMore,
      .segment = tier_->reclaimed_segment(step.disk, index_max(), runs_probation(shard)),
      .sequence = 0,
      .moves = {},
      .buried = {}};
  done.sequence = tier_->sequence_of(step.disk, done.segment);
  Event event{.kind = EventKind::kDiskReclaim,
              .shard = step.shard,
              .now = now,
              .place = {.disk = step.disk, .segment = done.segment}};
  const bool offline = tier_->is_offline(step.disk);
  const bool may_move = !offline && tier_->has_room(0, index_max());
  const bool has_older = tier_->has_older(step.disk, done.segment);
  // By visits the ones with the most come first; else as they are found.
  const bool by_visits = runs_probation(shard);
  if (tier_->is_counting(step.disk)) {
    count_moves(shard, step, done.segment, now);
    event.outcome = static_cast<std::uint8_t>(done.state);
    publish(event);
    return done;
  }
  const std::vector<ByVisits> ordered =
      by_visits ? entries_by_visits(shard, step.disk, done.segment) : std::vector<ByVisits>();
  EntryRef ref = shard.disk->first_of(step.disk, done.segment);
  for (std::uint32_t n = 0; ref != kNoEntry && n < kReclaimEntries; ++n) {
    const ByVisits entry = by_visits ? ordered[n] : ByVisits{.ref = ref};
    ref = entry.ref;
    const DiskPlace from = shard.disk->place(ref);
    const bool moves =
        may_move && shard.disk->written(ref) && wins_move(shard, step, entry, by_visits, now);
    const auto placed = moves ? tier_->place_move(from, shard.disk->view(ref).names) : std::nullopt;
    if (placed) {
      shard.disk->move(ref, placed->place);
      shard.disk->set_visits(ref, entry.visits / 2);
      done.moves.push_back({from, placed->place, placed->turn, placed->order});
      event.disk_bytes += from.bytes;
      event.removed_digest ^= mix_of(from) * 3 + mix_of(placed->place);
    } else {
      drop_reclaimed(shard, ref, {.offline = offline, .has_older = has_older}, done, event);
    }
    ref = shard.disk->first_of(step.disk, done.segment);
    if (by_visits && n + 1 == ordered.size()) break;
  }
  if (!done.buried.empty()) {
    done.tombstone = {tier_->next_version()};
  }
  if (ref == kNoEntry && tier_->shard_reclaimed(step.disk, step.shard)) {
    done.state = DiskReclaim::State::kDone;
    ++tier_->counters.segments_reclaimed;
  }
  if (hooks_.observer != nullptr) [[unlikely]] {
    const std::string text = encode_places(step.being_read);
    event.outcome = static_cast<std::uint8_t>(done.state);
    event.removed = done.dropped;
    event.disk_entries = static_cast<std::uint32_t>(done.moves.size());
    event.version = done.tombstone.version;
    event.text = text;
    publish(event);
  }
  return done;
}

bool Kernel::free_segment(std::uint16_t disk, std::uint32_t segment, MonotonicTime now) {
  OptionalLock lock(shards_.front()->mutex);
  OptionalLock tier_lock(tier_->mutex);
  const bool freed = tier_->free_segment(disk, segment);
  Event event{.kind = EventKind::kFreeSegment,
              .outcome = freed ? std::uint8_t{0} : std::uint8_t{1},
              .now = now,
              .place = {.disk = disk, .segment = segment}};
  publish(event);
  return freed;
}

// --- operation
// --------------------------------------------------------------------------------------

void Kernel::take_offline(std::uint16_t disk, MonotonicTime now) {
  OptionalLock lock(shards_.front()->mutex);
  OptionalLock tier_lock(tier_->mutex);
  tier_->take_offline(disk);
  Event event{.kind = EventKind::kOffline, .now = now, .place = {.disk = disk}};
  publish(event);
}

void Kernel::resize_disk(std::uint16_t disk, std::uint32_t segments, MonotonicTime now) {
  OptionalLock lock(shards_.front()->mutex);
  OptionalLock tier_lock(tier_->mutex);
  tier_->resize(disk, segments);
  Event event{
      .kind = EventKind::kResize, .now = now, .requests = segments, .place = {.disk = disk}};
  publish(event);
}

DiskVersion Kernel::purge_rule(MonotonicTime now) {
  OptionalLock lock(shards_.front()->mutex);
  OptionalLock tier_lock(tier_->mutex);
  Event event{.kind = EventKind::kPurgeRule, .now = now, .version = tier_->next_version()};
  publish(event);
  return event.version;
}

std::uint64_t Kernel::disk_sequence(std::uint16_t disk) const {
  OptionalLock tier_lock(tier_->mutex);
  return tier_->sequence(disk);
}

std::optional<std::uint16_t> Kernel::intern(std::string_view names, MonotonicTime now) {
  OptionalLock lock(shards_.front()->mutex);
  OptionalLock tier_lock(tier_->mutex);
  const auto number = tier_->intern(names);
  Event event{.kind = EventKind::kNames,
              .outcome = number ? std::uint8_t{0} : std::uint8_t{1},
              .now = now,
              .names = number.value_or(0),
              .text = names};
  publish(event);
  return number;
}

}  // namespace encore::cache
