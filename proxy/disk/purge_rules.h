// The purges of one disk that have to be looked for when a record is read: those by a pattern, and
// those of keys that came while it was still being loaded, for the index knew nothing of them then.
// Thread-safe.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <shared_mutex>
#include <unordered_map>
#include <vector>

#include "filter/hash.h"
#include "proxy/disk/purge_frame.h"
#include "proxy/disk/record.h"

namespace encore::disk {

struct HashKey {
  std::size_t operator()(const filter::Hash128& key) const {
    return static_cast<std::size_t>(key.lo);
  }
};

// Whether a rule's pattern is of this record; its version need not be looked at.
using MatchesRule = std::function<bool(const Purge& rule, const RecordFront& front)>;

class PurgeRules {
 public:
  // Several threads may call it at the same time.
  explicit PurgeRules(MatchesRule matches) : matches_(std::move(matches)) {}

  // A ban that there is already is from then on of what this one is of.
  void add(const Purge& purge);
  // Never a part: it is as alive as the head that leads to it.
  bool is_dead(const RecordFront& front) const;
  // As far as the key alone tells.
  bool is_dead(const filter::Hash128& key, cache::DiskVersion version) const;
  // Nothing that they are of is on the disk any more: PurgeLog::prune().
  void forget_below(std::uint64_t sequence_min);
  std::size_t size() const { return size_.load(std::memory_order_relaxed); }
  // The number of rules by kBan: each takes a while with each record that is older.
  std::size_t bans() const { return bans_.load(std::memory_order_relaxed); }

 private:
  struct PurgedKey {
    cache::DiskVersion version = 0;
    std::uint64_t sequence = 0;
  };
  void count();
  bool has_tombstone(const filter::Hash128& key, cache::DiskVersion version) const;

  const MatchesRule matches_;
  mutable std::shared_mutex mutex_;
  std::vector<Purge> rules_;  // by version
  std::unordered_map<filter::Hash128, PurgedKey, HashKey> keys_;
  cache::DiskVersion all_below_ = 0;  // a rule is of each key: what is older is dead
  std::atomic<std::size_t> size_ = 0;
  std::atomic<std::size_t> bans_ = 0;
};

}  // namespace encore::disk
