#include "proxy/transfer/inflight.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace encore::server {

bool Inflight::may_meet(const Wanted& wanted, const Transfer& transfer) {
  const Transfer::Requester& requester = transfer.requester();
  // A response by the rules of before a reload answers no request by the present ones.
  if (requester.settings != wanted.settings) return false;
  // It waits because its client has its share of the server, and would hold up clients who have not
  // (docs/decisions/0315).
  if (transfer.is_held_back() && wanted.client != nullptr &&
      requester.client.network_bytes() != wanted.client->network_bytes()) {
    return false;
  }
  if (requester.credentials == wanted.credentials) return true;
  switch (wanted.among) {
    case JoinCandidates::kAll:
      return true;
    case JoinCandidates::kAlikeBeforeHead:
      return transfer.phase() != TransferPhase::kWaiting;
    case JoinCandidates::kAlike:
      break;
  }
  return false;
}

Inflight::Claim Inflight::join_one(Shard& home, const Wanted& wanted, std::string& names) {
  auto [first, last] = home.transfers.equal_range(wanted.hash);
  for (; first != last; ++first) {
    const std::shared_ptr<Transfer>& transfer = first->second;
    if (!transfer->has_key(wanted.key) || !may_meet(wanted, *transfer)) continue;
    const JoinOutcome joined = transfer->join(wanted.reader, wanted.variants, wanted.scope, names);
    if (joined == JoinOutcome::kUnknownKey) return {.transfer = nullptr, .joined = joined};
    if (joined != JoinOutcome::kNo) return {transfer, joined};
  }
  return {};
}

Inflight::Claim Inflight::join_or_enter(const Wanted& wanted,
                                        const std::shared_ptr<Transfer>& fresh) {
  Shard& home = shard(wanted.hash);
  std::string names;  // by which the transfers of the key differ
  while (true) {
    {
      const MutexLock lock(home.mutex);
      Claim claim = join_one(home, wanted, names);
      if (claim.transfer != nullptr) return claim;
      if (claim.joined == JoinOutcome::kNo) {
        // It was stored between the reader's lookup and here: another lookup finds it.
        if (wanted.checks_recent_stores && home.stored.contains(wanted.hash)) {
          return {.transfer = nullptr, .joined = JoinOutcome::kStoredMeanwhile};
        }
        if (fresh == nullptr) return {};
        // Responses of the key differ by these fields: this one brings its reader's own variant
        // (docs/decisions/0053).
        if (!names.empty() && !fresh->is_expected()) {
          fresh->expect({.names = names, .key = *wanted.variants.find(names)});
        }
        enter_locked(home, fresh);
        return {fresh, JoinOutcome::kNo};
      }
    }
    // Outside the lock. Each turn makes a key that was missing, for names that a transfer has: it
    // ends.
    wanted.variants.make(names);
  }
}

void Inflight::enter(const std::shared_ptr<Transfer>& transfer) {
  Shard& home = shard(transfer->hash());
  const MutexLock lock(home.mutex);
  enter_locked(home, transfer);
}

bool Inflight::enter_if_absent(const std::shared_ptr<Transfer>& transfer) {
  Shard& home = shard(transfer->hash());
  const MutexLock lock(home.mutex);
  if (home.transfers.contains(transfer->hash())) return false;
  enter_locked(home, transfer);
  return true;
}

void Inflight::enter_locked(Shard& home, const std::shared_ptr<Transfer>& transfer) {
  ENCORE_CHECK(transfer->can_be_found() && !transfer->is_listed(), "a transfer is entered once");
  transfer->set_listed();
  if (home.spare.empty()) {
    home.transfers.emplace(transfer->hash(), transfer);
    return;
  }
  // The node of the transfer that left last: nothing is allocated under the lock.
  home.spare.key() = transfer->hash();
  home.spare.mapped() = transfer;
  home.transfers.insert(std::move(home.spare));
}

bool Inflight::Stored::contains(const filter::Hash128& hash) const {
  return std::ranges::find(hashes_, hash.lo) != hashes_.end();
}

void Inflight::take_out(Transfer& transfer, End end) {
  if (!transfer.is_listed()) return;
  std::shared_ptr<Transfer> gone;  // its end comes after the lock; null: it was invalidated before
  {
    Shard& home = shard(transfer.hash());
    const MutexLock lock(home.mutex);
    if (end == End::kStored) home.stored.add(transfer.hash());
    auto [first, last] = home.transfers.equal_range(transfer.hash());
    while (first != last && first->second.get() != &transfer) ++first;
    if (first != last) {
      home.spare = home.transfers.extract(first);
      gone = std::move(home.spare.mapped());
      ENCORE_CHECK(gone->hash() == transfer.hash(), "a transfer lies at its own hash");
    }
  }
  // From here on nobody finds it who has not.
  transfer.set_unlisted();
}

// The count comes before the table's lock, and the caller removes the stored objects after it. So a
// transfer either is seen to be overtaken when it has stored its response, or has stored it before
// the removal.
void Inflight::invalidate(const filter::Hash128& hash, std::string_view key) {
  invalidations_.add(hash);
  std::vector<std::shared_ptr<Transfer>> gone;  // their ends come after the lock
  Shard& home = shard(hash);
  const MutexLock lock(home.mutex);
  auto [first, last] = home.transfers.equal_range(hash);
  while (first != last) {
    if (!first->second->has_key(key)) {
      ++first;
      continue;
    }
    gone.push_back(std::move(first->second));
    first = home.transfers.erase(first);
  }
}

void Inflight::invalidate_all() {
  // Counted first, as in invalidate().
  invalidations_.add_all();
  for (Shard& home : shards_) {
    decltype(home.transfers) gone;
    const MutexLock lock(home.mutex);
    gone.swap(home.transfers);
  }
}

namespace {

constexpr unsigned kUnsharedBits = 2;
constexpr std::uint32_t kUnsharedMask = (1U << kUnsharedBits) - 1;

// Whole seconds, rounded up, in 30 bits, so that a slot fits one word; wraps after 34 years of
// uptime.
std::uint32_t seconds_of(MonotonicTime time) {
  return static_cast<std::uint32_t>(
             std::chrono::ceil<std::chrono::seconds>(time.time_since_epoch()).count()) &
         (UINT32_MAX >> kUnsharedBits);
}

}  // namespace

void Inflight::remember(const filter::Hash128& place, Unshared why, MonotonicTime until) {
  const std::uint64_t lower =
      std::uint64_t{seconds_of(until)} << kUnsharedBits | static_cast<std::uint64_t>(why);
  // Half of a word names the place, the rest says why and until when: read and written without a
  // lock (docs/decisions/0050).
  unshared_[place.lo % kUnsharedSlots].store((place.hi >> 32U << 32U) | lower,
                                             std::memory_order_relaxed);
}

bool Inflight::forget(const filter::Hash128& place) {
  Slot& slot = unshared_[place.lo % kUnsharedSlots];
  const std::uint64_t held = slot.load(std::memory_order_relaxed);
  if (held == 0 || held >> 32U != place.hi >> 32U) return false;
  slot.store(0, std::memory_order_relaxed);
  return true;
}

Inflight::Unshared Inflight::remembered(const filter::Hash128& place, MonotonicTime now) const {
  const std::uint64_t slot = unshared_[place.lo % kUnsharedSlots].load(std::memory_order_relaxed);
  if (slot == 0 || slot >> 32U != place.hi >> 32U) return Unshared::kNo;
  const auto lower = static_cast<std::uint32_t>(slot);
  if (seconds_of(now) >= lower >> kUnsharedBits) return Unshared::kNo;
  return static_cast<Unshared>(lower & kUnsharedMask);
}

void Inflight::remember_unshared(const filter::Hash128& hash, std::uint64_t credentials,
                                 Unshared why, MonotonicTime until) {
  remember(place_of(hash, credentials), why, until);
  remember(place_of(hash, kApart), why, until);
}

// A client that was remembered, and has something to share now, may be why requests were kept
// apart.
void Inflight::forget_unshared(const filter::Hash128& hash, std::uint64_t credentials) {
  if (forget(place_of(hash, credentials))) forget(place_of(hash, kApart));
  forget(place_of(hash, kRangesAlone));
}

Inflight::Unshared Inflight::unshared(const filter::Hash128& hash, std::uint64_t credentials,
                                      MonotonicTime now) const {
  return remembered(place_of(hash, credentials), now);
}

bool Inflight::was_unshared_recently(const filter::Hash128& hash, MonotonicTime now) const {
  return remembered(place_of(hash, kApart), now) != Unshared::kNo;
}

void Inflight::keep_ranges_alone(const filter::Hash128& hash, MonotonicTime until) {
  remember(place_of(hash, kRangesAlone), Unshared::kUncacheable, until);
}

bool Inflight::are_ranges_alone(const filter::Hash128& hash, MonotonicTime now) const {
  return remembered(place_of(hash, kRangesAlone), now) != Unshared::kNo;
}

}  // namespace encore::server
