#include "proxy/publish/resident_keys.h"

#include <algorithm>
#include <limits>
#include <string>

namespace encore::publish {

Result<std::unique_ptr<ResidentKeys>> ResidentKeys::create(
    const filter::FilterParameters& parameters) {
  if (parameters.seed != filter::Seed{}) {
    return fail("a filter that is published has no secret seed");
  }
  if (parameters.capacity > filter::kSquidCapacityMax) {
    return fail("a digest of " + std::to_string(parameters.capacity) +
                " entries; accepted: up to " + std::to_string(filter::kSquidCapacityMax));
  }
  auto own = filter::CountingFilter::create(parameters);
  if (!own) return std::unexpected(own.error());
  auto squids =
      filter::CountingFilter::create(filter::squid_digest_parameters(parameters.capacity));
  if (!squids) return std::unexpected(squids.error());
  return std::unique_ptr<ResidentKeys>(new ResidentKeys(std::move(*own), std::move(*squids)));
}

void ResidentKeys::add(std::string_view url) {
  const MutexLock lock(mutex_);
  own_.add(url);
  squids_.add(url);
}

void ResidentKeys::remove(std::string_view url) {
  const MutexLock lock(mutex_);
  own_.remove(url);
  squids_.remove(url);
  ++removals_;
}

ResidentKeys::Counts ResidentKeys::counts() const {
  const MutexLock lock(mutex_);
  return {.stored = own_.keys(), .removals = removals_, .overflows = own_.overflows()};
}

Result<filter::AnyFilter> ResidentKeys::filter() const {
  const MutexLock lock(mutex_);
  auto plain = own_.plain();
  if (!plain) return std::unexpected(plain.error());
  return filter::AnyFilter(std::move(*plain));
}

Result<filter::SquidDigest> ResidentKeys::digest() const {
  const MutexLock lock(mutex_);
  const auto plain = squids_.plain();
  if (!plain) return std::unexpected(plain.error());
  auto digest = filter::squid_digest_of(*plain);
  if (!digest) return digest;
  constexpr std::uint64_t kMost = std::numeric_limits<std::uint32_t>::max();
  digest->count = static_cast<std::uint32_t>(std::min(squids_.keys(), kMost));
  digest->deletions = static_cast<std::uint32_t>(std::min(removals_, kMost));
  return digest;
}

}  // namespace encore::publish
