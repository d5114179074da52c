// DiskEngine: runs the blocking work of one disk. Reads run side by side on a pool of threads.
// Writes run one after the other on a thread of their own, in the order of submission except urgent
// ones (a purge with a waiting client). The waiting work is bounded in bytes, and a submission
// beyond it is refused immediately: only the disk's own threads ever wait for it.
//
// Thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>

#include "base/time.h"

namespace encore::disk {

enum class DiskLane : std::uint8_t {
  kRead,
  kWrite,
  kUrgentWrite,  // before all of kWrite that has not begun
};

enum class Submitted : std::uint8_t {
  kAccepted,
  kFull,     // too much waits in this lane
  kStopped,  // or is about to
};

enum class DiskRun : std::uint8_t {
  kRun,
  kCancelled,  // the engine stopped before its turn: nothing is to be done but to say so
};

// Called once, on a thread of the engine, or on that of stop() where it is cancelled. It says
// itself, to whom it concerns, that it is done. Movable into, copied never.
using DiskTask = std::move_only_function<void(DiskRun)>;

class DiskEngine {
 public:
  virtual ~DiskEngine() = default;
  // `bytes`: the memory that the task holds while it waits, or is going to read. A task that is not
  // accepted is destroyed without a call.
  virtual Submitted submit(DiskLane lane, std::uint64_t bytes, DiskTask task) = 0;
  // Nothing is accepted any more. Reads that have not begun are cancelled, writes are done as long
  // as the time lasts, then cancelled too. Returns when nothing runs any more, or at the end of the
  // time: what a dead disk does not give back is left behind then, with all that it uses. False:
  // something was. Again: nothing.
  virtual bool stop(Nanoseconds patience) = 0;
  // Waiting, and not begun.
  virtual std::uint64_t waiting_bytes(DiskLane lane) const = 0;
};

struct EngineOptions {
  std::uint32_t read_threads = 8;
  std::uint64_t read_bytes_max = 64ULL << 20U;   // that wait
  std::uint64_t write_bytes_max = 64ULL << 20U;  // sum of both lanes
  // So much has to wait for its writer to be woken before a second is over: a thread's waking costs
  // more than writing a small record.
  std::uint64_t write_batch_bytes = 256ULL << 10U;
};

// Its destructor stops it without patience.
std::unique_ptr<DiskEngine> make_threaded_engine(const EngineOptions& options);

// Does everything in submit(), on the caller's thread, so that a run is the same each time. Tasks
// that submit further ones see them done before submit() returns.
std::unique_ptr<DiskEngine> make_inline_engine();

}  // namespace encore::disk
