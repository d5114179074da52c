// Recovery: reads the contents of a disk at a start. It reports the purges first, then the
// segments, the newest first, one a step, so that requests may be served from the first moment. A
// record that is not reported yet is a miss, and a reported one is never older than one that is
// reported later for its key. A segment without a sound footer is scanned record by record.
//
// Memory: one footer, and the lines of a second, the purged keys, a window of 1 MiB. Blocks in the
// device; thread-compatible but for read_ahead().
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "base/error.h"
#include "proxy/disk/file.h"
#include "proxy/disk/footer.h"
#include "proxy/disk/footer_ahead.h"
#include "proxy/disk/format.h"
#include "proxy/disk/purge_log.h"
#include "proxy/disk/segment_scan.h"
#include "proxy/disk/segment_writer.h"

namespace encore::disk {

// More than are given between two writes, and so few that 2^24 starts have versions below 2^56.
inline constexpr cache::DiskVersion kVersionsLost = std::uint64_t{1} << 32U;

struct FoundRecords {
  std::uint32_t segment = 0;
  std::uint64_t sequence = 0;
  WallSeconds opened_at = 0;
  // In the order of their places; none that a purge of its key covers. If two have one key and
  // variant the higher version counts, wherever it lies; of two with the same version, the first
  // reported.
  std::span<const RecordLine> lines;
  const NameTable& names;  // the table of their `names`
};

class RecoverySink {
 public:
  // A purge by a pattern: the reader of a record checks whether it matches.
  virtual void on_rule(const Purge& purge) = 0;
  virtual void on_records(const FoundRecords& records) = 0;
  // The footer of the next segment may be read ahead: read_ahead() on another thread. Within
  // step().
  virtual void on_ahead() {}

 protected:
  ~RecoverySink() = default;
};

struct RecoveryCounts {
  std::uint64_t records = 0;          // told
  std::uint64_t purged = 0;           // not told, for a purge
  std::uint32_t segments = 0;         // with records of ours
  std::uint32_t scanned = 0;          // those without a sound footer
  std::uint32_t unreadable = 0;       // among all: the device failed, or nothing is sound
  std::uint64_t damaged_records = 0;  // in scanned ones: began, and were not whole
};

// If a header could not be read, versions may be above all that are known. The clock gives one that
// most likely is above them, too: nothing allocates 2^22 a second for long.
inline constexpr unsigned kVersionsASecond = 22;

struct RecoveryOptions {
  WallSeconds now = 0;  // see kVersionsASecond
  // A footer for what was scanned, so that the next start need not; not where one only looks.
  bool writes_footers = true;
  // These footers wait for write_footers(), for another process may still write the segments.
  bool defers_footers = false;
  // Lines reported in one call. The more, the more of them are in the same memory of the index.
  std::size_t batch = 131072;
};

class Recovery {
 public:
  // All borrowed.
  Recovery(File& file, const Superblock& superblock, PurgeLog& purges, RecoverySink& sink,
           const RecoveryOptions& options = {});

  // Reads the purges and the segments' headers. Errors: those of PurgeLog::load().
  Result<void> begin();
  // Tells the next segment's records; false: that was all. REQUIRES: begin() went well.
  bool step();
  // Reads the footer that the next step() needs. On any thread; nothing where it is read already,
  // or none is left.
  void read_ahead() { ahead_.read(); }
  // Writes the footers that were deferred.
  void write_footers();

  // Sequences of the segments' headers, for the kernel; 0: free.
  const std::vector<std::uint64_t>& sequences() const { return sequences_; }
  // For the writer. Its version_max is known after the first step(), and what is new gets a higher
  // one: it is far above all that was found, for a crash may have taken higher ones, or hidden them
  // for a while.
  SegmentWriter::FoundState found() const;
  const RecoveryCounts& counts() const { return counts_; }

 private:
  void read_headers();
  void write_footer(const SegmentHeader& header, const Footer& footer, std::uint64_t end);
  struct DeferredFooter {
    SegmentHeader header;
    Footer footer;
    std::uint64_t end = 0;
  };
  // The footer of the newest header that is left is wanted next.
  void want_next();
  void tell(const SegmentHeader& header, Footer footer);

  struct HashKey {
    std::size_t operator()(const filter::Hash128& key) const {
      return static_cast<std::size_t>(key.lo);
    }
  };

  File& file_;
  Superblock superblock_;
  PurgeLog& purges_;
  RecoverySink& sink_;
  RecoveryOptions options_;
  std::unordered_map<filter::Hash128, cache::DiskVersion, HashKey> purged_;
  std::vector<std::uint64_t> sequences_;
  std::vector<SegmentHeader> headers_;  // headers still to be reported, the newest last
  bool has_unknown_ = false;            // a header could not be read
  cache::DiskVersion version_max_ = 0;
  FooterAhead ahead_;
  std::vector<RecordLine> spare_;  // memory for lines
  RecoveryCounts counts_;
  std::vector<DeferredFooter> deferred_;
};

}  // namespace encore::disk
