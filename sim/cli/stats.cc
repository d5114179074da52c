// encore-sim stats: what a trace is made of.
#include <cstdio>

#include "base/units.h"
#include "sim/cli/commands.h"
#include "sim/cli/trace_options.h"
#include "sim/replay/trace_statistics.h"

namespace encore::sim {
namespace {

constexpr std::size_t kBatch = 4096;

// Notes on the meaning of the figures for a cache with second-hit admission.
std::vector<std::string> advice(const TraceSummary& summary, bool has_sizes) {
  std::vector<std::string> notes;
  if (summary.requests < 100000) {
    notes.push_back("A short trace: hit ratios of caches near its footprint mean little.");
  }
  if (!has_sizes) {
    notes.push_back("The trace has no sizes: use it for object hit ratios, not for bytes.");
  }
  if (summary.first_ns == summary.last_ns) {
    notes.push_back("The trace has no times: it cannot show TTLs or rotation by time.");
  }
  if (summary.one_hit_requests_share() < 0.05) {
    notes.push_back(
        "Few requests are for one-hit objects: second-hit admission keeps little out, and costs "
        "one hit per object.");
  } else if (summary.one_hit_objects_share() > 0.4) {
    notes.push_back(
        "Many objects are one-hit objects: second-hit admission keeps them out of the cache.");
  }
  return notes;
}

class StatsCommand final : public Command {
 public:
  std::string name() const override { return "stats"; }
  std::string summary() const override {
    return "Describe a trace: objects, bytes, one-hit objects, reuse";
  }
  std::string example() const override {
    return "encore-sim stats access.log.gz --format combined";
  }
  void declare(Arguments& a) override { trace_.declare(a); }

  Result<Outcome> run(const Context& context) override {
    auto options = trace_.options();
    if (!options) {
      return std::unexpected(options.error());
    }
    options->monitor = &context.monitor;
    auto reader = context.open(trace_.files(), *options);
    if (!reader) {
      return std::unexpected(reader.error());
    }
    TraceStatistics statistics;
    std::vector<Request> batch(kBatch);
    while (true) {
      const auto count = (*reader)->read(batch);
      if (!count) {
        return std::unexpected(count.error());
      }
      for (std::size_t i = 0; i < *count; ++i) {
        statistics.add(batch[i]);
      }
      if (*count == 0 || context.monitor.stopped()) {
        break;
      }
    }
    const bool complete = !context.monitor.heard;
    if (complete) {
      if (auto fine = TraceArguments::check_counted(**reader); !fine) {
        return std::unexpected(fine.error());
      }
    }
    const bool has_sizes = (*reader)->counts().without_size < (*reader)->counts().counted;
    Outcome outcome;
    Report& report = outcome.report;
    report.parameters = trace_.parameters();
    const TraceSummary summary = statistics.summary();
    report.tables = {main_table(summary, **reader, has_sizes), reuse_table(summary),
                     working_set_table(summary, has_sizes), TraceArguments::sources(**reader)};
    report.charts.push_back(working_set_chart(summary));
    report.notes = TraceArguments::notes(**reader, *options);
    if (complete) {
      for (std::string& note : advice(summary, has_sizes)) {
        report.notes.push_back(std::move(note));
      }
    }
    return outcome;
  }

 private:
  static Table main_table(const TraceSummary& s, const TraceReader& reader, bool has_sizes) {
    const auto bytes = [&](auto value) { return has_sizes ? Value{value} : Value{}; };
    Table table{.key = "rows",
                .title = "",
                .columns = {{"requests", "requests", Style::kCount},
                            {"objects", "objects", Style::kCount},
                            {"bytes_requested", "bytes requested", Style::kBytes},
                            {"bytes_unique", "bytes unique", Style::kBytes},
                            {"one_hit_objects_share", "one-hit objects", Style::kPercent},
                            {"one_hit_requests_share", "one-hit requests", Style::kPercent},
                            {"infinite_hit_ratio", "infinite hit ratio", Style::kPercent},
                            {"infinite_byte_hit_ratio", "of bytes", Style::kPercent},
                            {"zipf_alpha", "Zipf", Style::kReal}},
                .rows = {}};
    table.rows.push_back({{"requests", s.requests},
                          {"objects", s.objects},
                          {"bytes_requested", bytes(s.bytes_requested)},
                          {"bytes_unique", bytes(s.bytes_unique)},
                          {"one_hit_objects_share", s.one_hit_objects_share()},
                          {"one_hit_requests_share", s.one_hit_requests_share()},
                          {"infinite_hit_ratio", s.infinite_hit_ratio()},
                          {"infinite_byte_hit_ratio", bytes(s.infinite_byte_hit_ratio())},
                          {"one_hit_bytes", bytes(s.one_hit_bytes)},
                          {"most_requested", s.most_requested},
                          {"zipf_alpha", s.zipf_alpha},
                          {"size_changes", bytes(s.size_changes)},
                          {"with_ttl", s.with_ttl},
                          {"seconds", 1e-9 * static_cast<double>(s.last_ns - s.first_ns)},
                          {"format", std::string(to_string(reader.format()))},
                          {"lines", reader.counts().lines},
                          {"skipped", reader.counts().skipped},
                          {"bad", reader.counts().bad}});
    return table;
  }

  static Table reuse_table(const TraceSummary& summary) {
    Table table{.key = "reuse",
                .title = "Distance to the next request of an object",
                .columns = {{"within", "requests", Style::kCount},
                            {"count", "requests that do", Style::kCount},
                            {"share", "share so far", Style::kPercent}},
                .rows = {}};
    std::uint64_t sum = 0;
    for (std::size_t i = 0; i < summary.reuse_distances.size(); ++i) {
      const std::uint64_t count = summary.reuse_distances[i];
      sum += count;
      if (count != 0) {
        table.rows.push_back(
            {{"within", std::uint64_t{1} << i},
             {"count", count},
             {"share", static_cast<double>(sum) / static_cast<double>(summary.requests)}});
      }
    }
    return table;
  }

  // Windows of 1, 2, 4 ... requests, up to the first one that holds the whole trace.
  template <typename Visit>
  static void for_each_window(const TraceSummary& summary, Visit visit) {
    for (unsigned i = 0; summary.requests != 0; ++i) {
      const std::uint64_t window = std::uint64_t{1} << i;
      visit(window, summary.working_set.mean(i, summary.requests));
      if (window >= summary.requests) {
        break;
      }
    }
  }
  static Table working_set_table(const TraceSummary& summary, bool has_sizes) {
    Table table{.key = "working_set",
                .title = "Working set: mean number of objects and bytes per window of requests",
                .columns = {{"window", "requests", Style::kCount},
                            {"objects", "objects", Style::kReal},
                            {"bytes", "bytes", Style::kBytes}},
                .rows = {}};
    for_each_window(summary, [&](std::uint64_t window, const WorkingSet::Mean& mean) {
      table.rows.push_back({{"window", window},
                            {"objects", mean.objects},
                            {"bytes", has_sizes ? Value{mean.bytes} : Value{}}});
    });
    return table;
  }
  static Chart working_set_chart(const TraceSummary& summary) {
    Series objects{.name = "objects", .points = {}};
    for_each_window(summary, [&](std::uint64_t window, const WorkingSet::Mean& mean) {
      objects.points.push_back({.x = static_cast<double>(window), .y = mean.objects});
    });
    return {.title = "Working set by window",
            .x_label = "requests",
            .y_label = "different objects, on average",
            .log_x = true,
            .series = {std::move(objects)}};
  }

  TraceArguments trace_;
};

}  // namespace

std::unique_ptr<Command> make_stats_command() { return std::make_unique<StatsCommand>(); }

}  // namespace encore::sim
