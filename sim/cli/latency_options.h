// The time that requests wait for, by a model: each miss takes a time of its own and what its bytes
// take, each hit on disk alone a time as well.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/cli/arguments.h"
#include "base/error.h"
#include "sim/cli/simulation.h"
#include "sim/report/report.h"

namespace encore::sim {

class LatencyArguments {
 public:
  void declare(Arguments& arguments);
  // Errors: no time, no rate.
  Result<void> read();
  // Nothing where the origin takes no time.
  std::optional<cache::FetchTime> fetch() const;
  bool any() const { return miss_seconds_ > 0 || bytes_per_second_ > 0 || disk_seconds_ > 0; }
  // Adds the mean over all requests to the table's rows, which are those of `runs`.
  void append(Table& table, const std::vector<FinishedRun>& runs) const;
  void append_parameters(Row& row) const;

 private:
  double mean_seconds(const ReplayCounts& counts) const;

  std::string miss_ = "0s";
  std::string bandwidth_ = "0";
  std::string disk_ = "0s";
  double miss_seconds_ = 0;
  double bytes_per_second_ = 0;  // 0: bytes take no time
  double disk_seconds_ = 0;
};

}  // namespace encore::sim
