// Keys of [shadow].
#include <array>

#include "config/keys.h"

namespace encore::config {
namespace {

constexpr std::array kShadowKeys = {
    bound<&Shadow::policies>(
        {.name = "policies",
         .kind = Kind::kTextList,
         .doc = "Policies whose hits are told beside those of the policy in force: an admission "
                "policy, behind a colon its parameter (`nth-hit:3`, `probability:0.1`, "
                "`size-threshold:64KiB`), behind a plus an eviction policy (`tinylfu+lru`). What "
                "is not said is as `[admission]` and `[cache]` have it. Those that stay at a "
                "reload, with all that they follow from, go on.",
         .range = {.min = 0, .max = kShadowPoliciesMax},
         .accepted = "policies, as \"always\", \"nth-hit:3\" or \"tinylfu+lru\"",
         .item_check = check_parsed<ShadowPolicyText>}),
    bound<&Shadow::sample>(
        {.name = "sample",
         .kind = Kind::kInteger,
         .doc = "They are simulated with one key in so many, in caches that are as much smaller. "
                "1: with all of them, which takes a thread as much time as the cache itself.",
         .range = {.min = 1, .max = 65536}}),
    bound<&Shadow::cache_bytes>({.name = "cache",
                                 .kind = Kind::kBytes,
                                 .doc = "The size of the cache that is simulated. 0: that of "
                                        "`cache.memory`; disks do not count.",
                                 .range = {.min = kMiB, .max = kTiB * 1024},
                                 .zero_is_off = true}),
};

}  // namespace

std::span<const Key> shadow_keys() { return kShadowKeys; }

}  // namespace encore::config
