// A kernel's and a store's stand-in: drives a disk through random writes, replacements, purges,
// moves and turns, and tells the history what it has promised. Goes on where a start has found the
// disk. Thread-compatible.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "cache/segment_log.h"
#include "proxy/disk/file.h"
#include "proxy/disk/purge_log.h"
#include "proxy/disk/segment_writer.h"
#include "tests/disk/model/history.h"
#include "tests/disk/model/start.h"
#include "tests/disk/model/watched_file.h"

namespace encore::disk {

struct DriverOptions {
  std::uint64_t disk_bytes = 0;
  std::uint64_t segment_bytes = 0;
  WallSeconds now = 1;  // when it is opened
};

class Driver {
 public:
  // Opens the disk, which makes it if it is blank, and takes over its contents. `after_write` is
  // called after each write that the disk received. All borrowed.
  Driver(File& file, const DriverOptions& options, History& history, std::uint64_t seed,
         const std::function<void()>& after_write = {});

  // Why there is nothing to drive; empty: there is.
  const std::string& refusal() const { return refusal_; }
  // One thing that a proxy does with a disk.
  void step();
  // Gives up what lies beyond so many segments, as a proxy does at a start with a smaller disk.
  // False: the device failed. REQUIRES: called before any step().
  bool shrink(std::uint32_t segments);
  // A clean stop. The next start must find all resident objects, unless this returns false: the
  // device failed.
  bool stop();
  // Key text -> version.
  std::map<std::string, cache::DiskVersion> resident() const;
  const Superblock& superblock() const { return superblock_; }

  struct Counts {
    std::uint64_t writes = 0;
    std::uint64_t parts = 0;
    std::uint64_t abandoned = 0;  // bodies in parts, half-way
    std::uint64_t freshened = 0;
    std::uint64_t purges = 0;
    std::uint64_t moved = 0;
    std::uint64_t moved_parts = 0;
    std::uint64_t turns = 0;
    std::uint64_t failed = 0;  // writes and purges, for the device
  };
  const Counts& counts() const { return counts_; }

 private:
  // Place of a record.
  struct Lies {
    cache::DiskPlace place;
    std::uint64_t sequence = 0;
    bool is_at(const cache::DiskPlace& other) const {
      return place.segment == other.segment && place.unit == other.unit;
    }
  };
  struct Entry {
    std::shared_ptr<const Committed> object;
    Lies lies;
  };
  struct Part {
    std::uint64_t body = 0;
    Lies lies;
  };
  struct Less {
    bool operator()(const filter::Hash128& a, const filter::Hash128& b) const {
      return a.lo != b.lo ? a.lo < b.lo : a.hi < b.hi;
    }
  };

  void adopt(Start& start);
  std::shared_ptr<Committed> make_object(const std::string& key);
  void write_object(bool in_parts);
  // False: no space, or aborted half-way; the written parts stay.
  bool write_parts(const Committed& object);
  bool is_whole(const Committed& object) const;
  void freshen();
  void leave_unwritten();
  void purge();
  bool append_purges();
  // Nothing: no room.
  std::optional<Lies> write(const Record& record, cache::WriteReason why);
  bool reclaim();
  void reclaim_entries(std::uint32_t segment, bool has_older);
  void reclaim_parts(std::uint32_t segment);
  // As the disk has it; nothing: it cannot be read, or no room.
  std::optional<Lies> move(const Lies& from, const filter::Hash128& key);
  void drop(const std::string& key);
  // Nothing that there was of this key before comes back, from within a second on.
  void add_tombstone(const filter::Hash128& key);
  void drop_part(const filter::Hash128& key);
  // Collects the writer's reports, and, between the steps, acts upon them.
  void collect();
  void take_written();
  void failed(const cache::DiskPlace& place);
  std::string some_key();

  WatchedFile file_;
  History& history_;
  std::mt19937_64 random_;
  Superblock superblock_;
  std::string refusal_;
  std::unique_ptr<PurgeLog> purges_;
  std::unique_ptr<SegmentWriter> writer_;
  std::unique_ptr<cache::SegmentLog> log_;
  // The entries of an index: objects, and parts by their keys, with or without a head.
  std::map<std::string, Entry> entries_;
  std::map<filter::Hash128, Part, Less> parts_;
  std::optional<std::uint32_t> emptied_;  // a segment that is reclaimed, and not erased yet
  std::vector<Purge> unsaid_;             // that are due within a second
  cache::DiskVersion version_ = 0;
  std::uint64_t sequence_ = 0;
  // Written records and their keys, until the next sync makes them durable.
  std::map<cache::DiskVersion, filter::Hash128> keys_;
  std::vector<SegmentWriter::Written> unsynced_;
  std::vector<SegmentWriter::Written> failed_;
  Counts counts_;
};

}  // namespace encore::disk
