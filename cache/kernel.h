// Kernel: the decisions of the cache. It decides what is resident, admitted, evicted and fresh, and
// owns the accounting of bytes. It knows no HTTP, no sockets, no clock and no bodies; the proxy and
// the simulator run this one copy.
//
// A stored response is an entry: a variant (64-bit hash) of a primary key, with an opaque payload.
// The keys are divided over shards, each with its own lock, index, eviction order and admission
// memory. Thread-safe (with KernelOptions::concurrent); critical sections are short: no I/O, no
// body copied, no allocation on a hit, work in bounded steps. No two shards are locked at the same
// time.
//
// Deterministic: the same calls in the same order give the same answers. `now` never runs
// backwards for one thread; threads may differ a little.
//
// How a miss is stored:  admit() says yes -> reserve() before the bytes are in memory, more of it
// as they come -> commit() with what it really took, or abort().
#pragma once

#include <atomic>
#include <cstdint>
#include <expected>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/mutex.h"
#include "base/time.h"
#include "cache/disk_types.h"
#include "cache/events.h"
#include "cache/options.h"
#include "cache/payload_owner.h"
#include "cache/probation.h"
#include "cache/request_history.h"
#include "cache/statistics.h"
#include "cache/types.h"
#include "filter/adopted_memory.h"

namespace encore::cache {

class Budget;
class DiskTier;
class Removals;
struct Adoptable;
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

  // Offers the variants of the key, latest stored first, until the selector takes one; if it takes
  // none in memory, those on disk. Entries in memory past their keep_until are removed on the way.
  // The selected one counts as used for the eviction policy. If the selector is undecided nothing
  // has happened, and nothing is recorded.
  LookupResult lookup(const Key& key, MonotonicTime now, Selector& selector);
  // Takes the first one, whichever it is. `hint` is the eviction policy's, where it wants one;
  // `found` gets what is known of one on disk, if it is not null.
  LookupResult lookup(const Key& key, MonotonicTime now, std::uint64_t hint = 0,
                      DiskView* found = nullptr);

  // True if admit() would say yes to one request now, as far as is known. If the size is unknown
  // (0), policies that weigh sizes answer for the smallest, and tinylfu compares with the victim of
  // its last decision. Pure: nothing is learnt.
  bool would_admit(const Key& key, MonotonicTime now, std::uint64_t size_bytes = 0,
                   const AdmissionRule& rule = {}) const;
  // The variants of the key, in memory from the latest stored on and then those written on disk,
  // past their time or not; verdicts are ignored. Pure: nothing counts as used or found, nothing is
  // recorded.
  void peek(const Key& key, Visitor& visitor) const;
  // Returns admission's memory of the key, as would_admit() reads it. Pure.
  RequestHistory recall(const Key& key, const AdmissionRule& rule = {}) const;
  // A storable response has come: test-and-set. See AdmitRequest for joined requests.
  AdmitReason admit(const Key& key, const AdmitRequest& request, MonotonicTime now);

  // Takes bytes from the budget, and evicts for them: in the key's shard first, then in those that
  // follow. Recently used entries go only if nothing else is left in any shard, and so do the
  // entries of a shard that holds less than half of its share: if few large objects fill the
  // memory, a shard may have only one, which is requested all the time. Reserve charge_of_entry()
  // once for each entry, and every byte before it is allocated.
  ReserveOutcome reserve(const Key& key, std::uint64_t bytes, MonotonicTime now);
  // Bytes that an entry in memory is to grow by, for grow(). Evicting ends when the entry's own
  // turn has come: what was for it is not needed any more. True if they are reserved.
  bool reserve_growth(const Key& key, std::uint64_t variant, std::uint64_t bytes,
                      MonotonicTime now);
  // Gives reserved bytes back.
  void abort(const Key& key, std::uint64_t reserved_bytes, MonotonicTime now);
  // Turns a reservation into an entry, first among the key's variants. A reservation that is too
  // small is enlarged first; the surplus of a larger one goes back. The payload's reference is the
  // kernel's from now on, if the outcome is kStored or kReplaced. If Stored::disk_bytes is set, it
  // also decides whether and where on disk the entry is written, and takes charge_of_disk_entry()
  // more; `decision`, if it is not null, receives the result. An entry that is Stored::disk_only
  // takes only that, and needs no reservation.
  CommitOutcome commit(const Key& key, const Stored& stored, std::uint64_t reserved_bytes,
                       MonotonicTime now, DiskDecision* decision = nullptr);
  // A validation succeeded: new times, charge and payload for an entry that stays where it is. The
  // old payload is released, unless it is the same. On any outcome but kFreshened the new payload
  // stays the caller's.
  FreshenOutcome freshen(const Key& key, const Stored& stored, MonotonicTime now);

  // Growth of an entry's payload. It applies if the entry is still there with this payload, and the
  // function returns whether it is. If it is not, the reservation, which is as large, goes back.
  // Nothing else of the entry changes, neither here nor on disk.
  struct Growth {
    std::uint64_t variant = 0;
    Payload payload = 0;
    std::uint64_t reserved_bytes = 0;
  };
  bool grow(const Key& key, const Growth& growth, MonotonicTime now);

  // Removes all variants of a key, in memory and on disk; how many there were. `tombstone`, here
  // and below, may be null; else it says what must be remembered of this over a restart.
  std::uint32_t invalidate(const Key& key, MonotonicTime now, DiskTombstone* tombstone = nullptr);
  // Removes one variant; whether it was there. The tombstone is for this variant alone.
  bool remove(const Key& key, std::uint64_t variant, MonotonicTime now,
              DiskTombstone* tombstone = nullptr);
  // Soft purge: all variants are stale from now on; how many there are.
  std::uint32_t mark_stale(const Key& key, MonotonicTime now, DiskTombstone* tombstone = nullptr);

  // The object behind an entry has moved: `to` takes the place of `from`, if the key still has
  // such an entry; whether it had. Nothing is released.
  bool relocate(const filter::Hash128& key, Payload from, Payload to);

  // --- in bounded steps, from a maintenance timer -----------------------------------------------

  struct Cursor {
    std::uint32_t shard = 0;
    std::uint32_t slot = 0;
    bool on_disk = false;  // the shard's entries in memory are done
  };
  // Visits about `slots_max` places and moves the cursor on; false at the end. Entries that stay
  // for the whole round are visited exactly once. Parts of bodies on disk are not visited.
  bool for_each(Cursor& cursor, std::uint32_t slots_max, Visitor& visitor, MonotonicTime now);
  // Result of reclaim().
  enum class Reclaimed : std::uint8_t {
    kAll,      // the cache holds no more than its capacity
    kSome,     // more can be evicted immediately
    kNothing,  // the excess is reserved: reservations have to end first
  };
  // Evicts while the cache holds more than its capacity (after it was made smaller), at most
  // `victims_max` entries. REQUIRES: victims_max is not 0.
  Reclaimed reclaim(std::uint32_t victims_max, MonotonicTime now);

  // Request for memory that entries use, for something else: bytes of their charge, and the most
  // entries that may be evicted for it.
  struct Room {
    std::uint64_t bytes = 0;
    std::uint32_t victims_max = 0;
  };
  // Evicts until the bytes are freed, one shard after the other; each call goes on with the next
  // one. Nothing is freed if nothing is left to evict.
  struct Freed {
    std::uint64_t bytes = 0;
    std::uint32_t victims = 0;
  };
  Freed make_room(const Room& wanted, MonotonicTime now);

  // --- probation (cache/kernel_probation.cc) ----------------------------------------------------

  // The rule that it follows from now on; 1 window at the start. Without disks it is of no account.
  // Errors: those of check_rule().
  Result<void> follow(const ProbationRule& rule, MonotonicTime now);
  // Lets leave what has waited for AdmissionOptions::wait_max, a bounded number in each shard;
  // whether there may be more.
  bool end_waits(MonotonicTime now);
  // Lets all leave that waits, so that save_admission() has their keys: for a clean stop.
  void end_all_waits(MonotonicTime now);

  // --- the disk tier (cache/kernel_disk.cc) -----------------------------------------------------

  // REQUIRES, for all of them: there are disks, and `disk` is one of them. The caller carries out
  // what is decided here, and reports the result. A place identifies a record; it is not an error
  // if the record has gone meanwhile.

  // The number of the names (Vary's text, in its normal form) that objects on disk vary by: 0 for
  // the empty text, nothing where there are too many or it is too long: then it is not written.
  std::optional<std::uint16_t> intern(std::string_view names, MonotonicTime now);
  // The text of such a number. Thread-safe, without a lock; valid as long as the kernel.
  std::string_view disk_names(std::uint16_t number) const;

  // The record that a commit placed there, or that was to be moved there, is written: it can be
  // found from now on. Else it is gone.
  enum class Write : std::uint8_t { kDone, kFailed };
  DiskTombstone written(const Key& key, const DiskPlace& place, Write write, MonotonicTime now);
  // The record there cannot be read, or is not what the index takes it for.
  DiskTombstone lost(const Key& key, const DiskPlace& place, MonotonicTime now);

  // A part of a body (cache/disk_parts.h), under its own key, from before its object is committed.
  // If it is placed (kPlaced), the caller writes the record there and then reports it (written(),
  // with the part's key). A part is never in memory, is not a response, and is unknown to
  // admission; it never needs a tombstone. It replaces an earlier entry of this key.
  DiskDecision place_part(const Key& part, const PartRequest& wish, MonotonicTime now);
  // The longest body that is worth writing in parts: an eighth of the disks in service. More of
  // one object, and it pushes out what is asked for more often, or its own first parts.
  std::uint64_t disk_body_max() const;
  // Returns the place of a part, if it is there and written; a head with an absent part is lost().
  // Counts neither as hit nor as miss, and has no effect on re-insertion: a part is re-inserted if
  // it is being read, and else goes with its segment.
  std::expected<DiskPlace, PartMissing> find_part(const Key& part, MonotonicTime now) const;

  // One step of reclaiming the disk's oldest segment: at most kReclaimEntries entries of one shard
  // are dropped. Those that are fresh and were requested (on disk, or are in memory) are moved
  // instead, as far as the cap allows. Records that are being read are always moved, parts of
  // bodies only then. One caller at a time a disk.
  static constexpr std::uint32_t kReclaimEntries = 256;
  DiskReclaim reclaim_disk(std::uint16_t disk, std::span<const DiskPlace> being_read,
                           MonotonicTime now);
  // A segment of which all is done (DiskReclaim::State::kDone) can be written again. Until its
  // header is erased, what was dropped would be found again after a crash, so that comes first.
  // False where it is not such a segment.
  bool free_segment(std::uint16_t disk, std::uint32_t segment, MonotonicTime now);

  // Attaches a disk with the segments found on it at the start, before anything is placed on it:
  // the sequence of each segment (0: none), and an upper bound of the versions on it. The contents
  // are unknown until they are loaded, newest segment first; loaded() ends that. Returns false if
  // something was placed there or attached before, or a number is above kSegmentsMax.
  bool attach(std::uint16_t disk, std::span<const std::uint64_t> sequences, DiskVersion newest,
              MonotonicTime now);
  // Loads records of one disk and segment. Each enters the index if it is the newest of its key and
  // variant and there is space. The caller leaves out records that a tombstone or a rule covers.
  DiskLoaded load(std::span<const DiskRecord> records, MonotonicTime now);
  // About so many records of the disk will be loaded: the index grows at less cost.
  void expect(std::uint16_t disk, std::uint64_t records);
  void loaded(std::uint16_t disk, MonotonicTime now);
  // Nothing is placed there any more; reclaim_disk() drops what is there.
  void take_offline(std::uint16_t disk, MonotonicTime now);
  // REQUIRES: 1 to kSegmentsMax segments. With fewer, those beyond the end are reclaimed first.
  void resize_disk(std::uint16_t disk, std::uint32_t segments, MonotonicTime now);
  // The version of a rule that purges: it is for all records below it.
  DiskVersion purge_rule(MonotonicTime now);
  // The sequence of the disk's newest turn: all records of the versions that were given until now
  // lie in it or before, but for those that are moved later.
  std::uint64_t disk_sequence(std::uint16_t disk) const;

  // The index's bytes for an entry on disk, which a commit takes in addition to the charge.
  std::uint32_t charge_of_disk_entry() const;
  std::uint16_t disks() const { return static_cast<std::uint16_t>(options_.disks.size()); }

  // --- operation --------------------------------------------------------------------------------

  // New options for the running cache; no entry is lost by it. A smaller capacity takes effect
  // through reclaim(): until then nothing is added. New filter parameters begin a new generation,
  // and remembered keys stay remembered; another admission policy starts empty. Entries move to a
  // new eviction policy when they are used, and are evicted in the old one's order before any
  // others. Errors: as create(); nothing has changed then.
  Result<void> reconfigure(const ReloadOptions& options, MonotonicTime now);

  // Returns the memory of the admission policies, versioned and checksummed; it holds the identity
  // seed. Locks one shard after the other for as long as it takes to copy its filter.
  std::string save_admission(MonotonicTime now) const;
  // Errors: damaged, another number of shards or seed, a policy that is not saved (only second-hit
  // and nth-hit are). Shards restored before an error stay restored. Parameters that differ from
  // the options' begin a new generation, as with reconfigure().
  Result<void> restore_admission(std::string_view bytes, MonotonicTime now);

  // One shard of it, as the saved form has it. REQUIRES: shard < shards().
  std::string save_admission_of(std::uint32_t shard, MonotonicTime now) const;

  // Adds another cache's memory to ours, for all shards: its generations become older ones of each
  // shard's ring (filter/adopted_generations.h). Keys must come with their text from now on.
  // Errors: a policy without a filter, kAdoptedMax memories that some shard still queries, more
  // bytes in all than `held_bytes_max`; nothing has changed then. One at a time.
  struct Adoption {
    std::uint32_t shards = 0;       // shards that adopted it; fewer than all only if a reload came
                                    // between
    std::uint32_t generations = 0;  // that were taken
  };
  Result<Adoption> adopt(const Adoptable& adoptable, std::uint64_t held_bytes_max,
                         MonotonicTime now);
  // Gives back the memories that no shard asks any more: what a large one takes to be freed is
  // nothing for a shard's lock. From a maintenance timer.
  void release_adopted();

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
  // Numbers the event and gives it to the observer, if there is one.
  void publish(Event& event) const;
  struct LookupArguments {
    MonotonicTime now{};
    std::uint64_t hint = 0;
  };
  struct DiskQuestion {
    MonotonicTime now{};
    Selector* selector = nullptr;  // null: the first one
    DiskView* found = nullptr;     // gets what is known of it, if not null
  };
  struct LookupOutput {
    LookupResult result;
    const Removals& gone;
  };
  template <typename Matches>
  LookupResult lookup_with(const Key& key, const LookupArguments& arguments, Matches&& matches);

  // REQUIRE the shard's lock.
  LookupResult lookup_on_disk(Shard& shard, const Key& key, const DiskQuestion& question,
                              LookupOutput looked) ENCORE_NO_THREAD_SAFETY_ANALYSIS;
  void end_lookup(Shard& shard, const Key& key, MonotonicTime now, const LookupOutput& looked,
                  const DiskPlace& place) ENCORE_NO_THREAD_SAFETY_ANALYSIS;

  // One critical section each, one event each: what Replay repeats.
  struct ReserveStep {
    std::uint32_t shard = 0;
    std::uint64_t bytes = 0;
    bool last = false;    // no further shard will be tried
    bool spares = false;  // others will be asked that have less to lose
    // The oldest of the shard that is on probation leaves, and nothing else.
    bool from_waiting = false;
    // Variant of the entry that the bytes are for, where it is there already.
    std::optional<std::uint64_t> grows = {};
  };
  // The outcome of the last step. With `grows`, kReserveGone as soon as that entry has gone.
  std::uint8_t reserve_steps(const Key& key, std::uint64_t bytes,
                             const std::optional<std::uint64_t>& grows, MonotonicTime now);
  std::uint8_t reserve_step(const Key& key, const ReserveStep& step, MonotonicTime now);
  CommitOutcome commit_step(const Key& key, const Stored& stored, std::uint64_t reserved_bytes,
                            MonotonicTime now, DiskDecision& decision);
  DiskDecision place_part_step(const Key& part, const PartRequest& wish,
                               std::uint64_t reserved_bytes, MonotonicTime now);
  struct FreshenStep {
    std::uint8_t outcome = 0;
    std::uint64_t needs_bytes = 0;
  };
  FreshenStep freshen_step(const Key& key, const Stored& stored, std::uint64_t reserved_bytes,
                           MonotonicTime now);
  bool grow_step(const Key& key, std::uint64_t variant, std::optional<Payload> payload,
                 std::uint64_t reserved_bytes, MonotonicTime now);
  struct ReclaimStep {
    std::uint32_t victims = 0;
    bool finished = false;
  };
  ReclaimStep reclaim_step(std::uint32_t shard, std::uint32_t victims_max, MonotonicTime now);
  Freed make_room_step(std::uint32_t shard, const Room& wanted, MonotonicTime now);
  enum class Leave : std::uint8_t { kWhoseTimeIsOver, kAll };
  void leave_step(std::uint32_t shard, Leave which, MonotonicTime now);
  void reload_step(const ReloadOptions& options, MonotonicTime now);
  Result<void> reload_shard_step(std::uint32_t shard, MonotonicTime now);
  Result<void> restore_step(std::uint32_t shard, std::string_view bytes, MonotonicTime now);
  Result<std::uint32_t> adopt_step(std::uint32_t shard, const Adoptable& adoptable,
                                   MonotonicTime now);

  void purge_step(const Event& event);
  // REQUIRE the shard's lock, which this header cannot name.
  void purge(Shard& shard, std::uint32_t slot, Removals& gone,
             Event& event) ENCORE_NO_THREAD_SAFETY_ANALYSIS;
  // Entry to remove on disk as well; no key: none.
  struct OnDisk {
    const Key* key = nullptr;
    std::optional<std::uint32_t> variant = std::nullopt;  // else all
  };
  void settle_removals(Shard& shard, const Removals& gone, Event& event, const OnDisk& meant,
                       DiskTombstone* tombstone) ENCORE_NO_THREAD_SAFETY_ANALYSIS;

  DiskTombstone end_record(const Key& key, Event& event, DiskLoss loss);
  struct DiskStep {
    std::uint16_t disk = 0;
    std::uint32_t shard = 0;
    std::span<const DiskPlace> being_read;
  };
  DiskReclaim reclaim_disk_step(const DiskStep& step, MonotonicTime now);
  struct LoadStep {
    std::uint32_t shard = 0;
    std::uint64_t reserved_bytes = 0;
  };
  DiskLoaded load_step(const LoadStep& step, std::span<const DiskRecord> records,
                       MonotonicTime now);

  KernelOptions options_;
  Hooks hooks_;
  std::unique_ptr<Budget> budget_;
  std::unique_ptr<DiskTier> tier_;  // null: there are no disks
  std::vector<std::unique_ptr<Shard>> shards_;
  std::atomic<bool> on_probation_ = false;  // by the options in force, and there are disks
  using Memories = std::vector<std::shared_ptr<const filter::AdoptedMemory>>;
  mutable Mutex adopted_mutex_;
  Memories adopted_ ENCORE_GUARDED_BY(adopted_mutex_);
  std::uint64_t adoptions_ ENCORE_GUARDED_BY(adopted_mutex_) = 0;
};

}  // namespace encore::cache
