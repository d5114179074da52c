// Kernel: the decisions of the cache. What is resident, what is admitted, what is evicted, what is
// fresh, and whose bytes are whose. It knows no HTTP, no sockets, no clock and no bodies; the
// proxy and the simulator run this one copy.
//
// A stored response is an entry: a variant (64-bit hash) of a primary key, with an opaque payload.
// The keys are divided over shards, each with its own lock, index, eviction order and admission
// memory. Thread-safe (with KernelOptions::concurrent); critical sections are short: no I/O, no
// body copied, no allocation on a hit, work in bounded steps. No two shards are locked at once.
//
// Deterministic: the same calls in the same order give the same answers. `now` never runs
// backwards for one thread; threads may differ a little.
//
// How a miss is stored:  admit() says yes -> reserve() before the bytes are in memory, more of it
// as they come -> commit() with what it really took, or abort().
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/mutex.h"
#include "base/time.h"
#include "cache/events.h"
#include "cache/options.h"
#include "cache/payload_owner.h"
#include "cache/statistics.h"
#include "cache/types.h"

namespace encore::cache {

class Budget;
class Removals;
struct Shard;

class Kernel {
 public:
  // Borrowed, must outlive the kernel; either may be absent.
  struct Hooks {
    PayloadOwner* owner = nullptr;
    Observer* observer = nullptr;
  };
  // Errors: those of check_options(), memory that cannot be had.
  static Result<std::unique_ptr<Kernel>> create(const KernelOptions& options, Hooks hooks,
                                                MonotonicTime now);
  // Releases every entry's payload. REQUIRES: nobody else uses it.
  ~Kernel();
  Kernel(const Kernel&) = delete;
  Kernel& operator=(const Kernel&) = delete;

  // --- requests -------------------------------------------------------------------------------

  // The variants of the key, latest stored first, until the selector takes one. Entries past their
  // keep_until are removed on the way. The selected one counts as used for the eviction policy.
  // Where the selector is undecided nothing has happened, and nothing is recorded.
  LookupResult lookup(const Key& key, MonotonicTime now, Selector& selector);
  // Takes the first one, whichever it is. `hint` is the eviction policy's, where it wants one.
  LookupResult lookup(const Key& key, MonotonicTime now, std::uint64_t hint = 0);

  // Whether admit() would say yes to one request now, as far as can be told: where the size is not
  // known (0) policies that weigh sizes answer for the smallest, and tinylfu compares with the
  // victim of its last decision. Pure: nothing is learnt.
  bool would_admit(const Key& key, MonotonicTime now, std::uint64_t size_bytes = 0) const;
  // A storable response has come: test-and-set. See AdmitRequest for joined requests.
  AdmitReason admit(const Key& key, const AdmitRequest& request, MonotonicTime now);

  // Takes bytes from the budget, and evicts for them: in the key's shard first, then in those that
  // follow. Ask for charge_of_entry() once for each entry, and for every byte before it is held.
  ReserveOutcome reserve(const Key& key, std::uint64_t bytes, MonotonicTime now);
  // Gives reserved bytes back.
  void abort(const Key& key, std::uint64_t reserved_bytes, MonotonicTime now);
  // Turns a reservation into an entry, first among the key's variants. A reservation that is too
  // small is enlarged first, what is left of a larger one goes back. The payload's reference is
  // the kernel's from now on, if the outcome is kStored or kReplaced.
  CommitOutcome commit(const Key& key, const Stored& stored, std::uint64_t reserved_bytes,
                       MonotonicTime now);
  // A validation succeeded: new times, charge and payload for an entry that stays where it is. The
  // old payload is released, unless it is the same. On any outcome but kFreshened the new payload
  // stays the caller's.
  FreshenOutcome freshen(const Key& key, const Stored& stored, MonotonicTime now);

  // Removes all variants of a key; how many there were.
  std::uint32_t invalidate(const Key& key, MonotonicTime now);
  // Removes one variant; whether it was there.
  bool remove(const Key& key, std::uint64_t variant, MonotonicTime now);
  // Soft purge: all variants are stale from now on; how many there are.
  std::uint32_t mark_stale(const Key& key, MonotonicTime now);

  // The object behind an entry has moved: `to` takes the place of `from`, if the key still has
  // such an entry; whether it had. Nothing is released.
  bool relocate(const filter::Hash128& key, Payload from, Payload to);

  // --- in bounded steps, from a maintenance timer -----------------------------------------------

  struct Cursor {
    std::uint32_t shard = 0;
    std::uint32_t slot = 0;
  };
  // Visits about `slots_max` places and moves the cursor on; false at the end. Entries that stay
  // for the whole round are visited exactly once.
  bool for_each(Cursor& cursor, std::uint32_t slots_max, Visitor& visitor, MonotonicTime now);
  // What reclaim() has come to.
  enum class Reclaimed : std::uint8_t {
    kAll,      // the cache holds no more than its capacity
    kSome,     // more can be evicted at once
    kNothing,  // what is held beyond it is reserved: that has to end first
  };
  // Evicts while the cache holds more than its capacity (after it was made smaller), at most
  // `victims_max` entries. REQUIRES: victims_max is not 0.
  Reclaimed reclaim(std::uint32_t victims_max, MonotonicTime now);

  // What the memory of entries is wanted for that is no entry: bytes of their charge, and how many
  // may go for it at most.
  struct Room {
    std::uint64_t bytes = 0;
    std::uint32_t victims_max = 0;
  };
  // Evicts until so much was freed, one shard after the other; each call goes on with the next
  // one. Nothing is freed where nothing is left to evict.
  struct Freed {
    std::uint64_t bytes = 0;
    std::uint32_t victims = 0;
  };
  Freed make_room(const Room& wanted, MonotonicTime now);

  // --- operation --------------------------------------------------------------------------------

  // New options for the running cache; no entry is lost by it. A smaller capacity takes effect
  // through reclaim(): until then nothing is added beyond what is held. New filter parameters
  // begin a new generation, what was remembered stays remembered; another admission policy starts
  // empty. Entries move to a new eviction policy when they are used, and are evicted in the old
  // one's order before any others. Errors: as create(); nothing has changed then.
  Result<void> reconfigure(const ReloadOptions& options, MonotonicTime now);

  // What the admission policies remember, versioned and checksummed; it holds the identity seed.
  // Locks one shard after the other for as long as it takes to copy its filter.
  std::string save_admission(MonotonicTime now) const;
  // Errors: damaged, another number of shards or seed, a policy that is not saved (only second-hit
  // and nth-hit are). Shards restored before an error stay restored. Parameters that differ from
  // the options' begin a new generation, as with reconfigure().
  Result<void> restore_admission(std::string_view bytes, MonotonicTime now);

  KernelStatistics statistics() const;
  // Locks one shard after the other; reads about `lines_max` lines of the filters in all.
  AdmissionStatistics admission_statistics(std::uint64_t lines_max = 4096) const;

  // The kernel's own bytes for an entry, which it adds to every charge.
  std::uint32_t charge_of_entry() const { return options_.entry_overhead_bytes; }
  std::uint32_t shards() const { return options_.shards; }
  // As created; what reload has changed is not in it.
  const KernelOptions& options() const { return options_; }
  // Asks for the memory that a lookup of this key will need.
  void prefetch(const Key& key) const;

 private:
  friend class Replay;
  Kernel(const KernelOptions& options, Hooks hooks);

  Shard& shard_for(const filter::Hash128& key) const;
  // Gives back the payloads of some places from `next` on; false at the end.
  bool release_slice(Shard& shard, std::uint32_t& next);
  // Numbers the event and gives it to the observer, if there is one.
  void publish(Event& event) const;
  struct LookupArguments {
    MonotonicTime now{};
    std::uint64_t hint = 0;
  };
  template <typename Matches>
  LookupResult lookup_with(const Key& key, const LookupArguments& arguments, Matches&& matches);

  // REQUIRES the shard's lock, and the budget's for a policy that compares with a victim.
  AdmitReason decide(Shard& shard, const Key& key, const AdmitRequest& request,
                     MonotonicTime now) const ENCORE_NO_THREAD_SAFETY_ANALYSIS;

  // One critical section each, one event each: what Replay repeats.
  struct ReserveStep {
    std::uint32_t shard = 0;
    std::uint64_t bytes = 0;
    bool last = false;  // no further shard will be tried
  };
  std::uint8_t reserve_step(const Key& key, const ReserveStep& step, MonotonicTime now);
  CommitOutcome commit_step(const Key& key, const Stored& stored, std::uint64_t reserved_bytes,
                            MonotonicTime now);
  struct FreshenStep {
    std::uint8_t outcome = 0;
    std::uint64_t needs_bytes = 0;
  };
  FreshenStep freshen_step(const Key& key, const Stored& stored, std::uint64_t reserved_bytes,
                           MonotonicTime now);
  struct ReclaimStep {
    std::uint32_t victims = 0;
    bool finished = false;
  };
  ReclaimStep reclaim_step(std::uint32_t shard, std::uint32_t victims_max, MonotonicTime now);
  Freed make_room_step(std::uint32_t shard, const Room& wanted, MonotonicTime now);
  void reload_step(const ReloadOptions& options, MonotonicTime now);
  Result<void> reload_shard_step(std::uint32_t shard, MonotonicTime now);
  Result<void> restore_step(std::uint32_t shard, std::string_view bytes, MonotonicTime now);

  struct Visit {
    Removals& gone;
    MonotonicTime now;
  };
  void purge_step(const Event& event);
  // REQUIRE the shard's lock, which this header cannot name.
  void visit_entry(Shard& shard, std::uint32_t slot, Visitor& visitor,
                   const Visit& visit) ENCORE_NO_THREAD_SAFETY_ANALYSIS;
  void apply_verdict(Shard& shard, std::uint32_t slot, const Visit& visit,
                     Event& event) ENCORE_NO_THREAD_SAFETY_ANALYSIS;
  void settle_removals(Shard& shard, const Removals& gone,
                       Event& event) ENCORE_NO_THREAD_SAFETY_ANALYSIS;

  KernelOptions options_;
  Hooks hooks_;
  std::unique_ptr<Budget> budget_;
  std::vector<std::unique_ptr<Shard>> shards_;
};

}  // namespace encore::cache
