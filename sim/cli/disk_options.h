// The options of a simulated disk tier: --disk-size and what goes with it.
#pragma once

#include <cstdint>
#include <string>

#include "base/cli/arguments.h"
#include "base/error.h"
#include "cache/options.h"
#include "sim/report/report.h"

namespace encore::sim {

class DiskArguments {
 public:
  void declare(Arguments& arguments);
  // Whether there is to be a disk. Errors: a size, segment or share that is not accepted, an option
  // without --disk-size.
  Result<void> read(const Arguments& arguments);
  bool any() const { return disk_.segments != 0; }
  // Gives the kernel its disk, if there is one.
  void apply(cache::KernelOptions& options) const;
  void append_parameters(Row& row) const;

 private:
  std::string size_;
  std::string segment_;
  double reinsert_ = 0.5;
  cache::DiskOptions disk_;
};

}  // namespace encore::sim
