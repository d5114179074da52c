#include "sim/cli/simulation.h"

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>

#include "base/time.h"
#include "sim/cli/parallel.h"

namespace encore::sim {
namespace {

// Large enough that starting the threads does not count, small enough to stay cheap.
constexpr std::size_t kChunk = 256 * 1024;
constexpr std::size_t kRead = 4096;

double seconds_since(MonotonicTime start) {
  return std::chrono::duration<double>(monotonic_now() - start).count();
}

// Reads the next requests into `chunk`, which is filled but for the last time and empty at the end.
Result<void> read_chunk(TraceReader& reader, ObjectTable& objects,
                        std::vector<ReplayRequest>& chunk) {
  chunk.clear();
  chunk.reserve(kChunk);
  std::vector<Request> batch(kRead);
  while (chunk.size() < kChunk) {
    const auto got = reader.read(std::span(batch).first(std::min(kRead, kChunk - chunk.size())));
    if (!got) {
      return std::unexpected(got.error());
    }
    if (*got == 0) {
      break;
    }
    for (std::size_t i = 0; i < *got; ++i) {
      chunk.push_back(objects.number(batch[i]));
    }
  }
  return {};
}

void feed_all(std::vector<FinishedRun>& runs, std::span<const ReplayRequest> requests,
              unsigned threads) {
  parallel_for(
      runs.size(),
      [&](std::size_t i) {
        const MonotonicTime start = monotonic_now();
        runs[i].run->feed(requests);
        runs[i].seconds += seconds_since(start);
      },
      threads);
}

Result<std::vector<FinishedRun>> start(const std::vector<PlannedRun>& plan,
                                       std::uint64_t footprint_bytes) {
  std::vector<FinishedRun> runs;
  for (const PlannedRun& planned : plan) {
    ReplayOptions options = planned.options;
    if (planned.footprint_share > 0) {
      options.kernel.capacity_bytes = std::max<std::uint64_t>(
          1, static_cast<std::uint64_t>(planned.footprint_share *
                                        static_cast<double>(footprint_bytes)));
    }
    auto run = ReplayRun::create(options);
    if (!run) {
      return std::unexpected(run.error());
    }
    runs.push_back({.run = std::move(*run)});
  }
  return runs;
}

void finish(std::vector<FinishedRun>& runs, const ObjectTable& objects) {
  for (FinishedRun& finished : runs) {
    finished.run->finish();
    for (std::uint32_t object = 0; object < objects.objects(); ++object) {
      if (objects.requests_of(object) == 1) {
        ++(finished.run->ever_stored(object) ? finished.one_hit_let_in : finished.one_hit_kept_out);
      }
    }
  }
}

}  // namespace

Result<HeldTrace> hold_trace(TraceReader& reader, const HoldOptions& options, Monitor& monitor) {
  const MonotonicTime begin = monotonic_now();
  HeldTrace trace;
  std::vector<ReplayRequest> chunk;
  while (!monitor.stop) {
    if (auto read = read_chunk(reader, trace.objects, chunk); !read) {
      return std::unexpected(read.error());
    }
    if (chunk.empty()) {
      break;
    }
    trace.requests.insert(trace.requests.end(), chunk.begin(), chunk.end());
    monitor.advance(chunk.size());
  }
  if (options.know_future) {
    link_next(trace.requests, trace.objects.objects());
  }
  trace.decode_seconds = seconds_since(begin);
  return trace;
}

Result<std::vector<FinishedRun>> run_held(const HeldTrace& trace, std::vector<PlannedRun> plan,
                                          const RunOptions& options, Monitor& monitor) {
  const std::span<const ReplayRequest> requests(trace.requests);
  if (options.warmup_share > 0) {
    for (PlannedRun& planned : plan) {
      planned.options.warmup_requests =
          static_cast<std::uint64_t>(options.warmup_share * static_cast<double>(requests.size()));
    }
  }
  auto runs = start(plan, trace.objects.footprint_bytes());
  if (!runs) {
    return runs;
  }
  monitor.done = 0;
  monitor.total = requests.size() * runs->size();
  parallel_for(
      runs->size(),
      [&](std::size_t i) {
        FinishedRun& finished = (*runs)[i];
        const MonotonicTime begin = monotonic_now();
        bool go_on = true;
        for (std::size_t at = 0; at < requests.size() && go_on; at += kChunk) {
          const auto part = requests.subspan(at, std::min(kChunk, requests.size() - at));
          finished.run->feed(part);
          go_on = monitor.advance(part.size());
        }
        finished.seconds = seconds_since(begin);
      },
      options.threads);
  finish(*runs, trace.objects);
  return runs;
}

// Decodes the next chunk while the runs work on this one.
Result<Streamed> run_streamed(TraceReader& reader, const std::vector<PlannedRun>& plan,
                              const RunOptions& options, Monitor& monitor) {
  Streamed streamed;
  auto runs = start(plan, 0);
  if (!runs) {
    return std::unexpected(runs.error());
  }
  streamed.runs = std::move(*runs);
  std::vector<ReplayRequest> chunk;
  std::vector<ReplayRequest> next;
  Result<void> read = read_chunk(reader, streamed.objects, chunk);
  bool go_on = true;
  while (read && !chunk.empty() && go_on) {
    {
      const std::jthread decoder([&] { read = read_chunk(reader, streamed.objects, next); });
      feed_all(streamed.runs, chunk, options.threads);
    }
    streamed.requests += chunk.size();
    go_on = monitor.advance(chunk.size());
    std::swap(chunk, next);
  }
  if (!read) {
    return std::unexpected(read.error());
  }
  finish(streamed.runs, streamed.objects);
  return streamed;
}

}  // namespace encore::sim
