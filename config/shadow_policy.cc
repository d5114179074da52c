#include "config/shadow_policy.h"

#include <algorithm>
#include <charconv>
#include <string>

#include "base/units.h"

namespace encore::config {
namespace {

template <typename T>
std::optional<T> number(std::string_view text) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

Result<void> read_parameter(std::string_view text, ShadowPolicy& policy) {
  const std::string shown = "\"" + std::string(text) + "\"";
  switch (policy.admission) {
    case cache::AdmissionPolicy::kNthHit:
      policy.min_requests = number<std::uint32_t>(text);
      if (!policy.min_requests || *policy.min_requests < 2 ||
          *policy.min_requests > cache::kMinRequestsMax) {
        return fail("has " + shown + " for nth-hit's requests, accepted: 2 .. " +
                    std::to_string(cache::kMinRequestsMax));
      }
      return {};
    case cache::AdmissionPolicy::kProbability:
      policy.probability = number<double>(text);
      // Not as "<= 0": what is no number is none of these.
      if (!policy.probability || !(*policy.probability >= 1e-6 && *policy.probability <= 1)) {
        return fail("has " + shown + " for a probability, accepted: 1e-06 .. 1");
      }
      return {};
    case cache::AdmissionPolicy::kSizeThreshold: {
      const auto bytes = parse_bytes(text);
      if (!bytes || *bytes == 0) {
        return fail("has " + shown + " for size-threshold's size, accepted: 1B and more");
      }
      policy.size_threshold_bytes = *bytes;
      return {};
    }
    default:
      return fail("has a parameter " + shown + " for " +
                  std::string(cache::to_string(policy.admission)) + ", which takes none");
  }
}

}  // namespace

Result<ShadowPolicy> parse_shadow_policy(std::string_view text) {
  ShadowPolicy policy;
  std::string_view rest = text;
  if (const std::size_t plus = text.find('+'); plus != std::string_view::npos) {
    const std::string_view name = text.substr(plus + 1);
    if (std::ranges::find(cache::kShadowEvictionNames, name) == cache::kShadowEvictionNames.end()) {
      return fail("has an unknown eviction policy \"" + std::string(name) + "\"");
    }
    policy.eviction = *cache::parse_eviction(name);
    rest = text.substr(0, plus);
  }
  const std::size_t colon = std::min(rest.find(':'), rest.size());
  const auto admission = cache::parse_admission(rest.substr(0, colon));
  if (!admission) return fail("is not a policy: " + admission.error().message);
  policy.admission = *admission;
  if (policy.admission == cache::AdmissionPolicy::kProbation) {
    return fail("is probation, which needs a disk, and the simulation has none");
  }
  if (colon != rest.size()) {
    if (auto read = read_parameter(rest.substr(colon + 1), policy); !read) {
      return std::unexpected(read.error());
    }
  }
  return policy;
}

}  // namespace encore::config
