// TokenBuckets: how often something may happen, for each of many who do it: a bucket of `burst`
// tokens each, into which `rate` come a second. A bucket is one time, at which it will be full
// (the generic cell rate algorithm), so it costs no timer, and who has a full one is forgotten.
//
// It remembers as many clients as there are places; beyond that it drops the one nearest to a full
// bucket. So a client that has used up its own stays known, however many others come. Thread-safe.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "base/mutex.h"
#include "base/time.h"
#include "filter/hash.h"

namespace encore::server {

class TokenBuckets {
 public:
  struct Options {
    double rate = 1;             // tokens a second
    std::uint32_t burst = 1;     // at least 1
    std::size_t entries = 1024;  // rounded up to a multiple of the sets'
  };
  explicit TokenBuckets(const Options& options);

  // Takes a token of who is named so. Zero: there was one; else how long until there is.
  Nanoseconds take(std::string_view who, MonotonicTime now);
  // Gives one back that was taken.
  void give_back(std::string_view who, MonotonicTime now);

 private:
  // Those who share a few places. No more than a cache line and a lock.
  static constexpr std::size_t kPlaces = 8;
  static constexpr std::size_t kLocks = 64;
  struct Place {
    std::uint64_t tag = 0;
    std::int64_t full_at = 0;  // nanoseconds; not after now: nobody
  };
  using Set = std::array<Place, kPlaces>;
  struct Lock {
    Mutex mutex;
  };

  Place& place_of(Set& set, std::uint64_t tag, std::int64_t now) const;

  std::int64_t interval_;   // nanoseconds a token
  std::int64_t tolerance_;  // how far ahead of now a bucket may be that still gives one
  filter::Seed seed_;       // random: nobody chooses whose places he shares
  std::vector<Set> sets_;
  std::unique_ptr<std::array<Lock, kLocks>> locks_;
};

}  // namespace encore::server
