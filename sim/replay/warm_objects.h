// WarmObjects: the objects that the warm-up of a replay requested, by their numbers, which later
// objects may get. Thread-compatible.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace encore::sim {

class WarmObjects {
 public:
  // The warm-up has a request for the object.
  void add(std::uint32_t object) {
    below_ = std::max(below_, object + 1);
    if (object < renumbered_.size()) {
      renumbered_[object] = false;
    }
  }
  // Another object has the number from now on.
  void renumber(std::uint32_t object) {
    if (renumbered_.size() <= object) {
      renumbered_.resize(std::max<std::size_t>(object + std::size_t{1}, renumbered_.size() * 2));
    }
    renumbered_[object] = true;
  }
  bool contains(std::uint32_t object) const {
    return object < below_ && (object >= renumbered_.size() || !renumbered_[object]);
  }

 private:
  std::uint32_t below_ = 0;       // objects are numbered in the order of their first requests
  std::vector<bool> renumbered_;  // since the warm-up had the number, or from the beginning
};

}  // namespace encore::sim
