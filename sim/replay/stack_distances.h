// StackDistances: for each request, the bytes of all other objects asked for since the last one
// for the same object: LRU's stack distance (Mattson et al. 1970), by a tree over the order of
// last requests (Olken 1981), in O(log n) and some 40 bytes an object. Deterministic;
// thread-compatible.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace encore::sim {

class StackDistances {
 public:
  // The distance of a request for the object, which takes so many bytes from now on; nothing at
  // the first one. Objects are small numbers.
  std::optional<std::uint64_t> request(std::uint32_t object, std::uint64_t bytes);

  // The object's size since its last request; 0 if there was none.
  std::uint64_t bytes_of(std::uint32_t object) const {
    return object < objects_.size() ? objects_[object].bytes : 0;
  }

 private:
  struct Object {
    std::uint32_t slot = 0;  // from 1; 0: not asked for yet
    std::uint64_t bytes = 0;
  };
  void add(std::uint32_t slot, std::uint64_t bytes);  // modulo 2^64: also takes away
  std::uint64_t sum_up_to(std::uint32_t slot) const;
  // Makes room: puts the objects in the order of their last requests into the first slots.
  void compact();

  std::vector<Object> objects_;
  std::vector<std::uint32_t> object_in_;  // by slot; valid if the object's own slot is this one
  std::vector<std::uint64_t> tree_;       // Fenwick 1994, from 1
  std::uint32_t used_ = 0;                // slots given out
  std::uint64_t total_bytes_ = 0;
  std::uint32_t live_ = 0;  // objects that have a slot
};

}  // namespace encore::sim
