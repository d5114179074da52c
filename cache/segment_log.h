// SegmentLog: the segments of one disk as a ring: the places of records, the segment to open next,
// and the one to reclaim next. Places are a pure function of the order of calls. Knows no keys; the
// caller reports when a record has died. Thread-compatible.
//
// A segment is free, then active (one a disk), then sealed; the oldest sealed one is reclaimed and
// is free again. Segments beyond the end of a disk that was made smaller are reclaimed before any
// other, and are then gone.
#pragma once

#include <bitset>
#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <vector>

#include "cache/disk_place.h"

namespace encore::cache {

// The reason for a write. The last free segment is for moved records: else a full disk could not be
// reclaimed without losing what is worth keeping.
enum class WriteReason : std::uint8_t { kAdmit, kMove };

struct PlacedRecord {
  DiskPlace place;
  SegmentTurn turn;
  std::uint64_t order = 0;  // number among all records placed on this disk: 1, 2, ...
};

class SegmentLog {
 public:
  struct Settings {
    std::uint16_t disk = 0;
    std::uint32_t segments = 0;       // 1 to kSegmentsMax
    std::uint64_t segment_bytes = 0;  // a power of two, kSegmentBytesMin to kSegmentBytesMax
  };
  enum class State : std::uint8_t { kFree, kActive, kSealed, kReclaimed, kGone };
  struct Segment {
    State state = State::kFree;
    std::uint32_t used_units = 0;    // from its beginning, in kDiskUnit; of what was placed here
    std::uint64_t sequence = 0;      // 0: never opened
    std::uint32_t records = 0;       // dead ones included
    std::uint32_t live_records = 0;  // in the index
    std::uint64_t bytes = 0;         // the room of all records
    std::uint64_t live_bytes = 0;
  };

  explicit SegmentLog(const Settings& settings);

  // The next place for a record of so many bytes; nothing where no segment is free for it, or it
  // fits none at all (then too where all are free). Footers keep their room.
  struct Record {
    std::uint64_t bytes = 0;
    std::uint16_t names = 0;        // number of the names that it varies by, below kDiskNamesMax
    std::uint32_t names_bytes = 0;  // bytes of their text
    WriteReason why = WriteReason::kAdmit;
  };
  std::optional<PlacedRecord> place(const Record& record);
  // True if an empty segment takes such a record.
  bool fits_empty(const Record& record) const;

  // A record that is at this place is in the index no more.
  void mark_dead(const DiskPlace& place);
  // A record that was found there at the start; `is_live`: it is in the index now.
  void found(const DiskPlace& place, bool is_live);

  // The sealed segment that goes next: beyond the end, else of the lowest sequence.
  std::optional<std::uint32_t> oldest() const;
  // The sealed one of the lowest sequence.
  std::optional<std::uint32_t> oldest_in_order() const {
    return sealed_.empty() ? std::nullopt : std::optional(sealed_.front());
  }
  // True if no segment has a higher sequence.
  bool is_newest(std::uint32_t segment) const {
    return !active_ && !sealed_.empty() && sealed_.back() == segment;
  }
  // REQUIRES: the segment is sealed.
  void begin_reclaim(std::uint32_t segment);
  // Its records are dropped or were moved: it is free. False where it is not being reclaimed or has
  // live records.
  bool end_reclaim(std::uint32_t segment);

  // Nothing more goes into the active segment, if there is one.
  void seal();
  // More or fewer segments, from 1 on. The active one is sealed where it is beyond the end.
  void resize(std::uint32_t segments);
  // Attaches the segments found at the start: the sequence of each, 0 for none. Segments with one
  // are sealed; the next turn has the highest sequence plus two, for one more may have begun.
  // REQUIRES: nothing was placed; no sequence twice.
  void attach(std::span<const std::uint64_t> sequences);
  bool was_used() const { return sequence_ != 0; }
  // The highest that was given, or found: what is placed from now on is in no turn before it.
  std::uint64_t sequence() const { return sequence_; }

  // As wanted, and with those beyond the end that are not yet gone.
  std::uint32_t segments() const { return wanted_; }
  std::uint32_t held_segments() const { return static_cast<std::uint32_t>(segments_.size()); }
  std::uint32_t free_segments() const { return free_; }
  std::uint64_t segment_bytes() const { return settings_.segment_bytes; }
  std::uint64_t live_bytes() const { return live_bytes_; }
  std::uint64_t live_records() const { return live_records_; }
  // REQUIRES: segment < held_segments().
  const Segment& segment(std::uint32_t segment) const { return segments_[segment]; }
  std::uint64_t memory_bytes() const { return segments_.capacity() * sizeof(Segment); }

 private:
  // The fill of a segment, for a number of records and names. Returns the place of a further
  // record, in kDiskUnit; nothing if it does not fit.
  struct Filled {
    std::uint32_t used_units = kSegmentHeaderBytes / kDiskUnit;
    FooterContent footer;
  };
  std::optional<std::uint32_t> unit_in(const Filled& filled, const Record& record,
                                       bool has_names) const;
  bool open_next(WriteReason why);
  void drop_gone();

  Settings settings_;
  std::uint32_t wanted_;
  std::vector<Segment> segments_;
  std::uint32_t free_;
  std::uint32_t cursor_ = 0;  // start of the search for a free segment
  std::optional<std::uint32_t> active_;
  std::uint32_t names_bytes_ = 0;         // in the active one's footer
  std::bitset<kDiskNamesMax> has_names_;  // names with their text in it
  bool turned_ = false;                   // the active one was opened, but not told yet
  std::deque<std::uint32_t> sealed_;      // by sequence
  std::uint64_t sequence_ = 0;            // the highest
  std::uint64_t order_ = 0;               // order of the last record placed
  std::uint64_t live_bytes_ = 0;
  std::uint64_t live_records_ = 0;
};

}  // namespace encore::cache
