// The purge log of one disk as it is used: what is to be remembered is collected, and appended
// within a second. A log that cannot be written twice in a row has failed for good: nobody can say
// any more what was purged, so the disk is emptied for the next start, and leaves service.
//
// The first purge of a run is remembered as such before it (runs.h): on the disk, and outside of
// it.
//
// add_tombstone() is thread-safe, all else confined to what writes the disk.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/mutex.h"
#include "proxy/disk/disk_state.h"
#include "proxy/disk/purge_log.h"

namespace encore::disk {

class DiskLog {
 public:
  // `state` is borrowed; the log is loaded.
  DiskLog(DiskState& state, std::unique_ptr<PurgeLog> log)
      : state_(state),
        log_(std::move(log)),
        superblock_(state.superblock),
        entries_(log_->entries()) {}
  // The disk takes part in this run, durably; where that fails, the first purge tries again.
  // REQUIRES: called before all below.
  void begin_run(const RunHistory& runs);
  // Another process had the disk and has given it back: the run goes on, durably.
  Result<void> resume_run();
  LogPosition position() const { return log_->position(); }

  // For append_tombstones(), whose sequence it gets. True: there are so many that it should not
  // wait.
  bool add_tombstone(const Purge& purge) ENCORE_EXCLUDES(mutex_);
  Result<void> append_tombstones() ENCORE_EXCLUDES(mutex_);
  // The same for another process that has the disk now. Any thread.
  std::vector<Purge> take_tombstones() ENCORE_EXCLUDES(mutex_);
  // The run has a purge, durably. Errors: as append().
  Result<void> note_purge();
  // Any thread.
  bool has_purge() const { return has_purge_.load(); }
  // Something was buried that append_tombstones() has not come back with yet. Any thread.
  bool has_buried() const { return waiting_.load() != 0; }
  // Durable when it returns. Errors: it is not, and may come back at the next start.
  Result<void> append(std::span<const Purge> purges);
  // Forgets what only older turns have; SegmentWriter::sequence_min().
  Result<void> prune(std::uint64_t sequence_min);

  // Any thread.
  std::uint64_t entries() const { return entries_.load(std::memory_order_relaxed); }
  std::uint64_t overflows() const { return overflows_.load(std::memory_order_relaxed); }

 private:
  static constexpr std::size_t kBuriedMax = 4096;

  Result<void> append_all(std::span<const Purge> purges, bool is_answered);
  Result<void> append_twice(std::span<const Purge> purges);
  Result<void> remember_purge();
  Result<void> remember_runs();
  // The index knows nothing any more of a disk that has left service, so nothing says what of it is
  // replaced or purged from then on: the next start finds no record of it.
  Result<void> forget_records();
  // Result of a log that has failed: success if nothing of its disk is found any more.
  Result<void> give_up(const Error& error);

  DiskState& state_;
  std::unique_ptr<PurgeLog> log_;
  Superblock superblock_;
  RunHistory runs_;
  std::atomic<bool> has_purge_ = false;
  bool has_failed_ = false;
  bool is_forgotten_ = false;  // the disk is empty for the next start
  bool is_without_records_ = false;
  std::atomic<std::uint64_t> entries_;
  std::atomic<std::uint64_t> overflows_ = 0;
  std::atomic<std::size_t> waiting_ = 0;
  Mutex mutex_;
  std::vector<Purge> buried_ ENCORE_GUARDED_BY(mutex_);
};

}  // namespace encore::disk
