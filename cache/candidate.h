// A response that may be stored, as the admission policies see it. Values.
//
// An admission policy is a class with
//   would_admit  Pure: whether admit() would say yes now.
//   admit        Test-and-set: one request more for the key; whether it is to be stored.
//   used         (some) A request was answered by the resident entry of the key.
//   reconfigure  (some) New options for what it remembers.
#pragma once

#include <cstdint>

#include "base/time.h"
#include "cache/types.h"

namespace encore::cache {

// Borrowed for the call.
struct Candidate {
  const Key& key;
  MonotonicTime now{};
  // 0 in would_admit(): not known yet.
  std::uint64_t size_bytes = 0;
  // True if something would be evicted for it; then `victim` is its key. Only for policies that
  // compare, and not in would_admit().
  bool has_victim = false;
  filter::Hash128 victim{};
};

// A number in [0, 1) for the n-th draw for a key. The key's hash is secret, so draws cannot be
// foreseen; they need no seed of their own, so a journal replays without it.
inline double draw(const filter::Hash128& key, std::uint64_t n) noexcept {
  std::uint64_t x = filter::remix(key) + n * 0x9e3779b97f4a7c15U;  // splitmix64 from here
  x = (x ^ (x >> 30U)) * 0xbf58476d1ce4e5b9U;
  x = (x ^ (x >> 27U)) * 0x94d049bb133111ebU;
  x ^= x >> 31U;
  return static_cast<double>(x >> 11U) * 0x1p-53;
}

}  // namespace encore::cache
