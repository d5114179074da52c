#include "cache/disk_entries.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace encore::cache {
namespace {

// Entries of a segment of which at most so many are compared in one critical section.
constexpr std::uint32_t kCompared = 4096;

// Records ahead of the one that is loaded for which the index's memory is asked.
constexpr std::size_t kLoadAhead = 24;

// The digest of a place: no two places have the same.
std::uint64_t mix_of(const DiskPlace& place) {
  return filter::scrambled((std::uint64_t{place.disk} << 42U) ^
                           (std::uint64_t{place.segment} << 22U) ^ place.unit);
}

}  // namespace

// --- requests ------------------------------------------------------------------------------------

std::uint32_t DiskEntries::count_alone(const Key& key) const {
  std::uint32_t count = 0;
  for (EntryRef ref = table_.find(mixed_of(key)); ref != kNoEntry; ref = table_.next(ref)) {
    const std::uint32_t variant = table_.view(ref).variant;
    EntryRef in_memory = memory_.find(key.hash);
    while (in_memory != kNoEntry && low_half(memory_.view(in_memory).variant) != variant) {
      in_memory = memory_.next(in_memory);
    }
    count += in_memory == kNoEntry ? 1 : 0;
  }
  return count;
}

void DiskEntries::peek(const Key& key, Visitor& visitor) const {
  for (EntryRef ref = table_.find(mixed_of(key)); ref != kNoEntry; ref = table_.next(ref)) {
    if (table_.written(ref)) {
      visitor.visit_disk(table_.view(ref));
    }
  }
}

std::expected<DiskPlace, PartMissing> DiskEntries::find_part(const Key& part) const {
  const EntryRef ref = table_.find(mixed_of(part), 0);
  if (ref == kNoEntry || !table_.is_part(ref)) {
    return std::unexpected(PartMissing::kAbsent);
  }
  if (!table_.written(ref)) {
    return std::unexpected(PartMissing::kNotWritten);
  }
  return table_.place(ref);
}

DiskView DiskEntries::find(const Key& key, MonotonicTime now, Selector* selector,
                           LookupResult& result) {
  for (EntryRef ref = table_.find(mixed_of(key)); ref != kNoEntry; ref = table_.next(ref)) {
    const DiskView view = table_.view(ref);
    if (now >= view.fresh_until && now >= view.keep_until) {
      continue;  // goes with its segment
    }
    result.any_resident = true;
    if (!table_.written(ref)) {
      continue;
    }
    if (selector != nullptr && !selector->matches_disk(view)) {
      if (selector->is_undecided()) {
        result.is_undecided = true;
        return {};
      }
      continue;
    }
    result.state = now < view.fresh_until ? LookupState::kFresh : LookupState::kStale;
    result.disk = policy_->promotes(view) ? DiskHit::kAgain : DiskHit::kFirst;
    result.variant = view.variant;
    result.fresh_until = view.fresh_until;
    table_.visit(ref);
    return view;
  }
  return {};
}

bool DiskEntries::freshen(const Key& key, const Stored& stored, MonotonicTime now) {
  const EntryRef ref = table_.find(mixed_of(key), low_half(stored.variant));
  if (ref == kNoEntry) {
    return false;
  }
  // Behind what is freshened in memory the record has the fields of before, and nobody writes it
  // anew: it is to be validated first (RFC 9111 4.3.4).
  const bool in_memory = memory_.find(key.hash, stored.variant) != kNoEntry;
  table_.set_times(ref, in_memory ? std::min(stored.fresh_until, now) : stored.fresh_until,
                   stored.keep_until);
  return true;
}

std::uint32_t DiskEntries::mark_stale(const Key& key, MonotonicTime now) {
  std::uint32_t marked = 0;
  for (EntryRef ref = table_.find(mixed_of(key)); ref != kNoEntry; ref = table_.next(ref)) {
    table_.mark_stale(ref, now);
    ++marked;
  }
  return marked;
}

DiskDecision DiskEntries::commit(const Key& key, const Stored& stored, MonotonicTime now,
                                 Budget& budget, DiskTier& tier) {
  DiskDecision decision;
  if (stored.from_disk) {
    ++tier.counters.promotions;
    return decision;
  }
  const MixedKey mixed = mixed_of(key);
  const EntryRef same = table_.find(mixed, low_half(stored.variant));
  if (stored.disk_bytes != 0) {
    if (same == kNoEntry && table_.variants(mixed) >= variants_max_) {
      decision.outcome = DiskOutcome::kVariants;
    } else if (same == kNoEntry && is_full(budget, tier)) {
      decision.outcome = DiskOutcome::kIndexFull;
    } else {
      decision = tier.place({.key = key.hash,
                             .bytes = stored.disk_bytes,
                             .names = stored.disk_names,
                             .queue_full = stored.disk_queue_full,
                             .waits = stored.waits,
                             .useless_from = std::max(stored.fresh_until, stored.keep_until),
                             .now = now});
    }
  }
  const bool is_placed = decision.outcome == DiskOutcome::kPlaced;
  // A later place on the same disk outlives what it replaces; else a restart would bring it back
  // (docs/decisions/0440).
  bool comes_back = is_placed ? tier.is_unknown_beside(decision.place.disk) : tier.hides_records();
  if (same != kNoEntry) {
    comes_back = comes_back || !is_placed || table_.place(same).disk != decision.place.disk;
    erase(same, budget, tier);
    ++tier.counters.replaced;
  }
  if (is_placed || comes_back) {
    decision.version = tier.next_version();
    decision.tombstone = {comes_back ? decision.version : 0};
  }
  if (is_placed) {
    insert({.key = mixed,
            .variant = low_half(stored.variant),
            .names = stored.disk_names,
            .place = decision.place,
            .fresh_until = stored.fresh_until,
            .keep_until = stored.keep_until,
            .filled = stored.waits && tier.is_filling(decision.place.disk)},
           budget, tier);
    tier.counters.stored_alone += stored.disk_only ? 1 : 0;
  }
  ++tier.counters.outcomes[static_cast<std::size_t>(decision.outcome)];
  return decision;
}

DiskDecision DiskEntries::place_part(const Key& part, const PartRequest& wish, MonotonicTime now,
                                     Budget& budget, DiskTier& tier) {
  const MixedKey mixed = mixed_of(part);
  // It goes even if the new one finds no place: its origin does not say that any more
  // (docs/decisions/0140).
  if (const EntryRef same = table_.find(mixed, 0); same != kNoEntry) {
    erase(same, budget, tier);
  }
  DiskDecision decision{.outcome = DiskOutcome::kIndexFull};
  if (!is_full(budget, tier)) {
    decision = tier.place({.key = part.hash,
                           .bytes = wish.bytes,
                           .queue_full = wish.queue_full,
                           .part = true,
                           .useless_from = wish.useless_from,
                           .now = now});
  }
  if (decision.outcome == DiskOutcome::kPlaced) {
    decision.version = tier.next_version();
    insert({.key = mixed,
            .place = decision.place,
            .fresh_until = MonotonicTime::max(),
            .keep_until = MonotonicTime::max(),
            .part = true},
           budget, tier);
  }
  ++tier.counters.part_outcomes[static_cast<std::size_t>(decision.outcome)];
  return decision;
}

bool DiskEntries::is_full(const Budget& budget, const DiskTier& tier) {
  return budget.missing(kDiskEntryBytes) != 0 ||
         !tier.has_room(kDiskEntryBytes, budget.disk_index_max());
}

void DiskEntries::insert(const DiskTable::Record& record, Budget& budget, DiskTier& tier) {
  const EntryRef ref = table_.insert(record);
  ENCORE_CHECK(ref != kNoEntry, "memory for an entry on disk");
  tier.on_entry_added({record.place, record.part});
  budget.grow(kDiskEntryBytes);
}

// --- removal -------------------------------------------------------------------------------------

void DiskEntries::erase(EntryRef ref, Budget& budget, DiskTier& tier) {
  tier.on_entry_removed({table_.place(ref), table_.is_part(ref)});
  budget.free(kDiskEntryBytes);
  table_.erase(ref);
}

std::uint32_t DiskEntries::remove(const Key& key, std::optional<std::uint32_t> variant,
                                  Budget& budget, DiskTier& tier) {
  const MixedKey mixed = mixed_of(key);
  const auto next = [&] { return variant ? table_.find(mixed, *variant) : table_.find(mixed); };
  std::uint32_t removed = 0;
  for (EntryRef ref = next(); ref != kNoEntry; ref = next()) {
    erase(ref, budget, tier);
    ++removed;
  }
  tier.counters.invalidations += removed;
  return removed;
}

void DiskEntries::count_loss(EntryRef ref, DiskLoss loss, DiskTier& tier) const {
  ++(table_.is_part(ref) ? tier.counters.part_losses
                         : tier.counters.losses)[static_cast<std::size_t>(loss)];
}

std::optional<DiskVersion> DiskEntries::lose(const Key& key, const DiskPlace& place, DiskLoss loss,
                                             Budget& budget, DiskTier& tier) {
  const EntryRef ref = table_.find_at(mixed_of(key), place);
  if (ref == kNoEntry) {
    return std::nullopt;
  }
  // A part needs no tombstone: it is reached by its head alone (docs/decisions/0140).
  const DiskVersion version = table_.is_part(ref) ? 0 : tier.next_version();
  count_loss(ref, loss, tier);
  erase(ref, budget, tier);
  return version;
}

bool DiskEntries::set_written(const Key& key, const DiskPlace& place) {
  const EntryRef ref = table_.find_at(mixed_of(key), place);
  if (ref != kNoEntry) {
    table_.set_written(ref);
  }
  return ref != kNoEntry;
}

// --- slots ---------------------------------------------------------------------------------------

Verdict DiskEntries::visit(EntryRef ref, Visitor& visitor) const {
  return !table_.holds(ref) || table_.is_part(ref) ? Verdict::kKeep
                                                   : visitor.visit_disk(table_.view(ref));
}

void DiskEntries::apply(EntryRef ref, Verdict verdict, MonotonicTime now, Budget& budget,
                        DiskTier& tier) {
  if (verdict == Verdict::kMarkStale) {
    table_.mark_stale(ref, now);
    return;
  }
  erase(ref, budget, tier);
  ++tier.counters.invalidations;
}

// --- reclaiming ----------------------------------------------------------------------------------

// Hits on a copy in memory do not reach the entry on disk. Parts have no copies
// (docs/decisions/0425).
std::vector<DiskEntries::ReclaimCandidate> DiskEntries::found_in(std::uint16_t disk,
                                                                 std::uint32_t segment,
                                                                 std::uint32_t entries_max) const {
  constexpr std::uint32_t kVisitsOfCopy = 2;
  std::vector<ReclaimCandidate> found;
  table_.each_of(disk, segment, entries_max, [&](EntryRef ref) {
    const EntryRef copy = table_.is_part(ref) ? kNoEntry : memory_.find_mixed(table_.key(ref));
    const bool was_used = copy != kNoEntry && !memory_.waits(copy) && memory_.was_used(copy);
    found.push_back({.ref = ref,
                     .unit = table_.place(ref).unit,
                     .visits = std::min(DiskEntry::kVisitsMax,
                                        table_.visits(ref) + (was_used ? kVisitsOfCopy : 0)),
                     .in_memory = copy != kNoEntry});
  });
  return found;
}

DiskObject DiskEntries::object_of(const ReclaimCandidate& found,
                                  std::span<const DiskPlace> being_read) const {
  const DiskView view = table_.view(found.ref);
  return {.view = view,
          .shard = shard_,
          .visits = found.visits,
          .in_memory = found.in_memory,
          .part = table_.is_part(found.ref),
          .being_read = std::ranges::find(being_read, view.place) != being_read.end()};
}

void DiskEntries::drop(EntryRef ref, DiskLoss loss, Reclaimed& reclaimed, Budget& budget,
                       DiskTier& tier) {
  const DiskPlace from = table_.place(ref);
  const bool is_part = table_.is_part(ref);
  count_loss(ref, loss, tier);
  if (!is_part && !table_.is_filled(ref)) {
    ++tier.counters.settled;
    tier.counters.settled_visited += table_.was_visited(ref) ? 1U : 0U;
  }
  reclaimed.done.parts_dropped += is_part ? 1U : 0U;
  ++reclaimed.done.dropped;
  erase(ref, budget, tier);
  reclaimed.dropped_bytes += from.bytes;
  reclaimed.digest ^= mix_of(from);
}

DiskEntries::Reclaimed DiskEntries::reclaim(const ReclaimStep& step, Budget& budget,
                                            DiskTier& tier) {
  Reclaimed reclaimed;
  DiskReclaim& done = reclaimed.done;
  done.state = DiskReclaim::State::kMore;
  done.segment = tier.reclaimed_segment(step.disk, budget.disk_index_max(), policy_->compares());
  done.sequence = tier.sequence_of(step.disk, done.segment);
  if (tier.is_counting(step.disk)) {
    for (const ReclaimCandidate& found : found_in(step.disk, done.segment, kCompared)) {
      if (table_.written(found.ref)) {
        policy_->count(object_of(found, {}), step.now, tier.choice(step.disk));
      }
    }
    tier.shard_counted(step.disk, shard_);
    reclaimed.counted = true;
    return reclaimed;
  }
  const bool offline = tier.is_offline(step.disk);
  // An index beyond its bound becomes smaller by what is dropped.
  const bool may_move = !offline && tier.has_room(0, budget.disk_index_max());
  const bool has_older = tier.has_older(step.disk, done.segment);  // records of a key, perhaps
  std::vector<ReclaimCandidate> entries =
      found_in(step.disk, done.segment, policy_->compares() ? kCompared : kReclaimMax);
  if (policy_->compares()) {
    const auto wanted = std::min<std::size_t>(entries.size(), kReclaimMax);
    std::ranges::partial_sort(entries, entries.begin() + static_cast<std::ptrdiff_t>(wanted),
                              [](const ReclaimCandidate& a, const ReclaimCandidate& b) {
                                return a.visits != b.visits ? a.visits > b.visits : a.unit < b.unit;
                              });
    entries.resize(wanted);
  }
  for (const ReclaimCandidate& found : entries) {
    const DiskPlace from = table_.place(found.ref);
    const auto visits =
        may_move && table_.written(found.ref)
            ? policy_->move(object_of(found, step.being_read), step.now, tier.choice(step.disk))
            : std::nullopt;
    const auto placed = visits ? tier.place_move(from, table_.view(found.ref).names) : std::nullopt;
    if (!placed) {
      // Segments that stay may hold an older record of its key, which a start would find.
      if (has_older && !table_.is_part(found.ref)) {
        done.buried.push_back(from);
      }
      drop(found.ref, offline ? DiskLoss::kOffline : DiskLoss::kDropped, reclaimed, budget, tier);
      continue;
    }
    table_.move(found.ref, placed->place);
    table_.set_visits(found.ref, *visits);
    done.moves.push_back({from, placed->place, placed->turn, placed->order});
    reclaimed.moved_bytes += from.bytes;
    reclaimed.digest ^= mix_of(from) * 3 + mix_of(placed->place);
  }
  if (!done.buried.empty()) {
    done.tombstone = {tier.next_version()};
  }
  if (table_.first_of(step.disk, done.segment) == kNoEntry &&
      tier.shard_reclaimed(step.disk, shard_)) {
    done.state = DiskReclaim::State::kDone;
    ++tier.counters.segments_reclaimed;
  }
  return reclaimed;
}

// --- loading -------------------------------------------------------------------------------------

DiskLoaded DiskEntries::load(std::span<const DiskRecord> records, Budget& budget, DiskTier& tier) {
  DiskLoaded loaded;
  const auto prefetch = [&](std::size_t i) {
    if (i < records.size()) table_.prefetch(EntryKeys::mixed_key(records[i].key));
  };
  for (std::size_t i = 0; i < kLoadAhead; ++i) prefetch(i);
  for (std::size_t i = 0; i < records.size(); ++i) {
    prefetch(i + kLoadAhead);
    if (tier.takes_found(records[i].place) && load_one(i, records[i], loaded, budget, tier)) {
      ++loaded.inserted;
      ++(records[i].part ? tier.counters.parts_loaded : tier.counters.loaded);
    }
  }
  return loaded;
}

bool DiskEntries::load_one(std::size_t number, const DiskRecord& record, DiskLoaded& loaded,
                           Budget& budget, DiskTier& tier) {
  const MixedKey mixed = EntryKeys::mixed_key(record.key);
  const bool is_new_key = table_.find(mixed) == kNoEntry;
  const EntryRef same = is_new_key ? kNoEntry : table_.find(mixed, record.variant);
  const bool is_twin = same != kNoEntry && table_.place(same).disk != record.place.disk;
  // A record that is past its time counts as well: an older one with more time must not take its
  // place.
  const bool is_newest =
      same == kNoEntry || (!is_twin && tier.is_later(record.place, table_.place(same)));
  if (is_twin) {
    loaded.twins.push_back({number, table_.place(same)});
  }
  if (is_newest && same != kNoEntry) {
    erase(same, budget, tier);
  }
  const bool is_live = is_newest && !is_full(budget, tier) &&
                       (is_new_key || table_.variants(mixed) < variants_max_) &&
                       table_.insert({.key = mixed,
                                      .variant = record.variant,
                                      .names = record.names,
                                      .place = record.place,
                                      .fresh_until = record.fresh_until,
                                      .keep_until = record.keep_until,
                                      .written = true,
                                      .visited = record.visited,
                                      .part = record.part}) != kNoEntry;
  if (is_newest && !is_live) {
    // A moment that is short of memory does not cost all that is older.
    const bool leaves = !tier.has_room(kDiskEntryBytes, budget.disk_index_max());
    loaded.refused.push_back({.record = number, .leaves = leaves});
    // A part is of no use without its head.
    if (leaves && !record.part) {
      tier.found_without_room(record.place);
    }
  }
  tier.found({record.place, record.part}, is_live);
  budget.grow(is_live ? kDiskEntryBytes : 0);
  return is_live;
}

}  // namespace encore::cache
