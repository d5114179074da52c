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
  // `reinsert`: the largest share of a segment that is re-inserted, without --disk-reinsert.
  explicit DiskArguments(double reinsert = 0.5) : reinsert_(reinsert) {}

  void declare(Arguments& arguments);
  // Whether there is to be a disk. Errors: a size or share that is not accepted, an option without
  // --disk-size.
  Result<void> read(const Arguments& arguments);
  bool any() const { return bytes_ != 0; }
  // Whether a kernel can divide the disk into its segments; probation's log has no such bounds, but
  // wants a segment to be a part of it. Errors: what is accepted.
  Result<void> check_for_kernel() const;
  Result<void> check_for_probation() const;
  // Gives the kernel its disk, if there is one.
  void apply(cache::KernelOptions& options) const;
  // The given size, and the largest share of a segment that is re-inserted.
  std::uint64_t bytes() const { return bytes_; }
  double reinsert() const { return reinsert_; }
  // 0: not given.
  std::uint64_t wanted_segment_bytes() const { return segment_.empty() ? 0 : disk_.segment_bytes; }
  void append_parameters(Row& row) const;

 private:
  std::string size_;
  std::string segment_;
  std::uint64_t bytes_ = 0;
  double reinsert_;
  cache::DiskOptions disk_;
};

}  // namespace encore::sim
