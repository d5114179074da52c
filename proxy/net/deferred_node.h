// DeferredNode: a place in a list of calls that a loop makes later. For net/ only: others use
// Deferred. Confined to the loop's thread.
#pragma once

#include <cstdint>

#include "base/check.h"

namespace encore::net {

// Linked into one list at most; its owner unlinks it before it dies.
struct DeferredNode {
  DeferredNode* previous = nullptr;
  DeferredNode* next = nullptr;
  // Null while it is not linked.
  void (*run)(DeferredNode& node) = nullptr;
  bool waits_for_share = false;  // linked into TurnShares, not into the list of this turn's end
  std::uint32_t served = 0;      // number of the last time that it had a share of a turn
};

// A list of nodes in the order of linking. Copies nothing and allocates nothing.
class DeferredList {
 public:
  DeferredList() { head_.previous = head_.next = &head_; }
  DeferredList(const DeferredList&) = delete;
  DeferredList& operator=(const DeferredList&) = delete;

  bool empty() const { return head_.next == &head_; }
  // REQUIRES: not empty.
  DeferredNode& front() { return *head_.next; }
  // The place behind the last node, which is in front of the first one.
  DeferredNode& end() { return head_; }
  // REQUIRES: not linked.
  void push_back(DeferredNode& node, void (*call)(DeferredNode& node)) {
    insert(head_, node, call);
  }
  // Links the node in front of `next`. REQUIRES: it is not linked, and `next` is, or is end().
  static void insert(DeferredNode& next, DeferredNode& node, void (*call)(DeferredNode& node)) {
    ENCORE_CHECK(node.run == nullptr, "a node is linked once");
    node.run = call;
    node.next = &next;
    node.previous = next.previous;
    next.previous->next = &node;
    next.previous = &node;
  }
  // REQUIRES: linked.
  static void remove(DeferredNode& node) {
    node.run = nullptr;
    node.previous->next = node.next;
    node.next->previous = node.previous;
    node.previous = node.next = nullptr;
  }

 private:
  DeferredNode head_;
};

}  // namespace encore::net
