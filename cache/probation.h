// Probation: admission to disks that asks the founding rule at the end of a stay in memory. Every
// fetched object waits in a small memory, where requests find it and nothing else happens; when it
// leaves, its key goes into a rotating pair of Bloom filters; a miss whose key the pair knows is
// written to disk. A burst of requests is so answered by the memory and admits nothing.
//
// This class decides and holds no bytes and no disk: its caller stores, writes and releases what it
// says, and says how full the disks are. Thread-compatible, deterministic. Why apart from the
// kernel's policies: docs/decisions/0420.
#pragma once

#include <cstdint>
#include <optional>

#include "base/error.h"
#include "base/time.h"
#include "cache/waiting_queue.h"
#include "filter/rotating_bloom_filter.h"

namespace encore::cache {

// The part of the decision that traffic may change (ProbationSamples).
struct ProbationRule {
  static constexpr double kWindowMax = 2;  // that the pair's bits are planned for
  // Keys that a generation of the pair takes, in objects that the full disks hold.
  double window = 1;
  bool all = false;   // every object that leaves the memory is written
  double chance = 1;  // that a known key is written
  friend bool operator==(const ProbationRule&, const ProbationRule&) = default;
};

// The disks as a decision sees them.
struct DiskLoad {
  std::uint64_t objects = 0;
  std::uint64_t bytes = 0;  // bytes of these
  std::uint64_t size_bytes = 0;
  bool full_once = false;  // ever since they were made
};

// The outcome of a miss, once the object's size is known.
//  enumerator       name
#define ENCORE_PROBATION_VERDICTS(X)     \
  X(kWaits, "probation")                 \
  X(kKeyWaits, "too-large-to-wait")      \
  X(kKeyStillWaits, "too-large-to-wait") \
  X(kAdmitted, "second-request")         \
  X(kKnownTooLarge, "too-large")

// kWaits: the object is in memory. kKeyWaits: only its key is, and kKeyStillWaits: was before.
// kAdmitted: the caller writes it to disk, and it does not go into memory. kKnownTooLarge: its key
// is known, but the disks do not take its size.
#define ENCORE_ENUMERATOR(id, name) id,
enum class ProbationVerdict : std::uint8_t { ENCORE_PROBATION_VERDICTS(ENCORE_ENUMERATOR) };
#undef ENCORE_ENUMERATOR

class Probation {
 public:
  struct Settings {
    std::uint64_t memory_bytes = 0;
    // One generation of the pair; its capacity is the most that it ever takes, its hash xxh3 by the
    // keys' identity seed: when an object leaves, its key's text may be gone.
    filter::FilterParameters keys{};
    ProbationRule rule{};
    bool fill = true;         // until the disks are full once, all that leaves memory is written
    Nanoseconds wait_max{0};  // no entry waits longer; 0: no bound
  };
  // Larger objects do not enter the memory.
  static constexpr std::uint64_t kLargestShare = 8;  // an eighth of it

  // Errors: no memory, a rule outside its range, those of RotatingBloomFilter::create(), a pair
  // that needs the text of keys.
  static Result<Probation> create(const Settings& settings, MonotonicTime now);

  // The waiting object of the key, or null: a hit changes nothing. Valid until the next fetched(),
  // leave() or erase().
  Waiting* find(const filter::Hash128& key);
  // A miss whose object was fetched; it waits from now on unless the verdict says otherwise.
  // `size_bytes` of 0 counts as 1. REQUIRES: find() is null, and it is not on disk.
  ProbationVerdict fetched(const Waiting& object, const DiskLoad& disks, MonotonicTime now);

  // Removes the oldest entry while the memory is too full, or that entry too old. kRemembered: its
  // key was remembered, and its object, if it has one, is released. kFills: the caller writes the
  // object, for the disks were never full; kWritten: it does so by a rule that writes all. Nothing
  // if all may stay.
  enum class Fate : std::uint8_t { kRemembered, kFills, kWritten };
  struct Leaving {
    Waiting entry;
    Fate fate = Fate::kRemembered;
  };
  std::optional<Leaving> leave(const DiskLoad& disks, MonotonicTime now);

  // Purged while it waits: gone without a trace in the pair.
  bool erase(const filter::Hash128& key) { return queue_.erase(key); }
  // Its size was another one at this request. REQUIRES: an entry that find() returned.
  void resize(Waiting& entry, std::uint64_t size_bytes) { queue_.resize(entry, size_bytes); }

  const ProbationRule& rule() const { return settings_.rule; }
  void set_rule(const ProbationRule& rule) { settings_.rule = rule; }
  const WaitingQueue& queue() const { return queue_; }
  const filter::RotatingBloomFilter& keys() const { return keys_; }
  // Mean size of fetched objects: over the first 4,096 of them, then with a weight of 1/4096 each.
  double mean_bytes() const { return mean_bytes_; }
  std::uint64_t fetched_count() const { return fetched_; }
  // Objects that the disks would hold when full, by the size of those that they do hold: the
  // traffic's own, not a configured one. Before there are any, by those that wait; 0: none do.
  double objects_when_full(const DiskLoad& disks) const;
  std::uint64_t memory_bytes() const { return settings_.memory_bytes; }

 private:
  Probation(const Settings& settings, filter::RotatingBloomFilter keys)
      : settings_(settings), keys_(std::move(keys)) {}
  bool knows(const filter::Hash128& key, std::uint64_t size_bytes) const;
  bool is_drawn(const filter::Hash128& key) const;
  void remember(const filter::Hash128& key, const DiskLoad& disks, MonotonicTime now);
  std::uint64_t generation_capacity(const DiskLoad& disks) const;

  Settings settings_;
  WaitingQueue queue_;
  filter::RotatingBloomFilter keys_;
  double mean_bytes_ = 0;
  std::uint64_t fetched_ = 0;
};

// Errors: a window outside (0, kWindowMax], a chance outside (0, 1].
Result<void> check_rule(const ProbationRule& rule);

// Keys that a generation of the pair can ever need for disks of that size: two windows of objects
// of kPlannedObjectBytes.
inline constexpr std::uint64_t kPlannedObjectBytes = 8192;
std::uint64_t planned_keys(std::uint64_t disk_bytes);

}  // namespace encore::cache
