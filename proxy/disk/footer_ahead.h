// FooterAhead: reads the footer of the segment that comes next, on another thread, while the
// records of the one before go into the index (docs/decisions/0622). A thread that takes
// a footer which nobody reads yet reads it itself, so that nothing depends on the other one.
#pragma once

#include <condition_variable>
#include <optional>
#include <vector>

#include "base/mutex.h"
#include "proxy/disk/file.h"
#include "proxy/disk/footer.h"
#include "proxy/disk/format.h"
#include "proxy/disk/segment_scan.h"

namespace encore::disk {

class FooterAhead {
 public:
  // Both are borrowed.
  FooterAhead(File& file, const Superblock& superblock) : file_(file), superblock_(superblock) {}

  // The segment whose footer take() returns next, and memory for its lines. REQUIRES: what was
  // wanted before has been taken.
  void want(const SegmentHeader& header, std::vector<RecordLine> lines) ENCORE_EXCLUDES(mutex_);
  // Reads that footer, on any thread. Nothing to do: none is wanted, or somebody reads it already.
  // Blocks in the device.
  void read() ENCORE_EXCLUDES(mutex_);
  // Returns it when it is read, as read_footer() does. REQUIRES: one is wanted; one thread at a
  // time.
  std::optional<Footer> take() ENCORE_EXCLUDES(mutex_);
  // Frees its memory. REQUIRES: nothing is wanted.
  void release() ENCORE_EXCLUDES(mutex_);

 private:
  enum class State : std::uint8_t { kIdle, kWanted, kReading, kRead };

  File& file_;
  const Superblock& superblock_;
  Mutex mutex_;
  std::condition_variable_any read_;
  State state_ ENCORE_GUARDED_BY(mutex_) = State::kIdle;
  // They belong to the reading thread in kReading.
  SegmentHeader header_;
  FooterBuffer room_;
  std::optional<Footer> footer_;
};

}  // namespace encore::disk
