#include "proxy/net/turn_shares.h"

namespace encore::net {
namespace {

// So many numbers ago is lately. A small write has a number, too: of one turn that may be
// thousands.
constexpr std::uint32_t kLately = 1U << 20U;
// The queue is in order but for what came in this turn, in the order in which the kernel tells of
// it. So many places a node may go forward: its cost is bounded where thousands wait.
constexpr int kPlacesMax = 64;

// Numbers begin again after the last one.
bool is_later(std::uint32_t number, std::uint32_t than) {
  return static_cast<std::int32_t>(number - than) > 0;
}

}  // namespace

// Some 0.8 ms, at 0.19 s of CPU time a GB.
const std::uint64_t TurnShares::kTurnBytes = std::uint64_t{4} << 20;
// 0.51 s a GB.
const std::uint64_t TurnShares::kTlsCost = 3;
// With 256 KiB the wake-ups of clients that have fallen asleep take a fifth more CPU time a GB.
const std::size_t TurnShares::kShareMin = std::size_t{512} << 10;
const std::size_t TurnShares::kShareMax = std::size_t{1} << 20;
const std::uint64_t TurnShares::kLeastForWaiting = std::uint64_t{1} << 20;
// Some 0.03 and 0.1 ms. With 64 that wait, turns of 128 KiB take a quarter more CPU time a GB.
const std::size_t TurnShares::kShortTurnEach = std::size_t{8} << 10;
const std::size_t TurnShares::kShortTurnMin = std::size_t{96} << 10;
const std::size_t TurnShares::kShortTurnMax = std::size_t{512} << 10;
// Some 8 us, a hit of 1 KiB.
const std::size_t TurnShares::kLittleCost = std::size_t{40} << 10;
const std::uint64_t TurnShares::kCallCost = std::uint64_t{8} << 10;

std::size_t TurnShares::share_of(std::size_t waiting) {
  return std::clamp<std::size_t>(kTurnBytes / waiting, kShareMin, kShareMax);
}

void TurnShares::wait(DeferredNode& node, void (*call)(DeferredNode& node)) {
  if (number_ - node.served > kLately) node.served = number_;
  DeferredNode* next = &queue_.end();
  for (int i = 0; i < kPlacesMax; ++i) {
    DeferredNode* const previous = next->previous;
    if (previous == &queue_.end() || !is_later(previous->served, node.served)) break;
    next = previous;
  }
  DeferredList::insert(*next, node, call);
  node.waits_for_share = true;
  ++waiting_;
}

void TurnShares::serve_waiting() {
  share_ = is_short() ? short_share() : share_of(waiting_);
  const std::uint64_t least = is_short() ? short_turn_bytes_ : kLeastForWaiting;
  const std::uint64_t end = std::max(turn_bytes(), moved_ + least);
  is_serving_ = true;
  while (waiting_ != 0 && moved_ < end) {
    DeferredNode& node = queue_.front();
    const auto call = node.run;
    leave(node);
    served_ = 0;
    node.served = ++number_;
    moved_ += kCallCost;
    call(node);
  }
  is_serving_ = false;
}

}  // namespace encore::net
