// Drives a kernel with disks and the naive model of it (disk_model.h) through random sequences of
// everything that a caller can do, and lets it crash on the way.
#pragma once

#include <set>

#include "tests/cache/disk_model.h"

namespace encore::cache::test {

inline constexpr std::uint64_t kKeys = 40;
inline constexpr std::uint32_t kVariants = 4;
inline constexpr std::uint64_t kParts = 48;

struct Seen {
  std::uint64_t hits = 0;
  std::uint64_t moves = 0;
  std::uint64_t drops = 0;
  std::uint64_t superseded = 0;
  std::uint64_t tombstones = 0;
  std::uint64_t found_again = 0;
  std::uint64_t purged = 0;
  std::uint64_t alone = 0;    // stored on disk only
  std::uint64_t refused = 0;  // not even that
  std::uint64_t parts_found = 0;
  std::uint64_t parts_moved = 0;
  std::uint64_t parts_dropped = 0;
  std::uint64_t parts_found_again = 0;
  std::set<DiskOutcome> outcomes;
  std::set<DiskOutcome> part_outcomes;
};

class Driver {
 public:
  Driver(const KernelOptions& options, std::uint64_t seed);

  // One operation; whether kernel and model did the same.
  bool step();
  // A crash now: what a start finds is what the last commit of its name stored, and all that was
  // written is found.
  bool recovers();

  Seen seen;
  std::uint64_t last() const { return last_; }

 private:
  class Purge;

  bool one();
  bool rare(const Named& name);
  bool counts_are_equal() const;
  bool recovers_object(Kernel& again, const Named& name);
  bool recovers_part(Kernel& again, const Named& name);
  // Whether a start has to find our own record.
  bool is_safe(const Named& name) const;
  bool is_useful(const DiskRecord& line) const;
  Named random_name();
  Named random_part();
  std::uint32_t names_bytes(std::uint16_t number) const;

  // --- requests

  bool lookup(const Named& name);
  // A lookup removes what it passes by: all variants of the key that are latest stored first.
  void forget_expired(const Named& name);
  bool admits(std::uint64_t id);
  Stored random_stored(const Named& name);
  bool commit(const Named& name);
  bool commit_alone(const Named& name);
  bool places(const Named& name, const Stored& stored, const DiskDecision& decision);
  // The kernel's required decision for a record that only its size speaks against.
  DiskOutcome expected_of(const SegmentLog::Record& record, const DiskDecision& decision,
                          std::optional<PlacedRecord>& placed);
  // Opens the segment on the platter.
  bool is_as_placed(const DiskDecision& decision, const std::optional<PlacedRecord>& placed);
  // Counts that the record has left the index for this reason.
  void count_loss(const Named& name, DiskLoss loss);
  // Held with five digits of what is beyond freshness; here at most 30 seconds are.
  static MonotonicTime kept_of(const Stored& stored);
  bool promote();
  void make_stale(DiskModel::OnDisk& entry) const;
  bool freshen(const Named& name);

  // --- parts

  bool place_part(const Named& name);
  bool find_part(const Named& name);

  // --- removal (disk_driver_removals.cc)

  bool invalidate(std::uint64_t id);
  bool remove(const Named& name);
  void forget(const Named& name);
  bool mark_stale(std::uint64_t id);
  bool purge_some();
  bool lose();

  // --- writing and reclaiming (disk_driver_segments.cc)

  bool write();
  bool finish(const Platter::Record& record, bool done);
  bool reclaim();
  bool moves(const DiskReclaim& step, const std::vector<DiskPlace>& being_read);
  // Whether it is worth a move.
  bool is_warm(const Named& name, const DiskModel::OnDisk& entry);
  bool drops(std::uint16_t disk, const DiskReclaim& step);
  bool drop(const Named& name, const DiskReclaim& step);
  // Whether it had to stay, though it was worth a move: over the cap, or no place for it.
  bool finds_no_place(std::uint16_t disk, const DiskPlace& place) const;
  bool frees(std::uint16_t disk, const DiskReclaim& step);
  bool resize();

  DiskModel model_;
  std::mt19937_64 random_;
  std::unique_ptr<Kernel> kernel_;
  Platter platter_;
  MonotonicTime now_ = at(1000);
  std::vector<std::uint16_t> names_;
  std::map<Named, std::uint64_t> truth_;  // the commit that is the latest, and valid
  std::vector<Platter::Record> pending_;  // placed, not written
  std::vector<Platter::Record> copies_;   // moved, not written
  std::vector<std::pair<Named, DiskPlace>> read_;
  std::map<std::uint16_t, std::uint64_t> moved_;
  std::map<std::uint16_t, std::uint32_t> shard_;
  std::uint64_t last_ = 0;
  std::uint64_t next_payload_ = 0;
  std::uint64_t commits_ = 0;
  DiskCounters counts_;  // the kernel's, as they must be
  DiskVersion newest_ = 0;
};

}  // namespace encore::cache::test
