#include "cache/policy_parameters.h"

#include <algorithm>

#include "base/check.h"

namespace encore::cache {

double PolicyValues::real(std::span<const PolicyParameter> parameters,
                          std::string_view name) const {
  const auto found = std::ranges::find(parameters, name, &PolicyParameter::name);
  ENCORE_CHECK(found != parameters.end(), "a parameter of the policy");
  const auto number = static_cast<std::size_t>(found - parameters.begin());
  return given(number) ? values_[number] : found->initial;
}

std::uint64_t PolicyValues::count(std::span<const PolicyParameter> parameters,
                                  std::string_view name) const {
  return static_cast<std::uint64_t>(real(parameters, name));
}

Share PolicyValues::share(std::span<const PolicyParameter> parameters,
                          std::string_view name) const {
  return Share(real(parameters, name));
}

}  // namespace encore::cache
