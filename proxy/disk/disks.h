// Disks: the disks of a cache in service. It writes the records that the kernel has placed, loads
// those that the index knows, remembers purges over a restart, reclaims segments, and finds the
// contents again at a start. The kernel decides all of it, and receives the results. A disk that
// fails leaves service, and the others go on.
//
// Thread-safe but for open(), start() and stop(). Nothing here waits for a disk but open(), start()
// (the headers and the newest segment of each), stop(), and the disks' own threads.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/error.h"
#include "base/mutex.h"
#include "base/time.h"
#include "cache/disk_types.h"
#include "cache/kernel.h"
#include "cache/options.h"
#include "filter/hash.h"
#include "proxy/disk/disk_loads.h"
#include "proxy/disk/disk_service.h"
#include "proxy/disk/disk_state.h"
#include "proxy/disk/engine.h"
#include "proxy/disk/purge_frame.h"
#include "proxy/disk/write_queue.h"

namespace encore::disk {

struct DiskSetup {
  std::string path;
  std::uint64_t bytes = 0;
  std::uint64_t segment_bytes = 0;  // size in a new disk; 0: default_segment_bytes()
};

struct DisksOptions {
  std::vector<DiskSetup> disks;
  filter::Seed identity_seed;
  bool clear = false;         // makes new disks of whatever is there
  EngineOptions engine = {};  // per disk; write_bytes_max also bounds the waiting writes
  bool is_inline = false;     // for tests: make_inline_engine(), and the caller calls tick()
  // Whether a tag's, prefix' or ban's pattern is of a record; its version need not be looked at.
  // Called on the threads of the disks. Empty: prefixes of text.key alone.
  MatchesRule matches_rule = {};
  // The files that remember the cache's runs outside of the disks.
  WitnessFiles witness = {};
  // Another process has the disks yet, and has handed them over: their files, by their paths, are
  // descriptors that are taken over. Nothing is written before take_over().
  std::optional<std::map<std::string, int>> handed_over = {};
  // For tests.
  DiskClocks clocks = {};
  std::function<Result<std::unique_ptr<File>>(const std::string& path)> open_file = {};
  std::function<std::unique_ptr<DiskEngine>(const EngineOptions&)> make_engine = {};
};

struct DisksStatistics {
  std::vector<DiskReport> disks;  // in the order of the setup
  std::string witness_error;      // why the witness was not written; empty: it was
};

class Disks {
 public:
  // Opens, makes or refuses them all; a file for which there is no room is not left behind. One
  // that was away when something was purged, or whose place an older copy has taken, is made anew.
  // Errors: open_file(), open_disk(), a purge log or a witness that cannot be read; two of the same
  // file.
  static Result<std::unique_ptr<Disks>> open(const DisksOptions& options);
  // Stops without patience.
  ~Disks();
  Disks(const Disks&) = delete;
  Disks& operator=(const Disks&) = delete;

  // For KernelOptions::disks.
  std::vector<cache::DiskOptions> kernel_disks() const;
  // Attaches what is found and begins to load it, newest first, in the background. `kernel` is
  // borrowed until stop(). REQUIRES: called once, before all below and before anything is placed.
  void start(cache::Kernel& kernel);

  // True if a record of so many bytes, which varies by names of so many, fits a segment of each
  // disk: the key decides which one it is for. Cheap.
  bool fit(std::uint64_t record_bytes, std::uint32_t names_bytes) const;
  // Cheap: nothing more can be written now (Stored::disk_queue_full).
  bool is_queue_full() const;
  // Carries out the decision of a commit: writes the record if outcome is kPlaced, and remembers
  // its tombstone. `source` may be null for other outcomes, and also then if the object has gone.
  // REQUIRES: called for each commit that was placed, for others wait behind its place; not under a
  // lock of the kernel, like all functions here.
  void decided(const cache::Key& key, const cache::DiskDecision& decision,
               std::unique_ptr<RecordSource> source);
  // A number of this process that no other has, before or after; not 0.
  std::uint64_t run() const { return run_; }
  // For a body that is written in parts: no other of these disks ever had it, nor will; not 0.
  std::uint64_t new_body_number();
  // While such a reader is there, a reclaim re-inserts the parts that are still ahead of it. All
  // readers together want at most a quarter of the disks: beyond that nothing is wanted (0).
  WantedParts::Number want(const WantedParts::Body& body) { return common_->wanted.add(body); }
  void want_from(WantedParts::Number number, std::uint32_t part) {
    common_->wanted.advance(number, part);
  }
  void want_no_more(WantedParts::Number number) { common_->wanted.remove(number); }
  // `place` is as the index has it; what is moved and not yet written is read from its old place.
  void load(const cache::Key& key, const cache::DiskPlace& place, std::unique_ptr<DiskLoad> load);
  // Durable within a second. Covers all variants of the key, as it is written.
  void add_tombstone(const filter::Hash128& key, cache::DiskTombstone tombstone);
  // Durable on all disks when `done` is called, on an engine's thread (on this one if they have
  // stopped). An error if a log could not be made durable: that disk has left service then, and is
  // empty at the next start if at least that could be written; else each purge is an error. The
  // rules are in force for loads from the moment of the call. `sequence` of each is filled in here.
  // Earlier tombstones are durable then, too. One may still wait for a key that the kernel no
  // longer knows, so call this for an empty purge as well.
  void purge(const std::vector<Purge>& purges, std::move_only_function<void(Result<void>)> done);

  // A purge of something of which no disk here knows anything: an absent one may have it, and is
  // known to have missed it, durably within a second. Cheap.
  void note_purge() { common_->has_purge.store(true, std::memory_order_relaxed); }

  // Bans in force, of the disk that has most: those of what may still lie on it.
  std::size_t bans() const;

  // Work that is due each second: flushes, reclaims, remembers. A separate thread calls it, except
  // with DisksOptions::is_inline and make_engine.
  void tick();

  // A clean stop: writes what waits, seals, waits at most so long; the kernel is not used
  // afterwards. False: something was left behind. Again: nothing.
  bool stop(Nanoseconds patience);

  DisksStatistics statistics() const;

  // --- from one process to the next (docs/decisions/0505) ---

  // Another process has them, or is to have them.
  bool is_held() const { return common_->is_held.load(); }
  // Everything found at the start is in the index.
  bool is_loaded() const;
  // Places and writes nothing more, when what waits is written and durable: another process may
  // read the disks then. Blocks, at most so long. False: it could not be done in that time, and
  // nothing has changed.
  bool hold(Nanoseconds patience);
  // The other process will not have them: it has ended. Blocks in the devices.
  void resume();
  // Paths and files of the disks, borrowed. For the other process, once they are held.
  std::vector<std::pair<std::string, int>> files() const;
  // The other process has them: what it must forget because it was replaced or invalidated here
  // since they were held, or not written. Blocks for the lane that writes.
  std::vector<Purge> take_tombstones();
  // A purge of something unknown was noted since they were held.
  bool has_noted_purge() const { return common_->has_purge.load(); }
  // With DisksOptions::handed_over: they are this process' now. Blocks in the devices. REQUIRES:
  // is_loaded(), no other process writes them.
  void take_over();

 private:
  void begin_run();
  void begin_witness();
  Disks(const DisksOptions& options, std::shared_ptr<DiskCommon> common,
        std::vector<std::shared_ptr<DiskService>> services, RunHistory runs);
  void run_ticks() ENCORE_EXCLUDES(mutex_);

  const DisksOptions options_;
  const std::shared_ptr<DiskCommon> common_;
  const std::vector<std::shared_ptr<DiskService>> services_;
  const std::uint64_t run_;
  RunHistory runs_;  // before this one begins
  Mutex mutex_;
  std::condition_variable_any ended_;
  bool stopping_ ENCORE_GUARDED_BY(mutex_) = false;
  bool has_started_ = false;
  std::atomic<std::uint64_t> next_body_ = 0;
  std::optional<bool> stopped_;
  std::thread ticks_;
};

// The size of the segments of the disk at `path`, nothing if there is none. Errors: open_file(),
// read_superblock().
Result<std::optional<std::uint64_t>> segment_bytes_of_disk(const std::string& path);

// The identity seed of the disk at `path`, nothing if there is none: for a process that has none of
// its own yet. Errors: open_file(), read_superblock().
Result<std::optional<filter::Seed>> seed_of_disk(const std::string& path);

}  // namespace encore::disk
