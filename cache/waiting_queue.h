// WaitingQueue: the memory of probation, in order of arrival: fetched objects, and the keys of
// objects that are too large to wait themselves. Nothing in it changes its place: the oldest entry
// leaves first, however often it was requested. Thread-compatible.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <unordered_map>

#include "base/time.h"
#include "cache/types.h"
#include "filter/hash.h"

namespace encore::cache {

// Hashes are spread already: any 64 of their bits place a key.
struct KeyPlacing {
  std::size_t operator()(const filter::Hash128& key) const noexcept { return key.lo; }
};

struct Waiting {
  filter::Hash128 key{};
  std::uint64_t size_bytes = 0;  // the object's
  bool only_key = false;         // the object itself is not in memory
  Payload payload = 0;           // the object's
  MonotonicTime since{};         // its arrival
  MonotonicTime fresh_until = MonotonicTime::max();
};

class WaitingQueue {
 public:
  // Memory that an entry without an object takes. A burst of huge objects must not flush the
  // queue, and their keys must not fill all of the memory either.
  static constexpr std::uint64_t kKeyBytes = 64;

  // The entry of the key, or null. Valid until the next push() or pop().
  Waiting* find(const filter::Hash128& key);
  bool has(const filter::Hash128& key) const { return places_.contains(key); }
  const Waiting* oldest() const;
  // REQUIRES: the key is not in the queue.
  void push(const Waiting& entry);
  // Removes and returns the oldest entry. REQUIRES: there is one.
  Waiting pop();
  // Removes the key's entry, for an object that is purged. False if it has none.
  bool erase(const filter::Hash128& key);
  // Changes the size of a waiting object. REQUIRES: an entry of this queue with an object.
  void resize(Waiting& entry, std::uint64_t size_bytes);

  bool empty() const { return places_.empty(); }
  std::uint64_t bytes() const { return object_bytes_ + kKeyBytes * (places_.size() - objects_); }
  std::uint64_t objects() const { return objects_; }
  std::uint64_t object_bytes() const { return object_bytes_; }
  std::uint64_t entries() const { return places_.size(); }
  std::uint64_t memory_bytes() const;

 private:
  struct Slot {
    Waiting entry;
    bool erased = false;
  };
  void forget(const Waiting& entry);
  void drop_erased();

  std::deque<Slot> slots_;   // oldest first; the first one is never an erased one
  std::uint64_t first_ = 0;  // number of the first slot
  std::unordered_map<filter::Hash128, std::uint64_t, KeyPlacing> places_;  // number of the slot
  std::uint64_t objects_ = 0;
  std::uint64_t object_bytes_ = 0;
};

}  // namespace encore::cache
