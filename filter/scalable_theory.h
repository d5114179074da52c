// How a filter grows by slices (Almeida, Baquero, Preguica, Hutchison 2007), and what theory says
// of it. Pure functions, thread-safe.
//
// Slice i holds n0 s^i keys. With a tightening r below 1 it has the rate P (1 - r) r^i, so that the
// rates of any number of slices add up to less than P, and the compound rate
//
//   1 - product of (1 - p_i)  <=  sum of p_i  <  P
//
// stays below P at any size. (In the paper's terms P0 = P (1 - r), and the bound is P0 / (1 - r).)
// With r = 1 every slice has the rate P, and the compound one grows without bound: the plain list
// of equal filters is s = 1, r = 1.
//
// A key that a slice takes in was judged new and set a bit at least, so that c insertions are worth
// a little more than c keys (effective_insertions); slices are sized for that. Each slice has
// hashes of its own (slice_hash): with the same ones, a key that a slice takes in would be one
// whose positions are not set in those before, and equal slices would answer more often than
// independent ones.
#pragma once

#include <cstdint>

#include "base/error.h"
#include "filter/hash.h"
#include "filter/parameters.h"

namespace encore::filter {

inline constexpr std::uint32_t kSlicesMax = 1024;
inline constexpr double kGrowthMax = 16;

struct ScalableOptions {
  Layout layout = Layout::kClassic;
  HashFamily hash = HashFamily::kXxh3;
  Seed seed;
  std::uint64_t capacity = 0;  // n0: keys of the first slice
  double fpr = 0;              // P
  double growth = 2;           // s, 1 to kGrowthMax
  double tightening = 0.85;    // r, above 0, at most 1
  bool growable() const { return growth == 1 && tightening == 1; }
  friend bool operator==(const ScalableOptions&, const ScalableOptions&) = default;
};

// Errors: a number outside its range, and a hash that lists indices; the message shows it and what
// is accepted.
Result<void> check(const ScalableOptions& options);

// Capacity of slice i, from 0. REQUIRES: check(options).
double slice_capacity(const ScalableOptions& options, std::uint32_t i);
double slice_fpr(const ScalableOptions& options, std::uint32_t i);
// Errors: a slice that no filter is large enough for.
Result<FilterParameters> slice_parameters(const ScalableOptions& options, std::uint32_t i);

// A key's hash for slice i. The first slice takes it as it is, so that it is a plain filter.
constexpr Hash128 slice_hash(const Hash128& hash, std::uint32_t i) noexcept {
  const std::uint64_t step = i * 0x9e3779b97f4a7c15U;
  return i == 0 ? hash : Hash128{scrambled(hash.lo + step), scrambled(hash.hi ^ step)};
}

struct ScalableForecast {
  std::uint32_t slices = 0;
  double capacity = 0;  // capacity of these slices
  double bits = 0;
  double fpr = 0;       // with so many keys in it
  double fpr_full = 0;  // with the last slice full
  bool reached = true;  // false: it takes more slices than there may be, or larger ones
};
// Forecast for a filter that has received `keys` keys. REQUIRES: check(options).
ScalableForecast forecast(const ScalableOptions& options, double keys);

}  // namespace encore::filter
