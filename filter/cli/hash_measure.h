// HashMeasure: false positives, evenness and time of a hash family. All but the times are the same
// for one seed. Confined to one thread.
#pragma once

#include <cstdint>
#include <string>

#include "base/cli/monitor.h"
#include "base/error.h"
#include "filter/hash.h"

namespace encore::filter {

struct HashTrial {
  HashFamily family = HashFamily::kXxh3;
  std::uint64_t keys = 0;  // in the filter; as many more are tested
  std::uint64_t bits = 0;  // of a filter of classic layout
  std::uint32_t hashes = 0;
  std::uint64_t key_bytes = 0;  // at least 8
  std::uint64_t filters = 0;    // each with other keys, and with another seed if there is one
  std::uint64_t seed = 0;
};

struct HashQuality {
  double fpr = 0;
  double theory = 0;      // with positions that are equally probable
  double sigmas = 0;      // of the measured rate, by its spread over the filters
  double own_theory = 0;  // by fields: with the probabilities that their values have
  double own_sigmas = 0;  // 0 without fields
  double evenness = 0;    // chi-square of the positions in 256 parts, as standard deviations
};
// Errors: those of checked(); `monitor` counts filters.
Result<HashQuality> measure_quality(const HashTrial& trial, Monitor& monitor);

// The median over `rounds` of the CPU time for a key's positions, in nanoseconds.
Result<double> measure_time(const HashTrial& trial, std::uint64_t rounds);

// p after n keys whose k positions are fields of w bits mod m: the first 2^w mod m positions are
// one more value's, so that 1 - (1 - q)^(kn) differs.
double fields_fpr(const HashTrial& trial);

}  // namespace encore::filter
