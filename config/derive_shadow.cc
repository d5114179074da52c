// The kernels of [shadow].
#include <algorithm>
#include <string>

#include "cache/spatial_sample.h"
#include "config/derive.h"

namespace encore::config {

Result<cache::KernelOptions> shadow_kernel(const Config& config, const ShadowPolicy& policy) {
  Config other = config;
  other.cache.shards = 1;
  if (config.shadow.cache_bytes != 0) other.cache.memory_bytes = config.shadow.cache_bytes;
  other.cache.eviction = policy.eviction.value_or(config.cache.eviction);
  Admission& admission = other.admission;
  admission.policy = policy.admission;
  admission.min_requests = policy.min_requests.value_or(admission.min_requests);
  admission.probability = policy.probability.value_or(admission.probability);
  admission.size_threshold_bytes =
      policy.size_threshold_bytes.value_or(admission.size_threshold_bytes);
  admission.shadow_sample = 0;
  auto options = kernel_options(other);
  if (!options) return options;
  // Values of the whole cache, which the sample's is a part of.
  options->max_object_bytes = max_object_in_memory(other);
  options->max_object_share = 1;
  options->concurrent = false;
  return options;
}

std::uint64_t shadow_bytes(const Config& config) {
  constexpr std::uint32_t kGenerations = 2;
  constexpr std::uint64_t kExactKeyBytes = 32;
  std::uint64_t bytes = 0;
  for (const ShadowPolicyText& policy : config.shadow.policies) {
    const auto whole = shadow_kernel(config, *policy);
    if (!whole) continue;
    const auto sampled = cache::scaled_kernel(*whole, 1.0 / config.shadow.sample);
    // An entry's part of the index is charged, and never all of its charge.
    const filter::FilterParameters& memory = sampled.admission.filter;
    bytes += sampled.capacity_bytes + kGenerations * (policy->admission == Policy::kExactSecondHit
                                                          ? memory.capacity * kExactKeyBytes
                                                          : memory.bits / 8);
  }
  return bytes;
}

}  // namespace encore::config
