// EntryHeap: entries in the order of a priority that may change, the lowest first; among equals the
// one that got its priority first, or last (LatestFirstHeap). A heap; an entry's place in it is in
// its `newer`. 24 bytes an entry. Thread-compatible.
#pragma once

#include <algorithm>
#include <cstdint>

#include "cache/chunked_vector.h"
#include "cache/entry_slab.h"

namespace encore::cache {

template <bool kLatestFirst>
class BasicEntryHeap {
 public:
  struct Node {
    double priority;
    std::uint64_t number;
    EntryRef ref;
  };

  bool empty() const { return nodes_.empty(); }
  std::size_t size() const { return nodes_.size(); }
  // REQUIRES: i < size(). 0 is the lowest one, the others are in no useful order.
  const Node& at(std::size_t i) const { return nodes_[i]; }
  double priority(const EntrySlab& slab, EntryRef ref) const {
    return nodes_[slab.hot(ref).newer].priority;
  }

  void insert(EntrySlab& slab, EntryRef ref, double priority) {
    const Node node{priority, next_++, ref};
    nodes_.push_back(node);
    up(slab, nodes_.size() - 1, node);
  }
  void change(EntrySlab& slab, EntryRef ref, double priority) {
    settle(slab, slab.hot(ref).newer, {priority, next_++, ref});
  }
  void remove(EntrySlab& slab, EntryRef ref) {
    const std::size_t i = slab.hot(ref).newer;
    const Node last = nodes_[nodes_.size() - 1];
    nodes_.pop_back();
    if (last.ref != ref) {
      settle(slab, i, last);
    }
  }

 private:
  // Children of a node: they lie side by side, and the way down is half as long as with two.
  static constexpr std::size_t kChildren = 4;

  static bool before(const Node& a, const Node& b) {
    return a.priority != b.priority ? a.priority < b.priority
           : kLatestFirst           ? a.number > b.number
                                    : a.number < b.number;
  }
  void put(EntrySlab& slab, std::size_t i, const Node& node) {
    nodes_[i] = node;
    slab.hot(node.ref).newer = static_cast<EntryRef>(i);
  }
  // Puts the node there or further up. Returns whether it is there.
  bool up(EntrySlab& slab, std::size_t at, const Node& node) {
    std::size_t i = at;
    while (i != 0) {
      const std::size_t parent = (i - 1) / kChildren;
      if (!before(node, nodes_[parent])) {
        break;
      }
      put(slab, i, nodes_[parent]);
      i = parent;
    }
    put(slab, i, node);
    return i == at;
  }
  // Puts the node there or further down.
  void down(EntrySlab& slab, std::size_t i, const Node& node) {
    const std::size_t all = nodes_.size();
    while (kChildren * i + 1 < all) {
      const std::size_t first = kChildren * i + 1;
      std::size_t least = first;
      for (std::size_t child = first + 1; child < std::min(first + kChildren, all); ++child) {
        if (before(nodes_[child], nodes_[least])) {
          least = child;
        }
      }
      if (!before(nodes_[least], node)) {
        break;
      }
      put(slab, i, nodes_[least]);
      i = least;
    }
    put(slab, i, node);
  }
  void settle(EntrySlab& slab, std::size_t i, const Node& node) {
    if (up(slab, i, node)) {
      down(slab, i, node);
    }
  }

  ChunkedVector<Node> nodes_;
  std::uint64_t next_ = 0;
};
using EntryHeap = BasicEntryHeap<false>;
using LatestFirstHeap = BasicEntryHeap<true>;

}  // namespace encore::cache
