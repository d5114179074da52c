// LIRS: Jiang, Zhang: "LIRS: an efficient low inter-reference recency set replacement policy to
// improve buffer cache performance" (SIGMETRICS 2002). Entries whose last two uses lay close
// together (LIR) stay; of the others (HIR), 1 % of all, the one goes first that was used longest
// ago. The stack orders entries and evicted keys by their last use, down to the LIR entry that was
// used longest ago: what is used while it stands in there has become LIR. Until the first eviction
// all are LIR. Evicted keys in the stack are as many as there are entries, at most. 40 bytes an
// entry and an evicted key, and 21 to 43 for the latter.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include "cache/eviction_order.h"
#include "cache/ghost_queue.h"

namespace encore::cache {

class Lirs {
 public:
  static constexpr std::array kParameters = {
      PolicyParameter::share("hir", 0.01, 0, 0.9999, "HIR entries, of all; at least one"),
      PolicyParameter::share("ghost", 1, 0, 100, "evicted keys in the stack, of the entries")};

  explicit Lirs(EntrySlab& slab, const EvictionSettings& settings = {})
      : slab_(slab),
        hir_share_(settings.values.share(kParameters, "hir")),
        ghost_share_(settings.values.share(kParameters, "ghost")) {}

  void insert(EntryRef ref, const Access& /*access*/) {
    const std::uint64_t key = filter::remix(slab_.hot(ref).key);
    std::uint32_t node = static_cast<std::uint32_t>(evicted_.take(key));
    const bool came_back = node != kNone;
    if (came_back) {
      queues_[kEvicted].unlink(nodes_, node);
      stack_.unlink(nodes_, node);
    } else {
      node = allocate(key);
    }
    nodes_[node].ref = ref;
    slab_.hot(ref).newer = node;
    ++entries_;
    stack_.push(nodes_, node);
    if (came_back || !filled_) {
      become_lir(node);
    } else {
      set_place(node, kResident);
    }
    if (came_back) {
      limit_lir();
    }
  }

  void hit(EntryRef ref, const Access& /*access*/) {
    const std::uint32_t node = slab_.hot(ref).newer;
    Node& entry = nodes_[node];
    if (entry.place == kLir) {
      stack_.unlink(nodes_, node);
      stack_.push(nodes_, node);
      prune();
      return;
    }
    if (entry.in_stack) {
      stack_.unlink(nodes_, node);
      stack_.push(nodes_, node);
      queues_[kResident].unlink(nodes_, node);
      become_lir(node);
      limit_lir();
      return;
    }
    stack_.push(nodes_, node);
    queues_[kResident].unlink(nodes_, node);
    queues_[kResident].push(nodes_, node);
    prune();
  }

  void remove(EntryRef ref, Removal why) {
    const std::uint32_t node = slab_.hot(ref).newer;
    Node& entry = nodes_[node];
    --entries_;
    if (entry.place == kLir) {
      --lir_;
    } else {
      queues_[kResident].unlink(nodes_, node);
    }
    entry.ref = kNoEntry;
    if (why == Removal::kEvicted && entry.in_stack && entry.place == kResident) {
      set_place(node, kEvicted);
      evicted_.set(entry.key, node);
      while (queues_[kEvicted].size > ghost_share_.of(entries_ + 1)) {
        forget(queues_[kEvicted].first);
      }
    } else {
      if (entry.in_stack) {
        stack_.unlink(nodes_, node);
      }
      release(node);
    }
    prune();
  }

  EntryRef victim() {
    if (entries_ == 0) {
      return kNoEntry;
    }
    filled_ = true;
    limit_lir();
    return nodes_[queues_[kResident].first].ref;
  }

 private:
  static constexpr std::uint32_t kNone = 0;  // no node, and the one that stands for none
  enum Place : std::uint8_t { kResident, kEvicted, kLir };
  // An entry, or an evicted key that stands in the stack.
  struct Node {
    std::uint64_t key = 0;
    EntryRef ref = kNoEntry;
    // In the stack.
    std::uint32_t above = kNone;
    std::uint32_t below = kNone;
    // In its queue; of a free one: the next.
    std::uint32_t after = kNone;
    std::uint32_t before = kNone;
    Place place = kResident;
    bool in_stack = false;
  };
  using Nodes = std::vector<Node>;

  struct Stack {
    std::uint32_t top = kNone;
    std::uint32_t bottom = kNone;
    void push(Nodes& nodes, std::uint32_t node) {
      nodes[node].above = kNone;
      nodes[node].below = top;
      nodes[node].in_stack = true;
      (top == kNone ? bottom : nodes[top].above) = node;
      top = node;
    }
    void unlink(Nodes& nodes, std::uint32_t node) {
      const Node& at = nodes[node];
      (at.above == kNone ? top : nodes[at.above].below) = at.below;
      (at.below == kNone ? bottom : nodes[at.below].above) = at.above;
      nodes[node].in_stack = false;
    }
  };
  struct Queue {
    std::uint32_t first = kNone;
    std::uint32_t last = kNone;
    std::uint64_t size = 0;
    void push(Nodes& nodes, std::uint32_t node) {
      nodes[node].after = kNone;
      nodes[node].before = last;
      (last == kNone ? first : nodes[last].after) = node;
      last = node;
      ++size;
    }
    void unlink(Nodes& nodes, std::uint32_t node) {
      const Node& at = nodes[node];
      (at.before == kNone ? first : nodes[at.before].after) = at.after;
      (at.after == kNone ? last : nodes[at.after].before) = at.before;
      --size;
    }
  };

  std::uint32_t allocate(std::uint64_t key) {
    std::uint32_t node = free_;
    if (node == kNone) {
      node = static_cast<std::uint32_t>(nodes_.size());
      nodes_.emplace_back();
    } else {
      free_ = nodes_[node].after;
    }
    nodes_[node] = {.key = key};
    return node;
  }
  void release(std::uint32_t node) {
    nodes_[node].after = free_;
    free_ = node;
  }
  // An evicted key leaves.
  void forget(std::uint32_t node) {
    queues_[kEvicted].unlink(nodes_, node);
    evicted_.erase(nodes_[node].key);
    stack_.unlink(nodes_, node);
    release(node);
  }
  void set_place(std::uint32_t node, Place place) {
    nodes_[node].place = place;
    queues_[place].push(nodes_, node);
  }
  void become_lir(std::uint32_t node) {
    nodes_[node].place = kLir;
    ++lir_;
  }
  // The LIR entries at the bottom become HIR until there are as many of these as there should be.
  void limit_lir() {
    const std::uint64_t hir = std::max<std::uint64_t>(hir_share_.of(entries_), 1);
    while (filled_ && lir_ != 0 && lir_ + hir > entries_) {
      prune();
      const std::uint32_t node = stack_.bottom;
      stack_.unlink(nodes_, node);
      --lir_;
      set_place(node, kResident);
    }
    prune();
  }
  // The bottom is LIR.
  void prune() {
    while (stack_.bottom != kNone && nodes_[stack_.bottom].place != kLir) {
      const std::uint32_t node = stack_.bottom;
      if (nodes_[node].place == kEvicted) {
        forget(node);
      } else {
        stack_.unlink(nodes_, node);
      }
    }
  }

  EntrySlab& slab_;
  const Share hir_share_;
  const Share ghost_share_;
  Nodes nodes_ = Nodes(1);
  Stack stack_;
  std::array<Queue, 2> queues_;  // HIR: entries, and evicted keys in the order of their eviction
  GhostMap evicted_;             // nodes by keys
  std::uint32_t free_ = kNone;
  std::uint64_t entries_ = 0;
  std::uint64_t lir_ = 0;
  bool filled_ = false;
};
static_assert(EvictionOrder<Lirs>);

}  // namespace encore::cache
