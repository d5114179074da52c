// DeferredNode: a place in a list of calls that a loop makes later. For net/ only: others use
// Deferred. Confined to the loop's thread.
#pragma once

#include "base/check.h"

namespace encore::net {

// Linked into one list at most; its owner unlinks it before it dies.
struct DeferredNode {
  DeferredNode* previous = nullptr;
  DeferredNode* next = nullptr;
  // Null while it is not linked.
  void (*run)(DeferredNode& node) = nullptr;
  bool waits_for_share = false;  // linked into TurnShares, not into the list of this turn's end
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
  // REQUIRES: not linked.
  void push_back(DeferredNode& node, void (*call)(DeferredNode& node)) {
    ENCORE_CHECK(node.run == nullptr, "a node is linked once");
    node.run = call;
    node.next = &head_;
    node.previous = head_.previous;
    head_.previous->next = &node;
    head_.previous = &node;
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
