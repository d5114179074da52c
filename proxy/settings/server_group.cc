#include "proxy/settings/server_group.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "base/check.h"

namespace encore::server {
namespace {

std::int64_t count_of(MonotonicTime time) { return time.time_since_epoch().count(); }

}  // namespace

void ServerGroup::add(OriginServer server) {
  servers_.push_back(std::move(server));
  aside_until_.push_back(std::make_unique<Until>(0));
}

std::size_t ServerGroup::index_of(const OriginServer& server) const {
  const auto index = static_cast<std::size_t>(&server - servers_.data());
  ENCORE_CHECK(index < servers_.size(), "a server is asked about in its own group");
  return index;
}

bool ServerGroup::is_tried(std::size_t index, std::span<const OriginServer* const> tried) const {
  return std::ranges::find(tried, &servers_[index]) != tried.end();
}

const OriginServer* ServerGroup::next(MonotonicTime now, const Choice& choice) const {
  // A second choice takes nobody's turn.
  const std::size_t turn = choice.tried.empty() ? turn_.fetch_add(1, std::memory_order_relaxed)
                                                : turn_.load(std::memory_order_relaxed);
  std::int64_t earliest = std::numeric_limits<std::int64_t>::max();
  const OriginServer* last_resort = nullptr;
  for (std::size_t step = 0; step < servers_.size(); ++step) {
    const std::size_t index = (turn + step) % servers_.size();
    if (is_tried(index, choice.tried)) continue;
    Until& aside = *aside_until_[index];
    std::int64_t until = aside.load(std::memory_order_relaxed);
    if (until == 0) return &servers_[index];
    // Whoever moves the time on is the one who tries it.
    if (until <= count_of(now) && aside.compare_exchange_strong(until, count_of(now + choice.rest),
                                                                std::memory_order_relaxed)) {
      return &servers_[index];
    }
    if (until < earliest) {
      earliest = until;
      last_resort = &servers_[index];
    }
  }
  return choice.last_resort ? last_resort : nullptr;
}

bool ServerGroup::set_aside(const OriginServer& server, MonotonicTime now, Nanoseconds rest) const {
  if (rest.count() == 0) return false;
  const std::size_t index = index_of(server);
  bool others = false;
  for (std::size_t i = 0; i < servers_.size(); ++i) {
    others |= i != index && aside_until_[i]->load(std::memory_order_relaxed) == 0;
  }
  if (!others) return false;
  const std::int64_t before =
      aside_until_[index]->exchange(count_of(now + rest), std::memory_order_relaxed);
  return before == 0;
}

void ServerGroup::put_back(const OriginServer& server) const {
  Until& aside = *aside_until_[index_of(server)];
  if (aside.load(std::memory_order_relaxed) != 0) aside.store(0, std::memory_order_relaxed);
}

}  // namespace encore::server
