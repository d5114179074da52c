#include "sim/replay/balancer.h"

#include <algorithm>
#include <span>

namespace encore::sim {
namespace {

template <typename Enum>
Result<Enum> parse_name(std::string_view option, std::span<const std::string_view> names,
                        std::string_view name) {
  const auto found = std::ranges::find(names, name);
  if (found != names.end()) {
    return static_cast<Enum>(found - names.begin());
  }
  std::string accepted;
  for (const std::string_view each : names) {
    accepted += (accepted.empty() ? "" : ", ") + std::string(each);
  }
  return fail(std::string(option) + " \"" + std::string(name) + "\", accepted: " + accepted);
}

}  // namespace

std::string_view to_string(NodeChoice choice) noexcept {
  return kNodeChoiceNames[static_cast<std::size_t>(choice)];
}
std::string_view to_string(FleetMemory memory) noexcept {
  return kFleetMemoryNames[static_cast<std::size_t>(memory)];
}
Result<NodeChoice> parse_node_choice(std::string_view name) {
  return parse_name<NodeChoice>("--balance", kNodeChoiceNames, name);
}
Result<FleetMemory> parse_fleet_memory(std::string_view name) {
  return parse_name<FleetMemory>("--memory", kFleetMemoryNames, name);
}

Balancer::Balancer(const BalanceOptions& options, const std::string& name)
    : options_(options), draws_(options.seed) {
  std::vector<std::string> names;
  for (std::uint32_t i = 0; i < options.nodes; ++i) {
    names.push_back(name + "-" + std::to_string(i));
    candidates_.push_back({.server = i});
  }
  if (options.balance != NodeChoice::kRandom) {
    std::vector<cache::HashRing::Server> servers;
    for (const std::string& each : names) {
      servers.push_back({.name = each});
    }
    ring_ = cache::HashRing(servers);
  }
}

std::uint32_t Balancer::next(const ReplayRequest& request) {
  if (seen_ == options_.lost_at) {
    lose_first();
  }
  ++seen_;
  switch (options_.balance) {
    case NodeChoice::kRandom:
      return first_ + static_cast<std::uint32_t>(draws_.below(options_.nodes - first_));
    case NodeChoice::kHash:
      return owner(request);
    case NodeChoice::kBounded:
      return next_bounded(request);
  }
  return first_;
}

void Balancer::lose_first() {
  first_ = 1;
  candidates_.erase(candidates_.begin());
  owners_.clear();
  std::erase(window_, 0U);
}

std::uint32_t Balancer::owner(const ReplayRequest& request) {
  if (request.object >= owners_.size()) {
    owners_.resize(std::max<std::size_t>(request.object + std::size_t{1}, owners_.size() * 2));
  }
  std::uint16_t& known = owners_[request.object];
  if (known == 0) {
    const std::size_t at =
        ring_.pick(ring_place(request.key), candidates_, cache::HashRing::Load::kAny);
    known = static_cast<std::uint16_t>(candidates_[at].server + 1);
  }
  return known - 1U;
}

std::uint32_t Balancer::next_bounded(const ReplayRequest& request) {
  const std::size_t in_progress_max = std::size_t{options_.load} * candidates_.size();
  while (window_.size() >= in_progress_max) {
    --candidates_[window_.front() - first_].active;
    window_.pop_front();
  }
  const std::size_t at = ring_.pick(ring_place(request.key), candidates_,
                                    cache::HashRing::Load::kBounded, options_.load_percent);
  const auto node = static_cast<std::uint32_t>(candidates_[at].server);
  ++candidates_[at].active;
  window_.push_back(node);
  passed_on_ += node == owner(request) ? 0U : 1U;
  return node;
}

}  // namespace encore::sim
