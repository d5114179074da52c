// A replay's options, and the counts and outcomes that it gives. Values.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "cache/options.h"
#include "cache/probation_cache.h"
#include "sim/replay/fleet_options.h"
#include "sim/replay/trace_object.h"
#include "sim/replay/upstream.h"

namespace encore::sim {

struct ReplayCounts {
  std::uint64_t requests = 0;
  std::uint64_t hits = 0;
  std::uint64_t validations = 0;
  std::uint64_t bytes_requested = 0;
  std::uint64_t bytes_hit = 0;
  std::uint64_t bytes_from_origin = 0;
  std::uint64_t objects_written = 0;
  std::uint64_t bytes_written = 0;    // to the store, the next line included
  std::uint64_t bytes_rewritten = 0;  // those of objects that were in the store before
  std::uint64_t not_stored_full = 0;  // larger than the cache takes, or no room was left for it
  // Hits on objects that lay on disk alone. Bytes written there, with padding, for objects that
  // were stored, and for those that were re-inserted as their segment was reclaimed.
  std::uint64_t disk_hits = 0;
  std::uint64_t disk_bytes_hit = 0;
  std::uint64_t disk_bytes_admitted = 0;
  std::uint64_t disk_bytes_moved = 0;
  std::uint64_t disk_bytes_filled = 0;     // those stored before the disk was full (probation)
  std::uint64_t disk_objects_dropped = 0;  // left with their segment
  std::uint64_t disk_objects_refused = 0;  // not written, though they were to be
  std::uint64_t disk_parts_dropped = 0;
  std::uint64_t disk_objects_broken = 0;  // found on disk, but a part had gone
  // Requests and hits for the heaviest objects by requests, and bytes for those by bytes.
  std::uint64_t heaviest_requests = 0;
  std::uint64_t heaviest_hits = 0;
  std::uint64_t heaviest_bytes = 0;
  std::uint64_t heaviest_bytes_hit = 0;

  // Counts a request that is not a hit, or says that one is after all.
  void add_request(const ReplayRequest& request) {
    ++requests;
    bytes_requested += request.size_bytes;
    heaviest_requests += request.heaviest.by_requests ? 1 : 0;
    heaviest_bytes += request.heaviest.by_bytes ? request.size_bytes : 0;
  }
  void add_hit(const ReplayRequest& request) {
    ++hits;
    bytes_hit += request.size_bytes;
    heaviest_hits += request.heaviest.by_requests ? 1 : 0;
    heaviest_bytes_hit += request.heaviest.by_bytes ? request.size_bytes : 0;
  }
  ReplayCounts operator-(const ReplayCounts& other) const;
  ReplayCounts& operator+=(const ReplayCounts& other) {
    return *this = *this - (ReplayCounts() - other);  // modulo 2^64
  }
};

// Outcomes of a request, in the words of the proxy's Cache-Status.
//  enumerator       name
#define ENCORE_REPLAY_OUTCOMES(X)     \
  X(kHit, "hit")                      \
  X(kRevalidated, "revalidated")      \
  X(kFirstRequest, "first-request")   \
  X(kSecondRequest, "second-request") \
  X(kAdmitted, "admitted")            \
  X(kNotAdmitted, "not-admitted")     \
  X(kTooLarge, "too-large")           \
  X(kProbation, "probation")          \
  X(kFill, "fill")                    \
  X(kTooLargeToWait, "too-large-to-wait")

enum class ReplayOutcome : std::uint8_t {
#define ENCORE_ENUMERATOR(id, name) id,
  ENCORE_REPLAY_OUTCOMES(ENCORE_ENUMERATOR)
#undef ENCORE_ENUMERATOR
};
std::string_view to_string(ReplayOutcome outcome) noexcept;

// Charges as the proxy's memory store makes them (cache/charge.h), for objects whose keys, records
// and heads together have the same length.
struct StoreCharge {
  std::uint64_t head_bytes = 0;      // stored before the body: key, record and head
  std::uint64_t reserved_bytes = 0;  // reserved for that before it is made
};

// Probation, tuned by samples of the traffic where there is a write cost, else with the settings'
// rule. The memory is the kernel's capacity, of which a share is for copies of what is hit on disk.
struct ReplayProbation {
  cache::ProbationCacheSettings settings;
  double copies_share = 0;
  std::optional<double> write_cost = {};
};

class DirectCache;
class ReplayRun;
struct ReplayOptions;
// Makes the cache of a run with an eviction policy that is none of the kernel's.
using OwnCache = std::function<std::unique_ptr<DirectCache>(const ReplayOptions&)>;

struct ReplayOptions {
  cache::KernelOptions kernel;          // concurrent = false, payloads are 0
  std::uint64_t warmup_requests = 0;    // not counted; see end_warmup()
  std::uint64_t interval_requests = 0;  // 0: no series
  // Number of the first request that counts, in the numbering of ReplayRequest::next: an eviction
  // that knows the future holds nothing for those before.
  std::uint64_t first_counted = 0;
  // Nothing: what an object is charged is its size.
  std::optional<StoreCharge> charge = {};
  // Instead of the kernel, of whose options only the capacity then counts.
  std::optional<ReplayProbation> probation = {};
  // For a kernel whose own policy is probation.
  std::optional<ReplayProbation> tuning = {};
  // Instead of the kernel's eviction policy, see sim/replay/own_policy.h. The cache is a plain one:
  // one shard, no disk, admission `always`.
  OwnCache own = {};
  // Several such caches instead of one.
  std::optional<FleetOptions> fleet = {};
  // For a cache of a fleet (sim/replay/fleet.h). The kernel is asked even where the cache is plain:
  // it takes memory by its objects, not by those of the trace. Instead of the origin and of the
  // run's own admission these are asked; borrowed, null: nothing else is.
  bool asks_kernel = false;
  Upstream* upstream = nullptr;
  ReplayRun* memory = nullptr;
  // Gets the outcome of each request, warm-up included; borrowed, null: nobody.
  std::vector<ReplayOutcome>* outcomes = nullptr;

  bool has_disk() const { return !kernel.disks.empty(); }
  // For evictions that know the future.
  std::uint64_t hint_of(const ReplayRequest& request) const {
    return request.next < first_counted ? kNeverAgain : request.next;
  }
  // The charge of the request's object with so many bytes before its body, where those are charged.
  std::uint64_t charge_with(std::uint64_t head_bytes, const ReplayRequest& request) const;
};

// The kernel's entries have 40 bits for their charge: it stores nothing larger, overhead included.
inline constexpr std::uint64_t kChargeMax = (std::uint64_t{1} << 40U) - 1;

// Charge of an object in the cache without its entry: its size, at least 1. A charge above
// kChargeMax stays above it, so that the kernel refuses it as too large.
inline std::uint64_t charge_of(const ReplayRequest& request) {
  return std::clamp<std::uint64_t>(std::max(request.size_bytes, request.object_bytes), 1,
                                   kChargeMax + 1);
}

}  // namespace encore::sim
