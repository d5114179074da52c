// One disk in service: its file, its threads, and what they do, each on its lane: loads and the
// start on that of reads, all that is written on that of writes. Thread-safe.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/error.h"
#include "cache/options.h"
#include "proxy/disk/counted_file.h"
#include "proxy/disk/disk_loads.h"
#include "proxy/disk/disk_log.h"
#include "proxy/disk/disk_report.h"
#include "proxy/disk/disk_start.h"
#include "proxy/disk/disk_state.h"
#include "proxy/disk/disk_writer.h"
#include "proxy/disk/engine.h"
#include "proxy/disk/open.h"
#include "proxy/disk/write_queue.h"

namespace encore::disk {

class DiskService : public std::enable_shared_from_this<DiskService> {
 public:
  struct Setup {
    std::uint16_t number = 0;
    std::uint64_t bytes = 0;
    EngineOptions engine;
    MatchesRule matches_rule;
    // How far its purge log was, at least; where it is not, an older copy lies here.
    std::optional<LogPosition> position_min = std::nullopt;
    // Why it is made anew, for OpenOptions::clear; empty: it is not, or somebody has said so.
    std::string emptied_for = {};
    // Another process has it yet: nothing is written before take_over().
    bool is_held = false;
  };
  // Takes an opened file. Makes the disk anew where its purge log ends too early. Errors:
  // open_disk(), PurgeLog::load(), resize().
  static Result<std::shared_ptr<DiskService>> open(std::unique_ptr<File> file,
                                                   const OpenOptions& options, Setup setup,
                                                   std::shared_ptr<DiskCommon> common);
  DiskService(std::unique_ptr<CountedFile> file, const Superblock& superblock,
              std::unique_ptr<DiskStart> found, const Setup& setup,
              std::shared_ptr<DiskCommon> common);

  // It takes part in this run. REQUIRES: before attach().
  void begin_run(const RunHistory& runs) { log_.begin_run(runs); }
  DiskWitness::Disk witnessed() const;
  cache::DiskOptions kernel_disk() const;
  std::uint64_t segment_bytes() const { return state_.superblock.segment_bytes; }
  // Tells the kernel what was found; nothing may be placed before. Answers a version above all that
  // lies there.
  cache::DiskVersion attach();
  void set_engine(std::unique_ptr<DiskEngine> engine) { engine_ = std::move(engine); }
  // Loads it in the background. REQUIRES: it has an engine, as have the others.
  void begin() { load_next(); }

  // Takes no more to write for now.
  bool is_full() const { return queue_.is_full(); }
  // Could write, if it had room.
  bool writes() const { return !state_.is_offline() && !state_.is_paused.load(); }
  void put(std::uint64_t order, PendingWrite wanted);
  void load(const filter::Hash128& key, const cache::DiskPlace& place,
            std::unique_ptr<DiskLoad> load);
  void add_tombstone(const filter::Hash128& key, cache::DiskTombstone tombstone);
  // `done` is called once, on the engine's thread, or on this one where it has stopped or where
  // nothing is to be done.
  std::size_t bans() const { return state_.rules.bans(); }
  void purge(std::vector<Purge> purges, std::function<void(Result<void>)> done);
  std::optional<cache::DiskVersion> version_at(const cache::DiskPlace& place,
                                               const filter::Hash128& key) {
    return state_.version_at(place, key);
  }
  // Has done what is due each second.
  void tick();

  // The end, in two parts, so that all disks end side by side: no more is taken, and what waits is
  // written; then waits for it. False: something was left behind.
  void finish();
  bool stop(Nanoseconds patience);

  DiskReport report() const;

  // Handing over to another process, and taking over from one; each on the lane that writes, which
  // then calls `done` (on this thread where it has stopped).
  using OnDone = std::function<void(bool)>;
  void hold(OnDone done);
  void resume(OnDone done);
  void take_over(const RunHistory& runs, OnDone done);
  // Replaced, invalidated and unwritten records, which another process that has the disk must
  // forget.
  std::vector<Purge> take_tombstones() { return log_.take_tombstones(); }
  void take_unwritten(std::function<void(std::vector<Purge>)> done);
  bool is_loading() const { return state_.is_loading; }
  int descriptor() const { return file_->descriptor(); }

 private:
  void on_write_lane(std::function<void(DiskRun)> task);
  void load_next();
  // Another thread reads what the next step of the load needs.
  void read_ahead();
  Result<void> append(std::span<const Purge> purges);
  // On the lane that writes.
  void work(bool (DiskWriter::*part)());

  const Setup setup_;
  const std::unique_ptr<CountedFile> file_;
  DiskState state_;
  const std::unique_ptr<DiskStart> start_;
  DiskLog log_;
  WriteQueue queue_;
  std::unique_ptr<DiskWriter> writer_;
  DiskLoads loads_;
  std::unique_ptr<DiskEngine> engine_;
  std::atomic<bool> is_ticking_ = false;  // one waits
  std::atomic<bool> is_stopping_ = false;
  std::atomic<bool> is_finished_ = false;  // and all went well
  // Ticks for which purges of keys are still looked for after the start, for who purged one may
  // say so later than the last segment was loaded.
  static constexpr int kLateTicks = 60;
  std::atomic<int> late_ticks_ = kLateTicks;
};

}  // namespace encore::disk
