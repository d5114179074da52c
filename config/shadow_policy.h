// Parses the texts of shadow.policies. A pure function and a value, thread-safe.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "base/error.h"
#include "cache/options.h"

namespace encore::config {

// "second-hit", "nth-hit:3", "probability:0.1", "size-threshold:64KiB", "tinylfu+lru": an admission
// policy, behind a colon its parameter, behind a plus an eviction policy. Parts left out are as in
// [admission] and [cache].
struct ShadowPolicy {
  cache::AdmissionPolicy admission = cache::AdmissionPolicy::kSecondHit;
  std::optional<cache::EvictionPolicy> eviction = {};
  std::optional<std::uint32_t> min_requests = {};
  std::optional<double> probability = {};
  std::optional<std::uint64_t> size_threshold_bytes = {};
  friend bool operator==(const ShadowPolicy&, const ShadowPolicy&) = default;
};
// Errors: an unknown policy, an eviction that knows the future, a parameter that is none, or of a
// policy that has none.
Result<ShadowPolicy> parse_shadow_policy(std::string_view text);

}  // namespace encore::config
