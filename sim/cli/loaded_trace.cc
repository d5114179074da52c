#include "sim/cli/loaded_trace.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/time.h"

namespace encore::sim {
namespace {

constexpr std::size_t kRead = 16 * 1024;
// The objects of a sample that stand for the heaviest ones that it missed.
constexpr std::size_t kHeaviest = 16;

// The requests of the batch that the sample takes, numbered, into `kept`.
void take(LoadedTrace& trace, std::span<const Request> batch, std::vector<ReplayRequest>& kept) {
  kept.clear();
  for (const Request& request : batch) {
    if (trace.requests_read++ % LoadedTrace::kMarkEvery == 0) {
      trace.marks.push_back({trace.requests.size() + kept.size(), trace.bytes_total});
    }
    trace.bytes_total += request.size_bytes;
    if (!trace.sample.contains(request.key)) {
      continue;
    }
    const std::size_t objects = trace.objects.objects();
    kept.push_back(trace.objects.number(request));
    if (trace.objects.objects() != objects) {
      trace.sample.add(request.key);
    }
    trace.with_ttl += request.ttl_seconds != kNoTtl ? 1 : 0;
  }
}

Result<void> read_all(TraceReader& reader, LoadedTrace& trace, Monitor& monitor) {
  std::vector<Request> batch(kRead);
  std::vector<ReplayRequest> kept;
  while (!monitor.stopped()) {
    const auto got = reader.read(batch);
    if (!got) {
      return std::unexpected(got.error());
    }
    if (*got == 0) {
      break;
    }
    take(trace, std::span(batch).first(*got), kept);
    if (auto written = trace.requests.append(kept); !written) {
      return written;
    }
  }
  return {};
}

// A sample of limited size has requests from when its rate was higher: leaves them out.
Result<void> thin_out(LoadedTrace& trace, ObjectSize rule, Monitor& monitor) {
  auto spool = RequestSpool::create();
  if (!spool) {
    return std::unexpected(spool.error());
  }
  ObjectTable objects(rule);
  std::uint64_t at = 0;
  auto mark = trace.marks.begin();
  std::vector<ReplayRequest> kept;
  SpoolReader reader(trace.requests, trace.objects);
  trace.with_ttl = 0;
  monitor.begin("thinning out", trace.requests.size());
  auto part = reader.read();
  for (; part && !part->empty() && monitor.advance(part->size()); part = reader.read()) {
    kept.clear();
    for (const ReplayRequest& request : *part) {
      for (; mark != trace.marks.end() && mark->sample_requests == at; ++mark) {
        mark->sample_requests = spool->size() + kept.size();
      }
      ++at;
      if (trace.sample.contains(request.key)) {
        kept.push_back(objects.number({.key = request.key,
                                       .time_ns = request.time_ns,
                                       .size_bytes = request.size_bytes,
                                       .ttl_seconds = request.ttl_seconds}));
        trace.with_ttl += request.ttl_seconds != kNoTtl ? 1 : 0;
      }
    }
    if (auto written = spool->append(kept); !written) {
      return written;
    }
  }
  if (!part) {
    return std::unexpected(part.error());
  }
  for (; mark != trace.marks.end(); ++mark) {
    mark->sample_requests = spool->size();
  }
  trace.requests = std::move(*spool);
  trace.objects = std::move(objects);
  return {};
}

}  // namespace

LoadedTrace::WarmedUp LoadedTrace::after(std::uint64_t warmup_requests) const {
  const double share = rate();
  if (share >= 1) {
    return {.sample_requests = warmup_requests, .from = {}};
  }
  // In a trace that is itself a sample a request stands for several, all with its bytes.
  const double kept = requests_read == requests_total ? 1
                                                      : static_cast<double>(requests_read) /
                                                            static_cast<double>(requests_total);
  const auto estimated = [&](std::uint64_t count) {
    return kept < 1 ? estimated_count(count, kept) : count;
  };
  const std::uint64_t number =
      (static_cast<std::uint64_t>(static_cast<double>(warmup_requests) * kept) + kMarkEvery - 1) /
      kMarkEvery;
  if (number >= marks.size()) {
    return {.sample_requests = requests.size(), .from = {.rate = share}};
  }
  const Mark& mark = marks[number];
  return {.sample_requests = mark.sample_requests,
          .from = {
              .rate = share,
              .requests = requests_total - std::min(estimated(number * kMarkEvery), requests_total),
              .bytes_requested = estimated(bytes_total - mark.bytes)}};
}

std::uint64_t LoadedTrace::footprint_bytes() const {
  return estimated_count(objects.footprint_bytes(), rate());
}

Result<LoadedTrace> load_trace(TraceReader& reader, const HoldOptions& options, Monitor& monitor) {
  const MonotonicTime begin = monotonic_now();
  auto spool = RequestSpool::create();
  if (!spool) {
    return std::unexpected(spool.error());
  }
  LoadedTrace trace{.objects = ObjectTable(options.object_size),
                    .requests = std::move(*spool),
                    .sample = cache::SpatialSample(options.sample),
                    .taken = options.taken,
                    .marks = {}};
  if (auto read = read_all(reader, trace, monitor); !read) {
    return std::unexpected(read.error());
  }
  trace.requests_total = options.taken_from == 0 ? trace.requests_read : options.taken_from;
  if (trace.requests_read > trace.requests_total) {
    return fail("the trace has " + std::to_string(trace.requests_read) +
                " requests, --trace-requests " + std::to_string(options.taken_from) +
                "; accepted: at least as many");
  }
  if (options.sample.objects_max != 0 && !monitor.stop) {
    if (auto thinned = thin_out(trace, options.object_size, monitor); !thinned) {
      return std::unexpected(thinned.error());
    }
  }
  if (trace.rate() < 1) {
    trace.objects.mark_heaviest(kHeaviest);
  }
  if (options.know_future && !monitor.stop) {
    if (auto linked = trace.requests.link_next(trace.objects.objects(), monitor); !linked) {
      return std::unexpected(linked.error());
    }
  }
  trace.decode_seconds = std::chrono::duration<double>(monotonic_now() - begin).count();
  return trace;
}

}  // namespace encore::sim
