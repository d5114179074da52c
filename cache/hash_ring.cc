#include "cache/hash_ring.h"

#include <algorithm>
#include <string>

#include "base/check.h"
#include "filter/hash.h"

namespace encore::cache {
namespace {

constexpr std::size_t kNowhere = SIZE_MAX;

struct Sums {
  std::uint64_t active = 0;
  std::uint64_t weight = 0;
};

Sums sums_of(std::span<const ServerCandidate> candidates) {
  Sums sums;
  for (const ServerCandidate& each : candidates) {
    sums.active += each.active;
    sums.weight += each.weight;
  }
  return sums;
}

std::uint64_t bound_of(const ServerCandidate& of, const Sums& sums, std::uint32_t load_percent) {
  const std::uint64_t share = load_percent * (sums.active + 1) * of.weight;
  return (share + 100 * sums.weight - 1) / (100 * sums.weight);
}

}  // namespace

HashRing::HashRing(std::span<const Server> servers) : servers_(servers.size()) {
  for (std::size_t i = 0; i < servers.size(); ++i) {
    for (std::size_t point = 0; point < servers[i].weight * kPointsPerWeight; ++point) {
      const std::string name = std::string(servers[i].name) + "#" + std::to_string(point);
      points_.push_back({filter::hash_key(filter::HashFamily::kXxh3, filter::Seed{}, name).lo,
                         static_cast<std::uint32_t>(i)});
    }
  }
  std::ranges::sort(points_, [](const Point& a, const Point& b) {
    return a.at != b.at ? a.at < b.at : a.server < b.server;
  });
}

std::size_t HashRing::pick(std::uint64_t hash, std::span<const ServerCandidate> candidates,
                           Load load, std::uint32_t load_percent) const {
  ENCORE_CHECK(!candidates.empty(), "one of some is picked");
  std::vector<std::size_t> with_room(servers_, kNowhere);
  const Sums sums = sums_of(candidates);
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    const bool has_room =
        load == Load::kAny || candidates[i].active < bound_of(candidates[i], sums, load_percent);
    if (has_room) with_room.at(candidates[i].server) = i;
  }
  const auto start = std::ranges::lower_bound(points_, hash, {}, &Point::at);
  const auto first = static_cast<std::size_t>(start - points_.begin());
  for (std::size_t step = 0; step < points_.size(); ++step) {
    const std::size_t found = with_room[points_[(first + step) % points_.size()].server];
    if (found != kNowhere) return found;
  }
  ENCORE_CHECK(false, "the bounds of all have room for one more");
  return 0;
}

std::uint64_t load_bound(const ServerCandidate& of, std::span<const ServerCandidate> candidates,
                         std::uint32_t load_percent) {
  return bound_of(of, sums_of(candidates), load_percent);
}

}  // namespace encore::cache
