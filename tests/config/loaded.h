// Configurations as tests give them: what must load, and the faults of what must not.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "config/derive.h"
#include "config/load.h"
#include "tests/catch.h"

namespace encore::config {

// The defaults with these `--set`.
inline Config with(const std::vector<std::string>& sets) {
  const auto config = load_config({.path = "", .sets = sets});
  INFO((config ? std::string() : config.error().message));
  REQUIRE(config.has_value());
  return *config;
}

inline FilterPlan plan_of(const std::vector<std::string>& sets) {
  const auto plan = derive_filter(with(sets));
  REQUIRE(plan.has_value());
  return *plan;
}

// Empty: none.
inline std::string faults_of_sets(const std::vector<std::string>& sets) {
  const auto config = load_config({.path = "", .sets = sets});
  return config ? "" : config.error().message;
}

inline std::string faults(std::string_view toml, const std::vector<std::string>& sets = {}) {
  const auto config = parse_config(toml, "encore.toml", sets);
  return config ? "" : config.error().message;
}

}  // namespace encore::config
