#include "proxy/transfer/refresh_backoff.h"

#include <algorithm>

namespace encore::server {

bool RefreshBackoff::may_begin(const filter::Hash128& key, MonotonicTime now) const {
  const Shard& shard = shards_[key.hi % kShards];
  const MutexLock lock(shard.mutex);
  const Slot& slot = shard.slots[slot_of(key)];
  return slot.tag != tag_of(key) || now >= slot.until;
}

void RefreshBackoff::note_failure(const filter::Hash128& key, MonotonicTime now) {
  Shard& shard = shards_[key.hi % kShards];
  const MutexLock lock(shard.mutex);
  Slot& slot = shard.slots[slot_of(key)];
  // A failure long after the last one is a first one.
  const bool goes_on = slot.tag == tag_of(key) && now - slot.until < kLongest;
  const Nanoseconds pause = goes_on ? std::min(slot.pause * 2, kLongest) : kFirst;
  slot = {.tag = tag_of(key), .until = now + pause, .pause = pause};
}

void RefreshBackoff::note_success(const filter::Hash128& key) {
  Shard& shard = shards_[key.hi % kShards];
  const MutexLock lock(shard.mutex);
  Slot& slot = shard.slots[slot_of(key)];
  if (slot.tag == tag_of(key)) slot = {};
}

}  // namespace encore::server
