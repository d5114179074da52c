#include "proxy/server/inflight.h"

#include <utility>

namespace encore::server {

Inflight::Claim Inflight::join_one(Shard& home, const filter::Hash128& hash, std::string_view key,
                                   TransferReader& reader) {
  auto [first, last] = home.transfers.equal_range(hash);
  for (; first != last; ++first) {
    const std::shared_ptr<Transfer>& transfer = first->second;
    if (!transfer->has_key(key)) continue;
    const JoinOutcome joined = transfer->join(reader);
    if (joined != JoinOutcome::kNo) return {transfer, joined};
  }
  return {};
}

Inflight::Claim Inflight::join_or_enter(const filter::Hash128& hash, std::string_view key,
                                        TransferReader& reader,
                                        const std::shared_ptr<Transfer>& fresh) {
  Shard& home = shard(hash);
  const MutexLock lock(home.mutex);
  if (Claim claim = join_one(home, hash, key, reader); claim.transfer != nullptr) return claim;
  enter(home, fresh);
  return {fresh, JoinOutcome::kNo};
}

Inflight::Claim Inflight::join(const filter::Hash128& hash, std::string_view key,
                               TransferReader& reader) {
  Shard& home = shard(hash);
  const MutexLock lock(home.mutex);
  return join_one(home, hash, key, reader);
}

bool Inflight::enter_if_absent(const std::shared_ptr<Transfer>& transfer) {
  Shard& home = shard(transfer->hash());
  const MutexLock lock(home.mutex);
  if (home.transfers.contains(transfer->hash())) return false;
  enter(home, transfer);
  return true;
}

void Inflight::enter(Shard& home, const std::shared_ptr<Transfer>& transfer) {
  transfer->is_listed = true;
  if (home.spare.empty()) {
    home.transfers.emplace(transfer->hash(), transfer);
    return;
  }
  home.spare.key() = transfer->hash();
  home.spare.mapped() = transfer;
  home.transfers.insert(std::move(home.spare));
}

void Inflight::remove(Transfer& transfer) {
  if (!std::exchange(transfer.is_listed, false)) return;
  std::shared_ptr<Transfer> gone;  // its end, if this is it, comes after the lock
  Shard& home = shard(transfer.hash());
  const MutexLock lock(home.mutex);
  auto [first, last] = home.transfers.equal_range(transfer.hash());
  for (; first != last; ++first) {
    if (first->second.get() != &transfer) continue;
    home.spare = home.transfers.extract(first);
    gone = std::move(home.spare.mapped());
    return;
  }
}

// What is counted comes before the table's lock, and the caller removes what is stored after it: a
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
  invalidations_.add_all();
  for (Shard& home : shards_) {
    decltype(home.transfers) gone;
    const MutexLock lock(home.mutex);
    gone.swap(home.transfers);
  }
}

namespace {

// Whole seconds, rounded up, so that a slot fits one word; wraps after 136 years of uptime.
std::uint32_t seconds_of(MonotonicTime time) {
  return static_cast<std::uint32_t>(
      std::chrono::ceil<std::chrono::seconds>(time.time_since_epoch()).count());
}

}  // namespace

void Inflight::remember_uncacheable(const filter::Hash128& hash, MonotonicTime until) {
  uncacheable_[hash.lo % kUncacheableSlots].store((hash.hi >> 32U << 32U) | seconds_of(until),
                                                  std::memory_order_relaxed);
}

void Inflight::forget_uncacheable(const filter::Hash128& hash) {
  std::atomic<std::uint64_t>& slot = uncacheable_[hash.lo % kUncacheableSlots];
  if (slot.load(std::memory_order_relaxed) >> 32U != hash.hi >> 32U) return;
  slot.store(0, std::memory_order_relaxed);
}

bool Inflight::is_uncacheable(const filter::Hash128& hash, MonotonicTime now) const {
  const std::uint64_t slot =
      uncacheable_[hash.lo % kUncacheableSlots].load(std::memory_order_relaxed);
  return slot != 0 && slot >> 32U == hash.hi >> 32U &&
         seconds_of(now) < static_cast<std::uint32_t>(slot);
}

}  // namespace encore::server
