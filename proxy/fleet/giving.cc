#include "proxy/fleet/giving.h"

#include "proxy/observe/log.h"

namespace encore::fleet {
namespace {

constexpr std::size_t kGivenMax = 1024;
constexpr Nanoseconds kGivingWait = std::chrono::hours(1);

}  // namespace

void Giving::run() {
  std::uint64_t seen = 0;
  while (!stop_.is_stopped()) {
    if (const auto nodes = state_.wait_for_nodes(seen, kGivingWait)) give(*nodes);
  }
}

void Giving::give(const NodeTable& nodes) {
  for (const auto& [node, wish] : nodes.wishes_to(options_.instance, state_.engine_ms())) {
    if (given_.contains(wish.key)) continue;
    const auto bytes = host_.save_filter();
    if (stop_.is_stopped()) return;
    // It asks for six seconds: another presence brings its request again.
    if (bytes == nullptr || bytes->empty()) continue;
    if (given_.size() >= kGivenMax) given_.clear();
    given_.insert(wish.key);
    if (const auto sent = transfer_.send(wish.key, *bytes)) {
      state_.note_given();
      log::info("fleet: gave the filter to {}, {} bytes", node, bytes->size());
    } else {
      log::warn("fleet: the filter did not reach {}: {}", node, sent.error().message);
    }
  }
}

}  // namespace encore::fleet
