// Names of eviction policies with values for their parameters, as people write them:
// "s3-fifo(small=0.2,ghost=1)". One syntax for all policies; a parameter that is not named has its
// default. Values are decimal numbers, shares also percentages. Pure functions.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "base/error.h"
#include "cache/options.h"
#include "cache/policy_parameters.h"

namespace encore::cache {

struct NamedEviction {
  EvictionPolicy policy = EvictionPolicy::kSieve;
  PolicyValues values;
};

// In the order in which they are listed; empty: the policy has none.
std::span<const PolicyParameter> parameters_of(EvictionPolicy policy);

// Errors: an unknown policy or parameter, with the nearest one and all accepted ones; a value that
// is no number or out of range, with the range; a parameter that is given twice; a parenthesis that
// is missing.
Result<NamedEviction> parse_eviction_name(std::string_view text);

// True if the policy weighs the time of a fetch (EvictionSettings::fetch).
bool weighs_latency(const NamedEviction& named);

// Returns the policy's name with the values that were given, in the parameters' order.
std::string eviction_name(EvictionPolicy policy, const PolicyValues& values);
inline std::string eviction_name(const KernelOptions& options) {
  return eviction_name(options.eviction, options.eviction_settings.values);
}

// Returns a value of the parameter as it is written: a name, or as few digits as tell it from all
// others.
std::string parameter_text(const PolicyParameter& parameter, double value);

// Returns the accepted values: "0.0001 to 0.9999", "a whole number, 1 to 3", "1, latency, bytes".
std::string range_text(const PolicyParameter& parameter);

}  // namespace encore::cache
