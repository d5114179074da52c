// LoadedTrace: a trace, or a sample of one, that was read to its end: its objects in memory, its
// requests on disk. Reading it back is thread-safe.
#pragma once

#include <cstdint>
#include <vector>

#include "base/cli/monitor.h"
#include "base/error.h"
#include "cache/spatial_sample.h"
#include "sim/cli/request_spool.h"
#include "sim/replay/sample_estimate.h"
#include "sim/replay/trace_object.h"
#include "sim/trace/trace_reader.h"

namespace encore::sim {

struct HoldOptions {
  bool know_future = false;  // link each request to the next one for its object
  cache::SampleOptions sample;
  // The trace may itself be a sample: of this share of its objects and, if that is not all, of so
  // many requests.
  double taken = 1;
  std::uint64_t taken_from = 0;
  ObjectSize object_size = ObjectSize::kLargest;
};

struct LoadedTrace {
  ObjectTable objects;
  RequestSpool requests;
  cache::SpatialSample sample;
  // Count of the whole trace, whatever the sample has of it.
  std::uint64_t requests_total = 0;
  std::uint64_t requests_read = 0;  // fewer than those where they are a sample
  std::uint64_t bytes_total = 0;    // of the requests that were read
  std::uint64_t with_ttl = 0;       // requests of the sample
  double decode_seconds = 0;

  double taken = 1;  // HoldOptions::taken
  // The share of the whole trace's objects that is held.
  double rate() const { return taken * sample.rate(); }

  // End of a warm-up. `sample_requests` of those held come before it. In a sample it ends at the
  // next multiple of kMarkEvery requests.
  struct WarmedUp {
    std::uint64_t sample_requests = 0;
    SampledFrom from;  // the requests after it
  };
  WarmedUp after(std::uint64_t warmup_requests) const;
  // Figures of the whole trace, estimated if it is a sample.
  std::uint64_t footprint_bytes() const;

  static constexpr std::uint64_t kMarkEvery = 1024;
  struct Mark {
    std::uint64_t sample_requests;
    std::uint64_t bytes;
  };
  std::vector<Mark> marks;  // at the requests 0, kMarkEvery, 2 kMarkEvery, ...
};

// Errors: the trace's, the spool's. If an interrupt stops it, nothing can be simulated with the
// requests read so far: neither the footprint nor the future is that of the trace.
Result<LoadedTrace> load_trace(TraceReader& reader, const HoldOptions& options, Monitor& monitor);

}  // namespace encore::sim
