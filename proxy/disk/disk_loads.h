// Loads of one disk: each reads one record on a thread of the disk's engine, and answers what wants
// it exactly once. Thread-safe.
#pragma once

#include <atomic>
#include <cstdint>
#include <expected>
#include <memory>
#include <span>
#include <vector>

#include "base/mutex.h"
#include "filter/hash.h"
#include "proxy/disk/disk_state.h"
#include "proxy/disk/engine.h"
#include "proxy/disk/record_reader.h"

namespace encore::disk {

enum class LoadEnd : std::uint8_t {
  kDone,
  kLost,  // it cannot be read, or is not what the index takes it for: the entry is gone
  kBusy,  // too many reads wait
  kStopped,
};

// A request to load a record. Owned by Disks from load() on.
class DiskLoad {
 public:
  virtual ~DiskLoad() = default;
  // On a thread of the disk's engine: header, front and key's hash are verified, and no rule is of
  // it. Reads what it wants of the body. An error: the record is lost.
  virtual std::expected<void, Damage> read(const RecordFront& front, RecordReader& reader) = 0;
  // The last call, after read() or without it; on a thread of the engine, on that of stop(), or
  // (kBusy, kStopped) within load().
  virtual void end(LoadEnd how) = 0;
  // RecordReader::Wanted::first_bytes: the size of the first read, on any thread.
  virtual std::size_t first_read_bytes() const { return RecordReader::kFirstWindowBytes; }
  // RecordReader::Wanted::body_room for a record that takes `record_bytes`. Once at most, right
  // before it is read. Why the room is given before the record is read: docs/decisions/0180.
  virtual std::span<std::byte> body_room(std::uint64_t /*record_bytes*/) { return {}; }
};

class DiskLoads {
 public:
  // All borrowed, the engine as long as load() is called.
  explicit DiskLoads(DiskState& state) : state_(state) {}

  // `owner` keeps all that is used alive until the end.
  void load(DiskEngine& engine, const filter::Hash128& key, const cache::DiskPlace& place,
            std::unique_ptr<DiskLoad> load, std::shared_ptr<void> owner);

  static constexpr std::uint64_t kFailedReadsMax = 100;  // in a row: the disk is taken out

 private:
  LoadEnd read(const filter::Hash128& key, const cache::DiskPlace& place, DiskLoad& load);
  std::expected<void, Damage> read_at(const RecordReader::Wanted& wanted, DiskLoad& load,
                                      bool& is_dead);
  // One for each read at a time.
  std::unique_ptr<RecordReader> take_reader() ENCORE_EXCLUDES(mutex_);
  void give_back(std::unique_ptr<RecordReader> reader) ENCORE_EXCLUDES(mutex_);

  DiskState& state_;
  Mutex mutex_;
  std::vector<std::unique_ptr<RecordReader>> readers_ ENCORE_GUARDED_BY(mutex_);
};

}  // namespace encore::disk
