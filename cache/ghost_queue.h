// GhostQueue: keys of entries that were evicted, first in first out, for policies that look back.
// 48 bytes or so a key. Thread-compatible.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <unordered_map>

#include "filter/hash.h"

namespace encore::cache {

class GhostQueue {
 public:
  std::size_t size() const { return places_.size(); }

  void insert(const filter::Hash128& key) {
    const std::uint64_t number = next_++;
    places_[filter::remix(key)] = number;
    order_.push_back({filter::remix(key), number});
  }
  // Whether it was there; it is not now.
  bool take(const filter::Hash128& key) { return places_.erase(filter::remix(key)) != 0; }
  // Drops the oldest until no more than `size` are left.
  void shrink_to(std::size_t size) {
    while (places_.size() > size || (!order_.empty() && !is_current(order_.front()))) {
      if (is_current(order_.front())) {
        places_.erase(order_.front().key);
      }
      order_.pop_front();
    }
  }

 private:
  struct Place {
    std::uint64_t key;
    std::uint64_t number;
  };
  // False for what was taken, or inserted again since.
  bool is_current(const Place& place) const {
    const auto at = places_.find(place.key);
    return at != places_.end() && at->second == place.number;
  }

  std::unordered_map<std::uint64_t, std::uint64_t> places_;
  std::deque<Place> order_;
  std::uint64_t next_ = 0;
};

}  // namespace encore::cache
