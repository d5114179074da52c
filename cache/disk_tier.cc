#include "cache/disk_tier.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/check.h"
#include "cache/disk_names.h"

namespace encore::cache {
namespace {

constexpr std::int64_t kMicrosecondsPerSecond = 1'000'000;

// Free segments that there shall be: one is for what is moved, one is opened next, and a few give
// time to reclaim others meanwhile.
std::uint32_t free_wanted(std::uint32_t segments) { return 2 + segments / 128; }

// Numbers for texts of other names than the usual ones.
static_assert(kUsualTexts < kDiskNamesMax - 1);
constexpr std::uint32_t kUnusualTextsMax = kDiskNamesMax - 1 - kUsualTexts;

// An index that has grown to its bound less this share becomes smaller before it is refused.
constexpr std::uint64_t kIndexSlack = 32;

}  // namespace

DiskTier::DiskTier(const KernelOptions& options)
    : mutex(options.concurrent),
      rules_(options.disk_rules),
      shards_(options.shards),
      disk_count_(options.disks.size()),
      states_(options.disks.size()),
      tokens_(static_cast<std::int64_t>(options.disk_rules.write_rate_max)) {
  for (const DiskOptions& disk : options.disks) {
    logs_.emplace_back(SegmentLog::Settings{.disk = static_cast<std::uint16_t>(logs_.size()),
                                            .segments = disk.segments,
                                            .segment_bytes = disk.segment_bytes});
  }
}

std::string_view DiskTier::names(std::uint16_t number) const {
  const std::string* text =
      number < kDiskNamesMax ? texts_[number].load(std::memory_order_acquire) : nullptr;
  return text == nullptr ? std::string_view() : *text;
}

std::optional<std::uint16_t> DiskTier::intern(std::string_view text) {
  if (text.empty()) {
    return 0;
  }
  if (const auto known = numbers_.find(text); known != numbers_.end()) {
    return known->second;
  }
  // Number 0 is the empty text's.
  const std::size_t number = numbers_.size() + 1;
  const bool usual = is_usual(text);
  if (text.size() > kNamesBytesMax || (!usual && unusual_texts_ == kUnusualTextsMax)) {
    counters.names_refused += 1;
    return std::nullopt;
  }
  ENCORE_CHECK(number < kDiskNamesMax, "usual texts and others have numbers of their own");
  unusual_texts_ += usual ? 0 : 1;
  const auto added = numbers_.emplace(text, static_cast<std::uint16_t>(number)).first;
  // The text is complete before its number is known: names() takes no lock.
  texts_[number].store(&added->first, std::memory_order_release);
  return static_cast<std::uint16_t>(number);
}

// --- placing -------------------------------------------------------------------------------------

std::optional<std::uint16_t> DiskTier::disk_for(const filter::Hash128& key) const {
  std::optional<std::uint16_t> best;
  double lowest = std::numeric_limits<double>::infinity();
  for (std::uint16_t disk = 0; disk < disks(); ++disk) {
    if (states_[disk].offline) {
      continue;
    }
    if (disk_count_ == 1) {
      return disk;
    }
    // Weighted rendezvous: an exponential variable a disk, with its size as the rate.
    const std::uint64_t bits =
        filter::scrambled(key.lo + (std::uint64_t{disk} + 1) * 0x9e3779b97f4a7c15U) ^ key.hi;
    const double uniform = (static_cast<double>(filter::scrambled(bits) >> 11U) + 0.5) * 0x1p-53;
    const auto size = static_cast<double>(logs_[disk].segments()) *
                      static_cast<double>(logs_[disk].segment_bytes());
    const double arrives = -std::log(uniform) / size;
    if (arrives < lowest) {
      lowest = arrives;
      best = disk;
    }
  }
  return best;
}

void DiskTier::refill(MonotonicTime now) {
  if (!refilled_) {
    refilled_ = now;
  }
  const auto elapsed = std::min<std::int64_t>(
      std::chrono::duration_cast<std::chrono::microseconds>(now - *refilled_).count(),
      kMicrosecondsPerSecond);
  if (elapsed <= 0) {
    return;
  }
  // Up to what a second brings; nothing may overflow at rates of terabytes.
  const auto rate = static_cast<std::int64_t>(rules_.write_rate_max);
  tokens_ += rate / kMicrosecondsPerSecond * elapsed +
             rate % kMicrosecondsPerSecond * elapsed / kMicrosecondsPerSecond;
  tokens_ = std::min(tokens_, rate);
  refilled_ =
      elapsed == kMicrosecondsPerSecond ? now : *refilled_ + std::chrono::microseconds(elapsed);
}

DiskDecision DiskTier::place(const PlaceRequest& request) {
  if (request.useless_from - request.now < std::chrono::seconds(rules_.life_seconds_min)) {
    return {.outcome = DiskOutcome::kShortLived};
  }
  if (request.queue_full) {
    return {.outcome = DiskOutcome::kQueueFull};
  }
  const auto disk = disk_for(request.key);
  if (!disk) {
    return {.outcome = DiskOutcome::kOffline};
  }
  if (rules_.write_rate_max != 0) {
    refill(request.now);
    // A record may overdraw, or one that is larger than what a second brings would never be
    // written.
    if (tokens_ <= 0) {
      return {.outcome = DiskOutcome::kWriteRate};
    }
  }
  const SegmentLog::Record record{
      .bytes = request.bytes,
      .names = request.names,
      .names_bytes = static_cast<std::uint32_t>(names(request.names).size()),
      .why = WriteReason::kAdmit};
  const auto placed = logs_[*disk].place(record);
  if (!placed) {
    return {.outcome =
                logs_[*disk].fits_empty(record) ? DiskOutcome::kNoSegment : DiskOutcome::kTooLarge};
  }
  tokens_ -= rules_.write_rate_max == 0 ? 0 : static_cast<std::int64_t>(placed->place.bytes);
  counters.admitted += 1;
  counters.admitted_bytes += placed->place.bytes;
  const bool fills = request.waits && is_filling(*disk);
  counters.filled += fills ? 1 : 0;
  counters.filled_bytes += fills ? placed->place.bytes : 0;
  counters.parts_placed += request.part ? 1 : 0;
  counters.parts_placed_bytes += request.part ? placed->place.bytes : 0;
  states_[*disk].admitted_total += placed->place.bytes;
  return {.outcome = DiskOutcome::kPlaced,
          .place = placed->place,
          .turn = placed->turn,
          .order = placed->order};
}

std::optional<PlacedRecord> DiskTier::place_move(const DiskPlace& from, std::uint16_t names) {
  const auto placed =
      logs_[from.disk].place({.bytes = from.bytes,
                              .names = names,
                              .names_bytes = static_cast<std::uint32_t>(this->names(names).size()),
                              .why = WriteReason::kMove});
  if (placed) {
    logs_[from.disk].mark_dead(from);
    tokens_ -= rules_.write_rate_max == 0 ? 0 : static_cast<std::int64_t>(from.bytes);
    states_[from.disk].choice.moved(from.bytes);
    states_[from.disk].moved_total += from.bytes;
    counters.moved += 1;
    counters.moved_bytes += from.bytes;
  }
  return placed;
}

void DiskTier::on_entry_added(const Entry& entry) {
  ++entries_;
  states_[entry.place.disk].parts += entry.part ? 1 : 0;
}

void DiskTier::on_entry_removed(const Entry& entry) {
  ENCORE_CHECK(entries_ != 0, "an entry goes once");
  --entries_;
  if (entry.part) {
    ENCORE_CHECK(states_[entry.place.disk].parts != 0, "a part goes once");
    --states_[entry.place.disk].parts;
  }
  logs_[entry.place.disk].mark_dead(entry.place);
}

// --- reclaiming ----------------------------------------------------------------------------------

std::optional<std::uint32_t> DiskTier::next_to_reclaim(std::uint16_t disk,
                                                       std::uint64_t index_max) const {
  const SegmentLog& log = logs_[disk];
  const bool offline = states_[disk].offline;
  const auto may_go = [&](const std::optional<std::uint32_t>& segment) {
    // The next start counts on from the newest that it finds: no sequence may be given twice, for
    // what a segment held in a turn of the same number would pass for what it holds now
    // (docs/decisions/0440).
    return segment && (offline || !log.is_newest(*segment));
  };
  const bool is_short = offline || has_unknown(disk) ||
                        log.free_segments() < free_wanted(log.segments()) ||
                        index_bytes() > index_max - index_max / kIndexSlack;
  const auto in_order = log.oldest_in_order();
  const auto first = has_unknown(disk) ? in_order : log.oldest();
  if (may_go(first)) {
    return is_short || log.held_segments() > log.segments() ? first : std::nullopt;
  }
  return is_short && may_go(in_order) ? in_order : std::nullopt;
}

std::optional<std::uint32_t> DiskTier::reclaim_shard(std::uint16_t disk,
                                                     std::uint64_t index_max) const {
  const State& state = states_[disk];
  if (state.reclaimed) {
    return state.reclaim_shard < shards_ ? std::optional(state.reclaim_shard) : std::nullopt;
  }
  return next_to_reclaim(disk, index_max) ? std::optional(0U) : std::nullopt;
}

std::uint32_t DiskTier::reclaimed_segment(std::uint16_t disk, std::uint64_t index_max,
                                          bool counts) {
  State& state = states_[disk];
  if (!state.reclaimed) {
    state.is_counting = counts;
    state.choice =
        ReinsertBudget(logs_[disk].segment_bytes() * rules_.reinsert_percent / 100, shards_);
    state.reclaimed = next_to_reclaim(disk, index_max);
    ENCORE_CHECK(state.reclaimed.has_value(), "there is a segment to reclaim");
    logs_[disk].begin_reclaim(*state.reclaimed);
    state.full_once = true;
    state.reclaim_shard = 0;
  }
  return *state.reclaimed;
}

bool DiskTier::has_older(std::uint16_t disk, std::uint32_t segment) const {
  const auto next = logs_[disk].oldest_in_order();
  return next && logs_[disk].segment(*next).sequence < logs_[disk].segment(segment).sequence;
}

void DiskTier::shard_counted(std::uint16_t disk, std::uint32_t shard) {
  State& state = states_[disk];
  ENCORE_CHECK(state.reclaimed && state.is_counting && state.reclaim_shard == shard,
               "shards are counted in their order");
  state.reclaim_shard = shard + 1;
  if (shard + 1 == shards_) {
    state.choice.end_count();
    state.is_counting = false;
    state.reclaim_shard = 0;
  }
}

bool DiskTier::shard_reclaimed(std::uint16_t disk, std::uint32_t shard) {
  State& state = states_[disk];
  ENCORE_CHECK(state.reclaimed && !state.is_counting && state.reclaim_shard == shard,
               "shards are reclaimed in their order");
  state.reclaim_shard = shard + 1;
  return shard + 1 == shards_;
}

bool DiskTier::free_segment(std::uint16_t disk, std::uint32_t segment) {
  State& state = states_[disk];
  if (state.reclaimed != segment || state.reclaim_shard < shards_ ||
      !logs_[disk].end_reclaim(segment)) {
    return false;
  }
  state.reclaimed.reset();
  return true;
}

// --- disks ---------------------------------------------------------------------------------------

std::uint64_t DiskTier::expect(std::uint16_t disk, std::uint64_t records) {
  states_[disk].expected = records;
  std::uint64_t sum = 0;
  for (std::uint16_t each = 0; each < disks(); ++each) sum += states_[each].expected;
  return sum;
}

bool DiskTier::attach(std::uint16_t disk, std::span<const std::uint64_t> sequences,
                      DiskVersion newest) {
  if (logs_[disk].was_used() || sequences.size() > kSegmentsMax) {
    return false;
  }
  logs_[disk].attach(sequences);
  states_[disk].loading = true;
  // One that was full has no more free segments than a reclaim leaves it.
  states_[disk].full_once = logs_[disk].free_segments() <= free_wanted(logs_[disk].segments());
  version_ = std::max(version_, newest);
  return true;
}

void DiskTier::take_offline(std::uint16_t disk) {
  states_[disk].offline = true;
  states_[disk].loading = false;
  logs_[disk].seal();
}

std::uint64_t DiskTier::bytes_in_service() const {
  std::uint64_t bytes = 0;
  for (std::uint16_t disk = 0; disk < disks(); ++disk) {
    bytes += is_offline(disk) ? 0 : logs_[disk].segments() * logs_[disk].segment_bytes();
  }
  return bytes;
}

DiskLoad DiskTier::load_for(const filter::Hash128& key) const {
  DiskLoad load;
  for (std::uint16_t disk = 0; disk < disks(); ++disk) {
    if (is_offline(disk)) {
      continue;
    }
    load.objects += logs_[disk].live_records() - states_[disk].parts;
    load.bytes += logs_[disk].live_bytes();
    load.size_bytes += logs_[disk].segments() * logs_[disk].segment_bytes();
  }
  const auto own = disk_for(key);
  load.full_once = own && states_[*own].full_once;
  return load;
}

bool DiskTier::hides_records() const {
  for (std::uint16_t disk = 0; disk < disks(); ++disk) {
    if (states_[disk].loading || states_[disk].reclaimed || has_unknown(disk)) {
      return true;
    }
  }
  return false;
}

bool DiskTier::has_unknown(std::uint16_t disk) const {
  const auto oldest = logs_[disk].oldest_in_order();
  return oldest && logs_[disk].segment(*oldest).sequence <= states_[disk].unknown_until;
}

bool DiskTier::is_unknown_beside(std::uint16_t disk) const {
  for (std::uint16_t other = 0; other < disks(); ++other) {
    if (other != disk && has_unknown(other)) {
      return true;
    }
  }
  return false;
}

void DiskTier::found_without_room(const DiskPlace& place) {
  std::uint64_t& until = states_[place.disk].unknown_until;
  until = std::max(until, sequence_of(place.disk, place.segment));
}

bool DiskTier::is_later(const DiskPlace& a, const DiskPlace& b) const {
  const SegmentLog& log = logs_[a.disk];
  const std::uint64_t first = log.segment(a.segment).sequence;
  const std::uint64_t second = log.segment(b.segment).sequence;
  return first != second ? first > second : a.unit > b.unit;
}

bool DiskTier::takes_found(const DiskPlace& place) const {
  const SegmentLog& log = logs_[place.disk];
  return place.segment < log.held_segments() &&
         log.segment(place.segment).state == SegmentLog::State::kSealed &&
         !states_[place.disk].offline;
}

void DiskTier::found(const Entry& entry, bool is_live) {
  logs_[entry.place.disk].found(entry.place, is_live);
  if (is_live) {
    on_entry_added(entry);
  }
}

void DiskTier::add_to(DiskStatistics& statistics) const {
  statistics.counters = counters;
  statistics.parts = 0;
  statistics.index_bytes = index_bytes();
  for (std::uint16_t disk = 0; disk < disks(); ++disk) {
    const SegmentLog& log = logs_[disk];
    statistics.disks.push_back({.segments = log.segments(),
                                .free_segments = log.free_segments(),
                                .segment_bytes = log.segment_bytes(),
                                .objects = log.live_records() - states_[disk].parts,
                                .parts = states_[disk].parts,
                                .live_bytes = log.live_bytes(),
                                .admitted_bytes = states_[disk].admitted_total,
                                .moved_bytes = states_[disk].moved_total,
                                .offline = states_[disk].offline,
                                .loading = states_[disk].loading});
    statistics.parts += states_[disk].parts;
  }
  statistics.entries = entries_ - statistics.parts;
}

}  // namespace encore::cache
