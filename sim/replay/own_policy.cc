#include "sim/replay/own_policy.h"

#include <span>

#include "sim/trace/open_trace.h"

namespace encore::sim {
namespace {

constexpr std::size_t kReadAtOnce = 4096;

// The kernel's own limit (kChargeMax): it cannot count more.
Result<void> check_object(const ObjectTable& objects, std::uint64_t cache_bytes) {
  const std::uint64_t largest = objects.largest_bytes();
  if (largest > kChargeMax && largest <= cache_bytes) {
    return fail("an object of " + std::to_string(largest) + " bytes in a cache of " +
                std::to_string(cache_bytes) +
                ", accepted: objects below a tebibyte, or a cache smaller than the object");
  }
  return {};
}

}  // namespace

TraceOptions usual_trace_options() {
  TraceOptions options;
  options.identity_seed = {1, 1};
  return options;
}

Result<ReplayCounts> replay_files(const std::vector<std::string>& files, const OwnReplay& replay,
                                  const TraceOptions& trace) {
  if (replay.eviction == cache::EvictionPolicy::kBelady) {
    return fail("eviction belady, accepted: a policy that needs no future");
  }
  ReplayOptions options;
  options.kernel.capacity_bytes = replay.cache_bytes;
  options.kernel.max_object_share = 1;
  options.kernel.shards = 1;
  options.kernel.entry_overhead_bytes = 0;
  options.kernel.eviction = replay.eviction;
  options.kernel.admission.policy = cache::AdmissionPolicy::kAlways;
  options.kernel.identity_seed = trace.identity_seed;
  options.warmup_requests = replay.warmup_requests;
  options.own = replay.own;
  auto run = ReplayRun::create(options);
  auto reader = run ? open_traces(files, trace) : std::unexpected(run.error());
  if (!reader) {
    return std::unexpected(reader.error());
  }
  ObjectTable objects(replay.object_size);
  std::vector<Request> requests(kReadAtOnce);
  std::vector<ReplayRequest> numbered;
  while (true) {
    const auto got = (*reader)->read(requests);
    if (!got) {
      return std::unexpected(got.error());
    }
    if (*got == 0) {
      break;
    }
    numbered.clear();
    for (const Request& request : std::span(requests).first(*got)) {
      numbered.push_back(objects.number(request));
    }
    if (auto fits = check_object(objects, replay.cache_bytes); !fits) {
      return std::unexpected(fits.error());
    }
    (*run)->feed(numbered);
  }
  (*run)->finish();
  return (*run)->counts();
}

}  // namespace encore::sim
