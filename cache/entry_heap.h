// EntryHeap: entries in the order of a priority that may change, the lowest first; among equals the
// one that got its priority first. A binary heap; an entry's place in it is in its `newer`. 24
// bytes an entry. Thread-compatible.
#pragma once

#include <cstdint>
#include <utility>

#include "cache/chunked_vector.h"
#include "cache/entry_slab.h"

namespace encore::cache {

class EntryHeap {
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
    nodes_.push_back({priority, next_++, ref});
    slab.hot(ref).newer = static_cast<EntryRef>(nodes_.size() - 1);
    up(slab, nodes_.size() - 1);
  }
  void change(EntrySlab& slab, EntryRef ref, double priority) {
    const std::size_t i = slab.hot(ref).newer;
    nodes_[i].priority = priority;
    nodes_[i].number = next_++;
    up(slab, i);
    down(slab, slab.hot(ref).newer);
  }
  void remove(EntrySlab& slab, EntryRef ref) {
    const std::size_t i = slab.hot(ref).newer;
    swap(slab, i, nodes_.size() - 1);
    nodes_.pop_back();
    if (i < nodes_.size()) {
      const EntryRef moved = nodes_[i].ref;
      up(slab, i);
      down(slab, slab.hot(moved).newer);
    }
  }

 private:
  static bool before(const Node& a, const Node& b) {
    return a.priority != b.priority ? a.priority < b.priority : a.number < b.number;
  }
  void swap(EntrySlab& slab, std::size_t i, std::size_t j) {
    std::swap(nodes_[i], nodes_[j]);
    slab.hot(nodes_[i].ref).newer = static_cast<EntryRef>(i);
    slab.hot(nodes_[j].ref).newer = static_cast<EntryRef>(j);
  }
  void up(EntrySlab& slab, std::size_t i) {
    while (i != 0 && before(nodes_[i], nodes_[(i - 1) / 2])) {
      swap(slab, i, (i - 1) / 2);
      i = (i - 1) / 2;
    }
  }
  void down(EntrySlab& slab, std::size_t i) {
    while (2 * i + 1 < nodes_.size()) {
      std::size_t child = 2 * i + 1;
      if (child + 1 < nodes_.size() && before(nodes_[child + 1], nodes_[child])) {
        ++child;
      }
      if (!before(nodes_[child], nodes_[i])) {
        return;
      }
      swap(slab, i, child);
      i = child;
    }
  }

  ChunkedVector<Node> nodes_;
  std::uint64_t next_ = 0;
};

}  // namespace encore::cache
