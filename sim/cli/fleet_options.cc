#include "sim/cli/fleet_options.h"

#include <cmath>

#include "base/cli/numbers.h"

namespace encore::sim {
namespace {

constexpr double kBalanceFactorMax = 100;
constexpr std::uint64_t kBalanceLoadMax = 65536;

Result<bool> parse_has_parents(const std::string& tier) {
  if (tier != "one" && tier != "two") {
    return fail("--tier \"" + tier + "\", accepted: one, two");
  }
  return tier == "two";
}

}  // namespace

void FleetArguments::declare(Arguments& a) {
  a.number("--nodes", nodes_,
           "caches that share the requests, each with its own --cache-size and --capacity",
           {.min = 1, .max = kNodesMax});
  a.text("--balance", balance_,
         "choice of the node: random; hash: the same for a key, by the proxy's ring; bounded: hash "
         "with bounded loads");
  a.real("--balance-factor", balance_factor_,
         "bounded: requests in progress at a node, at most so many times the mean",
         {.min = 1, .max = kBalanceFactorMax});
  a.number("--balance-load", balance_load_,
           "bounded: mean requests in progress per node; as one begins, the fleet's oldest ends",
           {.min = 1, .max = kBalanceLoadMax});
  a.text("--tier", tier_, "one, or two: nodes ask parents, chosen by hash, not the origin");
  a.number("--parents", parents_, "two tiers: number of parents", {.min = 1, .max = kNodesMax});
  a.text("--parent-cache-bytes", parent_cache_bytes_,
         "two tiers: cache of each parent, as 1GiB (default: as a node's)");
  a.text("--memory", memory_,
         "caches that remember a request: local: its node; shared: all nodes; hint: its node, "
         "which stores at once where the parent had a hit or a second request");
  a.real("--fail-node", lost_share_, "lose a node at this share of the trace (0: none)",
         {.min = 0, .max = 1, .without_max = true});
}

Result<void> FleetArguments::read(const Arguments& arguments, std::uint64_t seed) {
  const auto balance = parse_node_choice(balance_);
  const auto memory = parse_fleet_memory(memory_);
  const auto has_parents = parse_has_parents(tier_);
  const bool is_sized = arguments.given("--parent-cache-bytes");
  const auto parent_bytes =
      is_sized ? parse_size("--parent-cache-bytes", parent_cache_bytes_, {.min = 1})
               : Result<std::uint64_t>(0);
  for (const Error* error :
       {balance ? nullptr : &balance.error(), memory ? nullptr : &memory.error(),
        has_parents ? nullptr : &has_parents.error(),
        parent_bytes ? nullptr : &parent_bytes.error()}) {
    if (error != nullptr) {
      return std::unexpected(*error);
    }
  }
  if (!*has_parents && *memory == FleetMemory::kHint) {
    return fail("--memory hint without --tier two, whose parents give the hint");
  }
  for (const char* option : {"--parents", "--parent-cache-bytes"}) {
    if (!*has_parents && arguments.given(option)) {
      return fail(std::string(option) + " without --tier two");
    }
  }
  for (const char* option : {"--balance-factor", "--balance-load"}) {
    if (*balance != NodeChoice::kBounded && arguments.given(option)) {
      return fail(std::string(option) + " without --balance bounded");
    }
  }
  if (lost_share_ > 0 && nodes_ == 1) {
    return fail("--fail-node with --nodes 1, accepted: two nodes or more");
  }
  for (const char* option : {"--balance", "--memory"}) {
    if (nodes_ == 1 && !*has_parents && arguments.given(option)) {
      return fail(std::string(option) + " with --nodes 1, accepted: two nodes or more");
    }
  }
  options_.reset();
  if (nodes_ == 1 && !*has_parents) {
    return {};
  }
  constexpr double kPercent = 100;
  options_ = FleetOptions{
      .front = {.nodes = static_cast<std::uint32_t>(nodes_),
                .balance = *balance,
                .load_percent = static_cast<std::uint32_t>(std::lround(kPercent * balance_factor_)),
                .load = static_cast<std::uint32_t>(balance_load_),
                .seed = seed},
      .memory = *memory,
      .parents = *has_parents ? static_cast<std::uint32_t>(parents_) : 0,
      .parent_cache_bytes = *parent_bytes};
  return {};
}

std::optional<FleetOptions> FleetArguments::options(std::uint64_t requests) const {
  auto options = options_;
  if (loses_node() && requests != 0) {
    options->front.lost_at =
        static_cast<std::uint64_t>(lost_share_ * static_cast<double>(requests));
  }
  return options;
}

void FleetArguments::append_parameters(Row& row) const {
  if (!any()) {
    return;
  }
  row.insert(row.end(), {Field{"nodes", nodes_},
                         {"balance", balance_},
                         {"balance_factor", balance_factor_},
                         {"balance_load", balance_load_},
                         {"tier", tier_},
                         {"parents", std::uint64_t{options_->parents}},
                         {"parent_cache_bytes", parent_cache_bytes_},
                         {"memory", memory_},
                         {"fail_node", lost_share_}});
}

}  // namespace encore::sim
