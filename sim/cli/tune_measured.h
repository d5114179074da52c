// Measurements of one policy by tune, and the confidence of a difference between two.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cache/types.h"
#include "sim/cli/simulation.h"
#include "sim/sweep/statistics.h"

namespace encore::sim {

// Differences are judged over so many parts of the trace, one after the other.
inline constexpr std::uint64_t kTuneParts = 16;

struct Measured {
  cache::AdmissionPolicy policy = cache::AdmissionPolicy::kAlways;
  std::uint64_t window = 0;
  double fpr = 0;
  double write_cost = 0;       // for probation
  std::uint64_t requests = 0;  // on which the rest stands: fewer than all where it was interrupted
  bool complete = true;
  double hits = 0;
  double byte_hits = 0;
  std::uint64_t misses = 0;
  std::uint64_t bytes_from_origin = 0;
  std::uint64_t bytes_written = 0;  // to the disk where there is one, what is moved included
  std::uint64_t bytes_moved = 0;
  std::uint64_t filter_bytes = 0;
  std::uint64_t one_hit_let_in = 0;
  struct Part {
    double hits = 0;
    double misses = 0;
    double bytes_from_origin = 0;
    double bytes_written = 0;
  };
  std::vector<Part> parts = {};  // parts of the counted requests, in order
};

// Takes over what the run counted. False: an interrupt came before its first request.
bool take_counts(const FinishedRun& run, Measured& measured);

// Differences to storing everything, with their 95 % intervals over the parts of the trace.
struct Balance {
  Estimate lost;   // share of the requests that no longer hit
  Estimate saved;  // share of the bytes written
};
Balance balance_of(const Measured& always, const Measured& chosen);

std::string percent_text(double share);
std::string interval_text(const Estimate& difference);

}  // namespace encore::sim
