// DirectCache: what a kernel decides that has one shard, no disk, and admits everything, without
// the kernel around it. Its eviction policies are the kernel's own (cache/eviction_order.h), on the
// kernel's own entries; the policy is a template parameter of the loop. An entry is found by its
// object's number: the table that numbers a trace's objects has looked for the key already.
// tests/sim/direct_cache_test.cc compares it with the kernel, decision by decision.
// Why it is: docs/decisions/0345. Thread-compatible, deterministic.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/check.h"
#include "base/prefetch.h"
#include "cache/eviction_order.h"
#include "cache/options.h"
#include "cache/statistics.h"
#include "cache/types.h"
#include "sim/replay/replay_options.h"

namespace encore::sim {

class DirectCache {
 public:
  // Null where the options ask for more than it does. REQUIRES: a kernel accepts them.
  static std::unique_ptr<DirectCache> create(const ReplayOptions& options);
  virtual ~DirectCache() = default;
  DirectCache(const DirectCache&) = delete;
  DirectCache& operator=(const DirectCache&) = delete;

  // Receivers of counts and outcomes; null: none. Borrowed.
  struct Counted {
    ReplayCounts* counts = nullptr;
    std::vector<ReplayOutcome>* outcomes = nullptr;
  };
  // The next requests of the trace, in order.
  virtual void feed(std::span<const ReplayRequest> requests, const Counted& counted) = 0;

  // Puts its own figures in the place of those of a kernel that was asked nothing.
  virtual void fill_in(cache::KernelStatistics& statistics) const = 0;
  // True if an object was ever stored.
  virtual bool ever_stored(std::uint32_t object) const = 0;
  virtual bool holds(std::uint32_t object) const = 0;
  // Another object has the number from now on. REQUIRES: the cache does not hold it.
  virtual void forget(std::uint32_t object) = 0;

 protected:
  DirectCache() = default;
};

// The cache with one policy: a class of cache/eviction_order.h, or of sim/replay/own_policy.h.
template <typename Order>
class DirectCacheOf : public DirectCache {
 public:
  // `arguments` are the order's, after its slab.
  template <typename... Arguments>
  explicit DirectCacheOf(const ReplayOptions& options, const Arguments&... arguments)
      : options_(options),
        capacity_(options.kernel.capacity_bytes),
        object_max_(cache::effective_max_object(cache::reload_options(options.kernel))),
        overhead_(options.kernel.entry_overhead_bytes),
        order_(slab_, arguments...) {}

  void feed(std::span<const ReplayRequest> requests, const Counted& counted) override {
    for (std::size_t i = 0; i < requests.size(); ++i) {
      if (i + kPlaceAhead < requests.size()) {
        ask_for_place(requests[i + kPlaceAhead].object);
        ask_for_entry(requests[i + kEntryAhead]);
      }
      const ReplayRequest& request = requests[i];
      if (request.object >= places_.size()) {
        grow(request.object);
      }
      const ReplayOutcome outcome = one(request, counted.counts);
      if (counted.outcomes != nullptr) {
        counted.outcomes->push_back(outcome);
      }
    }
  }

  void fill_in(cache::KernelStatistics& statistics) const override {
    statistics.counters = counters_;
    statistics.objects = slab_.size();
    statistics.used_bytes = used_;
    statistics.index_bytes = slab_.memory_bytes() + places_.capacity() * sizeof places_.front() +
                             objects_.capacity() * sizeof objects_.front() +
                             fresh_until_.capacity() * sizeof(MonotonicTime);
  }

  bool ever_stored(std::uint32_t object) const override {
    return object < places_.size() && places_[object] != kNeverStored;
  }
  bool holds(std::uint32_t object) const override {
    return object < places_.size() && is_resident(places_[object]);
  }
  void forget(std::uint32_t object) override {
    if (object < places_.size()) {
      places_[object] = kNeverStored;
    }
  }

 private:
  // Requests between asking for the memory of an object's place, of its entry, and the request.
  static constexpr std::size_t kPlaceAhead = 16;
  static constexpr std::size_t kEntryAhead = 8;
  using AdmitReason = cache::AdmitReason;
  using EntryRef = cache::EntryRef;
  // The place of an object: its entry, or whether it was stored before.
  using Place = std::uint32_t;
  static constexpr Place kNeverStored = 0;
  static constexpr Place kGone = 1;
  static constexpr Place place_of(EntryRef ref) { return ref + 2; }
  static constexpr bool is_resident(Place place) { return place > kGone; }
  static constexpr EntryRef entry_of(Place place) { return place - 2; }

  void ask_for_place(std::uint32_t object) const {
    if (object < places_.size()) {
      encore::prefetch(&places_[object]);
    }
  }
  void ask_for_entry(const ReplayRequest& request) const {
    const Place place = request.object < places_.size() ? places_[request.object] : kNeverStored;
    if (is_resident(place)) {
      encore::prefetch(&slab_.hot(entry_of(place)));
      return;
    }
    if constexpr (requires { order_.expect(request.key); }) {
      order_.expect(request.key);
    }
  }
  void grow(std::uint32_t object) {
    places_.resize(std::max<std::size_t>({object + std::size_t{1}, places_.size() * 2, 1024}),
                   kNeverStored);
  }

  ReplayOutcome one(const ReplayRequest& request, ReplayCounts* counts) {
    // Logs are not always in order; the kernel's time is.
    now_ = std::max(now_, MonotonicTime(Nanoseconds(request.time_ns)));
    const Place place = places_[request.object];
    if (counts != nullptr) {
      counts->add_request(request);
    }
    return is_resident(place) ? found(request, entry_of(place), counts) : miss(request, counts);
  }

  ReplayOutcome found(const ReplayRequest& request, EntryRef ref, ReplayCounts* counts) {
    const bool is_fresh = fresh_until_.empty() || now_ < fresh_until_[ref];
    tell_hit(ref, request);
    cache::HotEntry& entry = slab_.hot(ref);
    if (entry.reused == 0) {
      entry.reused = 1;
      ++counters_.reused;
    }
    if (!is_fresh) {
      ++counters_.stale_hits;
      if (counts != nullptr) {
        ++counts->validations;
      }
      freshen(request, ref, fresh_until(request));
      return ReplayOutcome::kRevalidated;
    }
    ++counters_.fresh_hits;
    if (counts != nullptr) {
      counts->add_hit(request);
    }
    if (request.resized) [[unlikely]] {
      freshen(request, ref, fresh_until_.empty() ? MonotonicTime::max() : fresh_until_[ref]);
    }
    return ReplayOutcome::kHit;
  }

  ReplayOutcome miss(const ReplayRequest& request, ReplayCounts* counts) {
    ++counters_.misses;
    if (counts != nullptr) {
      counts->bytes_from_origin += request.size_bytes;
    }
    const std::uint64_t size = charge_of(request);
    const std::uint64_t charge = size + overhead_;
    const AdmitReason reason = decide(request, size);
    ++counters_.admissions[static_cast<std::size_t>(reason)];
    const bool is_stored = cache::is_stored(reason) && store(request, charge);
    if (!is_stored && counts != nullptr && reason != AdmitReason::kPolicyRefuses) {
      ++counts->not_stored_full;
    }
    if (!is_stored) {
      return reason == AdmitReason::kPolicyRefuses ? ReplayOutcome::kNotAdmitted
                                                   : ReplayOutcome::kTooLarge;
    }
    if (counts != nullptr) {
      ++counts->objects_written;
      counts->bytes_written += size;
      counts->bytes_rewritten += places_[request.object] == kNeverStored ? 0 : size;
    }
    places_[request.object] = place_of(stored_);
    return ReplayOutcome::kAdmitted;
  }

  AdmitReason decide(const ReplayRequest& request, std::uint64_t size) {
    if (size > object_max_) {
      return AdmitReason::kTooLarge;
    }
    if constexpr (requires { order_.admits(request); }) {
      if (!order_.admits(request)) {
        return AdmitReason::kPolicyRefuses;
      }
    }
    if constexpr (requires { order_.bypasses(cache::InsertCandidate{}); }) {
      const std::uint64_t charge = size + overhead_;
      if (order_.bypasses({.charge_bytes = charge,
                           .hint = options_.hint_of(request),
                           .needs_room = used_ + charge > capacity_})) {
        return AdmitReason::kPolicyRefuses;
      }
    }
    return AdmitReason::kPolicyAlways;
  }

  // Evicts for it and makes its entry, `stored_`.
  bool store(const ReplayRequest& request, std::uint64_t charge) {
    if (charge > object_max_) {
      ++counters_.reserve_failures;
      return false;
    }
    while (used_ + charge > capacity_) {
      evict();
    }
    const EntryRef ref = slab_.allocate();
    ENCORE_CHECK(ref != cache::kNoEntry, "memory for an entry");
    if (ref >= objects_.size()) {
      objects_.resize(std::max<std::size_t>(ref + std::size_t{1}, objects_.size() * 2));
    }
    objects_[ref] = request.object;
    cache::HotEntry& entry = slab_.hot(ref);
    entry.key = request.key;
    entry.charge = charge & kChargeMax;
    entry.policy_bits = 0;
    entry.reused = 0;
    entry.epoch = 0;
    used_ += charge;
    set_fresh_until(ref, fresh_until(request));
    tell_insert(ref, request);
    ++counters_.commits;
    stored_ = ref;
    return true;
  }

  // New times and charge. Others are evicted for its growth, until its own turn comes.
  void freshen(const ReplayRequest& request, EntryRef ref, MonotonicTime until) {
    const std::uint64_t charge = charge_of(request) + overhead_;
    const std::uint64_t before = slab_.hot(ref).charge;
    if (charge > object_max_) {
      erase(ref, cache::Removal::kRemoved);
      ++counters_.invalidations;
      return;
    }
    while (used_ - before + charge > capacity_) {
      evict();
      if (!is_resident(places_[request.object])) {
        return;
      }
    }
    used_ += charge - before;
    if (charge != before) {
      slab_.hot(ref).charge = charge & kChargeMax;
      if constexpr (requires { order_.resized(ref); }) {
        order_.resized(ref);
      }
    }
    set_fresh_until(ref, until);
    ++counters_.freshens;
  }

  // The next victim goes. REQUIRES: there is an entry.
  void evict() {
    EntryRef ref = order_.victim();
    while (ref == cache::kSearching || ref == cache::kAllUsed) {
      ref = order_.victim();
    }
    ENCORE_CHECK(ref != cache::kNoEntry, "what is used is an entry's");
    ++counters_.evictions;
    counters_.evicted_bytes += slab_.hot(ref).charge;
    erase(ref, cache::Removal::kEvicted);
  }
  void erase(EntryRef ref, cache::Removal why) {
    order_.remove(ref, why);
    used_ -= slab_.hot(ref).charge;
    places_[objects_[ref]] = kGone;
    slab_.release(ref);
  }

  void tell_hit(EntryRef ref, const ReplayRequest& request) {
    if constexpr (requires { order_.hit(ref, request); }) {
      order_.hit(ref, request);
    } else {
      order_.hit(ref, access(request));
    }
  }
  void tell_insert(EntryRef ref, const ReplayRequest& request) {
    if constexpr (requires { order_.insert(ref, request); }) {
      order_.insert(ref, request);
    } else {
      order_.insert(ref, access(request));
    }
  }
  cache::Access access(const ReplayRequest& request) const {
    return {.now = now_, .hint = options_.hint_of(request)};
  }
  MonotonicTime fresh_until(const ReplayRequest& request) const {
    return request.ttl_seconds == kNoTtl ? MonotonicTime::max()
                                         : now_ + std::chrono::seconds(request.ttl_seconds);
  }
  // Times are kept from the first one on that ends.
  void set_fresh_until(EntryRef ref, MonotonicTime until) {
    if (fresh_until_.empty() && until == MonotonicTime::max()) [[likely]] {
      return;
    }
    if (ref >= fresh_until_.size()) {
      fresh_until_.resize(std::max<std::size_t>(slab_.slots(), fresh_until_.size()),
                          MonotonicTime::max());
    }
    fresh_until_[ref] = until;
  }

  const ReplayOptions options_;
  const std::uint64_t capacity_;
  const std::uint64_t object_max_;
  const std::uint64_t overhead_;
  cache::EntrySlab slab_;
  Order order_;
  std::vector<Place> places_;               // by object
  std::vector<std::uint32_t> objects_;      // by entry
  std::vector<MonotonicTime> fresh_until_;  // by entry; empty: none becomes stale
  std::uint64_t used_ = 0;
  EntryRef stored_ = cache::kNoEntry;  // the last one that was
  MonotonicTime now_{};
  cache::KernelCounters counters_;
};

}  // namespace encore::sim
