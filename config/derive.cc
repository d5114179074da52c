#include "config/derive.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <string>

namespace encore::config {
namespace {

constexpr std::uint32_t kGenerations = 2;
constexpr std::uint64_t kObjectShare = 8;  // no object is more than 1/8 of the memory

std::uint64_t share(std::uint64_t whole, std::uint32_t shards) {
  return (whole + shards - 1) / shards;
}

std::string shown(double value) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%g", value);
  return text.data();
}

// bits and what else was given.
filter::FilterParameters from_bits(const Admission& admission, std::uint32_t shards) {
  filter::FilterParameters shard;
  shard.layout = admission.layout;
  shard.bits = share(admission.bits, shards);
  shard.hashes = admission.hashes;
  shard.capacity = admission.capacity == 0 ? 0 : share(admission.capacity, shards);
  if (shard.hashes == 0) {
    shard.hashes =
        shard.layout == filter::Layout::kSplit
            ? filter::kSplitHashes
            : std::min(kConfiguredHashesMax,
                       filter::best_hashes(shard.shape(), static_cast<double>(shard.capacity)));
  }
  if (shard.capacity == 0) {
    shard.capacity = std::max<std::uint64_t>(1, filter::half_full_capacity(shard.shape()));
  }
  return shard;
}

Result<filter::FilterParameters> from_goal(const Admission& admission, std::uint32_t shards) {
  filter::FilterParameters shard;
  shard.layout = admission.layout;
  shard.capacity = share(admission.capacity, shards);
  filter::RingGoal goal{.layout = admission.layout,
                        .capacity = static_cast<double>(shard.capacity),
                        .fpr_worst = admission.fpr,
                        .generations = kGenerations,
                        .hashes = admission.hashes,
                        .refresh = admission.refresh};
  filter::Sizing sizing = filter::size_ring(goal);
  if (goal.hashes == 0 && sizing.hashes > kConfiguredHashesMax) {
    goal.hashes = kConfiguredHashesMax;
    sizing = filter::size_ring(goal);
  }
  if (!sizing.reached) {
    return fail("a false-positive rate of " + shown(admission.fpr) + " for " +
                std::to_string(admission.capacity) + " keys: no filter of layout " +
                std::string(to_string(admission.layout)) + " with " +
                std::to_string(sizing.hashes) + " hashes reaches it; accepted: a higher rate, or " +
                "another layout");
  }
  shard.bits = sizing.bits;
  shard.hashes = sizing.hashes;
  return shard;
}

}  // namespace

Result<FilterPlan> derive_filter(const Config& config) {
  const Admission& admission = config.admission;
  const std::uint32_t shards = config.cache.shards;
  FilterPlan plan;
  plan.shards = shards;
  auto made = admission.bits != 0 ? Result<filter::FilterParameters>(from_bits(admission, shards))
                                  : from_goal(admission, shards);
  if (!made) return std::unexpected(made.error());
  filter::FilterParameters& wanted = *made;
  wanted.hash = admission.hash;
  if (!admission.seed.empty()) {
    const auto seed = filter::parse_seed(admission.seed);
    if (!seed) return std::unexpected(seed.error());
    wanted.seed = *seed;
  }
  auto shard = filter::checked(wanted);
  if (!shard) return std::unexpected(shard.error());
  plan.shard = *shard;
  plan.bits = plan.shard.bits * shards;
  if (plan.bits > filter::kBitsMax) {
    return fail("a filter of " + std::to_string(plan.bits) + " bits; accepted: up to " +
                std::to_string(filter::kBitsMax));
  }
  plan.capacity = plan.shard.capacity * shards;
  plan.memory_bytes = kGenerations * plan.bits / 8;
  plan.fpr = filter::ring_cycle({.shape = plan.shard.shape(),
                                 .capacity = static_cast<double>(plan.shard.capacity),
                                 .generations = kGenerations,
                                 .counting = filter::Counting::kEffective,
                                 .refresh = admission.refresh});
  return plan;
}

std::uint64_t effective_max_object(const Cache& cache) noexcept {
  return std::min(cache.max_object_bytes, cache.memory_bytes / kObjectShare);
}

Result<cache::KernelOptions> kernel_options(const Config& config) {
  const auto plan = derive_filter(config);
  if (!plan) return std::unexpected(plan.error());
  cache::KernelOptions options;
  options.capacity_bytes = config.cache.memory_bytes;
  options.max_object_bytes = effective_max_object(config.cache);
  options.shards = config.cache.shards;
  options.variants_max = config.cache.variants_max;
  options.eviction = config.cache.eviction;
  options.admission = {.policy = config.admission.policy,
                       .filter = plan->shard,
                       .refresh = config.admission.refresh,
                       .rotate_after = config.admission.rotate_after,
                       .shadow_one_in = config.admission.shadow_sample,
                       .min_requests = config.admission.min_requests,
                       .probability = config.admission.probability,
                       .size_threshold_bytes = config.admission.size_threshold_bytes};
  options.identity_seed = plan->shard.seed;
  return options;
}

std::uint32_t effective_workers(const Workers& workers, std::uint32_t cores) noexcept {
  return workers.count != 0 ? workers.count : std::max<std::uint32_t>(1, cores);
}

}  // namespace encore::config
