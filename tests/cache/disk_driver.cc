#include "tests/cache/disk_driver.h"

#include <array>

namespace encore::cache::test {
namespace {

// Selects one variant, in memory or on disk.
class SelectNamed final : public Selector {
 public:
  explicit SelectNamed(std::uint32_t variant) : variant_(variant) {}
  bool matches(Payload payload) override { return payload % kVariants == variant_; }
  bool matches_disk(const DiskView& view) override {
    found = view;
    return view.variant == variant_;
  }
  DiskView found;

 private:
  std::uint32_t variant_;
};

bool is_index_full(const Kernel& kernel) {
  const KernelStatistics statistics = kernel.statistics();
  return statistics.disk.index_bytes + kDiskEntryBytes >
         statistics.capacity_bytes / kDiskIndexShare;
}

}  // namespace

Driver::Driver(const KernelOptions& options, std::uint64_t seed)
    : model_(options), random_(seed), kernel_(make_kernel(options)) {
  for (const std::string_view text : {"accept", "accept-encoding,accept-language", "cookie"}) {
    names_.push_back(*kernel_->intern(text, now_));
  }
}

bool Driver::step() {
  now_ += random_() % 3 == 0 ? Nanoseconds(random_() % 2'000'000'000) : Nanoseconds(0);
  return one() && counts_are_equal();
}

bool Driver::counts_are_equal() const {
  const KernelStatistics statistics = kernel_->statistics();
  std::uint64_t objects = 0;
  std::vector<std::uint64_t> parts(statistics.disk.disks.size());
  for (const auto& [name, entry] : model_.on_disk) {
    objects += is_part(name) ? 0U : 1U;
    parts[entry.place.disk] += is_part(name) ? 1U : 0U;
  }
  bool same = statistics.used_bytes == model_.used() && statistics.disk.entries == objects &&
              statistics.disk.parts == model_.on_disk.size() - objects &&
              statistics.disk.index_bytes == model_.on_disk.size() * kDiskEntryBytes;
  std::uint64_t admitted_bytes = 0;
  std::uint64_t moved_bytes = 0;
  for (std::size_t disk = 0; disk < parts.size(); ++disk) {
    const DiskStatistics::Disk& each = statistics.disk.disks[disk];
    admitted_bytes += each.admitted_bytes;
    moved_bytes += each.moved_bytes;
    same = same && each.parts == parts[disk] &&
           each.objects + each.parts == model_.logs[disk].live_records() &&
           each.live_bytes == model_.logs[disk].live_bytes() &&
           each.free_segments == model_.logs[disk].free_segments() &&
           each.segments == model_.logs[disk].segments() &&
           each.segment_bytes == model_.logs[disk].segment_bytes() && !each.offline &&
           !each.loading;
    objects -= each.objects;
  }
  const DiskCounters& counters = statistics.disk.counters;
  return same && objects == 0 && counters == counts_ && counters.admitted_bytes == admitted_bytes &&
         counters.moved_bytes == moved_bytes;
}

bool Driver::is_useful(const DiskRecord& line) const {
  return now_ < at(std::max(whole_seconds(line.fresh_until), whole_seconds(line.keep_until)));
}

bool Driver::is_safe(const Named& name) const {
  const auto ours = model_.on_disk.find(name);
  // A copy that is not written yet has its original, which is not told of here.
  return ours != model_.on_disk.end() && ours->second.written &&
         platter_.holds(ours->second.place) &&
         !platter_.has_tombstone(platter_.at(ours->second.place)) &&
         is_useful(platter_.at(ours->second.place).line);
}

bool Driver::recovers() {
  const auto again = make_kernel(model_.options());
  platter_.recover(*again, now_);
  bool sound = true;
  for (std::uint64_t id = 0; id < kKeys; ++id) {
    for (std::uint32_t variant = 0; variant < kVariants; ++variant) {
      sound = sound && recovers_object(*again, {id, variant});
    }
  }
  for (std::uint64_t part = 0; part < kParts; ++part) {
    sound = sound && recovers_part(*again, {kFirstPart + part, 0});
  }
  return sound;
}

bool Driver::recovers_object(Kernel& again, const Named& name) {
  SelectNamed selector(name.second);
  const LookupResult found = again.lookup(key_of(name.first), now_, selector);
  if (found.state == LookupState::kMiss) {
    return !is_safe(name) || is_index_full(again);
  }
  ++seen.found_again;
  const auto truth = truth_.find(name);
  const Platter::Record& record = platter_.at(selector.found.place);
  // The replacement may not have been written yet.
  const bool is_true =
      truth != truth_.end() && record.name == name &&
      (record.commit == truth->second ||
       std::ranges::find(pending_, truth->second, &Platter::Record::commit) != pending_.end());
  return is_true && (!is_safe(name) || selector.found.place == model_.on_disk.at(name).place);
}

bool Driver::recovers_part(Kernel& again, const Named& name) {
  const auto found = again.find_part(key_of(name.first), now_);
  if (!found) {
    return !is_safe(name) || is_index_full(again);
  }
  ++seen.parts_found_again;
  return platter_.at(*found).name == name &&
         (!is_safe(name) || *found == model_.on_disk.at(name).place);
}

Named Driver::random_name() {
  return {random_() % kKeys, static_cast<std::uint32_t>(random_() % kVariants)};
}

Named Driver::random_part() { return {kFirstPart + random_() % kParts, 0}; }

bool Driver::one() {
  const Named name = random_name();
  last_ = random_() % 48;
  switch (last_) {
    case 3:
    case 12:
    case 13:
    case 14:
    case 15:
    case 16:
      return kernel_->make_room({.bytes = 1, .victims_max = 1}, now_).victims ==
             (model_.evict_one() ? 1U : 0U);
    case 5:
    case 6:
    case 7:
      return reclaim();
    case 17:
    case 18:
      return place_part(random_part());
    case 19:
    case 20:
      return find_part(random_part());
    case 21:
      return commit_alone(name);
    default:
      if (last_ < 17) {
        return rare(name);
      }
      return random_() % 4 == 0 ? commit(name) : random_() % 3 == 0 ? write() : lookup(name);
  }
}

bool Driver::rare(const Named& name) {
  switch (last_) {
    case 0:
      return invalidate(name.first);
    case 1:
      return remove(name);
    case 2:
      return mark_stale(name.first);
    case 4:
      return lose();
    case 8:
      return freshen(name);
    case 9:
      return random_() % 20 != 0 || resize();
    case 10:
      return promote();
    default:
      return random_() % 20 == 0 ? purge_some() : admits(name.first);
  }
}

std::uint32_t Driver::names_bytes(std::uint16_t number) const {
  return static_cast<std::uint32_t>(kernel_->disk_names(number).size());
}

// --- requests
// ---------------------------------------------------------------------------------------

bool Driver::lookup(const Named& name) {
  SelectNamed selector(name.second);
  const LookupResult ours = kernel_->lookup(key_of(name.first), now_, selector);
  seen.hits += ours.on_disk() ? 1U : 0U;
  if (ours.on_disk()) {
    read_.push_back({name, selector.found.place});
  }
  forget_expired(name);
  const auto entry = model_.find(name);
  if (entry != model_.fifo_of(name.first).end()) {
    const Stored& stored = entry->stored;
    return !ours.on_disk() && ours.payload == stored.payload &&
           ours.state == (now_ < stored.fresh_until ? LookupState::kFresh : LookupState::kStale);
  }
  const auto on_disk = model_.on_disk.find(name);
  if (on_disk == model_.on_disk.end() || !on_disk->second.written ||
      (now_ >= at(on_disk->second.fresh_until) && now_ >= on_disk->second.keep_until)) {
    return ours.state == LookupState::kMiss && !ours.on_disk();
  }
  const bool same = ours.on_disk() && ours.promote() == on_disk->second.visited &&
                    ours.variant == name.second && selector.found.place == on_disk->second.place &&
                    ours.fresh_until == at(on_disk->second.fresh_until) &&
                    ours.state == (now_ < at(on_disk->second.fresh_until) ? LookupState::kFresh
                                                                          : LookupState::kStale);
  on_disk->second.visited = on_disk->second.was_visited = true;
  ++(ours.state == LookupState::kFresh ? counts_.fresh_hits : counts_.stale_hits);
  return same;
}

void Driver::forget_expired(const Named& name) {
  auto& fifo = model_.fifo_of(name.first);
  for (auto at = fifo.rbegin(); at != fifo.rend();) {
    const bool is_one = at->name.first == name.first;
    const bool is_past = now_ >= at->stored.fresh_until && now_ >= at->stored.keep_until;
    if (is_one && at->name == name && !is_past) {
      return;
    }
    at =
        is_one && is_past ? std::reverse_iterator(fifo.erase(std::next(at).base())) : std::next(at);
  }
}

bool Driver::admits(std::uint64_t id) {
  const bool resident = model_.holds_key(id) || model_.variants_on_disk(id) != 0;
  const bool is_large = random_() % 4 == 0;
  const bool disk_only = random_() % 2 == 0;
  const AdmitReason reason = kernel_->admit(
      key(id), {.size_bytes = is_large ? 1U << 30U : 10U, .disk_only = disk_only}, now_);
  counts_.storable_bytes += is_large ? 1U << 30U : 10U;
  return reason == (is_large && !disk_only ? AdmitReason::kTooLarge
                    : resident             ? AdmitReason::kResident
                                           : AdmitReason::kPolicyAlways);
}

Stored Driver::random_stored(const Named& name) {
  const MonotonicTime fresh = now_ + std::chrono::seconds(random_() % 400);
  Stored stored{.variant = name.second,
                .charge_bytes = 20 + random_() % 200,
                .fresh_until = fresh,
                .keep_until = fresh + std::chrono::seconds(random_() % 30),
                .payload = ++next_payload_ * kVariants + name.second};
  if (random_() % 4 != 0) {
    stored.disk_bytes = 1 + random_() % (random_() % 8 == 0 ? 70'000 : 3000);
    stored.disk_names = random_() % 2 == 0 ? names_[random_() % names_.size()] : std::uint16_t{0};
    stored.disk_queue_full = random_() % 12 == 0;
  }
  return stored;
}

bool Driver::commit(const Named& name) {
  const Stored stored = random_stored(name);
  DiskDecision decision;
  const CommitOutcome outcome = kernel_->commit(key(name.first), stored, 0, now_, &decision);
  const std::uint64_t total = stored.charge_bytes + (stored.disk_bytes != 0 ? kDiskEntryBytes : 0U);
  if (!model_.make_room_for(name.first, total)) {
    return outcome == CommitOutcome::kFull && decision.outcome == DiskOutcome::kNotWanted;
  }
  if (outcome != CommitOutcome::kStored && outcome != CommitOutcome::kReplaced) {
    return false;
  }
  model_.put(name, stored);
  truth_[name] = ++commits_;
  seen.outcomes.insert(decision.outcome);
  seen.tombstones += decision.tombstone ? 1U : 0U;
  platter_.add_tombstone(name.first, name.second, decision.tombstone);
  return places(name, stored, decision);
}

bool Driver::commit_alone(const Named& name) {
  Stored stored = random_stored(name);
  stored.disk_only = true;
  stored.charge_bytes = 0;
  stored.payload = 0;
  const std::uint64_t reserved = std::array{0U, 20U, 500U}[random_() % 3];
  if (reserved != 0) {
    const bool has_room = model_.make_room_for(name.first, reserved);
    const ReserveOutcome outcome = kernel_->reserve(key_of(name.first), reserved, now_);
    if ((outcome == ReserveOutcome::kReserved) != has_room || !has_room) {
      return !has_room && outcome != ReserveOutcome::kReserved;
    }
  }
  DiskDecision decision;
  const CommitOutcome outcome =
      kernel_->commit(key_of(name.first), stored, reserved, now_, &decision);
  if (reserved < kDiskEntryBytes) {
    model_.make_room_for(name.first, kDiskEntryBytes);
  }
  const bool replaces = model_.holds(name) || model_.on_disk.contains(name);
  std::erase_if(model_.fifo_of(name.first), [&](const auto& e) { return e.name == name; });
  ++commits_;
  truth_.erase(name);
  platter_.add_tombstone(name.first, name.second, decision.tombstone);
  if (!places(name, stored, decision)) {
    return false;
  }
  if (decision.outcome != DiskOutcome::kPlaced) {
    ++seen.refused;
    return outcome == CommitOutcome::kRefused;
  }
  ++seen.alone;
  truth_[name] = commits_;
  return outcome == (replaces ? CommitOutcome::kReplaced : CommitOutcome::kStored);
}

DiskOutcome Driver::expected_of(const SegmentLog::Record& record, const DiskDecision& decision,
                                std::optional<PlacedRecord>& placed) {
  if (decision.outcome != DiskOutcome::kPlaced && model_.logs.size() > 1) {
    return decision.outcome;  // which disk it was to be on is not told
  }
  SegmentLog& log = model_.logs[decision.place.disk];
  placed = log.place(record);
  return placed                   ? DiskOutcome::kPlaced
         : log.fits_empty(record) ? DiskOutcome::kNoSegment
                                  : DiskOutcome::kTooLarge;
}

bool Driver::is_as_placed(const DiskDecision& decision, const std::optional<PlacedRecord>& placed) {
  if (!placed) {
    return true;
  }
  ++counts_.admitted;
  counts_.admitted_bytes += placed->place.bytes;
  const bool is_newer = decision.version > newest_;
  newest_ = decision.version;
  platter_.open(decision.turn);
  return is_newer && decision.place == placed->place && decision.turn == placed->turn &&
         decision.order == placed->order;
}

void Driver::count_loss(const Named& name, DiskLoss loss) {
  ++(is_part(name) ? counts_.part_losses : counts_.losses).at(static_cast<std::size_t>(loss));
}

bool Driver::places(const Named& name, const Stored& stored, const DiskDecision& decision) {
  const bool is_new = !model_.on_disk.contains(name);
  DiskOutcome expected = DiskOutcome::kNotWanted;
  std::optional<PlacedRecord> placed;
  if (stored.disk_bytes != 0) {
    const std::uint64_t index = (model_.on_disk.size() + 1) * kDiskEntryBytes;
    if (is_new && model_.variants_on_disk(name.first) >= model_.options().variants_max) {
      expected = DiskOutcome::kVariants;
    } else if (is_new && (index > model_.options().capacity_bytes / 2 ||
                          model_.used() + kDiskEntryBytes > model_.options().capacity_bytes)) {
      expected = DiskOutcome::kIndexFull;
    } else if (std::max(stored.keep_until, stored.fresh_until) - now_ <
               std::chrono::seconds(model_.options().disk_rules.life_seconds_min)) {
      expected = DiskOutcome::kShortLived;
    } else if (stored.disk_queue_full) {
      expected = DiskOutcome::kQueueFull;
    } else {
      expected = expected_of({.bytes = stored.disk_bytes,
                              .names = stored.disk_names,
                              .names_bytes = names_bytes(stored.disk_names)},
                             decision, placed);
    }
  }
  if (!is_new) {
    model_.drop_on_disk(name);
    ++counts_.replaced;
  }
  ++counts_.outcomes.at(static_cast<std::size_t>(expected));
  counts_.stored_alone += placed && stored.disk_only ? 1U : 0U;
  if (placed) {
    model_.on_disk[name] = {.place = placed->place,
                            .fresh_until = whole_seconds(stored.fresh_until),
                            .keep_until = kept_of(stored)};
    pending_.push_back({.name = name,
                        .version = decision.version,
                        .commit = commits_,
                        .line = {.key = key(name.first).hash,
                                 .variant = name.second,
                                 .names = stored.disk_names,
                                 .place = placed->place,
                                 .fresh_until = stored.fresh_until,
                                 .keep_until = stored.keep_until}});
  }
  return decision.outcome == expected && is_as_placed(decision, placed);
}

MonotonicTime Driver::kept_of(const Stored& stored) { return at(whole_seconds(stored.keep_until)); }

bool Driver::promote() {
  if (read_.empty()) {
    return true;
  }
  const auto [name, place] = read_[random_() % read_.size()];
  if (is_part(name)) {
    return true;
  }
  Stored stored = random_stored(name);
  stored.disk_bytes = 0;
  stored.from_disk = place;
  const auto entry = model_.on_disk.find(name);
  const bool is_there = entry != model_.on_disk.end() && entry->second.place == place;
  const CommitOutcome outcome = kernel_->commit(key(name.first), stored, 0, now_);
  if (!model_.make_room_for(name.first, stored.charge_bytes)) {
    return outcome == CommitOutcome::kFull;
  }
  seen.superseded += is_there ? 0U : 1U;
  counts_.promotions += is_there ? 1U : 0U;
  if (is_there) {
    model_.put(name, stored);
  }
  return (outcome == CommitOutcome::kSuperseded) == !is_there;
}

void Driver::make_stale(DiskModel::OnDisk& entry) const {
  entry.fresh_until = whole_seconds(now_);
  // A kept duration beyond that has five digits.
  std::int64_t beyond = whole_seconds(entry.keep_until) - whole_seconds(now_);
  std::int64_t step = 1;
  while (beyond / step >= 32) {
    step *= 2;
  }
  beyond = std::max<std::int64_t>(beyond, 0) / step * step;
  entry.keep_until = at(whole_seconds(now_) + beyond);
}

bool Driver::freshen(const Named& name) {
  Stored stored = random_stored(name);
  stored.disk_bytes = 0;
  const auto entry = model_.find(name);
  const bool in_memory = entry != model_.fifo_of(name.first).end();
  const auto on_disk = model_.on_disk.find(name);
  if (in_memory) {
    stored.charge_bytes = entry->stored.charge_bytes;
    entry->stored = stored;
  }
  if (on_disk != model_.on_disk.end()) {
    on_disk->second.fresh_until = whole_seconds(stored.fresh_until);
    on_disk->second.keep_until = kept_of(stored);
    // Freshening in memory leaves a record with the old fields.
    if (in_memory && stored.fresh_until > now_) {
      make_stale(on_disk->second);
    }
  }
  return kernel_->freshen(key(name.first), stored, now_) == (in_memory ? FreshenOutcome::kFreshened
                                                             : on_disk != model_.on_disk.end()
                                                                 ? FreshenOutcome::kFreshenedOnDisk
                                                                 : FreshenOutcome::kAbsent);
}

// --- parts
// ------------------------------------------------------------------------------------------

bool Driver::place_part(const Named& name) {
  const PartRequest wish{.bytes = 1 + random_() % (random_() % 8 == 0 ? 70'000 : 5000),
                         .queue_full = random_() % 12 == 0,
                         .useless_from = random_() % 4 == 0
                                             ? now_ + std::chrono::seconds(random_() % 120)
                                             : MonotonicTime::max()};
  const DiskDecision decision = kernel_->place_part(key_of(name.first), wish, now_);
  model_.make_room_for(name.first, kDiskEntryBytes);
  if (model_.on_disk.contains(name)) {
    model_.drop_on_disk(name);
  }
  const std::uint64_t index = (model_.on_disk.size() + 1) * kDiskEntryBytes;
  const std::uint64_t capacity = model_.options().capacity_bytes;
  std::optional<PlacedRecord> placed;
  DiskOutcome expected = DiskOutcome::kQueueFull;
  if (index > capacity / 2 || model_.used() + kDiskEntryBytes > capacity) {
    expected = DiskOutcome::kIndexFull;
  } else if (wish.useless_from - now_ <
             std::chrono::seconds(model_.options().disk_rules.life_seconds_min)) {
    expected = DiskOutcome::kShortLived;
  } else if (!wish.queue_full) {
    expected = expected_of({.bytes = wish.bytes}, decision, placed);
  }
  seen.part_outcomes.insert(decision.outcome);
  ++counts_.part_outcomes.at(static_cast<std::size_t>(expected));
  if (placed) {
    ++counts_.parts_placed;
    counts_.parts_placed_bytes += placed->place.bytes;
    model_.on_disk[name] = {.place = placed->place,
                            .fresh_until = whole_seconds(MonotonicTime::max()),
                            .keep_until = MonotonicTime::max()};
    pending_.push_back({.name = name,
                        .version = decision.version,
                        .line = {.key = key_of(name.first).hash,
                                 .part = true,
                                 .place = placed->place,
                                 .fresh_until = MonotonicTime::max(),
                                 .keep_until = MonotonicTime::max()}});
  }
  return decision.outcome == expected && !decision.tombstone && is_as_placed(decision, placed);
}

bool Driver::find_part(const Named& name) {
  const auto found = kernel_->find_part(key_of(name.first), now_);
  const auto ours = model_.on_disk.find(name);
  if (ours == model_.on_disk.end() || !ours->second.written) {
    return !found && found.error() == (ours == model_.on_disk.end() ? PartMissing::kAbsent
                                                                    : PartMissing::kNotWritten);
  }
  ++seen.parts_found;
  read_.push_back({name, ours->second.place});
  return found == ours->second.place;
}

}  // namespace encore::cache::test
