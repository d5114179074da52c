// The words that everything in cache/ shares: keys, payloads, outcomes with their reasons. Values.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "base/time.h"
#include "cache/disk_place.h"
#include "filter/hash.h"

namespace encore::cache {

// A primary key: the identity hash, and (only for a filter with another hash family) its text.
using Key = filter::HashedKey;

// The object behind an entry, opaque to the kernel: the proxy puts a pointer there, the simulator
// 0.
using Payload = std::uint64_t;

// --- outcomes, with the reasons that go to log and counters -------------------------------------

enum class LookupState : std::uint8_t { kMiss, kFresh, kStale };

//  enumerator       name               stored  outcome of the request
#define ENCORE_ADMIT_REASONS(X)                             \
  X(kFirstRequest, "first-request", false, kFirstRequest)   \
  X(kSecondRequest, "second-request", true, kSecondRequest) \
  X(kResident, "resident", true, kAdmitted)                 \
  X(kPolicyAlways, "always", true, kAdmitted)               \
  X(kPolicyNever, "never", false, kNotAdmitted)             \
  X(kTooLarge, "too-large", false, kTooLarge)               \
  X(kFewRequests, "few-requests", false, kNotAdmitted)      \
  X(kEnoughRequests, "enough-requests", true, kAdmitted)    \
  X(kPolicyRefuses, "not-admitted", false, kNotAdmitted)    \
  X(kPolicyAdmits, "admitted", true, kAdmitted)             \
  X(kWaits, "probation", true, kProbation)                  \
  X(kFill, "fill", true, kFill)                             \
  X(kWritesAll, "writes-all", true, kAdmitted)              \
  X(kKeyWaits, "too-large-to-wait", false, kTooLargeToWait) \
  X(kParentHint, "parent-hint", true, kSecondRequest)

// Reasons why a response is stored or not. kFirstRequest: remembered, not stored. kResident: a
// further variant of a resident key, or its replacement; only the policy's bound of sizes applied.
// kFewRequests and kEnoughRequests are those of nth-hit, kPolicyRefuses and kPolicyAdmits those of
// policies that weigh something else than the number of requests (also the eviction policy that
// knows the future). kWaits and those after it belong to probation. The object is in memory and not
// on disk; or on disk as well, for the disk was never full, or for the rule in force writes all. Or
// only its key is in memory, or was remembered. kParentHint: a policy that counts requests would
// not have stored it yet, but another cache counts those of all its clients (AdmitRequest::hinted).
enum class AdmitReason : std::uint8_t {
#define ENCORE_ENUMERATOR(id, name, stored, outcome) id,
  ENCORE_ADMIT_REASONS(ENCORE_ENUMERATOR)
#undef ENCORE_ENUMERATOR
};

inline constexpr std::size_t kAdmitReasonCount =
    static_cast<std::size_t>(AdmitReason::kParentHint) + 1;  // the last one

// Returns the counted outcome of a request whose response was decided on. The proxy and the
// simulator have an enum each, with the same names.
template <typename Outcome>
constexpr Outcome outcome_of(AdmitReason reason) {
  constexpr std::array kOutcomes = {
#define ENCORE_OUTCOME(id, name, stored, outcome) Outcome::outcome,
      ENCORE_ADMIT_REASONS(ENCORE_OUTCOME)
#undef ENCORE_OUTCOME
  };
  return kOutcomes.at(static_cast<std::size_t>(reason));
}

// kTooLarge: more than max_object_bytes. kFull: nothing is left to evict, reservations hold it all.
enum class ReserveOutcome : std::uint8_t { kReserved, kTooLarge, kFull };

// kReplaced: the key had this variant. kTooLarge, kFull: not stored, the reservation is given back
// and the payload stays the caller's. kSuperseded: likewise, because the record that it was read
// from no longer belongs to the key, or because it was overtaken. kRefused: it was for the disk
// only (Stored::disk_only), which does not take it; the disk's decision says why. Then nothing is
// left of the variant, in memory or on disk: the object to be replaced is no longer the origin's
// response.
enum class CommitOutcome : std::uint8_t {
  kStored,
  kReplaced,
  kTooLarge,
  kFull,
  kSuperseded,
  kRefused
};

// kAbsent: evicted or removed meanwhile, or about to be (InvalidationCheck). kTooLarge, kFull: it
// may not grow so far, nothing changed. kFreshenedOnDisk: it lies on disk alone and has its new
// times there.
enum class FreshenOutcome : std::uint8_t {
  kFreshened,
  kAbsent,
  kTooLarge,
  kFull,
  kFreshenedOnDisk
};

std::string_view to_string(LookupState state) noexcept;
std::string_view to_string(AdmitReason reason) noexcept;
std::string_view to_string(ReserveOutcome outcome) noexcept;
std::string_view to_string(CommitOutcome outcome) noexcept;
std::string_view to_string(FreshenOutcome outcome) noexcept;
// True if the response goes into the cache.
bool is_stored(AdmitReason reason) noexcept;
// True if it is on probation in the memory (Stored::waits).
constexpr bool is_on_probation(AdmitReason reason) noexcept {
  return reason == AdmitReason::kWaits || reason == AdmitReason::kFill ||
         reason == AdmitReason::kWritesAll;
}

// --- arguments and results ----------------------------------------------------------------------

enum class DiskHit : std::uint8_t { kNone, kFirst, kAgain };

struct LookupResult {
  LookupState state = LookupState::kMiss;
  // Some variant of the key is resident, selected or not.
  bool any_resident = false;
  // Nothing was looked up: Selector::is_undecided().
  bool is_undecided = false;
  // Not kNone: the selected one lies on disk alone; there is no payload, and of the variant the low
  // half. kAgain: it has been asked for there before, and is worth a place in memory.
  DiskHit disk = DiskHit::kNone;
  bool on_disk() const { return disk != DiskHit::kNone; }
  bool promote() const { return disk == DiskHit::kAgain; }
  Payload payload = 0;
  std::uint64_t variant = 0;
  MonotonicTime fresh_until{};
  // The entry was found for the first time since it was stored.
  bool is_first_use = false;
};

// A rule that replaces the policy for some requests: a policy without memory of its own, or the
// rule of nth-hit (2: of second-hit) on the policy's filter, which must have one.
struct AdmissionRule {
  enum class Kind : std::uint8_t {
    kPolicy,  // none: the policy is asked
    kAlways,
    kNever,
    kNthHit,         // parameter: 2 to kMinRequestsMax
    kProbability,    // in 2^-32
    kSizeThreshold,  // bytes
  };
  Kind kind = Kind::kPolicy;
  std::uint64_t parameter = 0;  // below 2^56
  friend bool operator==(const AdmissionRule&, const AdmissionRule&) = default;

  // As one number, for the journal; 0: none.
  std::uint64_t encoded() const {
    return static_cast<std::uint64_t>(kind) | parameter << kKindBits;
  }
  // Returns no rule for a number that is not one of these.
  static AdmissionRule decoded(std::uint64_t number) {
    const std::uint64_t kind = number & ((1U << kKindBits) - 1);
    if (kind > static_cast<std::uint64_t>(Kind::kSizeThreshold)) return {};
    return {.kind = static_cast<Kind>(kind), .parameter = number >> kKindBits};
  }

 private:
  static constexpr unsigned kKindBits = 8;
};

// A storable response asks to be stored. `requests` counts all that it answers: 1 and the waiters
// that joined before its head was known (each counts as a request, so with one of them it is a
// second request). A request that joins later asks anew with requests = 1.
struct AdmitRequest {
  std::uint64_t variant = 0;
  std::uint32_t requests = 1;
  // Size of the whole object, 0 if it is not known yet: policies that weigh sizes then assume the
  // largest that may be stored.
  std::uint64_t size_bytes = 0;
  std::uint64_t hint = 0;  // the eviction policy's, where it wants one
  // It will be Stored::disk_only: the largest object of the memory is no bound, and neither is what
  // would have to leave the memory for it.
  bool disk_only = false;
  // A cache that it came from has had an earlier request for it: policies that count requests store
  // it now, and remember the key as if they had counted enough. Other policies ignore it.
  bool hinted = false;
  AdmissionRule rule = {};
};

// Says whether an arriving response was overtaken by an invalidation on its way. Called under the
// shard's lock: cheap, no I/O, no calls of the kernel. An invalidation is announced before it calls
// the kernel. So either it is seen here, or the object stored here is there to be removed. Why it
// is not checked before and after: docs/decisions/0160.
class InvalidationCheck {
 public:
  virtual ~InvalidationCheck() = default;
  virtual bool is_overtaken() const = 0;
};

// One variant of a key, to be stored or freshened. The kernel adds its own overhead to the charge.
struct Stored {
  std::uint64_t variant = 0;
  std::uint64_t charge_bytes = 0;  // below 2^40 with the overhead
  // The first moment at which it is stale, and the first at which it is of no use at all.
  // keep_until below fresh_until is taken as fresh_until; the time between the two is rounded up
  // to whole seconds.
  MonotonicTime fresh_until = MonotonicTime::max();
  MonotonicTime keep_until = MonotonicTime::max();
  Payload payload = 0;
  std::uint64_t hint = 0;  // the eviction policy's, where it wants one
  // Size of its record on disk; 0: it is not written, and an older record of this variant goes.
  std::uint64_t disk_bytes = 0;
  std::uint16_t disk_names = 0;  // number of the names that it varies by (Kernel::intern)
  bool disk_queue_full = false;  // nothing can be written at the moment
  // It stays out of memory: no charge, no payload. Memory drops its copy of the variant.
  bool disk_only = false;
  // It is on probation (is_on_probation() of what admit() said): the oldest of these leaves first,
  // whatever is asked for, and its key is remembered then.
  bool waits = false;
  // It was read from there, where it stays.
  std::optional<DiskPlace> from_disk = std::nullopt;
  // If it is not null: what was overtaken is neither stored (kSuperseded) nor freshened (kAbsent).
  const InvalidationCheck* invalidation_check = nullptr;
};

struct EntryView {
  filter::Hash128 key{};
  std::uint64_t variant = 0;
  std::uint64_t charge_bytes = 0;  // the kernel's overhead included
  MonotonicTime fresh_until{};
  MonotonicTime keep_until{};
  Payload payload = 0;
};

// A record on disk, as far as the index knows it.
struct DiskView {
  std::uint32_t variant = 0;  // the low half
  std::uint16_t names = 0;    // number of the names that it varies by (Kernel::disk_names)
  bool visited = false;
  DiskPlace place;
  MonotonicTime fresh_until{};
  MonotonicTime keep_until{};
};

// --- interfaces that callers implement -----------------------------------------------------------

// Chooses among the variants of a key. Called under the shard's lock: cheap, no locks, no I/O.
class Selector {
 public:
  virtual ~Selector() = default;
  // True selects the entry. May take a reference to what the payload stands for.
  virtual bool matches(Payload payload) = 0;
  // The same for a record on disk, asked where nothing in memory is selected. May keep the view.
  virtual bool matches_disk(const DiskView& /*view*/) { return false; }
  // True if the last matches() said false for want of something that is not made under a lock: the
  // lookup ends, as if it had not been, to be repeated.
  virtual bool is_undecided() const { return false; }
};

// A selector's answer about an entry.
enum class Match : std::uint8_t { kNo, kYes, kUndecided };

enum class Verdict : std::uint8_t { kKeep, kRemove, kMarkStale };

// Called under the shard's lock: cheap, no locks, no I/O.
class Visitor {
 public:
  virtual ~Visitor() = default;
  virtual Verdict visit(const EntryView& entry) = 0;
  // The same for what lies on disk, in memory as well or not.
  virtual Verdict visit_disk(const DiskView& /*view*/) { return Verdict::kKeep; }
};

}  // namespace encore::cache
