// RefreshBackoff: keys whose refresh in the background has failed, and until when nobody tries
// again: a second after the first failure, twice as long after each further one, at most a minute.
// Meanwhile the stale response is served as before. A table of fixed size: a key takes the place of
// another one, which is then tried sooner. Thread-safe; 16 locks. Why no key of the configuration:
// docs/decisions/0402.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "base/mutex.h"
#include "base/time.h"
#include "filter/hash.h"

namespace encore::server {

class RefreshBackoff {
 public:
  static constexpr std::size_t kSlots = 8192;
  static constexpr Nanoseconds kFirst = std::chrono::seconds(1);
  static constexpr Nanoseconds kLongest = std::chrono::minutes(1);

  // True if a refresh may begin.
  bool may_begin(const filter::Hash128& key, MonotonicTime now) const;
  void note_failure(const filter::Hash128& key, MonotonicTime now);
  void note_success(const filter::Hash128& key);

 private:
  static constexpr std::size_t kShards = 16;
  struct Slot {
    std::uint64_t tag = 0;  // 0: free
    MonotonicTime until{};
    Nanoseconds pause{};
  };
  struct Shard {
    mutable Mutex mutex;
    std::array<Slot, kSlots / kShards> slots ENCORE_GUARDED_BY(mutex){};
  };
  static std::uint64_t tag_of(const filter::Hash128& key) { return key.lo == 0 ? 1 : key.lo; }
  static std::size_t slot_of(const filter::Hash128& key) {
    return key.hi / kShards % (kSlots / kShards);
  }

  std::array<Shard, kShards> shards_;
};

}  // namespace encore::server
