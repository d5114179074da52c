// Keys of [shadow].
#include <array>

#include "config/keys.h"

namespace encore::config {
namespace {

constexpr std::array kShadowKeys = {
    bound<&Shadow::policies>(
        {.name = "policies",
         .kind = Kind::kTextList,
         .doc = "An admission policy, optionally `:` and its parameter (also `probability:0.1`, "
                "`size-threshold:64KiB`), optionally `+` and an eviction policy; the rest as "
                "configured. Unchanged ones continue over a reload.",
         .range = {.min = 0, .max = kShadowPoliciesMax},
         .accepted = "policies, as \"always\", \"nth-hit:3\" or \"tinylfu+lru\"",
         .item_check = check_parsed<ShadowPolicyText>}),
    bound<&Shadow::sample>({.name = "sample",
                            .kind = Kind::kInteger,
                            .doc = "Simulate one key in N, in caches as much smaller. 1: all keys, "
                                   "as much work as the cache itself.",
                            .range = {.min = 1, .max = 65536}}),
    bound<&Shadow::cache_bytes>(
        {.name = "cache",
         .kind = Kind::kBytes,
         .doc = "Size of the simulated cache. 0: `cache.memory`, without disks.",
         .range = {.min = kMiB, .max = kTiB * 1024},
         .zero_is_off = true}),
};

}  // namespace

std::span<const Key> shadow_keys() { return kShadowKeys; }

}  // namespace encore::config
