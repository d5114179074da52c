// DiskWitness: remembers outside of the disks which runs a cache had (runs.h) and how far the purge
// log of each disk was, so that an older copy in the place of a disk is known as one. It is one
// file in the state directory, or else one next to each disk that is a file: "PATH.runs".
//
// A witness is never ahead of the disks: each disk writes its part first. If it cannot be written
// the disks still know the runs, and only a copy passes for its original.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/mutex.h"
#include "base/time.h"
#include "proxy/disk/checksum.h"
#include "proxy/disk/purge_log.h"
#include "proxy/disk/runs.h"

namespace encore::disk {

struct WitnessedDisk {
  Uuid uuid;
  LogPosition position;
  friend bool operator==(const WitnessedDisk&, const WitnessedDisk&) = default;
};

// The contents of a witness' file.
struct WitnessRecord {
  RunHistory runs;
  std::vector<WitnessedDisk> disks;
  // Nothing: the disk is not known.
  std::optional<LogPosition> position_of(const Uuid& uuid) const;
  friend bool operator==(const WitnessRecord&, const WitnessRecord&) = default;
};
std::string to_text(const WitnessRecord& witness_record);
// Errors: not written by to_text().
Result<WitnessRecord> parse_witness_record(std::string_view text);

// How the files are read and written; empty functions: there is no witness.
struct WitnessFiles {
  std::string path;  // path of the one for all disks; empty: one next to each disk
  std::function<Result<std::optional<std::string>>(const std::string& path)> read;
  std::function<Result<void>(const std::string& path, std::string_view text)> write;
};

// Thread-safe.
class DiskWitness {
 public:
  explicit DiskWitness(WitnessFiles files) : files_(std::move(files)) {}

  // The file for all disks; empty where there is none. Errors: it cannot be read.
  Result<WitnessRecord> read() const;
  // The file next to this disk; nothing where there is none, or one of another disk.
  std::optional<WitnessRecord> read_beside(const std::string& disk_path, const Uuid& uuid) const;

  struct Disk {
    std::string path;
    Uuid uuid;
    LogPosition position;
  };
  // These are the disks from now on, in the order of their numbers, in this run. Writes the files.
  void begin(const RunHistory& runs, const std::vector<Disk>& disks) ENCORE_EXCLUDES(mutex_);
  // The run has had a purge: once it returns, an absent disk is known to have missed it. The first
  // call writes the files, later ones do nothing.
  void note_purge() ENCORE_EXCLUDES(mutex_);
  // The log of a disk goes so far, durably. `is_answered`: a client receives the result of the
  // purge, so the next tick writes it; other purges wait for half a minute.
  void note(std::uint16_t disk, LogPosition position, bool is_answered) ENCORE_EXCLUDES(mutex_);
  // Writes what was noted. Blocks.
  void tick(MonotonicTime now);
  void finish() { save(); }
  // Why the last writing failed; empty: it did not.
  std::string error() const ENCORE_EXCLUDES(mutex_);

  static constexpr std::chrono::seconds kLongest{30};

 private:
  struct Kept {
    std::string path;  // path of the disk
    WitnessedDisk disk;
  };
  void save() ENCORE_EXCLUDES(mutex_, saving_);
  Result<void> write(const RunHistory& runs, const std::vector<Kept>& disks) const;

  const WitnessFiles files_;
  std::atomic<bool> has_purge_ = false;
  Mutex saving_;  // taken before the other
  mutable Mutex mutex_;
  RunHistory runs_ ENCORE_GUARDED_BY(mutex_);
  std::vector<Kept> disks_ ENCORE_GUARDED_BY(mutex_);
  bool is_changed_ ENCORE_GUARDED_BY(mutex_) = false;
  bool is_urgent_ ENCORE_GUARDED_BY(mutex_) = false;
  std::optional<MonotonicTime> saved_at_ ENCORE_GUARDED_BY(mutex_);
  std::string error_ ENCORE_GUARDED_BY(mutex_);
};

}  // namespace encore::disk
