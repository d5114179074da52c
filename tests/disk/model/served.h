// A cache in front of disks, for tests: a kernel and Disks on files in memory, driven by random
// requests, and its promises (the oracle). A loaded object is byte-equal to a committed one, not
// covered by a completed purge, and not older than one that was shown before. Bodies in parts
// arrive piece by piece, between all other events. Starts again on the state that a stop or a kill
// has left. Thread-compatible.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "cache/kernel.h"
#include "proxy/disk/disks.h"
#include "tests/disk/model/history.h"
#include "tests/disk/model/memory_file.h"
#include "tests/disk/model/step_engine.h"
#include "tests/disk/model/switched_file.h"

namespace encore::disk {

enum class ServedEngine : std::uint8_t { kInline, kSteps, kThreads };

struct ServedOptions {
  std::size_t disks = 1;
  std::uint64_t disk_bytes = 3ULL << 20U;
  std::uint64_t segment_bytes = 256U << 10U;
  ServedEngine engine = ServedEngine::kSteps;
  EngineOptions threads = {};
  std::uint64_t keys = 40;
  std::uint64_t memory_bytes = 512U << 10U;  // the index has at most half of it
  bool on_probation = false;                 // admission by probation; else all is written
  std::uint64_t part_bytes =
      0;  // for bodies in parts; 0: those of half of the keys begin with a page
};

// One or two disks that turn soon, with either admission.
inline ServedOptions turning(std::uint64_t seed) {
  const std::size_t disks = 1 + seed % 2;
  return {.disks = disks,
          .disk_bytes = disks == 1 ? 2'500'000U : 1'500'000U,
          .segment_bytes = 128U << 10U,
          .on_probation = seed % 4 >= 2};
}

class Served {
 public:
  Served(const ServedOptions& options, std::uint64_t seed);
  ~Served();

  // Changes the sizes of the next life, as an operator does. REQUIRES: no life is in progress.
  void resize(std::uint64_t disk_bytes, std::uint64_t memory_bytes) {
    options_.disk_bytes = disk_bytes;
    options_.memory_bytes = memory_bytes;
  }
  // A process' life. Why it cannot begin; empty: it has.
  std::string start();
  // Returns the disks' result.
  bool stop();
  // Nothing that has not reached the files by now ever does.
  void kill();

  // An upgrade: another process opens the disks while this one has them, and takes them, or ends.
  // Why that is not as it should be; empty: it is. Uploads end there. REQUIRES:
  // ServedEngine::kSteps.
  enum class Succession : std::uint8_t { kDone, kEndsLoading, kEndsWithRun };
  std::string hand_over(Succession how);
  // The process before this one reads an object, and says what is to be forgotten; nothing where
  // there is none.
  void step_predecessor();
  // It ends.
  void end_predecessor();

  // One thing that happens.
  void step();
  // So many of them, or until the first fault.
  void live(int steps) {
    for (int i = 0; i < steps && fault_.empty(); ++i) step();
  }
  // All that waits is done, and a second passes: what was shown is not forgotten from here on.
  void settle();
  // After a start: what is missing of what was resident when it was stopped; empty: nothing.
  std::string missing();

  using Name = std::pair<std::uint64_t, std::uint32_t>;  // key's number and variant
  cache::DiskDecision commit(const Name& name, std::size_t body_bytes);
  // Begins a body in parts, or continues one, which ends if it returns false: it was committed, or
  // aborted.
  void begin_upload(const Name& name, std::size_t body_bytes);
  bool upload_one();
  // The last one that began ends too early.
  void give_up() { uploads_.pop_back(); }
  // All of it. Whether it was placed.
  bool upload(const Name& name, std::size_t body_bytes);
  // Freshens an object that was loaded in parts before; false: there was none.
  bool freshen_one();
  // Its present place on a disk.
  std::optional<cache::DiskPlace> find(const Name& name);
  // Loads it if it is found; false: it is not.
  bool load(const Name& name);
  // Tells what was decided, all or one of it at random.
  void deliver();
  void deliver_one();
  void invalidate(std::uint64_t key, bool with_reply);
  void purge(PurgeKind kind, std::string pattern);
  void tick();
  void run();
  // The same, but for what is written.
  void run_reads();
  // The next read of some disk alone.
  void run_read();
  // And but for what is read.
  void run_writes();

  Disks& disks() { return *disks_; }
  cache::Kernel& kernel() { return *kernel_; }
  const cache::Kernel& kernel() const { return *kernel_; }
  // Writes of segments fail, others do not.
  void fail_records(std::size_t disk, bool fails);
  FileSwitch& device(std::size_t disk) { return (*devices_)[disk]; }
  cache::Key key(std::uint64_t number) const;
  // Key of a part of an object that was loaded in parts before.
  cache::Key part_key(const Name& name, std::uint64_t part) const;
  // A bit of what lies there.
  void flip(const cache::DiskPlace& place, std::uint64_t at);
  std::uint64_t damaged() const;

  // The first fault.
  const std::string& fault() const { return fault_; }
  struct Counts {
    std::uint64_t commits = 0;
    std::uint64_t placed = 0;
    std::uint64_t loads = 0;  // that were asked for
    std::uint64_t done = 0;   // that ended well
    std::uint64_t lost = 0;
    std::uint64_t busy = 0;
    std::uint64_t stopped = 0;
    std::uint64_t purges = 0;  // that were answered
    std::uint64_t purges_failed = 0;
    std::uint64_t moved_bytes = 0;
    std::uint64_t checked = 0;  // by missing()
    std::uint64_t parts = 0;    // that were placed
    std::uint64_t heads = 0;    // loaded with all of their parts
    std::uint64_t freshened = 0;
    std::uint64_t incomplete = 0;  // loads of heads that lacked a part
    std::uint64_t handed_over = 0;
    std::uint64_t rolled_back = 0;
    std::uint64_t forgotten = 0;  // keys that a process forgot for the one before it
  };
  Counts counts;

 private:
  class Load;
  friend class Load;
  class PartLoad;
  friend class PartLoad;
  // The parts loaded so far for a head.
  struct Loading {
    Name name;
    cache::DiskPlace place;  // the head's
    cache::DiskVersion shown = 0;
    std::size_t purges = 0;
    Committed found;
    std::uint64_t parts = 0;
  };
  struct Upload {
    Name name;
    std::shared_ptr<Committed> object;
    std::uint64_t parts = 0;  // placed
  };
  struct Undelivered {
    cache::Key key;
    cache::DiskDecision decision;
    std::shared_ptr<const Committed> object;
  };
  using Devices = std::array<FileSwitch, 2>;
  using Tasks = std::array<StepTasks, 2>;
  // One of two processes that have the same files.
  struct Process {
    std::unique_ptr<Devices> devices = std::make_unique<Devices>();
    std::unique_ptr<Tasks> tasks = std::make_unique<Tasks>();
    std::unique_ptr<cache::Kernel> kernel;
    std::unique_ptr<Disks> disks;
    std::map<Name, cache::DiskVersion> shown;
  };
  std::string open(Process& process, bool is_handed_over);
  void swap(Process& other);
  // Swaps what the process has shown, too.
  void turn_to(Process& other);
  void step_held();
  std::string succeed(std::unique_ptr<Process> next, cache::DiskVersion held);
  std::string roll_back(std::unique_ptr<Process> next, Succession how);
  std::map<Name, cache::DiskPlace> written();
  std::string unequal(Process& next, const std::map<Name, cache::DiskPlace>& written);
  std::vector<Image> images() const;
  std::vector<RunHistory> runs() const;
  void take_tombstones();
  void purge_in_predecessor(const Purge& purge, std::optional<std::uint64_t> number);
  // Few have two.
  static bool has_variants(std::uint64_t key) { return key % 8 == 0; }
  void step_parts();
  std::uint64_t part_bytes(std::uint64_t key) const;
  std::uint64_t part_count(const Committed& object, std::uint64_t key) const;
  bool place_part(Upload& upload);
  std::shared_ptr<Committed> made_object(const Name& name, std::size_t body_bytes);
  cache::DiskDecision commit_object(const Name& name, std::shared_ptr<Committed> object,
                                    bool disk_only);
  void load_next(Loading loading);
  void lost(const Loading& loading);
  void remember(cache::DiskVersion version, std::uint64_t key,
                std::optional<std::uint32_t> variant);
  // Asks the disks for the ones, and is answered for the others.
  void purged(const std::vector<Purge>& purges, std::vector<Purge> meant);
  void loaded(const Name& name, const Committed& found, cache::DiskVersion shown,
              std::size_t purges);
  void note(const std::string& what);
  Name some_name();

  ServedOptions options_;
  std::mt19937_64 random_;
  std::vector<std::string> texts_;
  std::vector<std::unique_ptr<MemoryFile>> files_;
  std::optional<std::string> witness_;  // the file outside of the disks
  std::unique_ptr<Devices> devices_ = std::make_unique<Devices>();
  std::unique_ptr<Tasks> tasks_ = std::make_unique<Tasks>();
  MonotonicTime now_{std::chrono::seconds(1000)};
  std::unique_ptr<Disks> disks_;
  std::unique_ptr<cache::Kernel> kernel_;
  std::unique_ptr<Process> predecessor_;  // null: none drains
  std::vector<Undelivered> undelivered_;
  std::vector<Upload> uploads_;
  std::map<Name, std::shared_ptr<const Committed>> heads_;  // the last that was loaded
  History history_;
  std::vector<Purge> answered_;
  std::vector<Purge> asked_;                            // patterns, answered or not
  std::map<Name, cache::DiskVersion> shown_;            // nothing older may be found in this life
  std::map<Name, cache::DiskVersion> kept_;             // nor in any after it
  std::map<Name, cache::DiskVersion> resident_;         // at the last stop
  std::map<std::uint64_t, cache::DiskVersion> buried_;  // keys
  cache::DiskVersion last_version_ = 0;                 // that was loaded
  std::string fault_;
};

// A record that owns all it shows.
std::unique_ptr<RecordSource> source_of(std::shared_ptr<const Committed> object);
// For objects whose tags are in their meta.
bool matches_meta(const Purge& rule, const RecordFront& front);

}  // namespace encore::disk
