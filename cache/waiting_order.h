// WaitingOrder: the entries of a shard that are on probation, in the order in which they came. No
// hit changes it. Arrivals have numbers of a count that all shards share, so that the oldest one of
// all can be found without their locks. Thread-compatible, confined to its shard.
#pragma once

#include <cstdint>
#include <deque>

#include "base/time.h"
#include "cache/entry_slab.h"

namespace encore::cache {

struct Arrival {
  std::uint64_t number = 0;  // from 1
  MonotonicTime since{};
};

class WaitingOrder {
 public:
  // The slab is borrowed; an entry that waits has its number where others have their links.
  explicit WaitingOrder(EntrySlab& slab) : slab_(slab) {}

  // The hot half of the entry is complete. REQUIRES: the number is above all that came before.
  void insert(EntryRef ref, const Arrival& arrival);
  void remove(EntryRef ref);
  // Its charge has become another one.
  void resized(std::uint64_t before, std::uint64_t after) { bytes_ += after - before; }

  bool empty() const { return slots_.empty(); }
  // REQUIRES: not empty.
  EntryRef oldest() const { return slots_.front().ref; }
  const Arrival& oldest_arrival() const { return slots_.front().arrival; }

  std::uint32_t objects() const { return objects_; }
  // The sum of their charges.
  std::uint64_t bytes() const { return bytes_; }

 private:
  struct Slot {
    Arrival arrival;
    EntryRef ref = kNoEntry;  // none: it has gone
  };

  EntrySlab& slab_;
  std::deque<Slot> slots_;  // by number; the first one has an entry
  std::uint32_t objects_ = 0;
  std::uint64_t bytes_ = 0;
};

}  // namespace encore::cache
