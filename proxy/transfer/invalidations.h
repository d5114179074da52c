// Which keys were invalidated lately, so that a transfer can tell whether it was overtaken: a count
// of all invalidations, and for each slot of a table the count that the last one in it made. Keys
// that share a slot are invalidated together, as far as this tells. Thread-safe; without a lock.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "filter/hash.h"

namespace encore::server {

class Invalidations {
 public:
  // One in so many invalidations of other keys counts for a key as well.
  static constexpr std::size_t kSlots = 65536;

  // Invalidations so far.
  std::uint64_t count() const { return count_.load(std::memory_order_acquire); }
  void add(const filter::Hash128& hash);
  // Every key.
  void add_all();
  // True if the key was invalidated after count() was `seen`.
  bool has_since(const filter::Hash128& hash, std::uint64_t seen) const;

 private:
  static std::size_t slot_of(const filter::Hash128& hash) { return hash.lo % kSlots; }

  std::atomic<std::uint64_t> count_ = 0;
  std::array<std::atomic<std::uint64_t>, kSlots> last_{};
  std::atomic<std::uint64_t> last_of_all_ = 0;
};

}  // namespace encore::server
