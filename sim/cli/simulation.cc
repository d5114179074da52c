#include "sim/cli/simulation.h"

#include <algorithm>
#include <optional>
#include <thread>
#include <utility>

#include "base/cpu_time.h"
#include "base/prefetch.h"
#include "sim/cli/memory_need.h"
#include "sim/cli/parallel.h"
#include "sim/cli/sample_runs.h"
#include "sim/replay/fleet.h"

namespace encore::sim {
namespace {

// Large enough that starting the threads does not count, small enough to stay cheap.
constexpr std::size_t kChunk = 32 * 1024;
constexpr std::size_t kRead = 4096;

// Asks for each object's memory some requests before it is used.
void number_all(ObjectTable& objects, std::span<const Request> batch,
                std::vector<ReplayRequest>& chunk) {
  constexpr std::size_t kAhead = 8;
  for (std::size_t i = 0; i < batch.size(); ++i) {
    if (i + 2 * kAhead < batch.size()) {
      encore::prefetch(objects.slot_of(batch[i + 2 * kAhead].key));
      encore::prefetch(objects.object_of(batch[i + kAhead].key));
    }
    objects.number(batch[i], chunk.emplace_back());
  }
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
    number_all(objects, std::span(batch).first(*got), chunk);
  }
  return {};
}

std::span<const ReplayRequest> take_slice(std::span<const ReplayRequest>& requests) {
  const auto slice = requests.first(std::min(kRead, requests.size()));
  requests = requests.subspan(slice.size());
  return slice;
}

// Until the monitor stops it. Returns whether each run took all of it.
bool feed_all(std::vector<FinishedRun>& runs, std::span<const ReplayRequest> requests,
              unsigned threads, Monitor& monitor) {
  parallel_for(
      runs.size(),
      [&](std::size_t i) {
        const double start = thread_cpu_seconds();
        for (auto left = requests; !left.empty() && !monitor.stopped();) {
          runs[i].run->feed(take_slice(left));
        }
        runs[i].cpu_seconds += thread_cpu_seconds() - start;
      },
      threads);
  return !monitor.heard;
}

// Feeds the requests read before the interrupt: the same to all runs, for a short time.
void feed_last(std::vector<FinishedRun>& runs, std::span<const ReplayRequest> requests,
               unsigned threads) {
  constexpr double kSecondsMax = 0.08;
  const double begin = thread_cpu_seconds();
  while (!requests.empty() && thread_cpu_seconds() - begin < kSecondsMax) {
    const auto slice = take_slice(requests);
    parallel_for(runs.size(), [&](std::size_t i) { runs[i].run->feed(slice); }, threads);
  }
}

// `counts(object)`: whether it is in the sample of that rate.
template <typename Counts>
void count_one_hits(FinishedRun& finished, const ObjectTable& objects, double rate, Counts counts) {
  std::uint64_t let_in = 0;
  std::uint64_t kept_out = 0;
  for (std::uint32_t object = 0; object < objects.objects(); ++object) {
    if (objects.requests_of(object) == 1 && counts(object) &&
        finished.run->came_after_warmup(object)) {
      ++(finished.run->ever_stored(object) ? let_in : kept_out);
    }
  }
  finished.one_hit_let_in = estimated_count(let_in, rate);
  finished.one_hit_kept_out = estimated_count(kept_out, rate);
}

// True if no run needs objects that its cache does not hold.
bool may_forget(const Streamed& streamed, const RunOptions& options) {
  const bool needs_sizes = options.object_size == ObjectSize::kLargest && !options.forget_sizes &&
                           !streamed.memory.has_forgotten();
  return (!needs_sizes || streamed.objects.other_sizes() == 0) &&
         std::ranges::none_of(streamed.runs, [](const FinishedRun& finished) {
           const ReplayOptions& run = finished.run->options();
           return run.own || run.probation || run.interval_requests != 0;
         });
}

// `to_come`: requests that are numbered, which no run has had.
void forget_objects(Streamed& streamed, std::span<const ReplayRequest> to_come) {
  streamed.memory.forget(
      streamed.objects, to_come,
      [&](std::uint32_t object) {
        const filter::Hash128& key = streamed.objects.key_of(object);
        return std::ranges::any_of(streamed.runs, [&](const FinishedRun& finished) {
          return finished.run->holds(object, key);
        });
      },
      [&](std::uint32_t object) {
        for (const FinishedRun& finished : streamed.runs) {
          finished.run->forget(object);
        }
      });
}

Result<std::unique_ptr<ReplayRun>> create_run(const PlannedRun& planned,
                                              const cache::KernelOptions& kernel,
                                              std::uint64_t warmup_requests) {
  ReplayOptions options = planned.options;
  options.kernel = kernel;
  options.warmup_requests = warmup_requests;
  return create_replay(options);
}

// The series of all runs, as they are and as rows of the report.
Result<void> check_intervals(const std::vector<PlannedRun>& plan, std::uint64_t requests) {
  constexpr double kRowBytes = 2048;
  double points = 0;
  for (const PlannedRun& planned : plan) {
    const std::uint64_t every = planned.options.interval_requests;
    points += every == 0 ? 0 : static_cast<double>(requests) / static_cast<double>(every);
  }
  return check_memory({.what = "the series of " + std::to_string(plan.size()) +
                               " runs with a point (--interval) for so few of " +
                               std::to_string(requests) + " requests",
                       .bytes = points * kRowBytes});
}

double caches_of(const PlannedRun& planned) {
  const auto& fleet = planned.options.fleet;
  return fleet ? static_cast<double>(fleet->caches()) : 1;
}

// Caches with a filter of their own, and a shared one.
double filters_of(const PlannedRun& planned) {
  const auto& fleet = planned.options.fleet;
  return fleet && fleet->memory == FleetMemory::kShared ? 1.0 + fleet->parents : caches_of(planned);
}

// The entries of all caches, which stay until the last run is through.
Result<void> check_entries(const LoadedTrace& trace, const std::vector<PlannedRun>& plan) {
  constexpr double kEntryBytes = 56;
  const auto footprint = static_cast<double>(trace.footprint_bytes());
  const auto objects = static_cast<double>(trace.objects.objects());
  double bytes = 0;
  for (const PlannedRun& planned : plan) {
    const auto capacity = static_cast<double>(capacity_of(planned, trace.footprint_bytes()));
    bytes += kEntryBytes * caches_of(planned) * objects *
             (footprint > 0 ? std::min(1.0, capacity / footprint) : 1);
  }
  return check_memory({.what = "the caches of " + std::to_string(plan.size()) +
                               " runs with up to " + std::to_string(trace.objects.objects()) +
                               " objects each",
                       .bytes = bytes});
}

// One planned run over the whole trace, or over what is read before an interrupt.
Result<FinishedRun> run_one(const LoadedTrace& trace, const PlannedRun& planned,
                            const RunOptions& options, Monitor& monitor) {
  const double rate = trace.rate();
  FinishedRun finished{
      .run = nullptr, .kernel = planned.options.kernel, .counts = {}, .ratios = {}};
  finished.kernel.capacity_bytes = capacity_of(planned, trace.footprint_bytes());
  if (monitor.stopped()) {
    finished.complete = false;
    return finished;
  }
  const LoadedTrace::WarmedUp warmed_up = trace.after(options.warmup_requests);
  PlannedRun informed = planned;
  informed.options.first_counted = warmed_up.sample_requests;
  auto runs = make_sample_runs<ReplayRun>(rate, [&](double part) {
    // The caller reports the end of the warm-up.
    return create_run(informed, cache::scaled_kernel(finished.kernel, part), UINT64_MAX);
  });
  if (!runs) {
    return std::unexpected(runs.error());
  }
  const double begin = thread_cpu_seconds();
  const auto fed = feed_trace(trace, warmed_up.sample_requests, *runs, monitor);
  if (!fed) {
    return std::unexpected(fed.error());
  }
  finished.complete = *fed;
  finished.cpu_seconds = thread_cpu_seconds() - begin;
  runs->whole->finish();
  std::vector<ReplayCounts> parts;
  for (const auto& part : runs->parts) {
    parts.push_back(part->counts());
  }
  const ReplayCounts& counts = runs->whole->counts();
  const SampledFrom from = finished.complete ? warmed_up.from : seen_by(counts, rate);
  finished.counts = estimated_counts(counts, from);
  finished.ratios = estimated_hit_ratios(counts, parts, from);
  finished.run = std::move(runs->whole);
  if (finished.complete) {
    count_one_hits(finished, trace.objects, rate, [](std::uint32_t) { return true; });
  }
  return finished;
}

}  // namespace

Result<void> check_plan(const std::vector<PlannedRun>& plan, const cache::SampleOptions& sample) {
  if (sample.objects_max != 0) {
    return {};
  }
  // A sample's parts together take as much as the whole of it.
  const double rate = sample.rate < 1 ? 2 * sample.rate : 1;
  double bytes = 0;
  for (const PlannedRun& planned : plan) {
    bytes += rate * filters_of(planned) * admission_bytes(planned.options.kernel);
    if (planned.options.probation) {
      bytes += probation_bytes(*planned.options.probation);
    }
  }
  return check_memory({.what = "the filters of " + std::to_string(plan.size()) +
                               " runs (--bits or --capacity and --fpr, for each --cache-size, "
                               "--eviction and --admission)",
                       .bytes = bytes});
}

Result<void> check_largest(std::uint64_t largest_bytes, const std::vector<PlannedRun>& plan,
                           std::uint64_t footprint_bytes) {
  for (const PlannedRun& planned : plan) {
    const cache::KernelOptions& kernel = planned.options.kernel;
    const std::uint64_t charge = largest_bytes + kernel.entry_overhead_bytes;
    const std::uint64_t capacity =
        std::max(capacity_of(planned, footprint_bytes),
                 planned.options.fleet ? planned.options.fleet->parent_cache_bytes : 0);
    const std::uint64_t accepted =
        kernel.max_object_bytes == 0 ? capacity : std::min(capacity, kernel.max_object_bytes);
    if (charge > kChargeMax && charge <= accepted) {
      return fail("an object of " + std::to_string(largest_bytes) + " bytes in a cache of " +
                  std::to_string(capacity) +
                  ", accepted: objects below a tebibyte, overhead included (2^40 bytes), or a "
                  "cache, or a --max-object, that is smaller than the object");
    }
  }
  return {};
}

std::uint64_t capacity_of(const PlannedRun& planned, std::uint64_t footprint_bytes) {
  const double share = planned.footprint_share * static_cast<double>(footprint_bytes);
  // Above 2^62 the kernel refuses it.
  return planned.footprint_share > 0
             ? std::max<std::uint64_t>(1, static_cast<std::uint64_t>(std::min(share, 0x1p63)))
             : planned.options.kernel.capacity_bytes;
}

Result<std::vector<FinishedRun>> run_held(const LoadedTrace& trace,
                                          const std::vector<PlannedRun>& plan,
                                          const RunOptions& options, Monitor& monitor,
                                          const char* phase) {
  auto fits = check_intervals(plan, trace.requests.size());
  if (fits) {
    fits = check_entries(trace, plan);
  }
  if (fits) {
    fits = check_largest(trace.objects.largest_bytes(), plan, trace.footprint_bytes());
  }
  if (!fits) {
    return std::unexpected(fits.error());
  }
  monitor.begin(phase, trace.requests.size() * plan.size());
  std::vector<std::optional<Result<FinishedRun>>> ended(plan.size());
  parallel_for(
      plan.size(), [&](std::size_t i) { ended[i] = run_one(trace, plan[i], options, monitor); },
      options.threads);
  std::vector<FinishedRun> runs;
  for (std::optional<Result<FinishedRun>>& one : ended) {
    if (!*one) {
      return std::unexpected(one->error());
    }
    runs.push_back(std::move(**one));
  }
  return runs;
}

// Decodes the next chunk while the runs work on this one.
Result<Streamed> run_streamed(TraceReader& reader, const std::vector<PlannedRun>& plan,
                              const RunOptions& options, Monitor& monitor) {
  Streamed streamed{.objects = ObjectTable(options.object_size),
                    .memory = ObjectMemory(options.objects_max),
                    .runs = {}};
  for (const PlannedRun& planned : plan) {
    auto run = create_run(planned, planned.options.kernel, options.warmup_requests);
    if (!run) {
      return std::unexpected(run.error());
    }
    streamed.runs.push_back(
        {.run = std::move(*run), .kernel = planned.options.kernel, .counts = {}, .ratios = {}});
  }
  std::vector<ReplayRequest> chunk;
  std::vector<ReplayRequest> next;
  Result<void> read = read_chunk(reader, streamed.objects, chunk);
  bool in_step = true;
  while (read && !chunk.empty() && in_step && !monitor.stop) {
    {
      const std::jthread decoder([&] { read = read_chunk(reader, streamed.objects, next); });
      in_step = feed_all(streamed.runs, chunk, options.threads, monitor);
    }
    streamed.requests += chunk.size();
    auto fits = check_intervals(plan, streamed.requests);
    if (fits) {
      fits =
          check_largest(streamed.objects.largest_bytes(), plan, streamed.objects.footprint_bytes());
    }
    if (!fits) {
      return std::unexpected(fits.error());
    }
    if (in_step && streamed.memory.is_full(streamed.objects) && may_forget(streamed, options)) {
      forget_objects(streamed, next);
    }
    std::swap(chunk, next);
  }
  if (!read) {
    return std::unexpected(read.error());
  }
  if (in_step && !chunk.empty() && monitor.stopped()) {
    feed_last(streamed.runs, chunk, options.threads);
  }
  for (FinishedRun& finished : streamed.runs) {
    finished.run->finish();
    finished.counts = finished.run->counts();
    finished.ratios = estimated_hit_ratios(finished.counts, {}, {});
    finished.complete = !monitor.heard;
    if (finished.complete) {
      count_one_hits(finished, streamed.objects, streamed.memory.rate(), [&](std::uint32_t object) {
        return streamed.memory.has_sampled(streamed.objects, object);
      });
    }
  }
  return streamed;
}

}  // namespace encore::sim
