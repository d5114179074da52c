// The comparisons of the blocks command: on one workload, ways to remember what was seen, and hash
// functions good and bad.
#pragma once

#include "base/cli/monitor.h"
#include "base/error.h"
#include "filter/parameters.h"
#include "sim/report/report.h"
#include "sim/workload/block_events.h"

namespace encore::sim {

// Exact set, tables of short hashes of 8 to 64 bits, the filter: memory, time, FPR. The times go
// to the report's machine part. An interrupt leaves out those that have not seen all events.
// Errors: check(workload), impossible parameters.
Result<void> compare_structures(const BlockWorkload& workload, const filter::FilterShape& shape,
                                Monitor& monitor, Report& report);

struct HashComparison {
  BlockWorkload workload;
  std::uint64_t bits = 0;
  std::uint32_t hashes = 0;
};
// All hash families and all bad hashes on a classic filter: by how much each misses theory. After
// an interrupt each is compared with theory for the blocks that it has seen.
Result<void> compare_hashes(const HashComparison& comparison, Monitor& monitor, Report& report);

}  // namespace encore::sim
