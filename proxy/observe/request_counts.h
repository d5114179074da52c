// Counters of the requests of one listener, and of those that match one rule. One part per worker,
// see PerWorker.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

#include "proxy/observe/counter.h"
#include "proxy/observe/outcome.h"
#include "proxy/observe/per_worker.h"

namespace encore::server {

struct RuleCounts {
  std::array<Counter, kOutcomeClassCount> requests;  // by OutcomeClass
  Counter responses;                                 // origin responses that it applied to

  void count(OutcomeClass group) { requests[static_cast<std::size_t>(group)].add(); }
};

struct ListenerCounts {
  std::array<Counter, kOutcomeClassCount> requests;  // by OutcomeClass
  Counter sent_bytes;
  Counter received_bytes;
  Counter accepted;  // connections
  Counter open;      // those open now

  void count(OutcomeClass group, std::uint64_t sent) {
    requests[static_cast<std::size_t>(group)].add();
    sent_bytes.add(sent);
  }
};

// Counters of a listener in one worker. A unit that counts keeps its reference, whatever a reload
// does.
using ListenerPart = std::shared_ptr<ListenerCounts>;
inline ListenerPart part_of(const std::shared_ptr<PerWorker<ListenerCounts>>& counts,
                            std::size_t worker) {
  return {counts, &counts->of(worker)};
}

// An open connection of a listener, from when it is accepted until it leaves. Confined to its
// worker.
class ListenerSeatCount {
 public:
  ListenerSeatCount() = default;
  explicit ListenerSeatCount(ListenerPart part) : part_(std::move(part)) {
    part_->accepted.add();
    part_->open.add();
  }
  ListenerSeatCount(ListenerSeatCount&&) noexcept = default;
  ListenerSeatCount& operator=(ListenerSeatCount&& other) noexcept {
    if (this != &other) {
      leave();
      part_ = std::move(other.part_);
    }
    return *this;
  }
  ~ListenerSeatCount() { leave(); }
  void leave() {
    if (part_ != nullptr) part_->open.subtract();
    part_.reset();
  }

 private:
  ListenerPart part_;  // null: it is not counted
};

}  // namespace encore::server
