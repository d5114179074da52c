#include "proxy/fleet/joining.h"

#include <algorithm>

#include "proxy/net/sealing.h"
#include "proxy/observe/log.h"

namespace encore::fleet {
namespace {

// Later a filter is of no use: the node has learnt by itself.
constexpr Nanoseconds kJoiningMax = std::chrono::seconds(30);
// For nodes that may be about to tell that they are present.
constexpr Nanoseconds kLookingMax = 3 * kPresenceInterval;

}  // namespace

void Joining::run() {
  begin_ = monotonic_now();
  const MonotonicTime end = begin_ + kJoiningMax;
  MonotonicTime looking_end = end;
  std::uint64_t seen = 0;
  while (!stop_.is_stopped()) {
    const auto nodes = state_.wait_for_nodes(seen, looking_end - monotonic_now());
    if (!nodes) break;
    if (looking_end == end) {
      looking_end = std::min(end, monotonic_now() + kLookingMax);
      why_none_ = "no node has one to give";
    }
    if (adopt_one(find_givers(*nodes, options_.node, state_.engine_ms()), end)) return;
  }
  if (stop_.is_stopped()) return;
  log::info("fleet: no filter was adopted: {}", why_none_);
  state_.note_filter({.state = server::FleetFilter::State::kNone, .note = why_none_});
}

bool Joining::adopt_one(const Givers& givers, MonotonicTime end) {
  for (const auto& each : givers.unfit) {
    if (!unfit_.insert(each).second) continue;
    log::info("fleet: the filter of {} does not fit: {}", each.first, each.second);
    why_none_ = "that of " + each.first + " does not fit: " + each.second;
  }
  for (const Giver& each : givers.fit) {
    if (stop_.is_stopped() || monotonic_now() >= end) return false;
    if (!tried_.insert(each.instance).second) continue;
    const auto insertions = adopt(each, end);
    state_.set_wish(std::nullopt);
    if (insertions) {
      const Nanoseconds passed = monotonic_now() - begin_;
      const double seconds = std::chrono::duration<double>(passed).count();
      log::info("fleet: adopted the filter of {}, {:.1f} s after the start", each.node, seconds);
      state_.note_filter({.state = server::FleetFilter::State::kAdopted,
                          .from = each.node,
                          .adopted = wall_now(),
                          .seconds = seconds,
                          .insertions = *insertions});
      return true;
    }
    if (stop_.is_stopped()) return false;
    why_none_ = "from " + each.node + ": " + insertions.error().message;
    log::warn("fleet: no filter from {}: {}", each.node, insertions.error().message);
  }
  return false;
}

Result<std::uint64_t> Joining::adopt(const Giver& giver, MonotonicTime end) {
  const auto pair = net::SealingPair::create();
  if (!pair) return std::unexpected(pair.error());
  state_.set_wish(FilterWish{.from = giver.instance, .key = net::to_hex(pair->public_key())});
  auto bytes = transfer_.receive(*pair, end);
  if (!bytes) return std::unexpected(bytes.error());
  return host_.adopt_filter(*std::move(bytes));
}

}  // namespace encore::fleet
