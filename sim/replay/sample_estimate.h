// Estimates of the whole trace from a sample (SHARDS), and their bounds. Pure functions.
//
// The caches of a sample of rate R are R times as large, and so are their filters and the windows
// of these. Counts are divided by R; requests and their bytes are known exactly, so the difference
// to the sample's share counts as hits (SHARDS-adj). The miss ratio is the sample's misses over R
// times all requests.
//
// The bounds add up three things. The first is the spread: 95 % of Student's t with 7 degrees of
// freedom over the sample's eight disjoint parts, each simulated in a cache an eighth as large. It
// has the correction for a sample without replacement, sqrt(1 - R). The second is the size: caches
// of few objects are biased, those of the parts eight times as much, so a seventh of the error of
// the parts' mean. The third is the assumption of SHARDS-adj: the missing or surplus requests of
// the sample are those of the most popular objects, which need not hit in a small cache; the
// sample's own heaviest objects show how often they miss. The third goes in one direction.
#pragma once

#include <cstdint>
#include <vector>

#include "cache/options.h"
#include "sim/replay/replay_run.h"

namespace encore::sim {

// The requests that a sample was drawn from, warm-up left out.
struct SampledFrom {
  double rate = 1;  // 1: it is the whole
  std::uint64_t requests = 0;
  std::uint64_t bytes_requested = 0;
};

struct BoundedShare {
  double value = 0;
  double low = 0;
  double high = 0;
};
struct HitRatios {
  BoundedShare objects;
  BoundedShare bytes;
};

// The part of the trace that a run had when an interrupt cut it off, by the sample's own counts.
SampledFrom seen_by(const ReplayCounts& sample, double rate);

// Estimates the counts of the whole trace from those of a sample's run.
ReplayCounts estimated_counts(const ReplayCounts& sample, const SampledFrom& from);

// `sample` has the heaviest objects' counts. `parts`: the counts of the parts' runs; empty: no
// bounds (low and high are the value).
HitRatios estimated_hit_ratios(const ReplayCounts& sample, const std::vector<ReplayCounts>& parts,
                               const SampledFrom& from);

// A count of the sample as one of the whole.
std::uint64_t estimated_count(std::uint64_t sample, double rate);

}  // namespace encore::sim
