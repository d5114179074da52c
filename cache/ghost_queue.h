// GhostQueue: keys of entries that were evicted, first in first out, for policies that look back.
// 48 bytes or so a key. The map is in parts that grow one by one, so that no insertion is a pause.
// Thread-compatible.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <unordered_map>

#include "filter/hash.h"

namespace encore::cache {

class GhostQueue {
 public:
  std::size_t size() const { return size_; }

  void insert(const filter::Hash128& key) {
    const std::uint64_t number = next_++;
    const std::uint64_t mixed = filter::remix(key);
    size_ += part(mixed).insert_or_assign(mixed, number).second ? 1U : 0U;
    order_.push_back({mixed, number});
  }
  // True if it was there; it is not now.
  bool take(const filter::Hash128& key) { return erase(filter::remix(key)); }
  // Drops the oldest until no more than `size` are left.
  void shrink_to(std::size_t size) {
    while (size_ > size || (!order_.empty() && !is_current(order_.front()))) {
      if (is_current(order_.front())) {
        erase(order_.front().key);
      }
      order_.pop_front();
    }
  }

 private:
  static constexpr std::size_t kParts = 64;
  using Part = std::unordered_map<std::uint64_t, std::uint64_t>;
  struct Place {
    std::uint64_t key;
    std::uint64_t number;
  };
  // False for what was taken, or inserted again since.
  bool is_current(const Place& place) const {
    const Part& in = parts_[place.key % kParts];
    const auto at = in.find(place.key);
    return at != in.end() && at->second == place.number;
  }
  Part& part(std::uint64_t mixed) { return parts_[mixed % kParts]; }
  bool erase(std::uint64_t mixed) {
    const bool was_there = part(mixed).erase(mixed) != 0;
    size_ -= was_there ? 1U : 0U;
    return was_there;
  }

  std::array<Part, kParts> parts_;
  std::size_t size_ = 0;
  std::deque<Place> order_;
  std::uint64_t next_ = 0;
};

}  // namespace encore::cache
