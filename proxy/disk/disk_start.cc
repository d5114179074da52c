#include "proxy/disk/disk_start.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace encore::disk {
namespace {

DiskCommon::KeyVariant key_variant(const cache::DiskRecord& record) {
  return {{record.key.hi, record.key.lo}, record.variant};
}

}  // namespace

DiskStart::DiskStart(CountedFile& file, const Superblock& superblock, WallSeconds now, bool is_held)
    : purges_(std::make_unique<PurgeLog>(file, superblock)),
      recovery_(file, superblock, *purges_, *this, {.now = now, .defers_footers = is_held}) {}

Result<void> DiskStart::begin() { return recovery_.begin(); }

bool DiskStart::is_blank_from(std::uint32_t segment) const {
  const auto& sequences = recovery_.sequences();
  return !recovery_.found().has_unknown &&
         std::ranges::all_of(sequences.begin() + segment, sequences.end(),
                             [](std::uint64_t sequence) { return sequence == 0; });
}

void DiskStart::attach(DiskState& state) {
  state_ = &state;
  for (const Purge& rule : rules_) state.rules.add(rule);
  rules_.clear();
  const auto& sequences = recovery_.sequences();
  for (std::uint32_t segment = 0; segment < sequences.size(); ++segment) {
    state.set_sequence(segment, sequences[segment]);
  }
  // The newest segment tells the highest version.
  recovery_.step();
  const cache::DiskVersion newest = recovery_.found().version_max;
  const bool attached = state.common->kernel.use([&](cache::Kernel& kernel) {
    return kernel.attach(state.number, sequences, newest, state.common->clocks.monotonic());
  });
  ENCORE_CHECK(attached, "a disk is attached before anything is placed on it");
  is_attached_ = true;
}

void DiskStart::on_records(const FoundRecords& records) {
  if (is_attached_) return load(records);
  kept_.push_back({records.segment,
                   records.sequence,
                   records.opened_at,
                   {records.lines.begin(), records.lines.end()},
                   records.names});
}

bool DiskStart::step(const std::function<void()>& on_ahead) {
  if (state_->is_offline()) return false;
  for (const Kept& kept : std::exchange(kept_, {})) {
    load({kept.segment, kept.sequence, kept.opened_at, kept.lines, kept.names});
  }
  on_ahead_ = &on_ahead;
  const bool is_told = recovery_.step();
  on_ahead_ = nullptr;
  if (is_told) {
    loaded_.fetch_add(1, std::memory_order_relaxed);
    // Segments are alike.
    const std::uint64_t expected = recovery_.counts().records * segments() / (loaded() + 1);
    state_->common->kernel.use(
        [&](cache::Kernel& kernel) { kernel.expect(state_->number, expected); });
    return true;
  }
  room_ = {};
  loaded_.store(segments(), std::memory_order_relaxed);
  state_->common->kernel.use([&](cache::Kernel& kernel) {
    kernel.loaded(state_->number, state_->common->clocks.monotonic());
  });
  return false;
}

std::optional<std::uint16_t> DiskStart::names_of(const FoundRecords& found, std::uint16_t number,
                                                 std::map<std::uint16_t, std::uint16_t>& known) {
  if (number == 0) return 0;
  if (number > found.names.texts().size()) return std::nullopt;
  if (const auto at = known.find(number); at != known.end()) return at->second;
  const auto given = state_->common->kernel.use([&](cache::Kernel& kernel) {
    return kernel.intern(found.names.text(number), state_->common->clocks.monotonic());
  });
  if (given) known.emplace(number, *given);
  return given;
}

// Older ones of its key and variant are not to be found in its place.
void DiskStart::refuse(const cache::DiskRecord& record) {
  const MutexLock lock(state_->common->loading);
  state_->common->refused.emplace(key_variant(record), state_->number);
}

void DiskStart::take(const FoundRecords& found, Records& out) {
  const DiskClocks& clocks = state_->common->clocks;
  const MonotonicTime now = clocks.monotonic();
  const WallTime wall = clocks.wall();
  // Records written in the future, by this clock, may be of any age.
  const bool is_of_future = found.opened_at > clocks.wall_seconds();
  std::map<std::uint16_t, std::uint16_t> known;
  out.records.clear();
  out.versions.clear();
  out.unknown.clear();
  for (const RecordLine& line : found.lines) {
    const auto names = names_of(found, line.names, known);
    if (!names) {
      refuse({.key = line.key, .variant = static_cast<std::uint32_t>(line.variant)});
      out.unknown.emplace_back(line.key, line.version);
      continue;
    }
    const bool is_part = line.kind == RecordKind::kPart;
    // A part is as fresh as its head.
    MonotonicTime fresh_until =
        is_part ? MonotonicTime::max() : monotonic_of(line.fresh_until, now, wall);
    if (is_of_future && !is_part) fresh_until = std::min(fresh_until, now);
    out.records.push_back(
        {.key = line.key,
         .variant = static_cast<std::uint32_t>(line.variant),
         .names = *names,
         .visited = false,
         .part = is_part,
         .place = {.disk = state_->number,
                   .segment = found.segment,
                   .unit = line.unit,
                   .bytes = std::uint64_t{line.room_units} * cache::kDiskUnit},
         .fresh_until = fresh_until,
         .keep_until = is_part ? fresh_until
                               : std::max(fresh_until, monotonic_of(line.keep_until, now, wall))});
    out.versions.push_back(line.version);
  }
}

void DiskStart::bury_unknown(Records& records) {
  for (const auto& [key, version] : records.unknown) {
    state_->common->add_tombstone(key, {version + 1});
  }
  records.unknown.clear();
}

cache::DiskLoaded DiskStart::give(Records& records) {
  cache::DiskLoaded loaded = give_known(records);
  bury_unknown(records);
  return loaded;
}

cache::DiskLoaded DiskStart::give_known(Records& records) {
  DiskCommon& common = *state_->common;
  // One disk at a time: what one refuses no other may load an older one of.
  const MutexLock lock(common.loading);
  // Drops refused records, and those purged since the log was read.
  std::size_t left = 0;
  for (std::size_t i = 0; i < records.records.size(); ++i) {
    const cache::DiskRecord& record = records.records[i];
    if (state_->rules.is_dead(record.key, records.versions[i])) continue;
    if (!common.refused.empty()) {
      const auto refused = common.refused.find(key_variant(record));
      // One of the same disk leaves before the one that was refused, or is buried with it.
      if (refused != common.refused.end() && refused->second != state_->number && !record.part) {
        records.unknown.emplace_back(record.key, records.versions[i]);
      }
      if (refused != common.refused.end()) continue;
    }
    records.records[left] = record;
    records.versions[left++] = records.versions[i];
  }
  records.records.resize(left);
  records.versions.resize(left);
  cache::DiskLoaded loaded = common.kernel.use([&](cache::Kernel& kernel) {
    return kernel.load(records.records, common.clocks.monotonic());
  });
  for (const cache::DiskLoaded::Refused& refused : loaded.refused) {
    const cache::DiskRecord& record = records.records[refused.record];
    common.refused.emplace(key_variant(record), state_->number);
    if (!refused.leaves && !record.part) {
      records.unknown.emplace_back(record.key, records.versions[refused.record]);
    }
  }
  return loaded;
}

void DiskStart::load(const FoundRecords& found) {
  take(found, room_);
  bury_unknown(room_);
  if (room_.records.empty()) return;
  const cache::DiskLoaded loaded = give(room_);
  if (!loaded.twins.empty()) settle(room_, loaded);
}

void DiskStart::settle(const Records& records, const cache::DiskLoaded& loaded) {
  DiskCommon& common = *state_->common;
  Records again;
  for (const cache::DiskLoaded::Twins& twin : loaded.twins) {
    const cache::DiskRecord& record = records.records[twin.record];
    const cache::DiskVersion version = records.versions[twin.record];
    const auto other = common.version_at(twin.other, record.key);
    // An unreadable record may not be written yet, and may be newer than all that is found.
    if (!other) continue;
    // For all versions below it, in whatever order the disks are found the next time.
    common.add_tombstone(record.key, {std::max(*other, version)});
    if (*other >= version) continue;
    common.kernel.use([&](cache::Kernel& kernel) {
      return kernel.lost({record.key, {}}, twin.other, common.clocks.monotonic());
    });
    again.records.push_back(record);
    again.versions.push_back(version);
  }
  if (!again.records.empty()) (void)give(again);
}

}  // namespace encore::disk
