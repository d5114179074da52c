#include "sim/cli/tune_measured.h"

#include <algorithm>
#include <array>
#include <cstdio>

#include "sim/replay/ratio.h"

namespace encore::sim {
namespace {

// Bytes that a device is given: what the disk takes where there is one, else what the memory does.
std::uint64_t written(const ReplayCounts& counts, bool has_disk) {
  return has_disk ? counts.disk_bytes_admitted + counts.disk_bytes_moved : counts.bytes_written;
}

}  // namespace

bool take_counts(const FinishedRun& run, Measured& measured) {
  const ReplayCounts& counts = run.counts;
  if (counts.requests == 0) {
    return false;
  }
  const bool has_disk = !run.kernel.disks.empty();
  measured.requests = counts.requests;
  measured.complete = run.complete;
  measured.hits = ratio_of(counts.hits, counts.requests);
  measured.byte_hits = ratio_of(counts.bytes_hit, counts.bytes_requested);
  measured.misses = counts.requests - counts.hits;
  measured.bytes_from_origin = counts.bytes_from_origin;
  measured.bytes_written = written(counts, has_disk);
  measured.bytes_moved = counts.disk_bytes_moved;
  measured.filter_bytes = run.run->admission().memory_bytes;
  measured.one_hit_let_in = run.one_hit_let_in;
  for (const ReplayInterval& part : run.run->intervals()) {
    if (part.counts.requests != 0) {
      measured.parts.push_back(
          {.hits = static_cast<double>(part.counts.hits),
           .misses = static_cast<double>(part.counts.requests - part.counts.hits),
           .bytes_from_origin = static_cast<double>(part.counts.bytes_from_origin),
           .bytes_written = static_cast<double>(written(part.counts, has_disk))});
    }
  }
  return true;
}

// Both ratios over the whole; how far each part moves them is the residual of a ratio estimate.
Balance balance_of(const Measured& always, const Measured& chosen) {
  const auto all = static_cast<double>(always.bytes_written);
  const auto requests = static_cast<double>(always.requests);
  const double lost = always.hits - chosen.hits;
  const double saved = all == 0 ? 0 : 1 - static_cast<double>(chosen.bytes_written) / all;
  std::vector<double> lost_off;
  std::vector<double> saved_off;
  const std::size_t parts = std::min(always.parts.size(), chosen.parts.size());
  for (std::size_t i = 0; i < parts; ++i) {
    const Measured::Part& a = always.parts[i];
    const Measured::Part& b = chosen.parts[i];
    // Parts have the same number of requests, but for the last one.
    lost_off.push_back((a.hits - b.hits) / requests - lost / static_cast<double>(parts));
    saved_off.push_back(all == 0 ? 0 : (a.bytes_written * (1 - saved) - b.bytes_written) / all);
  }
  return {estimate_by_parts(lost, lost_off), estimate_by_parts(saved, saved_off)};
}

std::string percent_text(double share) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.2f %%", 100 * share);
  return text.data();
}
std::string interval_text(const Estimate& difference) {
  return percent_text(difference.value) + " (95 %: " + percent_text(difference.low) + " to " +
         percent_text(difference.high) + ")";
}
}  // namespace encore::sim
