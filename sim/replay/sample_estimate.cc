#include "sim/replay/sample_estimate.h"

#include <algorithm>
#include <cmath>

#include "cache/spatial_sample.h"
#include "sim/replay/ratio.h"

namespace encore::sim {
namespace {

// Counts in one unit: requests, or their bytes.
struct Counted {
  std::uint64_t requested = 0;
  std::uint64_t missed = 0;
};

// Returns the share, of the true number, that SHARDS-adj takes for hits (or, negative, for too many
// hits) and that misses if it behaves as the heaviest objects do.
double adjustment_missed(const Counted& sample, const Counted& heaviest, double expected) {
  const double lacking = 1 - static_cast<double>(sample.requested) / expected;
  return lacking * ratio_of(heaviest.missed, heaviest.requested);
}

BoundedShare hit_ratio(const Counted& sample, const Counted& heaviest,
                       const std::vector<std::uint64_t>& parts_missed, double total, double rate) {
  if (total <= 0) {
    return {};
  }
  const auto hits = [&](std::uint64_t missed, double of_rate) {
    return std::clamp(1 - static_cast<double>(missed) / (of_rate * total), 0.0, 1.0);
  };
  const double value = hits(sample.missed, rate);
  const auto count = static_cast<double>(parts_missed.size());
  if (parts_missed.size() < 2) {
    return {value, value, value};
  }
  double sum = 0;
  double squares = 0;
  for (const std::uint64_t missed : parts_missed) {
    // From the sample's value: the difference of large sums would lose digits.
    const double off = hits(missed, rate / count) - value;
    sum += off;
    squares += off * off;
  }
  const double mean = sum / count;
  const double variance = std::max(0.0, (squares - sum * mean) / (count - 1));
  const double bound =
      cache::kStudent * std::sqrt(variance / count * (1 - rate)) + std::abs(mean) / (count - 1);
  const double missed = adjustment_missed(sample, heaviest, rate * total);
  return {value, std::max(0.0, value - bound - std::max(0.0, missed)),
          std::min(1.0, value + bound - std::min(0.0, missed))};
}

}  // namespace

std::uint64_t estimated_count(std::uint64_t sample, double rate) {
  return static_cast<std::uint64_t>(std::llround(static_cast<double>(sample) / rate));
}

SampledFrom seen_by(const ReplayCounts& sample, double rate) {
  return {.rate = rate,
          .requests = estimated_count(sample.requests, rate),
          .bytes_requested = estimated_count(sample.bytes_requested, rate)};
}

ReplayCounts estimated_counts(const ReplayCounts& sample, const SampledFrom& from) {
  if (from.rate >= 1) {
    return sample;
  }
  const auto whole = [&](std::uint64_t count) { return estimated_count(count, from.rate); };
  const auto rest = [](std::uint64_t all, std::uint64_t part) { return all - std::min(all, part); };
  return {.requests = from.requests,
          .hits = rest(from.requests, whole(sample.requests - sample.hits)),
          .validations = whole(sample.validations),
          .bytes_requested = from.bytes_requested,
          .bytes_hit = rest(from.bytes_requested, whole(sample.bytes_requested - sample.bytes_hit)),
          .bytes_from_origin = whole(sample.bytes_from_origin),
          .objects_written = whole(sample.objects_written),
          .bytes_written = whole(sample.bytes_written),
          .bytes_rewritten = whole(sample.bytes_rewritten),
          .not_stored_full = whole(sample.not_stored_full)};
}

HitRatios estimated_hit_ratios(const ReplayCounts& sample, const std::vector<ReplayCounts>& parts,
                               const SampledFrom& from) {
  if (from.rate >= 1) {
    const double objects = ratio_of(sample.hits, sample.requests);
    const double bytes = ratio_of(sample.bytes_hit, sample.bytes_requested);
    return {.objects = {objects, objects, objects}, .bytes = {bytes, bytes, bytes}};
  }
  std::vector<std::uint64_t> missed;
  std::vector<std::uint64_t> bytes_missed;
  for (const ReplayCounts& part : parts) {
    missed.push_back(part.requests - part.hits);
    bytes_missed.push_back(part.bytes_requested - part.bytes_hit);
  }
  return {
      .objects =
          hit_ratio({sample.requests, sample.requests - sample.hits},
                    {sample.heaviest_requests, sample.heaviest_requests - sample.heaviest_hits},
                    missed, static_cast<double>(from.requests), from.rate),
      .bytes = hit_ratio({sample.bytes_requested, sample.bytes_requested - sample.bytes_hit},
                         {sample.heaviest_bytes, sample.heaviest_bytes - sample.heaviest_bytes_hit},
                         bytes_missed, static_cast<double>(from.bytes_requested), from.rate)};
}

}  // namespace encore::sim
