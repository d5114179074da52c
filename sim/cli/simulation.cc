#include "sim/cli/simulation.h"

#include <ctime>

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

// Processor time of this thread: what else runs on the machine does not slow it.
double thread_seconds() {
  timespec t{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

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
        const double start = thread_seconds();
        runs[i].run->feed(requests);
        runs[i].cpu_seconds += thread_seconds() - start;
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

// The whole trace through one run, or what is read before an interrupt.
Result<void> run_all(const HeldTrace& trace, FinishedRun& finished, Monitor& monitor) {
  const double begin = thread_seconds();
  SpoolReader reader(trace.requests, trace.objects);
  bool go_on = true;
  while (go_on) {
    const auto part = reader.read();
    if (!part) {
      return std::unexpected(part.error());
    }
    finished.run->feed(*part);
    go_on = monitor.advance(part->size()) && !part->empty();
  }
  finished.cpu_seconds = thread_seconds() - begin;
  return {};
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
  auto spool = RequestSpool::create();
  if (!spool) {
    return std::unexpected(spool.error());
  }
  HeldTrace trace{.objects = {}, .requests = std::move(*spool)};
  std::vector<ReplayRequest> chunk;
  while (!monitor.stop) {
    if (auto read = read_chunk(reader, trace.objects, chunk); !read) {
      return std::unexpected(read.error());
    }
    if (chunk.empty()) {
      break;
    }
    if (auto written = trace.requests.append(chunk); !written) {
      return std::unexpected(written.error());
    }
    monitor.advance(chunk.size());
  }
  if (options.know_future) {
    if (auto linked = trace.requests.link_next(trace.objects.objects()); !linked) {
      return std::unexpected(linked.error());
    }
  }
  trace.decode_seconds = seconds_since(begin);
  return trace;
}

Result<std::vector<FinishedRun>> run_held(const HeldTrace& trace, std::vector<PlannedRun> plan,
                                          const RunOptions& options, Monitor& monitor) {
  const std::uint64_t requests = trace.requests.size();
  if (options.warmup_share > 0) {
    for (PlannedRun& planned : plan) {
      planned.options.warmup_requests =
          static_cast<std::uint64_t>(options.warmup_share * static_cast<double>(requests));
    }
  }
  auto runs = start(plan, trace.objects.footprint_bytes());
  if (!runs) {
    return runs;
  }
  monitor.done = 0;
  monitor.total = requests * runs->size();
  std::vector<Result<void>> ended(runs->size());
  parallel_for(
      runs->size(), [&](std::size_t i) { ended[i] = run_all(trace, (*runs)[i], monitor); },
      options.threads);
  for (const Result<void>& one : ended) {
    if (!one) {
      return std::unexpected(one.error());
    }
  }
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
