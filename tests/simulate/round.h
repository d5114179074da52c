// Round: one run of the simulation from one seed: a system, a world with clients and an origin, and
// one proxy after the other. A run's actions follow from its plan alone.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "tests/simulate/adversity.h"
#include "tests/simulate/settings.h"

namespace encore::simulate {

struct Plan {
  std::uint64_t seed = 1;
  Direction direction = Direction::kForward;
  std::uint64_t requests = 20000;
  std::uint32_t clients = 48;
  std::uint32_t urls = 150;
  Features features;
};

struct RoundResult {
  std::uint64_t digest = 0;
  std::uint64_t requests = 0;
  std::uint64_t decisions = 0;  // kernels' decisions, replayed
  std::uint64_t steps = 0;
  double simulated_seconds = 0;
  std::string finding;  // its kind; empty: none
  std::string text;
  std::string configuration;
  std::map<std::string, std::uint64_t, std::less<>> counters;
};

// Ends at the first finding.
RoundResult run_round(const Plan& plan);

}  // namespace encore::simulate
