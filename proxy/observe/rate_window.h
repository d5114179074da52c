// RateWindow: rates and latencies of the last ten seconds, from a snapshot a second. Pure: it
// receives the time. Thread-compatible.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <optional>

#include "proxy/observe/outcome.h"
#include "proxy/observe/snapshot.h"

namespace encore::server {

// In seconds.
struct Quantiles {
  double p50 = 0;
  double p90 = 0;
  double p99 = 0;
};

struct RecentRates {
  double seconds = 0;  // that they cover; 0: nothing is known yet
  // Per second.
  std::array<double, kOutcomeClassCount> requests{};
  double bytes_to_clients = 0;
  // Hits by hits and misses, and bytes of bodies from the cache by all; nothing: there were none.
  std::optional<double> object_hit_ratio;
  std::optional<double> byte_hit_ratio;
  std::optional<Quantiles> hit;
  std::optional<Quantiles> miss;
};

class RateWindow {
 public:
  static constexpr std::size_t kReadings = 11;

  // To be called once a second; times are milliseconds that grow.
  void note(const Snapshot& snapshot, std::int64_t now_ms);
  RecentRates rates() const;

 private:
  struct Reading {
    std::int64_t time_ms = 0;
    std::array<std::uint64_t, kOutcomeClassCount> requests{};
    std::uint64_t bytes_to_clients = 0;
    std::uint64_t body_bytes_hit = 0;
    std::uint64_t body_bytes_all = 0;
    std::array<LatencySnapshot, 2> latency;  // for hits and misses
  };
  std::deque<Reading> readings_;
};

}  // namespace encore::server
