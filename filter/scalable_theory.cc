#include "filter/scalable_theory.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <string>

#include "filter/theory.h"

namespace encore::filter {
namespace {

std::string text(double value) {
  char out[32];
  std::snprintf(out, sizeof out, "%g", value);
  return out;
}

}  // namespace

Result<void> check(const ScalableOptions& options) {
  if (options.capacity == 0) {
    return fail("a first slice for 0 keys, accepted: at least 1");
  }
  if (!(options.fpr > 0 && options.fpr < 1)) {
    return fail("a false-positive rate of " + text(options.fpr) +
                ", accepted: above 0 and below 1");
  }
  if (!(options.growth >= 1 && options.growth <= kGrowthMax)) {
    return fail("slices that grow by " + text(options.growth) + ", accepted: 1 to " +
                text(kGrowthMax));
  }
  if (!(options.tightening > 0 && options.tightening <= 1)) {
    return fail("rates that tighten by " + text(options.tightening) +
                ", accepted: above 0, at most 1");
  }
  if (lists_indices(options.hash)) {
    return fail("a filter that grows by the hash " + std::string(to_string(options.hash)) +
                ", accepted: one of 128 bits");
  }
  return {};
}

double slice_capacity(const ScalableOptions& options, std::uint32_t i) {
  // (A double counts exactly up to more keys than any filter holds.)
  const double keys = static_cast<double>(options.capacity) * std::pow(options.growth, i);
  return std::clamp(std::round(keys), 1.0, 0x1p53);
}

double slice_fpr(const ScalableOptions& options, std::uint32_t i) {
  return options.tightening == 1
             ? options.fpr
             : options.fpr * (1 - options.tightening) * std::pow(options.tightening, i);
}

Result<FilterParameters> slice_parameters(const ScalableOptions& options, std::uint32_t i) {
  const double keys = slice_capacity(options, i);
  const double rate = slice_fpr(options, i);
  Sizing sizing{.reached = false};
  if (rate > 0) {
    sizing = size_for(options.layout, {keys, rate});
  }
  if (sizing.reached) {
    // In the larger filter for what they are worth, insertions are worth a little less than that.
    const FilterShape shape{options.layout, sizing.bits, sizing.hashes};
    sizing = size_for(options.layout, {effective_insertions(shape, keys), rate});
  }
  if (!sizing.reached) {
    return fail("no slice of up to " + std::to_string(kBitsMax) + " bits holds " + text(keys) +
                " keys at a rate of " + text(rate));
  }
  return checked({.layout = options.layout,
                  .hash = options.hash,
                  .bits = sizing.bits,
                  .hashes = sizing.hashes,
                  .capacity = static_cast<std::uint64_t>(keys),
                  .seed = options.seed});
}

ScalableForecast forecast(const ScalableOptions& options, double keys) {
  ScalableForecast all;
  double misses = 1;  // the probability that no slice answers
  double misses_full = 1;
  FilterParameters slice;
  double full = 0;
  while (all.slices == 0 || all.capacity < keys) {
    if (all.slices == 0 || !options.growable()) {
      const auto next = slice_parameters(options, all.slices);
      if (!next) {
        all.reached = false;
        break;
      }
      slice = *next;
      full = fpr(slice.shape(),
                 effective_insertions(slice.shape(), static_cast<double>(slice.capacity)));
    }
    if (all.slices == kSlicesMax) {
      all.reached = false;
      break;
    }
    const auto capacity = static_cast<double>(slice.capacity);
    const double inside = std::clamp(keys - all.capacity, 0.0, capacity);
    misses *=
        1 - (inside == capacity ? full
                                : fpr(slice.shape(), effective_insertions(slice.shape(), inside)));
    misses_full *= 1 - full;
    all.capacity += capacity;
    all.bits += static_cast<double>(slice.bits);
    ++all.slices;
  }
  all.fpr = 1 - misses;
  all.fpr_full = 1 - misses_full;
  return all;
}

}  // namespace encore::filter
