#include "proxy/observe/rate_window.h"

#include <algorithm>
#include <utility>

namespace encore::server {
namespace {

constexpr double kMillisecond = 1e-3;

// Counters of workers are read one by one: a sum may be behind for a moment.
double grown(std::uint64_t from, std::uint64_t to) {
  return static_cast<double>(to - std::min(from, to));
}

std::optional<Quantiles> quantiles(const LatencySnapshot& from, const LatencySnapshot& to) {
  LatencySnapshot between;
  for (std::size_t i = 0; i < between.buckets.size(); ++i) {
    between.buckets[i] = to.buckets[i] - std::min(from.buckets[i], to.buckets[i]);
    between.count += between.buckets[i];
  }
  if (between.count == 0) return std::nullopt;
  return Quantiles{
      .p50 = between.quantile(0.5), .p90 = between.quantile(0.9), .p99 = between.quantile(0.99)};
}

std::optional<double> ratio(double part, double all) {
  return all == 0 ? std::nullopt : std::optional(part / all);
}

}  // namespace

void RateWindow::note(const Snapshot& snapshot, std::int64_t now_ms) {
  if (!readings_.empty() && now_ms <= readings_.back().time_ms) return;
  Reading reading{.time_ms = now_ms,
                  .bytes_to_clients = snapshot.bytes_to_clients,
                  .body_bytes_hit = snapshot.body_bytes_hit,
                  .body_bytes_all = snapshot.body_bytes_all,
                  .latency = {snapshot.latency[0], snapshot.latency[1]}};
  for (std::size_t i = 0; i < kOutcomeCount; ++i) {
    reading.requests[static_cast<std::size_t>(kOutcomeClasses[i])] += snapshot.requests[i];
  }
  readings_.push_back(std::move(reading));
  if (readings_.size() > kReadings) readings_.pop_front();
}

RecentRates RateWindow::rates() const {
  RecentRates rates;
  if (readings_.size() < 2) return rates;
  const Reading& from = readings_.front();
  const Reading& to = readings_.back();
  rates.seconds = static_cast<double>(to.time_ms - from.time_ms) * kMillisecond;
  std::array<double, kOutcomeClassCount> requests{};
  for (std::size_t i = 0; i < kOutcomeClassCount; ++i) {
    requests[i] = grown(from.requests[i], to.requests[i]);
    rates.requests[i] = requests[i] / rates.seconds;
  }
  const double hits = requests[static_cast<std::size_t>(OutcomeClass::kHit)];
  const double misses = requests[static_cast<std::size_t>(OutcomeClass::kMiss)];
  rates.object_hit_ratio = ratio(hits, hits + misses);
  rates.byte_hit_ratio = ratio(grown(from.body_bytes_hit, to.body_bytes_hit),
                               grown(from.body_bytes_all, to.body_bytes_all));
  rates.bytes_to_clients = grown(from.bytes_to_clients, to.bytes_to_clients) / rates.seconds;
  rates.hit = quantiles(from.latency[0], to.latency[0]);
  rates.miss = quantiles(from.latency[1], to.latency[1]);
  return rates;
}

}  // namespace encore::server
