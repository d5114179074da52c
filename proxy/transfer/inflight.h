// The transfers in progress that others may join, by primary key. Also the keys and credentials
// whose latest responses could not be shared, so that such requests never wait for one another
// (docs/decisions/0400). And how often keys were invalidated, so that a transfer can tell whether
// it was overtaken. Thread-safe; sharded like the kernel, so that workers rarely meet.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

#include "base/mutex.h"
#include "base/prefetch.h"
#include "base/time.h"
#include "filter/hash.h"
#include "proxy/transfer/invalidations.h"
#include "proxy/transfer/latest_responses.h"
#include "proxy/transfer/refresh_backoff.h"
#include "proxy/transfer/transfer.h"

namespace encore::server {

class Inflight {
 public:
  // Places for what is not shared: one takes another's, which costs that one at worst a wait for an
  // answer that is not shared. However many credentials a client makes up, the table does not grow.
  static constexpr std::size_t kUnsharedSlots = 1U << 16U;

  struct Claim {
    std::shared_ptr<Transfer> transfer;     // the one to read, or the new one to fetch
    JoinOutcome joined = JoinOutcome::kNo;  // else an existing one, the reader is registered
  };

  // The transfers that a request may wait for, by its credentials.
  enum class JoinCandidates : std::uint8_t {
    kAll,
    kAlikeBeforeHead,  // with other credentials, only if the response is known to be of use
    kAlike,            // with the same credentials
  };

  // A request that wants a transfer.
  struct Wanted {
    const filter::Hash128& hash;
    std::string_view key;
    http::VariantKeys& variants;
    TransferReader& reader;
    // Nobody is given what was asked for under other settings than his own (Runtime::number).
    std::uint64_t settings = 0;
    std::uint64_t credentials = 0;
    const net::Address* client = nullptr;  // null: it joins what any client waits for
    JoinCandidates among = JoinCandidates::kAll;
    JoinScope scope = JoinScope::kAny;
    // True to be notified if a response of the key was stored a moment ago, maybe since this
    // request's lookup: kStoredMeanwhile, and nothing is done.
    bool checks_recent_stores = false;
  };
  // Joins a transfer of the key that brings the wanted variant, or enters `fresh` as the one that
  // others may join; it is expected to bring that variant where others of the key tell by which
  // fields they differ. A null one is not entered.
  Claim join_or_enter(const Wanted& wanted, const std::shared_ptr<Transfer>& fresh);
  // Only enters. REQUIRES: `transfer` has a key.
  void enter(const std::shared_ptr<Transfer>& transfer);
  // Enters a transfer unless the key has one; whether it did.
  bool enter_if_absent(const std::shared_ptr<Transfer>& transfer);
  // Takes the transfer out; it can no longer be found. REQUIRES: the calling thread entered it.
  void remove(Transfer& transfer) { take_out(transfer, End::kWithoutTrace); }
  // The same for one whose response has been stored.
  void remove_stored(Transfer& transfer) { take_out(transfer, End::kStored); }

  // The key was invalidated: requests from now on do not join earlier transfers, and
  // invalidations() counts it. Call it before the stored objects are removed.
  void invalidate(const filter::Hash128& hash, std::string_view key);
  // The same for every key.
  void invalidate_all();
  const Invalidations& invalidations() const { return invalidations_; }
  // The latest responses that were stored, or might have been.
  LatestResponses& latest_responses() { return latest_answers_; }
  const LatestResponses& latest_responses() const { return latest_answers_; }

  RefreshBackoff& refresh_backoff() { return refresh_pauses_; }

  // Why responses of a key are not shared with those who wait.
  enum class Unshared : std::uint8_t {
    kNo,
    kValidated,    // they are stored, and each asker validates what is
    kAnswer,       // they may be stored, but each answer is the asker's own; or are not stored
    kUncacheable,  // they may not even be stored, or are not fetched whole
  };
  // Remembered of requests with these credentials alone: a response to one user says nothing about
  // those to others.
  void remember_unshared(const filter::Hash128& hash, std::uint64_t credentials, Unshared why,
                         MonotonicTime until);
  // Also that ranges go alone.
  void forget_unshared(const filter::Hash128& hash, std::uint64_t credentials);
  Unshared unshared(const filter::Hash128& hash, std::uint64_t credentials,
                    MonotonicTime now) const;
  // True if a recent response of the key was not shared, whatever the client: requests do not wait
  // for those with other credentials.
  bool was_unshared_recently(const filter::Hash128& hash, MonotonicTime now) const;
  // The whole is more than a range is worth: the next range of any client goes to its origin
  // unchanged and does not wait.
  void keep_ranges_alone(const filter::Hash128& hash, MonotonicTime until);
  bool are_ranges_alone(const filter::Hash128& hash, MonotonicTime now) const;
  // Tells the CPU that the key's place among the unshared ones will be asked for soon.
  [[gnu::always_inline]] void prefetch_unshared(const filter::Hash128& hash) const {
    encore::prefetch(&unshared_[hash.lo % kUnsharedSlots]);
  }

 private:
  static constexpr std::size_t kShards = 16;
  struct HashOf {
    std::size_t operator()(const filter::Hash128& hash) const {
      return static_cast<std::size_t>(hash.lo);
    }
  };
  struct Same {
    bool operator()(const filter::Hash128& a, const filter::Hash128& b) const {
      return a.lo == b.lo && a.hi == b.hi;
    }
  };
  using Table = std::unordered_multimap<filter::Hash128, std::shared_ptr<Transfer>, HashOf, Same>;
  // The keys that were stored last: as many as come between a look into the cache and one at the
  // table.
  class Stored {
   public:
    void add(const filter::Hash128& hash) { hashes_[next_++ % hashes_.size()] = hash.lo; }
    bool contains(const filter::Hash128& hash) const;

   private:
    std::array<std::uint64_t, 16> hashes_{};
    std::size_t next_ = 0;
  };
  struct Shard {
    mutable Mutex mutex;
    Stored stored ENCORE_GUARDED_BY(mutex);
    Table transfers ENCORE_GUARDED_BY(mutex);
    Table::node_type spare ENCORE_GUARDED_BY(mutex);  // from the last removal
  };
  enum class End : std::uint8_t { kWithoutTrace, kStored };
  void take_out(Transfer& transfer, End end);
  static void enter_locked(Shard& home, const std::shared_ptr<Transfer>& transfer)
      ENCORE_REQUIRES(home.mutex);
  // Places that belong to a key and to no credentials.
  static constexpr std::uint64_t kApart = UINT64_MAX;
  static constexpr std::uint64_t kRangesAlone = UINT64_MAX - 1;
  using Slot = std::atomic<std::uint64_t>;
  static filter::Hash128 place_of(const filter::Hash128& hash, std::uint64_t credentials) {
    return {.lo = hash.lo ^ credentials, .hi = hash.hi ^ credentials};
  }
  void remember(const filter::Hash128& place, Unshared why, MonotonicTime until);
  bool forget(const filter::Hash128& place);
  Unshared remembered(const filter::Hash128& place, MonotonicTime now) const;
  // True if the request may wait for what this one brings.
  static bool may_meet(const Wanted& wanted, const Transfer& transfer);
  // Joins the first transfer of the key that lets it; else the claim is empty, and `names` set
  // where it is known by which fields its responses differ. kUnknownKey: the key for them comes
  // first.
  static Claim join_one(Shard& home, const Wanted& wanted, std::string& names)
      ENCORE_REQUIRES(home.mutex);
  Shard& shard(const filter::Hash128& hash) { return shards_[hash.hi % kShards]; }
  const Shard& shard(const filter::Hash128& hash) const { return shards_[hash.hi % kShards]; }

  std::array<Shard, kShards> shards_;
  // The tag of a place in the upper half; the second until which it holds, and what, in the lower;
  // 0: none.
  std::vector<Slot> unshared_ = std::vector<Slot>(kUnsharedSlots);
  Invalidations invalidations_;
  LatestResponses latest_answers_;
  RefreshBackoff refresh_pauses_;
};

}  // namespace encore::server
