#include "proxy/disk/disk_loads.h"

#include <algorithm>
#include <utility>

namespace encore::disk {

std::unique_ptr<RecordReader> DiskLoads::take_reader() {
  {
    const MutexLock lock(mutex_);
    if (!readers_.empty()) {
      auto reader = std::move(readers_.back());
      readers_.pop_back();
      return reader;
    }
  }
  return std::make_unique<RecordReader>(state_.file, state_.superblock);
}

void DiskLoads::give_back(std::unique_ptr<RecordReader> reader) {
  const MutexLock lock(mutex_);
  readers_.push_back(std::move(reader));
}

void DiskLoads::load(DiskEngine& engine, const filter::Hash128& key, const cache::DiskPlace& place,
                     std::unique_ptr<DiskLoad> load, std::shared_ptr<void> owner) {
  // A task that is not accepted is destroyed, and its load must be notified first.
  const std::shared_ptr<DiskLoad> shared = std::move(load);
  // Named before it waits in line: a reclaim does not free the segment of a read to come.
  state_.readings.begin(place);
  auto task = [this, key, place, shared, owner = std::move(owner)](DiskRun run) {
    const LoadEnd how = run == DiskRun::kCancelled ? LoadEnd::kStopped : read(key, place, *shared);
    state_.readings.end(place);
    shared->end(how);
  };
  const std::uint64_t bytes = std::min<std::uint64_t>(place.bytes, RecordReader::kWindowBytes);
  const Submitted submitted = engine.submit(DiskLane::kRead, bytes, std::move(task));
  if (submitted == Submitted::kAccepted) return;
  state_.readings.end(place);
  shared->end(submitted == Submitted::kFull ? LoadEnd::kBusy : LoadEnd::kStopped);
}

LoadEnd DiskLoads::read(const filter::Hash128& key, const cache::DiskPlace& place, DiskLoad& load) {
  if (state_.is_offline()) {
    state_.lose(key, place);
    return LoadEnd::kLost;
  }
  // A record that is being moved lies at its old place until it is written at the new one.
  const cache::DiskPlace where = state_.moves.begin_reading(place);
  const std::uint64_t sequence = state_.sequence(where.segment);
  bool is_dead = false;
  const auto done = read_at({.place = where,
                             .sequence = sequence,
                             .key = key,
                             .first_bytes = load.first_read_bytes(),
                             .body_room = load.body_room(where.bytes)},
                            load, is_dead);
  state_.readings.end(where);
  if (state_.file.reads().failed_in_row.load() >= kFailedReadsMax) state_.take_offline();
  if (done && !is_dead) return LoadEnd::kDone;
  // Also if a rule makes it dead: an older one that the rule does not cover may not be loaded yet.
  const bool was_there = state_.lose(key, place);
  // A late read may find another record at a place that was looked up long ago, which is not
  // damage.
  const bool is_damaged = was_there || (!done && done.error() == Damage::kBody);
  if (is_damaged && !is_dead) ++state_.damaged;
  return LoadEnd::kLost;
}

std::expected<void, Damage> DiskLoads::read_at(const RecordReader::Wanted& wanted, DiskLoad& load,
                                               bool& is_dead) {
  auto reader = take_reader();
  std::expected<void, Damage> done;
  const auto front = reader->open(wanted);
  if (!front) {
    done = std::unexpected(front.error());
  } else if (state_.rules.is_dead(**front)) {
    is_dead = true;
  } else {
    done = load.read(**front, *reader);
    // It may have been purged meanwhile.
    is_dead = state_.rules.is_dead(**front);
  }
  give_back(std::move(reader));
  return done;
}

}  // namespace encore::disk
