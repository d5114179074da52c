// encore-sim replay: a trace through caches of several sizes and policies.
#include <algorithm>
#include <charconv>

#include "base/units.h"
#include "sim/cli/commands.h"
#include "sim/cli/kernel_options.h"
#include "sim/cli/replay_charts.h"
#include "sim/cli/simulation.h"
#include "sim/cli/trace_options.h"

namespace encore::sim {
namespace {

double share(std::uint64_t part, std::uint64_t whole) {
  return whole == 0 ? 0 : static_cast<double>(part) / static_cast<double>(whole);
}

class ReplayCommand final : public Command {
 public:
  std::string name() const override { return "replay"; }
  std::string summary() const override {
    return "A trace through caches of several sizes, evictions and admissions";
  }
  std::string example() const override {
    return "encore-sim replay trace.csv.zst --cache-size 64MiB,10% --eviction lru,sieve "
           "--admission always,second-hit --fpr 0.01,0.001";
  }
  void declare(Arguments& a) override {
    trace_.declare(a);
    kernel_.declare(a);
    a.text("--warmup", warmup_, "requests that are not counted: a number, or 10% of them");
    a.number("--interval", interval_, "report the series, so many requests a point (0: none)");
    a.number("--threads", threads_, "runs at once (0: one a core)");
    a.flag("--hold", hold_, "spool the whole trace to disk first (else only where it must be)");
  }

  Result<Outcome> run(const Context& context) override {
    auto trace_options = trace_.options();
    auto planned = kernel_.plan(context.arguments);
    if (!trace_options || !planned) {
      return std::unexpected(trace_options ? planned.error() : trace_options.error());
    }
    trace_options->identity_seed = kernel_.identity_seed();
    RunOptions options{.threads = static_cast<unsigned>(std::min<std::uint64_t>(threads_, 1024))};
    std::uint64_t warmup = 0;
    if (auto read = read_warmup(options, warmup); !read) {
      return std::unexpected(read.error());
    }
    std::vector<PlannedRun> plan;
    bool know_future = false;
    bool hold = hold_ || options.warmup_share > 0;
    for (const PlannedKernel& kernel : *planned) {
      know_future = know_future || kernel.options.eviction == cache::EvictionPolicy::kBelady;
      hold = hold || know_future || kernel.size.footprint_share > 0;
      plan.push_back({.options = {.kernel = kernel.options,
                                  .warmup_requests = warmup,
                                  .interval_requests = interval_},
                      .footprint_share = kernel.size.footprint_share});
    }
    auto reader = open_traces(trace_.files(), *trace_options);
    if (!reader) {
      return std::unexpected(reader.error());
    }
    const auto simulation = hold
                                ? replay_held(**reader, plan, options, know_future, context.monitor)
                                : replay_streamed(**reader, plan, options, context.monitor);
    if (!simulation) {
      return std::unexpected(simulation.error());
    }
    Outcome outcome;
    Report& report = outcome.report;
    report.seed = kernel_.seed();
    report.parameters = trace_.parameters();
    for (Field& field : kernel_.parameters()) {
      report.parameters.push_back(std::move(field));
    }
    report.parameters.push_back({"warmup", warmup_});
    fill(report, *simulation, *planned);
    report.notes = TraceArguments::notes(**reader, *trace_options);
    return outcome;
  }

 private:
  struct Simulation {
    ObjectTable objects;
    std::uint64_t requests = 0;
    std::vector<FinishedRun> runs;
    double decode_seconds = 0;
  };

  static Result<Simulation> replay_held(TraceReader& reader, const std::vector<PlannedRun>& plan,
                                        const RunOptions& options, bool know_future,
                                        Monitor& monitor) {
    auto trace = hold_trace(reader, {.know_future = know_future}, monitor);
    if (!trace) {
      return std::unexpected(trace.error());
    }
    auto runs = run_held(*trace, plan, options, monitor);
    if (!runs) {
      return std::unexpected(runs.error());
    }
    return Simulation{std::move(trace->objects), trace->requests.size(), std::move(*runs),
                      trace->decode_seconds};
  }
  static Result<Simulation> replay_streamed(TraceReader& reader,
                                            const std::vector<PlannedRun>& plan,
                                            const RunOptions& options, Monitor& monitor) {
    auto streamed = run_streamed(reader, plan, options, monitor);
    if (!streamed) {
      return std::unexpected(streamed.error());
    }
    return Simulation{std::move(streamed->objects), streamed->requests, std::move(streamed->runs),
                      0};
  }

  Result<void> read_warmup(RunOptions& options, std::uint64_t& warmup) const {
    const bool percent = warmup_.ends_with('%');
    const char* last = warmup_.data() + warmup_.size() - (percent ? 1 : 0);
    double number = 0;
    const auto [end, error] = std::from_chars(warmup_.data(), last, number);
    if (error != std::errc{} || end != last || !(number >= 0) || (percent && number >= 100) ||
        number > 1e18) {
      return fail("--warmup \"" + warmup_ + "\", accepted: a number, or below 100%");
    }
    options.warmup_share = percent ? number / 100 : 0;
    warmup = percent ? 0 : static_cast<std::uint64_t>(number);
    return {};
  }

  void fill(Report& report, const Simulation& simulation,
            const std::vector<PlannedKernel>& planned) const {
    Table rows{.key = "rows", .title = "", .columns = columns(), .rows = {}};
    Table intervals{.key = "intervals", .title = "", .columns = {}, .rows = {}};
    std::vector<Row> machine;
    double rate_min = 0;
    double bytes_per_object = 0;
    for (std::size_t i = 0; i < planned.size(); ++i) {
      const FinishedRun& finished = simulation.runs[i];
      rows.rows.push_back(make_row(simulation, finished, planned[i]));
      append_intervals(intervals, finished, planned[i], i);
      const double rate = finished.cpu_seconds > 0
                              ? static_cast<double>(simulation.requests) / finished.cpu_seconds
                              : 0;
      const cache::KernelStatistics kernel = finished.run->kernel();
      const double bytes = share(kernel.index_bytes, finished.run->most_objects());
      rate_min = i == 0 ? rate : std::min(rate_min, rate);
      bytes_per_object = std::max(bytes_per_object, bytes);
      machine.push_back({{"run", std::uint64_t{i}},
                         {"eviction", std::string(to_string(planned[i].options.eviction))},
                         {"requests_per_second", rate},
                         {"bytes_per_object", bytes}});
    }
    append_replay_charts(report.charts, simulation.runs);
    report.tables.push_back(std::move(rows));
    if (interval_ != 0) {
      report.tables.push_back(std::move(intervals));
    }
    report.machine = {{"requests_per_second", rate_min},
                      {"bytes_per_object", bytes_per_object},
                      {"decode_seconds", simulation.decode_seconds},
                      {"runs", std::move(machine)}};
  }

  static std::vector<Column> columns() {
    return {{"cache_bytes", "cache", Style::kBytes},
            {"eviction", "eviction"},
            {"admission", "admission"},
            {"capacity", "window c", Style::kCount},
            {"object_hit_ratio", "hits", Style::kPercent},
            {"byte_hit_ratio", "of bytes", Style::kPercent},
            {"bytes_written", "written", Style::kBytes},
            {"objects_written", "objects", Style::kCount},
            {"bytes_from_origin", "from origin", Style::kBytes},
            {"one_hit_kept_out", "one-hit out", Style::kCount},
            {"one_hit_let_in", "in", Style::kCount},
            {"evictions", "evictions", Style::kCount},
            {"false_admissions", "false adm.", Style::kCount},
            {"fpr_measured", "FPR", Style::kRate},
            {"fpr_theory", "theory", Style::kRate}};
  }

  Row make_row(const Simulation& simulation, const FinishedRun& finished,
               const PlannedKernel& planned) const {
    const ReplayCounts& c = finished.run->counts();
    const cache::KernelStatistics kernel = finished.run->kernel();
    const cache::AdmissionStatistics admission = finished.run->admission();
    const cache::KernelOptions& options = finished.run->options().kernel;
    std::string names;
    for (const std::string& file : trace_.files()) {
      names += (names.empty() ? "" : ",") + file;
    }
    Row row = {{"trace", names},
               {"eviction", std::string(to_string(options.eviction))},
               {"admission", std::string(to_string(options.admission.policy))},
               {"cache_bytes", options.capacity_bytes},
               {"requests", c.requests},
               {"hits", c.hits},
               {"object_hit_ratio", share(c.hits, c.requests)},
               {"byte_hit_ratio", share(c.bytes_hit, c.bytes_requested)},
               {"validations", c.validations},
               {"bytes_requested", c.bytes_requested},
               {"bytes_from_origin", c.bytes_from_origin},
               {"bytes_written", c.bytes_written},
               {"bytes_rewritten", c.bytes_rewritten},
               {"objects_written", c.objects_written},
               {"too_large_or_full", c.not_stored_full},
               {"one_hit_kept_out", finished.one_hit_kept_out},
               {"one_hit_let_in", finished.one_hit_let_in},
               {"evictions", kernel.counters.evictions},
               {"expirations", kernel.counters.expirations},
               {"resident_objects", kernel.objects},
               {"used_bytes", kernel.used_bytes},
               {"footprint_bytes", simulation.objects.footprint_bytes()},
               {"footprint_objects", std::uint64_t{simulation.objects.objects()}}};
    append_filter(row, admission, options, planned);
    return row;
  }

  static void append_filter(Row& row, const cache::AdmissionStatistics& admission,
                            const cache::KernelOptions& options, const PlannedKernel& planned) {
    const filter::MeasuredFpr& measured = admission.measured;
    const bool filtered = admission.has_filter;
    const bool has_shadow = filtered && options.admission.shadow_one_in != 0;
    const filter::Interval interval = measured.interval();
    const auto when = [](bool there, auto value) { return there ? Value{value} : Value{}; };
    const double asked = static_cast<double>(measured.asked);
    const bool windowed =
        filtered || options.admission.policy == cache::AdmissionPolicy::kExactSecondHit;
    row.insert(
        row.end(),
        {Field{"capacity",
               when(windowed, options.admission.filter.capacity * std::uint64_t{options.shards})},
         {"fpr_goal", when(filtered && planned.fpr_goal > 0, planned.fpr_goal)},
         {"bits", when(filtered, options.admission.filter.bits * std::uint64_t{options.shards})},
         {"hashes", when(filtered, std::uint64_t{options.admission.filter.hashes})},
         {"filter_bytes", when(windowed, admission.memory_bytes)},
         {"rotations", when(windowed, admission.rotations)},
         {"refreshes", when(windowed, admission.refreshes)},
         {"false_admissions",
          when(has_shadow, measured.false_positives * options.admission.shadow_one_in)},
         {"false_negatives", when(has_shadow, measured.false_negatives)},
         {"fpr_measured", when(has_shadow && measured.asked != 0, measured.rate())},
         {"fpr_theory", when(has_shadow && measured.asked != 0, measured.expected / asked)},
         {"interval_low", when(has_shadow, interval.low)},
         {"interval_high", when(has_shadow, interval.high)}});
  }

  static void append_intervals(Table& table, const FinishedRun& finished,
                               const PlannedKernel& planned, std::size_t number) {
    for (const ReplayInterval& interval : finished.run->intervals()) {
      const ReplayCounts& c = interval.counts;
      table.rows.push_back({{"run", std::uint64_t{number}},
                            {"eviction", std::string(to_string(planned.options.eviction))},
                            {"admission", std::string(to_string(planned.options.admission.policy))},
                            {"cache_bytes", finished.run->options().kernel.capacity_bytes},
                            {"from_request", interval.from_request},
                            {"requests", c.requests},
                            {"hits", c.hits},
                            {"object_hit_ratio", share(c.hits, c.requests)},
                            {"byte_hit_ratio", share(c.bytes_hit, c.bytes_requested)},
                            {"bytes_written", c.bytes_written},
                            {"resident_objects", interval.resident_objects},
                            {"used_bytes", interval.used_bytes},
                            {"filter_fill", interval.filter_fill},
                            {"fpr_theory", interval.fpr_theory},
                            {"rotations", interval.rotations}});
    }
  }

  TraceArguments trace_;
  KernelArguments kernel_;
  std::string warmup_ = "0";
  std::uint64_t interval_ = 0;
  std::uint64_t threads_ = 0;
  bool hold_ = false;
};

}  // namespace

std::unique_ptr<Command> make_replay_command() { return std::make_unique<ReplayCommand>(); }

}  // namespace encore::sim
