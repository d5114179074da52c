// Probation as the kernel runs it, one shard's part: the rotating pair that learns a key when its
// object has left the memory, and the keys of objects that are too large to wait there themselves.
// Waiting objects are the table's (cache/waiting_order.h). cache/probation.h says the rule.
//
// Without disks it is second-hit on the same pair. Thread-compatible, confined to its shard. Why
// one order over all shards, and writes at commit: docs/decisions/0425.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>

#include "base/time.h"
#include "cache/candidate.h"
#include "cache/probation.h"
#include "cache/types.h"
#include "cache/waiting_order.h"
#include "cache/waiting_queue.h"
#include "filter/rotating_bloom_filter.h"

namespace encore::cache {

// The input of a shard's decision next to the key.
struct ProbationView {
  DiskLoad disks;              // all of them; full_once of the one that the key is for
  ProbationRule rule;          // in force
  std::uint32_t shards = 1;    // that share the keys
  std::uint64_t keys_max = 0;  // that wait in this shard, in bytes
};

class ProbationAdmission {
 public:
  // REQUIRES: xxh3 by the identity seed, for the text of a key may be gone when it is learnt.
  ProbationAdmission(filter::RotatingBloomFilter keys, bool fill)
      : keys_(std::move(keys)), fill_(fill) {}

  // As second-hit, where there are no disks.
  bool would_admit(const Candidate& candidate) const { return keys_.test(candidate.key); }
  bool admit(const Candidate& candidate) {
    return keys_.test_and_set(candidate.key, candidate.now) != filter::Seen::kNew;
  }

  // A miss whose object has arrived. kSecondRequest: it is written and is not on probation. kWaits,
  // kFill and kWritesAll: it waits, and with the last two is written as well. kKeyWaits: its key
  // does. kTooLarge: it is known, and no disk takes it. kParentHint: as kSecondRequest.
  struct Fetched {
    const Key& key;
    std::uint64_t size_bytes = 0;  // 0: not known yet
    bool may_wait = true;          // the memory takes it
    bool alone = false;            // nothing waits in the shard's memory
    bool hinted = false;           // AdmitRequest::hinted
    Arrival arrival{};
  };
  AdmitReason fetched(const Fetched& object, const ProbationView& view);
  // It left the memory.
  void remember(const filter::Hash128& key, const ProbationView& view, MonotonicTime now);

  bool key_waits(const filter::Hash128& key) const { return queue_.has(key); }
  // Purged: gone without a trace in the pair.
  void forget(const filter::Hash128& key) { queue_.erase(key); }
  // The arrival of the key that waits longest; nothing where none does.
  std::optional<Arrival> oldest_key() const;
  // It is remembered from now on. REQUIRES: there is one.
  void let_key_leave(const ProbationView& view, MonotonicTime now);

  void set_fill(bool fill) { fill_ = fill; }
  filter::RotatingBloomFilter& filter() { return keys_; }
  const filter::RotatingBloomFilter& filter() const { return keys_; }
  double mean_bytes() const { return mean_bytes_; }
  std::uint64_t keys_waiting() const { return queue_.entries(); }
  std::uint64_t memory_bytes() const { return queue_.memory_bytes(); }

 private:
  void learn_size(std::uint64_t size_bytes);
  bool knows(const Fetched& object, const ProbationRule& rule) const;
  bool is_drawn(const filter::Hash128& key, const ProbationRule& rule) const;
  std::uint64_t generation_capacity(const ProbationView& view) const;

  filter::RotatingBloomFilter keys_;
  WaitingQueue queue_;  // entries that are keys alone; Waiting::payload is the number of the
                        // arrival
  bool fill_;
  double mean_bytes_ = 0;    // mean size of fetched objects
  std::uint64_t sizes_ = 0;  // that it is the mean of
  std::uint64_t fetched_ = 0;
};

}  // namespace encore::cache
