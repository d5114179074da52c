// encore-sim blocks: the lecture's experiment.
#include <algorithm>
#include <ostream>
#include <thread>

#include "base/units.h"
#include "filter/rotating_bloom_filter.h"
#include "filter/theory.h"
#include "sim/cli/blocks_compare.h"
#include "sim/cli/blocks_theory.h"
#include "sim/cli/commands.h"
#include "sim/cli/memory_need.h"
#include "sim/cli/parallel.h"
#include "sim/replay/block_experiment.h"

namespace encore::sim {
namespace {

struct Options {
  BlockWorkload workload;
  std::uint64_t block_size = 1024;
  std::uint64_t one_off_percent = 75;
  std::uint64_t seeds = 1;
  std::uint64_t bits = 800000;
  std::string hashes = "1..8";
  std::string hash = "md5";
  std::string rng = "moa";
  std::string layout = "classic";
  std::string filter = "single";
  std::uint64_t capacity = 0;
  std::uint64_t generations = 2;
  bool no_refresh = false;
  bool trace = false;
  std::string compare;
  BlockKindOptions kind;

  bool pair() const { return filter == "pair"; }
  bool grows() const { return filter == "scalable" || filter == "growable"; }
};

// FPR columns of one count, measured and by theory (if it holds).
void append_fpr(Row& row, const FprCount& count, bool has_theory) {
  const filter::Interval interval = filter::wilson_interval({count.false_positives, count.tests});
  row.insert(row.end(), {Field{"new_blocks", count.tests},
                         {"false_positives", count.false_positives},
                         {"fpr_measured", count.measured()},
                         {"fpr_theory", has_theory ? Value{count.by_theory()} : Value{}},
                         {"fpr_bits", count.by_bits()},
                         {"interval_low", interval.low},
                         {"interval_high", interval.high},
                         {"z", of(count.z())},
                         {"z_theory", has_theory ? of(count.z_theory()) : Value{}}});
}

std::vector<Column> fpr_columns(Column first, Column second) {
  return {std::move(first),
          std::move(second),
          {"new_blocks", "N", Style::kCount},
          {"false_positives", "FP", Style::kCount},
          {"fpr_measured", "measured", Style::kRate},
          {"fpr_theory", "theory", Style::kRate},
          {"fpr_bits", "by the bits", Style::kRate},
          {"z", "z", Style::kReal},
          {"z_theory", "z to theory", Style::kReal}};
}

Row main_row(const BlockResult& result, const BlockWorkload& workload) {
  const BlockTheory theory = theory_for(result, workload);
  const bool has_theory = result.theory_refused.empty();
  const FprCount& all = result.all;
  const FprCount& one_off = result.one_off;
  const filter::Interval interval = filter::wilson_interval({all.false_positives, all.tests});
  Row row = {{"hashes", std::uint64_t{result.filter.hashes}},
             {"new_blocks", all.tests},
             {"false_positives", all.false_positives},
             {"fpr_measured", all.measured()},
             {"fpr_full", theory.full},
             {"fpr_incremental", theory.incremental},
             {"fpr_bits", all.by_bits()},
             {"interval_low", interval.low},
             {"interval_high", interval.high},
             {"z", of(all.z())},
             {"z_theory", has_theory ? of(all.z_theory()) : Value{}},
             {"one_off_blocks", one_off.tests},
             {"one_off_false_positives", one_off.false_positives},
             {"fpr_one_off", one_off.measured()},
             {"fpr_weighted", theory.weighted},
             {"fpr_one_off_bits", one_off.by_bits()},
             {"z_one_off", of(one_off.z())},
             {"z_one_off_theory", has_theory ? of(one_off.z_theory()) : Value{}},
             {"old_blocks", result.old_blocks},
             {"old_blocks_called_new", result.called_new},
             {"hash", to_string(result.filter.hash)},
             {"layout", std::string(to_string(result.filter.layout))},
             {"bits", result.filter.bits},
             {"filter_bytes", result.filter_bytes},
             {"seeds", result.events / workload.events},
             {"events", result.events}};
  if (!result.filter.single_or_pair()) {
    row.push_back({"filter", std::string(to_string(result.filter.other.kind))});
    row.push_back({"slices", result.slices});
  }
  if (result.filter.pair()) {
    row.insert(row.end(), {Field{"capacity", result.filter.capacity},
                           {"insertions", result.insertions},
                           {"rotations", result.rotations}});
  }
  return row;
}

Table main_table(const Options& options, bool complete) {
  const bool pair = options.filter == "pair";
  Table table{.key = "rows", .title = "", .columns = {}, .rows = {}};
  table.columns = {
      {"hashes", "k", Style::kCount},
      {"new_blocks", "N", Style::kCount},
      {"false_positives", "false positives", Style::kCount},
      {"fpr_measured", "measured", Style::kRate},
      {"fpr_full", pair ? "worst case" : "full", Style::kRate},
      {"fpr_incremental", options.filter == "single" ? "incremental" : "theory", Style::kRate},
      {"fpr_bits", "by the bits", Style::kRate},
      {"interval_low", "95 % from", Style::kRate},
      {"interval_high", "to", Style::kRate},
      {"z", "z", Style::kReal},
      {"z_theory", "z to theory", Style::kReal},
      {"one_off_blocks", "one-off", Style::kCount},
      {"one_off_false_positives", "FP", Style::kCount},
      {"fpr_one_off", "measured", Style::kRate},
      {"fpr_weighted", "weighted", Style::kRate},
      {"z_one_off", "z", Style::kReal}};
  if (pair) {
    table.columns.push_back({"capacity", "c", Style::kCount});
    table.columns.push_back({"rotations", "rotations", Style::kCount});
    table.columns.push_back({"old_blocks_called_new", "old called new", Style::kCount});
  }
  if (options.grows()) {
    table.columns.push_back({"slices", "slices", Style::kCount});
  }
  if (options.filter != "single" && !pair) {
    table.columns.push_back({"filter_bytes", "memory", Style::kBytes});
  }
  if (!complete) {
    table.columns.insert(table.columns.begin() + 1,
                         {{"seeds", "seeds", Style::kCount}, {"events", "events", Style::kCount}});
  }
  return table;
}

// The pair's further tables: by decile of the fill, by cycle, before and after the first rotation,
// what was forgotten at which distance.
void append_pair_tables(Report& report, const std::vector<BlockResult>& results) {
  const Column k{"hashes", "k", Style::kCount};
  Table deciles{"deciles",
                "By decile of the current generation's fill, after the first rotation",
                fpr_columns(k, {"decile", "decile", Style::kCount}),
                {}};
  Table phases{"phases",
               "Before and after the first rotation",
               fpr_columns(k, {"phase", "rotation", Style::kText}),
               {}};
  Table cycles{"cycles", "By cycle", fpr_columns(k, {"cycle", "cycle", Style::kCount}), {}};
  Table forgotten{"forgotten",
                  "Expired reused blocks, by distance in insertions",
                  {k,
                   {"distance_from", "from c *", Style::kReal},
                   {"distance_to", "to c *", Style::kReal},
                   {"asked", "asked", Style::kCount},
                   {"forgotten", "forgotten", Style::kCount},
                   {"share", "share", Style::kPercent},
                   {"share_theory", "theory", Style::kPercent}},
                  {}};
  for (const BlockResult& result : results) {
    const Field hashes{"hashes", std::uint64_t{result.filter.hashes}};
    const auto add = [&](Table& table, Field place, const FprCount& count) {
      if (count.tests != 0) {
        append_fpr(table.rows.emplace_back(Row{hashes, std::move(place)}), count,
                   result.theory_refused.empty());
      }
    };
    for (std::size_t i = 0; i < result.deciles.size(); ++i) {
      add(deciles, {"decile", std::uint64_t{i + 1}}, result.deciles[i]);
    }
    add(phases, {"phase", std::string("before")}, result.before_rotation);
    add(phases, {"phase", std::string("after")}, result.after_rotation);
    for (std::size_t i = 0; i < result.cycles.size(); ++i) {
      add(cycles, {"cycle", std::uint64_t{i}}, result.cycles[i]);
    }
    const filter::Ring unit{.shape = {}, .capacity = 1, .generations = result.filter.generations};
    for (std::size_t i = 0; i < result.forgotten.size(); ++i) {
      const ForgottenBin& bin = result.forgotten[i];
      if (bin.asked == 0) {
        continue;
      }
      const double from = static_cast<double>(i) / kBinsACapacity;
      const double to = from + 1.0 / kBinsACapacity;
      const double theory =
          (filter::forgotten_share(unit, from) + filter::forgotten_share(unit, to)) / 2;
      forgotten.rows.push_back(
          {hashes,
           {"distance_from", from},
           {"distance_to", i + 1 == result.forgotten.size() ? Value{} : Value{to}},
           {"asked", bin.asked},
           {"forgotten", bin.forgotten},
           {"share", static_cast<double>(bin.forgotten) / static_cast<double>(bin.asked)},
           {"share_theory", theory}});
    }
  }
  report.tables.insert(report.tables.end(), {std::move(deciles), std::move(phases),
                                             std::move(cycles), std::move(forgotten)});
}

// Measured points with their intervals on theory's curve, over the deciles of the fill.
Chart fill_chart(const std::vector<BlockResult>& results) {
  Chart chart{.title = "False positives while the filter fills",
              .x_label = "fill, in tenths (single: of the run; pair: of the current generation)",
              .y_label = "false-positive rate",
              .series = {}};
  for (const BlockResult& result : results) {
    const std::string k = "k = " + std::to_string(result.filter.hashes);
    Series theory{.name = k + ", theory", .points = {}};
    Series measured{.name = k + ", measured", .line = false, .points = {}};
    for (std::size_t i = 0; i < result.deciles.size(); ++i) {
      const FprCount& count = result.deciles[i];
      if (count.tests == 0) {
        continue;
      }
      const filter::Interval interval =
          filter::wilson_interval({count.false_positives, count.tests});
      const double x = static_cast<double>(i) + 0.5;
      if (result.theory_refused.empty()) {
        theory.points.push_back({.x = x, .y = count.by_theory()});
      }
      measured.points.push_back(
          {.x = x, .y = count.measured(), .low = interval.low, .high = interval.high});
    }
    chart.series.push_back(std::move(theory));
    chart.series.push_back(std::move(measured));
  }
  return chart;
}

class BlocksCommand final : public Command {
 public:
  std::string name() const override { return "blocks"; }
  std::string summary() const override {
    return "Run the block experiment: measure a Bloom filter's false positives and compare with "
           "theory";
  }
  std::string example() const override {
    return "encore-sim blocks --filter pair --bits 400000 --capacity 40000 --hashes 7 --seeds 20";
  }
  void declare(Arguments& a) override {
    Options& o = options_;
    a.number("--seed", o.workload.seed, "seed of the workload");
    a.number("--seeds", o.seeds, "number of seeds, from --seed on, run in parallel and added up",
             {.min = 1, .max = 100000});
    a.number("--block-size", o.block_size, "block size in bytes", {.min = 1, .max = kMiB});
    a.number("--reused-blocks", o.workload.reused_blocks, "number of reused blocks",
             {.min = 1, .max = INT32_MAX});
    a.number("--one-off-percent", o.one_off_percent, "percent of events with a one-off block",
             {.max = 100});
    a.number("--events", o.workload.events, "number of events (block requests)", {.min = 1});
    a.number("--bits", o.bits, "bits of the filter, or of one generation",
             {.min = 1, .max = filter::kBitsMax});
    a.text("--hashes", o.hashes, "numbers of hashes: 7, 1..8 or 1,2,4");
    a.text("--hash", o.hash,
           "hash: xxh3, murmur3, siphash, md5, sha1, sha512; classic only: chained, sha1-fields20, "
           "md5-fields, sha1-fields, sha256-fields, sha256-fields32, md5-numbered, sha1-numbered, "
           "sha256-numbered; or a bad one: cut32, prng, crc32, trunc32, stride0");
    a.text("--rng", o.rng, "random generator: moa (Mother-of-All), xoshiro");
    a.text("--layout", o.layout, "classic, partitioned, blocked, split");
    a.text("--filter", o.filter, "single, pair (rotating), scalable, growable, counting, bucketed");
    a.number("--capacity", o.capacity,
             "pair: insertions per generation (0: half full); scalable, growable: keys of the "
             "first slice (0: 1000)");
    a.real("--fpr", o.kind.fpr,
           "scalable: compound false-positive rate; growable: rate of each slice",
           {.min = 0, .max = 1, .without_min = true, .without_max = true});
    a.real("--growth", o.kind.growth, "scalable: growth factor of slice capacities",
           {.min = 1, .max = filter::kGrowthMax});
    a.real("--tightening", o.kind.tightening, "scalable: tightening factor of slice rates",
           {.min = 0, .max = 1, .without_min = true, .without_max = true});
    a.number("--buckets", o.kind.buckets, "bucketed: number of equal filters that share --bits",
             {.min = 1, .max = filter::kBitsMax});
    a.number("--generations", o.generations, "generations: 2 is a pair, more a ring",
             {.min = 2, .max = filter::kGenerationsMax});
    a.flag("--no-refresh", o.no_refresh, "pair: do not refresh keys found in the older generation");
    a.text("--compare", o.compare,
           "compare structures (exact set, tables of short hashes, the filter) or hashes (good and "
           "bad ones); needs one k");
    a.flag("--trace", o.trace, "print a line per event (single, classic, one k)");
  }

  Result<Outcome> run(const Context& context) override {
    if (auto fine = check_options(context); !fine) {
      return std::unexpected(fine.error());
    }
    const auto filters = make_filters(context);
    if (!filters) {
      return std::unexpected(filters.error());
    }
    if (auto fits = check_fits(*filters); !fits) {
      return std::unexpected(fits.error());
    }
    if (options_.trace) {
      return run_trace(*filters, context);
    }
    if (!options_.compare.empty()) {
      return run_comparison(*filters, context);
    }
    auto results = run_seeds(*filters, context.monitor);
    if (!results) {
      return std::unexpected(results.error());
    }
    for (BlockResult& result : *results) {
      const BlockFilter& filter = result.filter;
      if (filter.pair()) {
        result.theory_refused =
            theory_refusal({.shape = {filter.layout, filter.bits, filter.hashes},
                            .capacity = static_cast<double>(filter.capacity),
                            .generations = filter.generations});
      }
    }
    Outcome outcome{.report = start_report()};
    outcome.report.tables.push_back(main_table(options_, !context.monitor.heard));
    for (const BlockResult& result : *results) {
      outcome.report.tables.front().rows.push_back(main_row(result, options_.workload));
    }
    append_theory_notes(outcome.report, *results);
    outcome.report.charts.push_back(fill_chart(*results));
    if (options_.filter == "pair") {
      append_pair_tables(outcome.report, *results);
    }
    std::ranges::for_each(outcome.report.tables, drop_unknown_z);
    return outcome;
  }

 private:
  // Each option with the filters that it says something to.
  Result<void> check_options(const Context& context) const {
    struct Use {
      const char* option;
      bool accepted;
      const char* filters;
    };
    const Options& o = options_;
    const bool single_or_pair = o.filter == "single" || o.pair();
    for (const Use& use :
         {Use{"--capacity", o.pair() || o.grows(), "pair, scalable, growable"},
          Use{"--generations", o.pair(), "pair"}, Use{"--no-refresh", o.pair(), "pair"},
          Use{"--fpr", o.grows(), "scalable, growable"},
          Use{"--growth", o.filter == "scalable", "scalable"},
          Use{"--tightening", o.filter == "scalable", "scalable"},
          Use{"--buckets", o.filter == "bucketed", "bucketed"},
          Use{"--bits", !o.grows(), "single, pair, counting, bucketed"},
          Use{"--hashes", !o.grows(), "single, pair, counting, bucketed"},
          Use{"--compare", single_or_pair, "single, pair"}}) {
      if (!use.accepted && context.arguments.given(use.option)) {
        return fail(std::string(use.option) + " with --filter " + o.filter +
                    ", accepted: --filter " + use.filters);
      }
    }
    return {};
  }

  Result<std::vector<BlockFilter>> make_filters(const Context& context) {
    Options& o = options_;
    const auto hash = parse_block_hash(o.hash);
    const auto layout = filter::parse_layout(o.layout);
    const auto generator = parse_generator(o.rng);
    if (!hash || !layout || !generator) {
      return std::unexpected(!hash ? hash.error() : !layout ? layout.error() : generator.error());
    }
    auto other = parse_block_kind(o.filter, o.kind);
    if (!other) {
      return std::unexpected(other.error());
    }
    other->capacity = o.capacity != 0 ? o.capacity : other->capacity;
    o.workload.generator = *generator;
    o.workload.block_bytes = static_cast<std::uint32_t>(o.block_size);
    o.workload.one_off_percent = static_cast<std::uint32_t>(o.one_off_percent);
    const bool split = *layout == filter::Layout::kSplit;
    const auto counts = parse_numbers("--hashes",
                                      split && !context.arguments.given("--hashes") ? "8"
                                      : o.grows()                                   ? "1"
                                                                                    : o.hashes,
                                      {.min = 1, .max = filter::kHashesMax});
    if (!counts) {
      return std::unexpected(counts.error());
    }
    std::vector<BlockFilter> filters;
    for (const std::uint64_t count : *counts) {
      const auto checked = filter::checked({.layout = *layout,
                                            .hash = hash->family,
                                            .bits = o.bits,
                                            .hashes = static_cast<std::uint32_t>(count),
                                            .capacity = 1,
                                            .seed = {}});
      if (!checked) {
        return std::unexpected(checked.error());
      }
      BlockFilter filter{.layout = *layout,
                         .hash = *hash,
                         .bits = checked->bits,
                         .hashes = checked->hashes,
                         .generations = static_cast<std::uint32_t>(o.generations),
                         .refresh = !o.no_refresh,
                         .other = *other};
      if (o.filter == "pair") {
        filter.capacity =
            o.capacity != 0 ? o.capacity : filter::half_full_capacity(checked->shape());
      }
      filters.push_back(filter);
    }
    return filters;
  }

  // Filters, reused blocks and counts of all runs that there are at a time.
  Result<void> check_fits(const std::vector<BlockFilter>& filters) const {
    const Options& o = options_;
    const auto events = static_cast<double>(o.workload.events);
    const auto blocks = static_cast<double>(o.workload.reused_blocks);
    double bits = 0;
    double cycles = 0;
    for (const BlockFilter& filter : filters) {
      bits += filter.single_or_pair()
                  ? static_cast<double>(filter.bits) * (filter.pair() ? filter.generations : 1)
                  : memory_bits(filter.other, {filter.layout, filter.bits, filter.hashes}, events);
      cycles += filter.pair() ? events / static_cast<double>(filter.capacity) : 1;
    }
    const bool hashes = o.compare == "hashes";
    const auto wanted =
        hashes ? static_cast<double>(all_block_hashes().size()) : static_cast<double>(o.seeds);
    const double runs = std::min<double>(wanted, std::max(1U, std::thread::hardware_concurrency()));
    // A list of events, and every structure of the comparison at its size for so many keys.
    constexpr double kEventBytes = 128;
    const double compared = o.compare == "structures" ? kEventBytes * events : 0;
    const double counts =
        static_cast<double>(sizeof(BlockResult)) * static_cast<double>(filters.size()) +
        static_cast<double>(sizeof(FprCount)) * cycles;
    return check_memory(
        {.what = std::to_string(filters.size()) + " filters (--hashes) of " +
                 std::to_string(o.bits) + " bits (--bits), " +
                 std::to_string(o.workload.reused_blocks) + " reused blocks and the counts of " +
                 std::to_string(o.workload.events) + " events, " + std::to_string(o.seeds) +
                 " times (--seeds), " + std::to_string(static_cast<unsigned>(runs)) + " at once",
         .bytes = runs * (bits / 8 + blocks * (static_cast<double>(o.block_size) + 32)) +
                  wanted * counts + compared});
  }

  Result<Outcome> run_trace(const std::vector<BlockFilter>& filters, const Context& context) {
    if (filters.size() != 1) {
      return fail("--trace with " + std::to_string(filters.size()) +
                  " numbers of hashes, accepted: one, as in --hashes 3");
    }
    const auto print = [&](std::string_view line) {
      if (!context.json_to_out) {
        context.out << line << "\n";
      }
      return context.out && !context.monitor.stopped();
    };
    const auto result = trace_blocks(options_.workload, filters.front(), print);
    if (!result) {
      return std::unexpected(result.error());
    }
    Outcome outcome{.report = start_report()};
    outcome.report.tables.push_back({.key = "rows", .title = "", .columns = {}, .rows = {}});
    outcome.report.tables.front().rows.push_back(main_row(*result, options_.workload));
    return outcome;
  }

  Result<Outcome> run_comparison(const std::vector<BlockFilter>& filters, const Context& context) {
    const BlockFilter& filter = filters.back();
    Outcome outcome{.report = start_report()};
    outcome.report.parameters.push_back({"compare", options_.compare});
    Result<void> done =
        fail("unknown comparison \"" + options_.compare + "\", accepted: structures, hashes");
    if (options_.compare == "structures") {
      done = compare_structures(options_.workload, {filter.layout, filter.bits, filter.hashes},
                                context.monitor, outcome.report);
    } else if (options_.compare == "hashes") {
      done = compare_hashes(
          {.workload = options_.workload, .bits = filter.bits, .hashes = filter.hashes},
          context.monitor, outcome.report);
    }
    if (!done) {
      return std::unexpected(done.error());
    }
    return outcome;
  }

  // The sums over the seeds whose runs are complete; where an interrupt left none, what there is of
  // the first one's; nothing where it had not begun.
  Result<std::vector<BlockResult>> run_seeds(const std::vector<BlockFilter>& filters,
                                             Monitor& monitor) const {
    monitor.begin("", options_.seeds * options_.workload.events);
    std::vector<Result<std::vector<BlockResult>>> runs(options_.seeds);
    parallel_for(options_.seeds, [&](std::size_t i) {
      BlockWorkload workload = options_.workload;
      workload.seed += i;
      if (!monitor.stopped()) {
        runs[i] = run_blocks(workload, filters, &monitor);
      }
    });
    std::vector<BlockResult> sum;
    for (const Result<std::vector<BlockResult>>& run : runs) {
      if (!run) {
        return std::unexpected(run.error());
      }
      if (run->empty() || !run->front().complete) {
        continue;
      }
      for (std::size_t i = 0; i < run->size(); ++i) {
        i < sum.size() ? sum[i].add((*run)[i]) : sum.push_back((*run)[i]);
      }
    }
    const std::vector<BlockResult>& first = *runs.front();
    const bool begun = !first.empty() && first.front().events != 0;
    return sum.empty() && begun ? first : sum;
  }

  Report start_report() const {
    const Options& o = options_;
    Report report;
    report.seed = o.workload.seed;
    report.parameters = {{"seeds", o.seeds},
                         {"block_size", o.block_size},
                         {"reused_blocks", o.workload.reused_blocks},
                         {"one_off_percent", o.one_off_percent},
                         {"events", o.workload.events},
                         {"bits", o.bits},
                         {"hashes", o.hashes},
                         {"hash", o.hash},
                         {"rng", o.rng},
                         {"layout", o.layout},
                         {"filter", o.filter},
                         {"capacity", o.capacity},
                         {"generations", o.generations},
                         {"refresh", !o.no_refresh}};
    if (o.grows()) {
      report.parameters.push_back({"fpr", o.kind.fpr});
      report.parameters.push_back({"growth", o.kind.growth});
      report.parameters.push_back({"tightening", o.kind.tightening});
    }
    if (o.filter == "bucketed") {
      report.parameters.push_back({"buckets", o.kind.buckets});
    }
    return report;
  }

  Options options_;
};

}  // namespace

std::unique_ptr<Command> make_blocks_command() { return std::make_unique<BlocksCommand>(); }

}  // namespace encore::sim
