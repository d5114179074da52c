#include "sim/replay/stack_distances.h"

#include <algorithm>

namespace encore::sim {

std::optional<std::uint64_t> StackDistances::request(std::uint32_t object, std::uint64_t bytes) {
  if (object >= objects_.size()) {
    objects_.resize(std::max<std::size_t>(object + std::size_t{1}, objects_.size() * 2));
  }
  if (used_ + std::size_t{1} >= tree_.size()) {
    compact();
  }
  Object& asked = objects_[object];
  std::optional<std::uint64_t> distance;
  if (asked.slot == 0) {
    ++live_;
  } else {
    distance = total_bytes_ - sum_up_to(asked.slot);
    add(asked.slot, 0 - asked.bytes);
    total_bytes_ -= asked.bytes;
  }
  asked = {.slot = ++used_, .bytes = bytes};
  object_in_[used_] = object;
  add(used_, bytes);
  total_bytes_ += bytes;
  return distance;
}

void StackDistances::add(std::uint32_t slot, std::uint64_t bytes) {
  for (std::size_t at = slot; at < tree_.size(); at += at & (0 - at)) {
    tree_[at] += bytes;
  }
}

std::uint64_t StackDistances::sum_up_to(std::uint32_t slot) const {
  std::uint64_t sum = 0;
  for (std::size_t at = slot; at != 0; at &= at - 1) {
    sum += tree_[at];
  }
  return sum;
}

void StackDistances::compact() {
  std::uint32_t kept = 0;
  for (std::uint32_t slot = 1; slot <= used_; ++slot) {
    const std::uint32_t object = object_in_[slot];
    if (objects_[object].slot == slot) {
      objects_[object].slot = ++kept;
      object_in_[kept] = object;
    }
  }
  used_ = kept;
  // As many free slots as objects: what this costs is shared by as many requests.
  constexpr std::size_t kSlotsMin = 1024;
  const std::size_t slots = std::max(kSlotsMin, 2 * std::size_t{live_}) + 1;
  object_in_.resize(slots);
  tree_.assign(slots, 0);
  for (std::size_t at = 1; at < slots; ++at) {
    tree_[at] += at <= used_ ? objects_[object_in_[at]].bytes : 0;
    const std::size_t parent = at + (at & (0 - at));
    if (parent < slots) {
      tree_[parent] += tree_[at];
    }
  }
}

}  // namespace encore::sim
