#include "proxy/settings/token_buckets.h"

#include <sys/random.h>

#include <algorithm>
#include <cmath>

#include "base/check.h"

namespace encore::server {
namespace {

filter::Seed random_seed() {
  std::array<std::uint64_t, 2> bits{};
  // With up to 256 bytes it is never interrupted.
  const ssize_t got = ::getrandom(bits.data(), sizeof(bits), 0);
  ENCORE_CHECK(got == static_cast<ssize_t>(sizeof(bits)), "the system has random bytes");
  return {bits[0], bits[1]};
}

std::int64_t count_of(MonotonicTime time) { return time.time_since_epoch().count(); }

}  // namespace

TokenBuckets::TokenBuckets(const Options& options)
    : interval_(static_cast<std::int64_t>(std::ceil(1e9 / options.rate))),
      tolerance_(interval_ * (std::int64_t{options.burst} - 1)),
      seed_(random_seed()),
      sets_((options.entries + kPlaces - 1) / kPlaces),
      locks_(std::make_unique<std::array<Lock, kLocks>>()) {
  ENCORE_CHECK(options.rate > 0 && options.burst > 0 && options.entries > 0,
               "a bucket has room and is filled");
}

// His own, or the one whose bucket is fullest.
TokenBuckets::Place& TokenBuckets::place_of(Set& set, std::uint64_t tag, std::int64_t now) const {
  Place* found = &set.front();
  for (Place& place : set) {
    if (place.tag == tag) {
      found = &place;
      break;
    }
    if (place.full_at < found->full_at) found = &place;
  }
  if (found->tag != tag || found->full_at < now) *found = {.tag = tag, .full_at = now};
  return *found;
}

Nanoseconds TokenBuckets::take(std::string_view who, MonotonicTime now) {
  const filter::Hash128 hash = filter::hash_key(filter::HashFamily::kXxh3, seed_, who);
  const std::size_t set = hash.lo % sets_.size();
  const MutexLock lock((*locks_)[set % kLocks].mutex);
  Place& place = place_of(sets_[set], hash.hi, count_of(now));
  const std::int64_t ahead = place.full_at - count_of(now);
  if (ahead > tolerance_) return Nanoseconds(ahead - tolerance_);
  place.full_at += interval_;
  return Nanoseconds(0);
}

void TokenBuckets::give_back(std::string_view who, MonotonicTime now) {
  const filter::Hash128 hash = filter::hash_key(filter::HashFamily::kXxh3, seed_, who);
  const std::size_t set = hash.lo % sets_.size();
  const MutexLock lock((*locks_)[set % kLocks].mutex);
  for (Place& place : sets_[set]) {
    if (place.tag == hash.hi && place.full_at > count_of(now)) place.full_at -= interval_;
  }
}

}  // namespace encore::server
