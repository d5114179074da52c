#include "sim/cli/latency_options.h"

#include <chrono>
#include <cstddef>

#include "base/cli/numbers.h"

namespace encore::sim {
namespace {

double seconds_of(Nanoseconds time) { return std::chrono::duration<double>(time).count(); }

}  // namespace

void LatencyArguments::declare(Arguments& a) {
  a.text("--miss-latency", miss_, "time that each miss waits for its origin, as 50ms (0s: none)");
  a.text("--bandwidth", bandwidth_,
         "bytes per second from the origin, as 100MiB (0: bytes take no time)");
  a.text("--disk-latency", disk_, "time of a hit on disk alone, as 200us (0s: none)");
}

Result<void> LatencyArguments::read() {
  const auto miss = parse_time_span("--miss-latency", miss_);
  const auto bandwidth = parse_size("--bandwidth", bandwidth_);
  const auto disk = parse_time_span("--disk-latency", disk_);
  if (!miss || !bandwidth || !disk) {
    return std::unexpected(!miss ? miss.error() : !bandwidth ? bandwidth.error() : disk.error());
  }
  miss_seconds_ = seconds_of(*miss);
  bytes_per_second_ = static_cast<double>(*bandwidth);
  disk_seconds_ = seconds_of(*disk);
  return {};
}

std::optional<cache::FetchTime> LatencyArguments::fetch() const {
  if (miss_seconds_ == 0 && bytes_per_second_ == 0) {
    return std::nullopt;
  }
  return cache::FetchTime{.seconds = miss_seconds_,
                          .seconds_per_byte = bytes_per_second_ == 0 ? 0 : 1 / bytes_per_second_};
}

double LatencyArguments::mean_seconds(const ReplayCounts& counts) const {
  const auto misses = static_cast<double>(counts.requests - counts.hits);
  double seconds = misses * miss_seconds_ + static_cast<double>(counts.disk_hits) * disk_seconds_;
  if (bytes_per_second_ > 0) {
    seconds += static_cast<double>(counts.bytes_from_origin) / bytes_per_second_;
  }
  return counts.requests == 0 ? 0 : seconds / static_cast<double>(counts.requests);
}

void LatencyArguments::append(Table& table, const std::vector<FinishedRun>& runs) const {
  table.columns.push_back({"mean_latency_ms", "mean latency, ms", Style::kReal});
  for (std::size_t i = 0; i < runs.size(); ++i) {
    table.rows[i].push_back({"mean_latency_ms", 1000 * mean_seconds(runs[i].counts)});
  }
}

void LatencyArguments::append_parameters(Row& row) const {
  if (!any()) return;
  row.insert(row.end(),
             {Field{"miss_latency", miss_}, {"bandwidth", bandwidth_}, {"disk_latency", disk_}});
}

}  // namespace encore::sim
