// The options of replays through several caches: sim/replay/fleet.h.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/cli/arguments.h"
#include "base/error.h"
#include "sim/replay/fleet_options.h"
#include "sim/report/report.h"

namespace encore::sim {

class FleetArguments {
 public:
  void declare(Arguments& arguments);
  // `seed` is that of the random choice. Errors: an unknown name, options that have no effect.
  Result<void> read(const Arguments& arguments, std::uint64_t seed);
  // False: one cache.
  bool any() const { return options_.has_value(); }
  // True if the number of the trace's requests must be known beforehand.
  bool loses_node() const { return any() && lost_share_ > 0; }
  // Nothing for one cache. `requests` are the trace's, 0 where they are not known.
  std::optional<FleetOptions> options(std::uint64_t requests) const;
  void append_parameters(Row& row) const;

 private:
  std::uint64_t nodes_ = 1;
  std::string balance_ = "random";
  double balance_factor_ = 1.5;
  std::uint64_t balance_load_ = 16;
  std::string tier_ = "one";
  std::uint64_t parents_ = 1;
  std::string parent_cache_bytes_;
  std::string memory_ = "local";
  double lost_share_ = 0;
  std::optional<FleetOptions> options_;
};

}  // namespace encore::sim
