// VisitedLog: a disk as a log, without bytes: objects in the order in which they were written, a
// counter of visits from 0 to 7 for each, and the rule of re-insertion when the oldest segment is
// reclaimed. Objects with two or more visits move to the head, most visits first, with half of
// their visits, until half a segment was moved; the others are dropped.
//
// A segment is a number of bytes of the log here: objects have no heads and no alignment, and one
// that is longer than a segment lies in several. Thread-compatible, deterministic.
#pragma once

#include <cstdint>
#include <deque>
#include <unordered_map>
#include <vector>

#include "base/time.h"
#include "cache/waiting_queue.h"
#include "filter/hash.h"

namespace encore::cache {

// The reason of an object's first write.
enum class WrittenFor : std::uint8_t {
  kAdmission,  // its key was known, or the rule in force writes all
  kFill,       // it left the memory while the disk had never been full
};

struct LoggedObject {
  filter::Hash128 key{};
  std::uint64_t size_bytes = 0;
  MonotonicTime fresh_until = MonotonicTime::max();
  std::uint8_t visits = 0;
  bool was_visited = false;  // ever since its first write
  bool filled = false;       // that was WrittenFor::kFill
};

class VisitedLog {
 public:
  static constexpr std::uint8_t kVisitsMax = 7;
  static constexpr std::uint8_t kMoveVisits = 2;     // that a move takes
  static constexpr std::uint64_t kLargestShare = 8;  // no object is larger than an eighth
  // Fewer objects in a segment make the choice among them a poor one.
  static constexpr std::uint64_t kSegmentObjects = 8;

  struct Settings {
    std::uint64_t size_bytes = 0;
    std::uint64_t segment_bytes = 0;
    double move_share = 0.5;  // share of a segment
  };
  // Sums over the life of the log.
  struct Counts {
    std::uint64_t first_bytes = 0;  // first bytes, for kAdmission
    std::uint64_t fill_bytes = 0;
    std::uint64_t moved_bytes = 0;
    std::uint64_t objects_written = 0;  // without moves
    std::uint64_t objects_dropped = 0;
    // Dropped objects that the filter had admitted, and how many of those were hit on disk. If most
    // were hit, admission pays.
    std::uint64_t admitted_dropped = 0;
    std::uint64_t admitted_visited = 0;
    std::uint64_t reclaims = 0;
    std::uint64_t written_bytes() const { return first_bytes + fill_bytes + moved_bytes; }
    friend bool operator==(const Counts&, const Counts&) = default;
  };

  explicit VisitedLog(const Settings& settings) : settings_(settings) {}

  // The object of the key, or null. Valid until the next write() or erase().
  LoggedObject* find(const filter::Hash128& key);
  static void visit(LoggedObject& object);
  bool takes(std::uint64_t size_bytes) const {
    return size_bytes <= settings_.size_bytes / kLargestShare;
  }
  // Writes an object at the head, without visits; reclaims segments until it fits. REQUIRES:
  // takes() its size, and the key is not in the log.
  void write(const LoggedObject& object, WrittenFor why);
  // Removes the key's object, for a purge; its bytes stay until their segment is reclaimed.
  bool erase(const filter::Hash128& key);

  std::uint64_t size_bytes() const { return settings_.size_bytes; }
  std::uint64_t objects() const { return places_.size(); }
  std::uint64_t live_bytes() const { return live_bytes_; }
  bool has_been_full() const { return counts_.reclaims != 0; }
  const Counts& counts() const { return counts_; }
  std::uint64_t memory_bytes() const;
  // Visits each object, oldest write first.
  template <typename Visitor>
  void each(Visitor visitor) const {
    for (const Record& record : records_) {
      if (!record.erased) visitor(record.object);
    }
  }

 private:
  struct Record {
    LoggedObject object;
    bool erased = false;
  };
  void append(const LoggedObject& object);
  void reclaim();
  std::uint64_t oldest_segment_bytes() const;

  Settings settings_;
  std::deque<Record> records_;
  std::uint64_t first_ = 0;  // number of the first record
  std::unordered_map<filter::Hash128, std::uint64_t, KeyPlacing> places_;  // number of the record
  std::uint64_t used_bytes_ = 0;                                           // erased ones too
  std::uint64_t live_bytes_ = 0;
  Counts counts_;
};

}  // namespace encore::cache
