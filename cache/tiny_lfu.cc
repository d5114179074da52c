#include "cache/tiny_lfu.h"

#include <utility>

#include "base/check.h"

namespace encore::cache {
namespace {

// The paper's relation of a sample to a cache, the other way round: the sketch has counters for as
// many keys as a cache has entries that such a window suits.
constexpr std::uint64_t kRequestsAKey = 10;

}  // namespace

Result<TinyLfu> TinyLfu::create(const filter::FilterParameters& doorkeeper) {
  auto made = filter::BloomFilter::create(doorkeeper);
  if (!made) {
    return std::unexpected(made.error());
  }
  return TinyLfu(std::move(*made), doorkeeper.capacity);
}

TinyLfu::TinyLfu(filter::BloomFilter doorkeeper, std::uint64_t window)
    : doorkeeper_(std::move(doorkeeper)), window_(window) {
  sketch_.resize(window / kRequestsAKey);
}

bool TinyLfu::would_admit(const Candidate& candidate) const {
  return !compared_ || frequency(candidate.key.hash) + 1 > frequency(last_victim_);
}

bool TinyLfu::admit(const Candidate& candidate) {
  count(candidate.key.hash);
  compared_ = candidate.has_victim;
  last_victim_ = candidate.victim;
  return !compared_ || frequency(candidate.key.hash) > frequency(candidate.victim);
}

void TinyLfu::count(const filter::Hash128& key) {
  if (doorkeeper_.test_and_set(key)) {
    sketch_.increment(key);
  }
  if (++counted_ < window_) {
    return;
  }
  sketch_.halve();
  auto fresh = filter::BloomFilter::create(doorkeeper_.parameters());
  ENCORE_CHECK(fresh, "memory for the doorkeeper of tinylfu");
  doorkeeper_ = std::move(*fresh);
  counted_ /= 2;
  ++resets_;
}

std::uint64_t TinyLfu::memory_bytes() const {
  return doorkeeper_.parameters().bits / 8 + sketch_.memory_bytes();
}

}  // namespace encore::cache
