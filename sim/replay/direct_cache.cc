#include "sim/replay/direct_cache.h"

#include "cache/eviction.h"

namespace encore::sim {
namespace {

bool is_plain(const ReplayOptions& options) {
  const cache::KernelOptions& kernel = options.kernel;
  return kernel.shards == 1 && kernel.disks.empty() &&
         kernel.admission.policy == cache::AdmissionPolicy::kAlways && !options.probation &&
         !options.tuning && !options.charge;
}

template <typename Order>
std::unique_ptr<DirectCache> make_direct(const ReplayOptions& options) {
  if constexpr (cache::Configurable<Order>) {
    return std::make_unique<DirectCacheOf<Order>>(options, options.kernel.eviction_settings);
  } else {
    return std::make_unique<DirectCacheOf<Order>>(options);
  }
}

}  // namespace

std::unique_ptr<DirectCache> DirectCache::create(const ReplayOptions& options) {
  if (!is_plain(options)) {
    return nullptr;
  }
  if (options.own) {
    return options.own(options);
  }
  switch (options.kernel.eviction) {
#define ENCORE_CASE(id, name, policy) \
  case cache::EvictionPolicy::id:     \
    return make_direct<cache::policy>(options);
    ENCORE_EVICTION_POLICIES(ENCORE_CASE)
#undef ENCORE_CASE
  }
  return nullptr;
}

}  // namespace encore::sim
