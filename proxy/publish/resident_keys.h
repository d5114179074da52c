// ResidentKeys: the keys of cached objects, as counting filters that are updated together with the
// index (Fan, Cao, Almeida, Broder 2000), so that publishing them reads nothing of the cache. There
// are two: one of our own, and the source of Squid's digest. Thread-safe: a mutex for the time of
// one key, when an object is stored or goes; never on a hit.
//
// Each stored response counts once, so a URL with several variants more than once. A key must be
// added before it is to be found in the index, and taken out after it is no more: else another
// thread could take out what is not there yet, and with it what belongs to others.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <utility>

#include "base/error.h"
#include "base/mutex.h"
#include "filter/any_filter.h"
#include "filter/counting_filter.h"
#include "filter/parameters.h"
#include "filter/published/squid_digest.h"

namespace encore::publish {

class ResidentKeys {
 public:
  // `parameters` are those of our own; both are made for its capacity. Errors: those of checked();
  // a seed, for it is published; more than a digest can hold; memory.
  static Result<std::unique_ptr<ResidentKeys>> create(const filter::FilterParameters& parameters);

  // A response at this URL, a normalised URI as the cache keys have it, is stored now; has gone.
  void add(std::string_view url);
  void remove(std::string_view url);

  struct Counts {
    std::uint64_t stored = 0;     // responses
    std::uint64_t removals = 0;   // since the start
    std::uint64_t overflows = 0;  // times a counter overflowed; it stays at its maximum then
  };
  Counts counts() const;
  // As they are now. Errors: memory.
  Result<filter::AnyFilter> filter() const;
  Result<filter::SquidDigest> digest() const;

 private:
  ResidentKeys(filter::CountingFilter own, filter::CountingFilter squids)
      : own_(std::move(own)), squids_(std::move(squids)) {}

  mutable Mutex mutex_;
  filter::CountingFilter own_ ENCORE_GUARDED_BY(mutex_);
  filter::CountingFilter squids_ ENCORE_GUARDED_BY(mutex_);
  std::uint64_t removals_ ENCORE_GUARDED_BY(mutex_) = 0;
};

}  // namespace encore::publish
