// TurnShares: divides a loop's turn among the connections that have much to move. Those that do not
// get their share wait in a queue. The one that had its last share longest ago goes first; who had
// none lately goes behind all that wait. The more of them wait, the smaller is the share of each.
//
// A turn is bounded so that a request for something small, which waits for nobody, waits for a
// millisecond at most. It is shorter where such requests were lately answered, the more so the
// fewer connections wait. Reads no clock: bytes stand for time. Confined to its loop's thread. Why
// a queue, and no priorities: docs/decisions/0320.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "proxy/net/deferred_node.h"

namespace encore::net {

class TurnShares {
 public:
  // Measured, and therefore next to their derivation in the .cc file. They are the bytes of one
  // turn over plain sockets, read or written; the cost of a byte under TLS, compared with one of
  // those; the bounds of one connection's share; the bytes that waiting connections may move in
  // each turn, whatever the others have moved in it; and the cost of a call that moves nothing.
  static const std::uint64_t kTurnBytes;
  static const std::uint64_t kTlsCost;
  static const std::size_t kShareMin;
  static const std::size_t kShareMax;
  static const std::uint64_t kLeastForWaiting;
  static const std::uint64_t kCallCost;
  // Such a response is small, and the kShortTurns turns after its end are short: kShortTurnEach for
  // each connection that waits, between kShortTurnMin and kShortTurnMax. They have at least
  // kLittleCost for each small response that ended in the turn before: so clients of large
  // responses have as much of the time as those of small ones.
  static constexpr std::size_t kLittleBytes = std::size_t{64} << 10;
  static constexpr int kShortTurns = 16;
  static const std::size_t kShortTurnEach;
  static const std::size_t kShortTurnMin;
  static const std::size_t kShortTurnMax;
  static const std::size_t kLittleCost;

  TurnShares() = default;
  TurnShares(const TurnShares&) = delete;
  TurnShares& operator=(const TurnShares&) = delete;

  void begin_turn() {
    moved_ = 0;
    if (short_turns_ != 0) --short_turns_;
    short_turn_bytes_ = std::clamp<std::uint64_t>(ended_ * kLittleCost, short_share(), kTurnBytes);
    ended_ = 0;
  }
  // Counts a response of so many bytes that has ended.
  void count_response(std::uint64_t bytes) {
    if (bytes > kLittleBytes) return;
    short_turns_ = kShortTurns;
    ++ended_;
  }
  // Counts bytes of this turn, moved by the connection of the node; `cost` is 1 or kTlsCost.
  void count_read(DeferredNode& node, std::size_t bytes, std::uint64_t cost) {
    moved_ += bytes * cost;
    node.served = ++number_;
  }
  void count_written(DeferredNode& node, std::size_t bytes, std::uint64_t cost) {
    moved_ += bytes * cost;
    served_ += bytes;
    node.served = ++number_;
  }

  // Returns how many bytes the caller may write or read now. While one of the queue is called that
  // is the rest of its share, else a share if nobody waits and the turn is not used up. 0: wait().
  std::size_t allowance() const {
    if (is_serving_) return share_ - std::min(share_, served_);
    if (waiting_ != 0 || moved_ >= turn_bytes()) return 0;
    return is_short() ? kShortTurnMin : kShareMax;
  }
  // The share of each of `waiting` connections. REQUIRES: waiting > 0.
  static std::size_t share_of(std::size_t waiting);

  // Puts a node into the queue. REQUIRES: not linked.
  void wait(DeferredNode& node, void (*call)(DeferredNode& node));
  // REQUIRES: the node waits here.
  void leave(DeferredNode& node) {
    ENCORE_CHECK(node.waits_for_share && waiting_ != 0, "who leaves the queue stands in it");
    DeferredList::remove(node);
    node.waits_for_share = false;
    --waiting_;
  }
  std::size_t waiting() const { return waiting_; }

  // Calls those that wait, the first of them first, until the turn is used up. One that waits again
  // from within its call stands behind the others, and may be called once more.
  void serve() {
    if (waiting_ != 0) serve_waiting();
  }

 private:
  bool is_short() const { return short_turns_ != 0; }
  // In a short turn one connection has all of the turn, so that few are called in each.
  std::size_t short_share() const {
    return std::clamp(waiting_ * kShortTurnEach, kShortTurnMin, kShortTurnMax);
  }
  std::uint64_t turn_bytes() const { return is_short() ? short_turn_bytes_ : kTurnBytes; }
  void serve_waiting();

  DeferredList queue_;
  std::size_t waiting_ = 0;
  std::uint64_t moved_ = 0;  // in this turn, weighted by cost
  // That of the last share. No node of the beginning has had one lately.
  std::uint32_t number_ = 1U << 31U;
  std::size_t share_ = 0;   // share of each connection that is served in this turn
  std::size_t served_ = 0;  // written of it by the one that is called
  bool is_serving_ = false;
  int short_turns_ = 0;      // this one, and those to come
  std::uint64_t ended_ = 0;  // small responses in this turn
  std::uint64_t short_turn_bytes_ = kShortTurnMin;
};

}  // namespace encore::net
