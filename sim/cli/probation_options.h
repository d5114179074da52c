// The options of a simulated probation: which rules, what a write costs, the fill.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/cli/arguments.h"
#include "base/error.h"
#include "sim/cli/disk_options.h"
#include "sim/cli/kernel_options.h"
#include "sim/replay/replay_run.h"
#include "sim/report/report.h"

namespace encore::sim {

class ProbationArguments {
 public:
  void declare(Arguments& arguments);
  // Errors: a window, a write cost or a time that is not accepted.
  Result<void> read(const Arguments& arguments);
  // Each planned probation becomes several: one a fixed window, one a write cost. Errors: an option
  // of probation without one.
  Result<std::vector<PlannedKernel>> expand(const std::vector<PlannedKernel>& planned,
                                            const DiskArguments& disk,
                                            const Arguments& arguments) const;
  void append_parameters(Row& row) const;

 private:
  std::vector<ReplayProbation> rules_for(const PlannedKernel& planned, const DiskArguments& disk,
                                         const std::vector<double>& costs) const;

  std::string windows_text_ = "samples";
  std::string costs_text_ = "0.3";
  std::string wait_max_text_ = "0s";
  bool fill_ = false;
  bool no_fill_ = false;
  std::vector<std::optional<double>> windows_;  // nothing: samples choose
  std::vector<double> costs_;
  Nanoseconds wait_max_{0};
  double copies_ = 0;
};

}  // namespace encore::sim
