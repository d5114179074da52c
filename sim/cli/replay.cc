// encore-sim replay: a trace through caches of several sizes and policies.
#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <functional>

#include "cache/size_class.h"
#include "sim/cli/bounds.h"
#include "sim/cli/commands.h"
#include "sim/cli/disk_options.h"
#include "sim/cli/fleet_options.h"
#include "sim/cli/fleet_rows.h"
#include "sim/cli/kernel_options.h"
#include "sim/cli/latency_options.h"
#include "sim/cli/probation_options.h"
#include "sim/cli/probation_rows.h"
#include "sim/cli/replay_charts.h"
#include "sim/cli/replay_rows.h"
#include "sim/cli/simulation.h"
#include "sim/cli/trace_options.h"
#include "sim/cli/warmup.h"
#include "sim/replay/fleet.h"

namespace encore::sim {
namespace {

// A curve goes from this share of the footprint to the whole of it.
constexpr double kCurveFrom = 0.001;
constexpr std::uint64_t kCurvePointsMax = 1000;
constexpr std::uint64_t kPartsMax = 1000;
constexpr std::uint64_t kRememberMax = UINT32_MAX;
// A sample of fewer objects, eight to a part, says nothing.
constexpr std::uint64_t kSampleObjectsMin = 64;

// Cache sizes that are equally far apart on a logarithmic scale.
std::string curve_sizes(std::uint64_t points) {
  std::string sizes;
  for (std::uint64_t i = 1; i <= points; ++i) {
    const double at =
        points == 1 ? 1 : static_cast<double>(i - 1) / static_cast<double>(points - 1);
    std::array<char, 32> text{};
    const auto [end, error] =
        std::to_chars(text.data(), text.data() + text.size(), 100 * std::pow(kCurveFrom, 1 - at));
    sizes += (sizes.empty() ? "" : ",") + std::string(text.data(), end) + "%";
  }
  return sizes;
}

class ReplayCommand final : public Command {
 public:
  std::string name() const override { return "replay"; }
  std::string summary() const override {
    return "Replay a trace through caches of any size, eviction and admission policy";
  }
  std::string example() const override {
    return "encore-sim replay trace.csv.zst --cache-size 64MiB,10% --eviction lru,sieve "
           "--admission always,second-hit --fpr 0.01,0.001\n  "
           "encore-sim replay trace.csv.zst --eviction 'lru,s3-fifo(small=0.2,ghost=2)'\n  "
           "encore-sim replay trace.csv.zst --cache-size 16MiB --disk-size 240MiB --admission "
           "probation --window 0.5,1,samples --write-cost 0.1,0.3,1\n  "
           "encore-sim replay trace.csv.zst --nodes 3 --balance random --tier two --memory hint";
  }
  void declare(Arguments& a) override {
    trace_.declare(a);
    kernel_.declare(a);
    disk_.declare(a);
    probation_.declare(a);
    a.text("--object-size", object_size_text_, kObjectSizeHelp);
    a.number("--head-bytes", head_bytes_,
             "charge objects as the proxy's memory does, with N bytes of key, record and head (0: "
             "their size only)",
             {.max = cache::kSlotBytesMax});
    fleet_.declare(a);
    latency_.declare(a);
    a.text("--warmup", warmup_text_, "requests to exclude from the counts: a number, or 10%");
    a.number("--interval", interval_, "report a time series with N requests per point (0: none)");
    a.number("--parts", parts_,
             "add to each row of the JSON its counts in N parts of the trace, one after the other, "
             "from which compare has its intervals (0: none)",
             {.max = kPartsMax});
    a.real("--sample", sample_.rate, "simulate this share of the objects (1: all)",
           {.min = 0, .max = 1, .without_min = true});
    a.number("--sample-objects", sample_.objects_max,
             "simulate a sample of at most N objects (0: all)");
    a.number("--sample-seed", sample_.seed, "seed of the sample");
    a.real("--trace-sample", taken_,
           "the trace itself is a sample of this share of the objects (1: it is whole)",
           {.min = 0, .max = 1, .without_min = true});
    a.number("--trace-requests", trace_requests_,
             "requests of the whole trace, with --trace-sample");
    a.number("--mrc", curve_points_,
             "print miss-ratio curves of N points, from 0.1% of the footprint to all of it, "
             "instead of --cache-size (0: none)",
             {.max = kCurvePointsMax});
    a.optional_text(
        "--bounds", bounds_text_, "all",
        "print bounds on the fewest misses of any policy per cache size: all, pfoo-l or pfoo-u");
    a.number("--threads", threads_, "parallel runs (0: one per core)", {.max = kThreadsMax});
    a.number("--remember-objects", remember_objects_,
             "streamed: remember N objects, and those in a cache; counts of objects are then "
             "estimated from a sample (0: all; if not given, all where sizes vary)",
             {.max = kRememberMax});
    a.flag("--hold", hold_, "spool the whole trace to disk first (default: only if needed)");
  }

  Result<void> check_use(const Arguments& arguments) override {
    const auto trace_options = trace_.options();
    const auto planned = plan(arguments);
    return trace_options && planned
               ? Result<void>()
               : std::unexpected(trace_options ? planned.error() : trace_options.error());
  }

  Result<Outcome> run(const Context& context) override {
    auto trace_options = trace_.options();
    if (!trace_options) {
      return std::unexpected(trace_options.error());
    }
    const auto planned = plan(context.arguments);
    if (!planned) {
      return std::unexpected(planned.error());
    }
    trace_options->identity_seed = kernel_.identity_seed();
    trace_options->monitor = &context.monitor;
    auto reader = context.open(trace_.files(), *trace_options);
    if (!reader) {
      return std::unexpected(reader.error());
    }
    own_ = context.given != nullptr ? context.given->own : OwnCache{};
    Outcome outcome;
    Report& report = outcome.report;
    report.seed = kernel_.seed();
    report.parameters = parameters();
    auto replayed = must_hold(*planned)
                        ? replay_held(**reader, *planned, context.monitor, report)
                        : replay_streamed(**reader, *planned, context.monitor, report);
    if (!replayed) {
      return std::unexpected(replayed.error());
    }
    report.tables.push_back(TraceArguments::sources(**reader));
    for (std::string& note : TraceArguments::notes(**reader, *trace_options)) {
      report.notes.push_back(std::move(note));
    }
    return outcome;
  }

 private:
  Result<std::vector<PlannedKernel>> plan(const Arguments& arguments) {
    if (auto read = read_options(arguments); !read) {
      return std::unexpected(read.error());
    }
    kernel_.set_disk_bytes(disk_.bytes());
    const auto kernels = kernel_.plan(arguments);
    if (!kernels) {
      return std::unexpected(kernels.error());
    }
    auto planned = probation_.expand(*kernels, disk_, arguments);
    if (!planned) {
      return std::unexpected(planned.error());
    }
    for (const PlannedKernel& kernel : *planned) {
      auto fits = kernel.probation ? disk_.check_for_probation() : disk_.check_for_kernel();
      if (!fits) {
        return std::unexpected(fits.error());
      }
    }
    if (head_bytes_ != 0 && std::ranges::any_of(*planned, is_on_probation)) {
      return fail(
          "--head-bytes cannot be combined with --admission probation, which counts only bodies");
    }
    const auto runs = plan_of(*planned);
    for (const PlannedRun& run : runs) {
      auto fits = run.options.fleet ? Fleet::check(run.options) : Result<void>();
      if (!fits) {
        return std::unexpected(fits.error());
      }
    }
    cache::SampleOptions sampled = sample_;
    sampled.rate *= taken_;
    if (auto fits = check_plan(runs, sampled); !fits) {
      return std::unexpected(fits.error());
    }
    return planned;
  }

  static bool is_on_probation(const PlannedKernel& planned) {
    return planned.probation.has_value();
  }
  bool is_sampled() const { return sample_.rate < 1 || sample_.objects_max != 0 || taken_ < 1; }
  bool must_hold(const std::vector<PlannedKernel>& planned) const {
    return hold_ || parts_ != 0 || bounds_.any() || warmup_.share > 0 || is_sampled() ||
           curve_points_ != 0 || fleet_.loses_node() ||
           std::ranges::any_of(planned, [](const PlannedKernel& kernel) {
             return kernel.options.eviction == cache::EvictionPolicy::kBelady ||
                    kernel.size.footprint_share > 0;
           });
  }

  Result<void> read_options(const Arguments& arguments) {
    forget_sizes_ = arguments.given("--remember-objects");
    if (remember_objects_ != 0 && remember_objects_ < ObjectMemory::kObjectsMin) {
      return fail("--remember-objects " + std::to_string(remember_objects_) +
                  ", accepted: 1024 or more, or 0 for all");
    }
    if (auto disk = disk_.read(arguments); !disk) {
      return disk;
    }
    if (auto probation = probation_.read(arguments); !probation) {
      return probation;
    }
    if ((taken_ < 1) != (trace_requests_ != 0)) {
      return fail("--trace-sample and --trace-requests belong together: add the other one");
    }
    if (disk_.any() && (is_sampled() || curve_points_ != 0)) {
      return fail("--disk-size cannot be combined with a sample or --mrc");
    }
    if (auto fleet = fleet_.read(arguments, kernel_.seed()); !fleet) {
      return fleet;
    }
    if (fleet_.any() && (is_sampled() || curve_points_ != 0 || !bounds_text_.empty())) {
      return fail("--nodes and --tier cannot be combined with a sample, --mrc or --bounds");
    }
    if (sample_.objects_max != 0 && sample_.objects_max < kSampleObjectsMin) {
      return fail("--sample-objects " + std::to_string(sample_.objects_max) +
                  ", accepted: 64 or more, or 0 for all");
    }
    if (interval_ != 0 && (is_sampled() || curve_points_ != 0)) {
      return fail("--interval cannot be combined with a sample or --mrc");
    }
    if (parts_ != 0 && (is_sampled() || curve_points_ != 0 || interval_ != 0)) {
      return fail("--parts cannot be combined with a sample, --mrc or --interval");
    }
    const auto bounds = parse_bounds(bounds_text_);
    if (!bounds) {
      return std::unexpected(bounds.error());
    }
    bounds_ = *bounds;
    if (bounds_.any() && is_sampled()) {
      return fail(
          "--bounds cannot be combined with a sample: its bounds are not those of the trace");
    }
    if (curve_points_ != 0) {
      if (arguments.given("--cache-size")) {
        return fail("--mrc chooses the cache sizes: remove --cache-size");
      }
      kernel_.set_cache_sizes(curve_sizes(curve_points_));
    }
    if (auto latency = latency_.read(); !latency) {
      return latency;
    }
    kernel_.set_fetch(latency_.fetch());
    const auto warmup = parse_warmup(warmup_text_);
    const auto object_size = parse_object_size(object_size_text_);
    if (!warmup || !object_size) {
      return std::unexpected(warmup ? object_size.error() : warmup.error());
    }
    warmup_ = *warmup;
    object_size_ = *object_size;
    return {};
  }

  // For a trace with so many requests, of which so many count, where that matters.
  std::vector<PlannedRun> plan_of(const std::vector<PlannedKernel>& planned,
                                  std::uint64_t requests = 0, std::uint64_t counted = 0) const {
    const std::uint64_t interval =
        parts_ == 0 ? interval_ : std::max<std::uint64_t>(1, (counted + parts_ - 1) / parts_);
    std::vector<PlannedRun> plan;
    for (const PlannedKernel& kernel : planned) {
      plan.push_back({.options = {.kernel = kernel.options, .interval_requests = interval},
                      .footprint_share = kernel.size.footprint_share});
      if (head_bytes_ != 0) {
        plan.back().options.charge =
            StoreCharge{.head_bytes = head_bytes_, .reserved_bytes = head_bytes_};
      }
      plan.back().options.fleet = fleet_.options(requests);
      plan.back().options.own = own_;
      plan.back().options.probation = kernel.probation;
      plan.back().options.tuning = kernel.tuning;
      if (!kernel.probation) {
        disk_.apply(plan.back().options.kernel);
      }
    }
    return plan;
  }
  RunOptions run_options() const {
    return {.warmup_requests = warmup_.requests,
            .threads = static_cast<unsigned>(threads_),
            .object_size = object_size_,
            .objects_max = remember_objects_,
            .forget_sizes = forget_sizes_};
  }

  // Requests that do not count, of all that there are.
  Result<std::uint64_t> warmed_up(const TraceReader& reader, std::uint64_t requests) const {
    if (auto fine = TraceArguments::check_counted(reader); !fine) {
      return std::unexpected(fine.error());
    }
    return warmup_requests(warmup_, requests);
  }

  Result<void> replay_held(TraceReader& reader, const std::vector<PlannedKernel>& planned,
                           Monitor& monitor, Report& report) const {
    const bool know_future = std::ranges::any_of(planned, [](const PlannedKernel& kernel) {
      return kernel.options.eviction == cache::EvictionPolicy::kBelady;
    });
    auto trace = load_trace(reader,
                            {.know_future = know_future,
                             .sample = sample_,
                             .taken = taken_,
                             .taken_from = trace_requests_,
                             .object_size = object_size_},
                            monitor);
    if (!trace) {
      return std::unexpected(trace.error());
    }
    if (monitor.stopped()) {
      report.notes.push_back(unread_note(trace->requests_read));
      return {};
    }
    RunOptions options = run_options();
    const auto warmup = warmed_up(reader, trace->requests_total);
    if (!warmup) {
      return std::unexpected(warmup.error());
    }
    options.warmup_requests = *warmup;
    const double rate = trace->rate();
    if (rate < 1 && trace->objects.objects() < kSampleObjectsMin) {
      return fail("a sample of " + std::to_string(trace->objects.objects()) + " objects of " +
                  std::to_string(trace->requests_total) +
                  " requests, accepted: 64 or more; raise --sample");
    }
    ReplayedTrace replayed{.names = trace_.names(),
                           .requests = trace->requests_total,
                           .footprint_bytes = trace->footprint_bytes(),
                           .footprint_objects = estimated_count(trace->objects.objects(), rate),
                           .rate = rate,
                           .sample_requests = trace->requests.size(),
                           .sample_objects = trace->objects.objects(),
                           .table_bytes = trace->objects.memory_bytes()};
    if (rate < 1) {
      report.notes.push_back(sample_note(replayed));
    }
    if (curve_points_ != 0) {
      auto points = run_curves(*trace, plan_of(planned), options, monitor);
      if (!points) {
        return std::unexpected(points.error());
      }
      replayed.complete = !monitor.heard;
      const auto shown = drop_unbegun(*points, planned, &CurvePoint::requests);
      report.tables.push_back(curve_table(replayed, *points, shown));
      append_curve_charts(report.charts, *points);
    } else {
      const std::uint64_t counted = trace->requests_total - options.warmup_requests;
      auto runs =
          run_held(*trace, plan_of(planned, trace->requests_total, counted), options, monitor);
      if (!runs) {
        return std::unexpected(runs.error());
      }
      replayed.complete = !monitor.heard;
      fill(report, replayed, *runs, planned);
    }
    report.machine.push_back({"decode_seconds", trace->decode_seconds});
    return bounds_.any() && !monitor.stopped()
               ? add_bounds(*trace, planned, options.warmup_requests, monitor, report)
               : Result<void>();
  }

  Result<void> add_bounds(const LoadedTrace& trace, const std::vector<PlannedKernel>& planned,
                          std::uint64_t warmup, Monitor& monitor, Report& report) const {
    const auto bounds = run_bounds(trace, plan_of(planned), bounds_, warmup, monitor);
    if (!bounds) {
      return std::unexpected(bounds.error());
    }
    report.tables.push_back(bounds_table(*bounds, bounds_));
    for (std::string& note : bounds_notes(trace, bounds_)) {
      report.notes.push_back(std::move(note));
    }
    return {};
  }

  Result<void> replay_streamed(TraceReader& reader, const std::vector<PlannedKernel>& planned,
                               Monitor& monitor, Report& report) const {
    auto streamed = run_streamed(reader, plan_of(planned), run_options(), monitor);
    if (!streamed) {
      return std::unexpected(streamed.error());
    }
    const bool complete = !monitor.heard;
    if (complete) {
      if (auto counted = warmed_up(reader, streamed->requests); !counted) {
        return std::unexpected(counted.error());
      }
    }
    ReplayedTrace replayed{.names = trace_.names(),
                           .requests = streamed->requests,
                           .footprint_bytes = streamed->objects.footprint_bytes(),
                           .footprint_objects = streamed->objects.objects(),
                           .footprint_known = complete,
                           .complete = complete,
                           .sample_requests = streamed->requests,
                           .sample_objects = streamed->objects.objects(),
                           .table_bytes = streamed->objects.memory_bytes()};
    if (streamed->memory.has_forgotten()) {
      estimate_objects(*streamed, replayed);
      report.notes.push_back(forgotten_note(replayed));
    }
    if (object_size_ == ObjectSize::kLargest && streamed->objects.other_sizes() != 0) {
      append_size_note(*streamed, report);
    }
    fill(report, replayed, streamed->runs, planned);
    return {};
  }

  static void estimate_objects(const Streamed& streamed, ReplayedTrace& replayed) {
    const EstimatedCount objects = streamed.memory.objects(streamed.objects);
    const EstimatedCount bytes = streamed.memory.footprint_bytes(streamed.objects);
    replayed.footprint_objects = static_cast<std::uint64_t>(std::llround(objects.value));
    replayed.footprint_bytes = static_cast<std::uint64_t>(std::llround(bytes.value));
    replayed.footprint_objects_error = objects.error;
    replayed.footprint_bytes_error = bytes.error;
    replayed.sample_objects = replayed.footprint_objects;
    replayed.objects_rate = streamed.memory.rate();
  }

  // Sizes that vary cost memory, or the exactness of what is charged.
  void append_size_note(const Streamed& streamed, Report& report) const {
    const std::string count = std::to_string(streamed.objects.other_sizes());
    if (streamed.memory.has_forgotten()) {
      report.notes.push_back(
          count +
          " responses had another size than their object: objects that were forgotten "
          "are as large as their later responses. --object-size latest or "
          "--remember-objects 0 charges all exactly.");
    } else if (remember_objects_ != 0 && streamed.objects.objects() > remember_objects_) {
      report.notes.push_back("All objects were remembered, for sizes vary (" + count +
                             " responses): --remember-objects or --object-size latest limits the "
                             "memory.");
    }
  }

  // Leaves out the runs that an interrupt left without a request that counts. Returns the plan of
  // the others.
  template <typename Done, typename Requests>
  static std::vector<PlannedKernel> drop_unbegun(std::vector<Done>& done,
                                                 const std::vector<PlannedKernel>& planned,
                                                 Requests requests) {
    std::vector<Done> kept;
    std::vector<PlannedKernel> kept_plan;
    for (std::size_t i = 0; i < done.size(); ++i) {
      if (std::invoke(requests, done[i]) != 0) {
        kept.push_back(std::move(done[i]));
        kept_plan.push_back(planned[i]);
      }
    }
    done = std::move(kept);
    return kept_plan;
  }

  void fill(Report& report, const ReplayedTrace& replayed, std::vector<FinishedRun>& runs,
            const std::vector<PlannedKernel>& planned) const {
    const auto shown = drop_unbegun(
        runs, planned, [](const FinishedRun& finished) { return finished.counts.requests; });
    report.tables.push_back(replay_table(replayed, runs, shown));
    if (latency_.any()) {
      latency_.append(report.tables.back(), runs);
    }
    if (parts_ != 0) {
      append_parts(report.tables.back(), runs, parts_);
    }
    if (fleet_.any()) {
      append_fleet(report.tables.front(), runs);
      report.tables.push_back(fleet_table(runs));
    }
    if (disk_.any()) {
      report.tables.push_back(disk_table(runs));
    }
    if (std::ranges::any_of(shown, is_on_probation)) {
      report.tables.push_back(probation_table(runs));
      if (Table what_if = what_if_table(runs); !what_if.rows.empty()) {
        report.tables.push_back(std::move(what_if));
      }
      for (std::string& note : probation_notes(runs)) {
        report.notes.push_back(std::move(note));
      }
    }
    if (interval_ != 0) {
      report.tables.push_back(interval_table(runs, shown));
    }
    append_replay_charts(report.charts, runs);
    if (!replayed.complete) {
      return;  // how far each run has come is not known, so neither is its speed
    }
    report.machine = replay_machine(replayed, runs);
    report.simulated = replayed.sample_requests * runs.size();
  }

  Row parameters() const {
    Row all = trace_.parameters();
    for (Field& field : kernel_.parameters()) {
      all.push_back(std::move(field));
    }
    all.insert(all.end(), {Field{"warmup", warmup_text_},
                           {"object_size", object_size_text_},
                           {"head_bytes", head_bytes_},
                           {"sample", sample_.rate},
                           {"sample_objects", sample_.objects_max},
                           {"sample_seed", sample_.seed},
                           {"trace_sample", taken_},
                           {"trace_requests", trace_requests_},
                           {"mrc", curve_points_},
                           {"parts", parts_},
                           {"remember_objects", remember_objects_},
                           {"bounds", bounds_text_}});
    fleet_.append_parameters(all);
    latency_.append_parameters(all);
    disk_.append_parameters(all);
    if (disk_.any()) {
      probation_.append_parameters(all);
    }
    return all;
  }

  TraceArguments trace_;
  KernelArguments kernel_{KernelArguments::Admissions::kProbationToo};
  DiskArguments disk_;
  ProbationArguments probation_;
  cache::SampleOptions sample_;
  double taken_ = 1;
  std::uint64_t trace_requests_ = 0;
  std::string object_size_text_ = "largest";
  ObjectSize object_size_ = ObjectSize::kLargest;
  std::uint64_t head_bytes_ = 0;
  std::uint64_t curve_points_ = 0;
  std::string bounds_text_;
  BoundsWanted bounds_;
  FleetArguments fleet_;
  LatencyArguments latency_;
  std::string warmup_text_ = "0";
  Warmup warmup_;
  std::uint64_t interval_ = 0;
  std::uint64_t parts_ = 0;
  std::uint64_t threads_ = 0;
  std::uint64_t remember_objects_ = ObjectMemory::kObjectsUsual;
  bool forget_sizes_ = false;
  bool hold_ = false;
  OwnCache own_;
};

}  // namespace

std::unique_ptr<Command> make_replay_command() { return std::make_unique<ReplayCommand>(); }

}  // namespace encore::sim
