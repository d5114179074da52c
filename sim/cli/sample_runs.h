// Runs over a whole trace, or over a sample and over each of its disjoint parts, from whose spread
// the bounds come. A Run takes feed(requests) and end_warmup().
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "base/error.h"
#include "sim/cli/loaded_trace.h"

namespace encore::sim {

template <typename Run>
struct SampleRuns {
  std::unique_ptr<Run> whole;
  std::vector<std::unique_ptr<Run>> parts;  // none where the sample is everything
};

// `make(rate)` gives a Result of a Run for a sample of that rate.
template <typename Run, typename Make>
Result<SampleRuns<Run>> make_sample_runs(double rate, Make make) {
  SampleRuns<Run> runs;
  auto whole = make(rate);
  if (!whole) {
    return std::unexpected(whole.error());
  }
  runs.whole = std::move(*whole);
  while (rate < 1 && runs.parts.size() < cache::SpatialSample::kParts) {
    auto part = make(rate / cache::SpatialSample::kParts);
    if (!part) {
      return std::unexpected(part.error());
    }
    runs.parts.push_back(std::move(*part));
  }
  return runs;
}

// All that the trace holds, or what is read before an interrupt. The first `warmup_requests` of it
// do not count. Returns whether it was all. Errors: the spool's.
template <typename Run>
Result<bool> feed_trace(const LoadedTrace& trace, std::uint64_t warmup_requests,
                        SampleRuns<Run>& runs, Monitor& monitor) {
  std::vector<std::vector<ReplayRequest>> of_part(runs.parts.size());
  const auto feed = [&](std::span<const ReplayRequest> requests) {
    runs.whole->feed(requests);
    if (of_part.empty()) {
      return;
    }
    for (const ReplayRequest& request : requests) {
      of_part[trace.sample.part_of(request.key)].push_back(request);
    }
    for (std::size_t i = 0; i < of_part.size(); ++i) {
      runs.parts[i]->feed(of_part[i]);
      of_part[i].clear();
    }
  };
  SpoolReader reader(trace.requests, trace.objects);
  std::uint64_t at = 0;
  bool warm = false;
  while (true) {
    auto part = reader.read();
    if (!part) {
      return std::unexpected(part.error());
    }
    const std::size_t size = part->size();
    if (size != 0 && monitor.stopped()) {
      return false;
    }
    if (!warm && warmup_requests - at <= size) {
      const auto before = part->first(warmup_requests - at);
      feed(before);
      runs.whole->end_warmup();
      for (const auto& one : runs.parts) {
        one->end_warmup();
      }
      *part = part->subspan(before.size());
      warm = true;
    }
    feed(*part);
    at += size;
    monitor.done += size;
    if (size == 0) {
      return true;
    }
  }
}

}  // namespace encore::sim
