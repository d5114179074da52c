// Writer of one disk: takes waiting records in the order of their places, reports results to the
// kernel, and reclaims segments. A moved record is read from its old place, and verified, when its
// turn to be written comes. After five failures in a row writes pause: records placed meanwhile are
// reported as failed.
//
// Confined to what writes the disk; blocks in the device.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include "proxy/disk/aligned_buffer.h"
#include "proxy/disk/disk_log.h"
#include "proxy/disk/disk_state.h"
#include "proxy/disk/record_reader.h"
#include "proxy/disk/segment_writer.h"
#include "proxy/disk/write_queue.h"

namespace encore::disk {

class DiskWriter {
 public:
  // All borrowed.
  // `waiting_bytes_max`: of what waits; a sixteenth of it is written in one step, at most
  // kBatchBytes.
  DiskWriter(DiskState& state, DiskLog& log, WriteQueue& queue, SegmentWriter::FoundState found,
             std::uint64_t waiting_bytes_max = kBatchBytes * kStepsMax)
      : state_(state),
        log_(log),
        queue_(queue),
        segments_(state.file, state.superblock, std::move(found)),
        reader_(state.file, state.superblock),
        step_bytes_(std::min(kBatchBytes, waiting_bytes_max / kStepsMax)) {}

  // A part of what waits; true: more does.
  bool work();
  // Work that is due each second; as work().
  bool tick();
  // The end: writes the waiting records, and makes them durable. A record that cannot be written is
  // dropped, as always. False: the end of a segment may not be durable, or purges of it.
  bool finish();

  // For another process that takes the disk over: writes the waiting records, makes them durable,
  // and writes nothing more until release(). False: they may not be durable; it writes on then.
  bool hold();
  // It is this process' disk from the start on, but not yet.
  void begin_held() { is_held_ = true; }
  void release() { is_held_ = false; }
  // Records that were placed and will not be written by this process. REQUIRES: it is held.
  std::vector<Purge> take_unwritten();

  static constexpr std::uint64_t kBatchBytes = 4ULL << 20U;
  static constexpr std::uint64_t kStepsMax = 16;
  static constexpr std::uint64_t kFailedWritesMax = 5;  // in a row
  static constexpr std::chrono::seconds kPause{30};

 private:
  struct Added {
    filter::Hash128 key;
    cache::DiskPlace place;
    bool is_move = false;
  };

  // Writes records from the queue; true: there were some.
  bool drain(std::uint64_t bytes_max);
  void write(PendingWrite wanted);
  // False: it is not to be moved, or cannot be.
  bool move(PendingWrite& wanted);
  std::expected<std::span<const std::byte>, Damage> read_body(const RecordFront& front);
  void add(const Record& record, const PendingWrite& wanted);
  void flush();
  // Tells what the segments' writer knows.
  void report();
  void failed(const filter::Hash128& key, const cache::DiskPlace& place);
  void give_up(PendingWrite& wanted);
  bool can_write();

  // Steps of the kernel's reclaiming; true: some of what is moved by them waits.
  bool reclaim();
  bool put_moves(const cache::DiskReclaim& step);
  cache::DiskReclaim reclaim_step();
  // Adds the places of parts that readers want, in the segment that is the next to go.
  void add_wanted(std::vector<cache::DiskPlace>& places);
  void add_tombstone(const cache::DiskReclaim& step);
  // The key of a record that lies in a finished segment, by its front or the segment's footer.
  // Nothing: neither can be read.
  std::optional<filter::Hash128> key_at(const cache::DiskPlace& place);
  // The segment whose records are dropped or moved, if nothing is left to do in it.
  void free_reclaimed();

  MonotonicTime now() const { return state_.common->clocks.monotonic(); }

  DiskState& state_;
  DiskLog& log_;
  WriteQueue& queue_;
  bool is_held_ = false;
  SegmentWriter segments_;
  RecordReader reader_;  // reader of moved records
  const std::uint64_t step_bytes_;
  AlignedBuffer body_;
  std::deque<Added> added_;  // in the order of their places
  std::size_t moves_added_ = 0;
  bool has_large_ = false;  // since the last flush
  std::uint64_t unflushed_bytes_ = 0;
  std::optional<MonotonicTime> paused_until_;
  std::uint64_t failures_before_ = 0;  // the last pause ended
  struct Reclaimed {
    std::uint32_t segment = 0;
    std::uint64_t sequence = 0;
  };
  std::optional<Reclaimed> reclaimed_;  // the kernel has nothing in it any more
};

}  // namespace encore::disk
