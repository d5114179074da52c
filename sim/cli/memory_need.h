// The memory that options need, compared with the machine's: a plan that does not fit is refused
// before any of it is allocated. Filters take memory as they are written to, so nothing else would
// report it before the machine is out of memory. Thread-safe.
#pragma once

#include <cstdint>
#include <string>

#include "base/error.h"
#include "cache/options.h"
#include "sim/replay/replay_run.h"

namespace encore::sim {

// Bytes that this process may have at most: those of the machine, or fewer by its control group
// (memory.max) or its limits (ulimit -v, -d).
std::uint64_t memory_there();

struct MemoryNeed {
  std::string what;  // "8 filters of 800000 bits"
  double bytes = 0;
};
// Errors: it is more than there is; the message says what needs how much, and what there is.
Result<void> check_memory(const MemoryNeed& need, std::uint64_t there = memory_there());

// Memory of a kernel's admission policy: filters, sketches.
double admission_bytes(const cache::KernelOptions& options);
// The pairs of a probation and of its samples.
double probation_bytes(const ReplayProbation& probation);

}  // namespace encore::sim
