// Eviction policies of one's own: the interface for programs outside of this project, which find it
// by find_package(encore-sim). A policy is a class that decides which object leaves; the cache
// around it (sizes, expiry, counts) is the one of `encore-sim replay`. Why: docs/decisions/0580.
//
//   struct Fifo {
//     explicit Fifo(encore::cache::EntrySlab& slab) : slab(slab) {}
//     void insert(EntryRef ref, const ReplayRequest&) { list.push_newest(slab, ref); }
//     void hit(EntryRef, const ReplayRequest&) {}
//     void remove(EntryRef ref, Removal) { list.unlink(slab, ref); }
//     EntryRef victim() { return list.oldest(); }
//     encore::cache::EntrySlab& slab;
//     encore::cache::EntryList list;
//   };
//   const auto done = encore::sim::replay_files({"trace.csv"}, {.own = own_policy<Fifo>(),
//   .cache_bytes = 1 << 20});
//
// Entries are numbers (cache/entry_slab.h): slab.hot(ref) has the key, the charge in bytes, and
// eight bytes that are the policy's own, which cache/entry_list.h uses for a list.
//
//   insert   A new entry is stored for this request.
//   hit      The request found the entry.
//   remove   The entry leaves; see cache::Removal.
//   victim   Returns the entry that leaves next, and stays until remove(). REQUIRES: there is one
//            while an entry is stored.
//   admits   (optional) const ReplayRequest& -> bool: false, and the object is not stored.
//   resized  (optional) EntryRef: its charge has changed.
//
// insert() and hit() may take a const cache::Access& instead, as the policies in cache/ do.
// Thread-compatible; deterministic if the policies are.
#pragma once

#include <concepts>
#include <memory>
#include <string>
#include <vector>

#include "base/error.h"
#include "cache/entry_list.h"
#include "cache/eviction_order.h"
#include "sim/replay/direct_cache.h"
#include "sim/replay/replay_run.h"
#include "sim/trace/trace_reader.h"

namespace encore::sim {

template <typename T>
concept TakesRequests =
    requires(T& policy, cache::EntryRef ref, const ReplayRequest& request, cache::Removal why) {
      policy.insert(ref, request);
      policy.hit(ref, request);
      policy.remove(ref, why);
      { policy.victim() } -> std::same_as<cache::EntryRef>;
    };

// For ReplayOptions::own. Each cache has a policy of its own: Policy(slab, arguments...).
template <typename Policy, typename... Arguments>
  requires(TakesRequests<Policy> || cache::EvictionOrder<Policy>)
OwnCache own_policy(Arguments... arguments) {
  return [arguments...](const ReplayOptions& options) -> std::unique_ptr<DirectCache> {
    return std::make_unique<DirectCacheOf<Policy>>(options, arguments...);
  };
}

// A replay by one call.
struct OwnReplay {
  OwnCache own = {};                                             // empty: `kernel.eviction`
  std::uint64_t cache_bytes = 64ULL * 1024 * 1024;               // the capacity; at least 1
  std::uint64_t warmup_requests = 0;                             // not counted
  ObjectSize object_size = ObjectSize::kLargest;                 // see trace_object.h
  cache::EvictionPolicy eviction = cache::EvictionPolicy::kLru;  // but not belady
};

// Those of encore-sim: any format, keys hashed with --seed 1.
TraceOptions usual_trace_options();

// Replays the files as one trace, of any format that encore-sim reads. The counts are those that
// `encore-sim replay FILES --admission always` prints. Errors: the trace's; options that a kernel
// refuses; an object above a tebibyte that the cache would take.
Result<ReplayCounts> replay_files(const std::vector<std::string>& files, const OwnReplay& replay,
                                  const TraceOptions& trace = usual_trace_options());

}  // namespace encore::sim
