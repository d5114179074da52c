// LiveRecords: reports all records of a disk as a start would find them: the newest segment first,
// and which of them count. For a key and variant the newest counts, if no purge covers it.
//
// Memory: 24 to 48 bytes an object, the purged keys, one footer. Blocks in the device;
// thread-compatible.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "proxy/disk/cli/inspected_disk.h"
#include "proxy/disk/cli/key_set.h"
#include "proxy/disk/cli/part_index.h"
#include "proxy/disk/cli/saved_text.h"
#include "proxy/disk/footer.h"
#include "proxy/disk/record.h"
#include "proxy/disk/segment_bytes.h"

namespace encore::disk {

enum class RecordState : std::uint8_t {
  kObject,    // a stored response that a start would serve
  kPart,      // part of a body, of whichever object
  kReplaced,  // there is a newer one
  kPurged,
  kIncomplete,  // parts of its body are gone, which a start finds when it is asked for
  kUnreadable,  // damaged, or not to be read
};

struct VisitedRecord {
  SegmentHeader segment;
  RecordLine line;
  RecordState state = RecordState::kReplaced;
  // Only for kObject and kIncomplete; valid until the call returns.
  const RecordFront* front = nullptr;
  PartIndex::PartCount parts = {};  // parts of those
};

struct VisitedSegment {
  SegmentHeader header;
  bool has_footer = false;
  std::uint64_t footer_bytes = 0;
  std::uint32_t records = 0;
};

class RecordVisitor {
 public:
  // Within a segment: first what may be an object, then the rest, each in the order of their
  // places. False: enough was seen, also of this segment.
  virtual bool on_record(const VisitedRecord& record) = 0;
  // All records of the segment were reported. False: the visitor needs no more.
  virtual bool on_segment(const VisitedSegment& segment) = 0;

 protected:
  ~RecordVisitor() = default;
};

class LiveRecords {
 public:
  // `disk` and `parts` are borrowed. `purged`: whether a purge by tag or prefix is of a record.
  LiveRecords(const InspectedDisk& disk, PartIndex& parts, IsPurged purged = is_purged)
      : disk_(disk), parts_(parts), is_purged_(purged) {}

  // If a process overwrites segments at the same time, some of their records are left out, or
  // unreadable. Errors: the purges cannot be read, and without them no record of the disk is known
  // to count.
  Result<void> visit(RecordVisitor& visitor);

  // After visit().
  const KnownPurges& purges() const { return purges_; }
  const std::vector<SegmentHeader>& headers() const { return headers_; }
  // Segments that were.
  std::uint32_t overwritten() const { return overwritten_; }

 private:
  bool visit_segment(const SegmentHeader& header, RecordVisitor& visitor);
  bool visit_newest(const RecordLine& line, SegmentBytes& bytes, const SegmentHeader& header,
                    RecordVisitor& visitor);
  // Which of the lines is the one that counts of its key and variant, in this segment.
  std::vector<bool> newest_of(std::span<const RecordLine> lines) const;
  RecordState judge(const RecordLine& line, const RecordFront& front) const;
  bool is_purged_key(const RecordLine& line) const;

  const InspectedDisk& disk_;
  PartIndex& parts_;
  IsPurged is_purged_;
  KnownPurges purges_;
  std::vector<SegmentHeader> headers_;
  KeySet told_;  // keys with their variants
  std::uint32_t overwritten_ = 0;
};

}  // namespace encore::disk
