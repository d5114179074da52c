#include "sim/cli/memory_need.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>

#include "base/units.h"

namespace encore::sim {
namespace {

// The number in a file of the control groups; nothing where there is none ("max", no such file).
std::uint64_t limit_in(const std::string& path) {
  std::ifstream file(path);
  std::uint64_t bytes = 0;
  return file >> bytes ? bytes : UINT64_MAX;
}

// The limit of the process' own group and of those above it; with version 1 only its own.
std::uint64_t control_group_limit() {
  std::uint64_t least = limit_in("/sys/fs/cgroup/memory/memory.limit_in_bytes");
  std::ifstream groups("/proc/self/cgroup");
  for (std::string line; std::getline(groups, line);) {
    if (!line.starts_with("0::/")) {
      continue;
    }
    for (std::string group = line.substr(3); !group.empty();
         group.resize(group.find_last_of('/'))) {
      least = std::min(least, limit_in("/sys/fs/cgroup" + group + "/memory.max"));
    }
  }
  return std::min(least, limit_in("/sys/fs/cgroup/memory.max"));
}

std::uint64_t resource_limit(__rlimit_resource resource) {
  rlimit limit{};
  return getrlimit(resource, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY ? limit.rlim_cur
                                                                             : UINT64_MAX;
}

std::string shown(double bytes) {
  constexpr double kMost = 0x1p63;
  return bytes < kMost ? format_bytes(static_cast<std::uint64_t>(bytes)) : "more than 8388608TiB";
}

}  // namespace

std::uint64_t memory_there() {
  const auto pages = static_cast<std::uint64_t>(std::max(0L, sysconf(_SC_PHYS_PAGES)));
  const auto page = static_cast<std::uint64_t>(std::max(0L, sysconf(_SC_PAGESIZE)));
  const std::uint64_t machine = pages == 0 ? UINT64_MAX : pages * page;
  return std::min(
      {machine, control_group_limit(), resource_limit(RLIMIT_AS), resource_limit(RLIMIT_DATA)});
}

Result<void> check_memory(const MemoryNeed& need, std::uint64_t there) {
  if (need.bytes <= static_cast<double>(there)) {
    return {};
  }
  return fail(need.what + " take " + shown(need.bytes) +
              " of memory; available: " + format_bytes(there) + ", reduce the sizes or the trace");
}

double admission_bytes(const cache::KernelOptions& options) {
  const cache::AdmissionOptions& admission = options.admission;
  const auto filter = static_cast<double>(admission.filter.bits) / 8 * options.shards;
  switch (admission.policy) {
    case cache::AdmissionPolicy::kSecondHit:
    case cache::AdmissionPolicy::kNthHit:
    case cache::AdmissionPolicy::kProbation:
      return 2 * filter;
    case cache::AdmissionPolicy::kTinyLfu:
      // A doorkeeper, and a sketch for a tenth as many keys as its window has requests.
      return filter + 2 * static_cast<double>(admission.filter.capacity) * options.shards;
    default:
      return 0;
  }
}

double probation_bytes(const ReplayProbation& probation) {
  constexpr double kSamples =
      cache::ProbationSamples::kRateMax * static_cast<double>(cache::kProbationSampleCount);
  const auto generation = static_cast<double>(probation.settings.keys.bits) / 8;
  return 2 * generation * (probation.write_cost ? 1 + kSamples : 1);
}

}  // namespace encore::sim
