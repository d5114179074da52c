// encore-sim tune: what to configure for a trace and a cache size, with the evidence.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <ranges>
#include <vector>

#include "base/units.h"
#include "cache/probation.h"
#include "config/derive.h"
#include "sim/cli/commands.h"
#include "sim/cli/disk_options.h"
#include "sim/cli/kernel_options.h"
#include "sim/cli/replay_rows.h"
#include "sim/cli/simulation.h"
#include "sim/cli/trace_options.h"
#include "sim/cli/tune_choice.h"
#include "sim/cli/tune_front.h"
#include "sim/cli/tune_measured.h"
#include "sim/cli/warmup.h"

namespace encore::sim {
namespace {

using cache::AdmissionPolicy;

// The windows that are tried: doubled from the smallest to twice the objects.
constexpr std::uint64_t kWindowMin = 16;
// Costs of a written byte to try, in bytes fetched; the config's default is among them.
constexpr std::array kWriteCosts = {0.0, 0.1, 0.2, 0.5, 1.0, 3.0};
constexpr double kDefaultCost = 0.2;
std::string short_number(double number) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%g", number);
  return text.data();
}

class TuneCommand final : public Command {
 public:
  std::string name() const override { return "tune"; }
  std::string summary() const override {
    return "Recommend an [admission] section for a trace and a cache size, with the evidence";
  }
  std::string example() const override {
    return "encore-sim tune trace.csv.zst --cache-size 1GiB --eviction sieve\n  "
           "encore-sim tune trace.csv.zst --cache-size 1GiB --disk-size 100GiB";
  }
  void declare(Arguments& a) override {
    trace_.declare(a);
    a.text("--cache-size", size_, "64MiB, or 10% of the trace's footprint");
    disk_.declare(a);
    a.text("--object-size", object_size_text_, kObjectSizeHelp);
    a.text("--eviction", eviction_,
           "eviction policy of the cache, with parameters in parentheses: encore-sim policies");
    a.text("--layout", layout_, "classic, partitioned, blocked, split");
    a.text("--warmup", warmup_text_, "share of the requests to exclude from the counts, as 20%");
    costs_.declare(a);
    a.number("--seed", seed_, "seed of the key hashes");
    a.number("--threads", threads_, "parallel runs (0: one per core)", {.max = kThreadsMax});
  }

  Result<Outcome> run(const Context& context) override {
    auto options = trace_.options();
    if (!options) {
      return std::unexpected(options.error());
    }
    if (auto read = read_options(); !read) {
      return std::unexpected(read.error());
    }
    for (auto fine : {disk_.read(context.arguments), disk_.check_for_kernel()}) {
      if (!fine) {
        return std::unexpected(fine.error());
      }
    }
    options->identity_seed = {seed_, seed_};
    options->monitor = &context.monitor;
    auto reader = context.open(trace_.files(), *options);
    if (!reader) {
      return std::unexpected(reader.error());
    }
    const auto trace =
        load_trace(**reader, {.sample = {}, .object_size = object_size_}, context.monitor);
    if (!trace) {
      return std::unexpected(trace.error());
    }
    auto outcome = context.monitor.stopped() ? Result<Outcome>(unread(trace->requests.size()))
                                             : study(**reader, *trace, context.monitor);
    if (outcome) {
      outcome->report.tables.push_back(TraceArguments::sources(**reader));
      for (std::string& note : TraceArguments::notes(**reader, *options)) {
        outcome->report.notes.push_back(std::move(note));
      }
    }
    return outcome;
  }

 private:
  Result<void> read_options() {
    const auto sizes = parse_cache_sizes(size_);
    const auto eviction = parse_policy(eviction_);
    const auto layout = filter::parse_layout(layout_);
    if (!sizes || !eviction || !layout) {
      return std::unexpected(!sizes      ? sizes.error()
                             : !eviction ? eviction.error()
                                         : layout.error());
    }
    const auto warmup = parse_warmup(warmup_text_);
    const auto object_size = parse_object_size(object_size_text_);
    if (!warmup || !object_size) {
      return std::unexpected(warmup ? object_size.error() : warmup.error());
    }
    if (warmup->requests != 0) {
      return fail("--warmup \"" + warmup_text_ + "\", accepted: a share of the requests, as 20%");
    }
    if (sizes->size() != 1) {
      return fail("--cache-size \"" + size_ + "\", accepted: one size");
    }
    if (eviction->policy == cache::EvictionPolicy::kBelady) {
      return fail("--eviction belady knows the future, accepted: a value of cache.eviction");
    }
    cache_size_ = sizes->front();
    policy_ = *eviction;
    filter_layout_ = *layout;
    warmup_ = *warmup;
    object_size_ = *object_size;
    return {};
  }

  Result<std::vector<Measured>> measure(const LoadedTrace& trace, std::vector<Measured> wanted,
                                        Monitor& monitor, const char* phase) const {
    std::vector<PlannedRun> plan;
    for (const Measured& one : wanted) {
      auto planned = plan_for(one);
      if (!planned) {
        return std::unexpected(planned.error());
      }
      const std::uint64_t counted = trace.requests.size() - warmup_.requests;
      planned->options.interval_requests =
          std::max<std::uint64_t>(1, (counted + kTuneParts - 1) / kTuneParts);
      plan.push_back(*planned);
    }
    const auto runs =
        run_held(trace, plan,
                 {.warmup_requests = warmup_.requests, .threads = static_cast<unsigned>(threads_)},
                 monitor, phase);
    if (!runs) {
      return std::unexpected(runs.error());
    }
    std::vector<Measured> measured;
    for (std::size_t i = 0; i < wanted.size(); ++i) {
      // An interrupt leaves some that had not begun.
      if (take_counts((*runs)[i], wanted[i])) {
        measured.push_back(wanted[i]);
      }
    }
    return measured;
  }

  // With a disk, what goes to it is to be chosen: the proxy's own kernel, tuned as it does.
  void put_disk(const Measured& one, PlannedRun& planned) const {
    disk_.apply(planned.options.kernel);
    if (one.policy == AdmissionPolicy::kProbation) {
      planned.options.kernel.admission.fill = true;
      planned.options.tuning =
          ReplayProbation{.settings = {.disk_bytes = disk_.bytes(),
                                       .segment_bytes = disk_.wanted_segment_bytes(),
                                       .move_share = disk_.reinsert(),
                                       .keys = planned.options.kernel.admission.filter,
                                       .fill = true},
                          .write_cost = one.write_cost};
    }
  }

  Result<PlannedRun> plan_for(const Measured& one) const {
    PlannedRun planned{.options = {}, .footprint_share = cache_size_.footprint_share};
    cache::KernelOptions& kernel = planned.options.kernel;
    kernel.capacity_bytes = std::max<std::uint64_t>(cache_size_.bytes, 1);
    kernel.max_object_share = 1;
    kernel.shards = 1;
    kernel.entry_overhead_bytes = 0;
    set_policy(policy_, kernel);
    kernel.identity_seed = {seed_, seed_};
    kernel.admission.policy = one.policy;
    config::Config config;
    config.cache.shards = 1;
    config.admission.capacity = std::max<std::uint64_t>(one.window, 1);
    config.admission.fpr = one.fpr > 0 ? one.fpr : 0.01;
    config.admission.layout = filter_layout_;
    const auto filter = config::derive_filter(config);
    if (!filter) {
      return std::unexpected(filter.error());
    }
    kernel.admission.filter = filter->shard;
    kernel.admission.filter.seed = kernel.identity_seed;
    kernel.admission.shadow_one_in = 0;
    put_disk(one, planned);
    return planned;
  }

  Result<Outcome> study(const TraceReader& reader, const LoadedTrace& trace, Monitor& monitor) {
    if (auto fine = TraceArguments::check_counted(reader); !fine) {
      return std::unexpected(fine.error());
    }
    const auto warmup = warmup_requests(warmup_, trace.requests.size());
    if (!warmup) {
      return std::unexpected(warmup.error());
    }
    warmup_ = {.requests = *warmup};
    return disk_.any() ? compare_on_disk(trace, monitor) : compare(trace, monitor);
  }

  // Probation at each write cost, compared with storing all and second-hit.
  Result<Outcome> compare_on_disk(const LoadedTrace& trace, Monitor& monitor) const {
    const std::uint64_t keys = cache::planned_keys(disk_.bytes());
    std::vector<Measured> wanted = {
        {.policy = AdmissionPolicy::kAlways},
        {.policy = AdmissionPolicy::kSecondHit, .window = keys, .fpr = 0.01}};
    for (const double cost : kWriteCosts) {
      wanted.push_back({.policy = AdmissionPolicy::kProbation,
                        .window = keys,
                        .fpr = config::kProbationFpr,
                        .write_cost = cost});
    }
    const auto measured = measure(trace, std::move(wanted), monitor, "write costs");
    if (!measured) {
      return std::unexpected(measured.error());
    }
    Outcome outcome = start_outcome();
    Report& report = outcome.report;
    report.tables = {disk_table(*measured)};
    if (monitor.stopped()) {
      report.tables.front().columns.insert(report.tables.front().columns.begin() + 2,
                                           {"requests", "requests", Style::kCount});
      report.notes = {"No recommendation: the comparison is incomplete."};
      return outcome;
    }
    const std::size_t place = costs_.any() ? cheapest(*measured, costs_) : choose_cost(*measured);
    const Measured& chosen = (*measured)[place];
    const std::size_t other = next_to(*measured, place, costs_);
    const Balance balance = balance_of(measured->front(), chosen);
    const Estimate gained{
        .value = -balance.lost.value, .low = -balance.lost.high, .high = -balance.lost.low};
    report.tables.push_back(front_table(*measured, costs_, place, other));
    report.charts = {front_chart(*measured, place)};
    if (chosen.policy == AdmissionPolicy::kProbation) {
      report.notes = {"At a write cost of " + short_number(chosen.write_cost) +
                      ", probation has hits for " + interval_text(gained) +
                      " more of the requests than storing everything, and writes " +
                      interval_text(balance.saved) +
                      " fewer bytes. A lower write cost writes more for more hits: choose the row "
                      "whose writes the disk bears."};
    }
    for (std::string& reason : reasons(chosen, (*measured)[other], costs_)) {
      report.notes.push_back(std::move(reason));
    }
    report.paste = "[admission]                    # from " +
                   std::to_string(trace.requests.size()) + " requests, a cache of " + size_ +
                   " before a disk of " + format_bytes(disk_.bytes()) + "\n" + policy_line(chosen) +
                   "# hits " + percent_text(chosen.hits) + ", written " +
                   format_bytes(chosen.bytes_written) + "\n";
    if (chosen.policy == AdmissionPolicy::kProbation) {
      report.paste += "write_cost = " + short_number(chosen.write_cost) + "\n";
    } else if (chosen.policy == AdmissionPolicy::kSecondHit) {
      report.paste += "capacity = " + std::to_string(chosen.window) +
                      "\nfpr = " + short_number(chosen.fpr) + "\n";
    }
    return outcome;
  }

  static std::string policy_line(const Measured& chosen) {
    std::string line = "policy = \"" + std::string(to_string(chosen.policy)) + "\"";
    line.resize(std::max<std::size_t>(line.size() + 1, 31), ' ');
    return line;
  }

  // The default, unless another one has as many hits for fewer writes.
  static std::size_t choose_cost(const std::vector<Measured>& all) {
    auto chosen = std::ranges::find(all, kDefaultCost, &Measured::write_cost);
    for (auto one = all.begin(); one != all.end(); ++one) {
      if (one->policy == AdmissionPolicy::kProbation && one->hits >= chosen->hits &&
          one->bytes_written <= chosen->bytes_written) {
        chosen = one;
      }
    }
    return static_cast<std::size_t>(chosen - all.begin());
  }

  static Table disk_table(const std::vector<Measured>& all) {
    Table table{.key = "rows",
                .title = "By write cost",
                .columns = {{"admission", "admission"},
                            {"write_cost", "write cost", Style::kReal},
                            {"object_hit_ratio", "hits", Style::kPercent},
                            {"byte_hit_ratio", "of bytes", Style::kPercent},
                            {"bytes_written", "written", Style::kBytes},
                            {"bytes_moved", "of it moved", Style::kBytes}},
                .rows = {}};
    for (const Measured& one : all) {
      Row row = make_row(one);
      row.push_back({"write_cost",
                     one.policy == AdmissionPolicy::kProbation ? Value{one.write_cost} : Value{}});
      row.push_back({"bytes_moved", one.bytes_moved});
      table.rows.push_back(std::move(row));
    }
    return table;
  }

  Result<Outcome> compare(const LoadedTrace& trace, Monitor& monitor) const {
    // First by window, together with the exact rule.
    std::vector<Measured> wanted = {{.policy = AdmissionPolicy::kAlways}};
    const std::uint64_t most = std::max(2 * trace.objects.objects(), kWindowMin);
    std::vector<std::uint64_t> sizes;
    for (std::uint64_t window = most; window >= kWindowMin; window /= 2) {
      sizes.push_back(window);
    }
    for (const std::uint64_t window : sizes | std::views::reverse) {
      wanted.push_back({.policy = AdmissionPolicy::kSecondHit, .window = window, .fpr = 0.01});
    }
    const auto windows = measure(trace, std::move(wanted), monitor, "windows");
    if (!windows) {
      return std::unexpected(windows.error());
    }
    if (monitor.stopped()) {
      return without_verdict(*windows, {});
    }
    const Measured& always = windows->front();
    const Measured knee = best_filter(*windows);
    // Then by FPR at that window.
    wanted = {{.policy = AdmissionPolicy::kExactSecondHit, .window = knee.window}};
    for (const double fpr : {0.5, 0.2, 0.1, 0.05, 0.02, 0.01, 0.005, 0.001, 0.0001}) {
      wanted.push_back({.policy = AdmissionPolicy::kSecondHit, .window = knee.window, .fpr = fpr});
    }
    const auto fprs = measure(trace, std::move(wanted), monitor, "FPRs");
    if (!fprs) {
      return std::unexpected(fprs.error());
    }
    if (monitor.stopped()) {
      return without_verdict(*windows, *fprs);
    }
    return make_report(trace, always, *windows, *fprs);
  }

  Outcome start_outcome() const {
    Outcome outcome;
    outcome.report.seed = seed_;
    outcome.report.parameters = trace_.parameters();
    outcome.report.parameters.insert(outcome.report.parameters.end(),
                                     {Field{"cache_size", size_},
                                      {"eviction", eviction_},
                                      {"layout", layout_},
                                      {"warmup", warmup_text_},
                                      {"object_size", object_size_text_}});
    disk_.append_parameters(outcome.report.parameters);
    costs_.append_parameters(outcome.report.parameters);
    return outcome;
  }

  // Outcome of an interrupted run: the measurements, and no recommendation.
  Outcome without_verdict(const std::vector<Measured>& windows,
                          const std::vector<Measured>& fprs) const {
    Outcome outcome = start_outcome();
    Report& report = outcome.report;
    report.tables = {table_of("windows", "By window, at an FPR of 0.01", windows),
                     table_of("fprs", "By FPR, at the chosen window", fprs)};
    for (Table& table : report.tables) {
      table.columns.insert(table.columns.begin() + 4, {"requests", "requests", Style::kCount});
    }
    report.notes = {"No recommendation: the comparison is incomplete."};
    return outcome;
  }
  Outcome unread(std::uint64_t requests_read) const {
    Outcome outcome = without_verdict({}, {});
    outcome.report.notes.push_back(unread_note(requests_read));
    return outcome;
  }

  Outcome make_report(const LoadedTrace& trace, const Measured& always,
                      const std::vector<Measured>& windows,
                      const std::vector<Measured>& fprs) const {
    const TuneChoice choice = choose_one(windows, fprs, costs_);
    const Measured& chosen = choice.compared();
    const Balance balance = balance_of(always, chosen);
    const bool pays = choice.pays();
    Outcome outcome = start_outcome();
    Report& report = outcome.report;
    Table recommended{.key = "rows", .title = "Recommended", .columns = columns(), .rows = {}};
    recommended.rows.push_back(make_row(always));
    recommended.rows.push_back(make_row(chosen));
    recommended.rows.back().push_back({"pays", pays});
    recommended.rows.back().push_back({"hits_lost", balance.lost.value});
    recommended.rows.back().push_back({"hits_lost_low", balance.lost.low});
    recommended.rows.back().push_back({"hits_lost_high", balance.lost.high});
    recommended.rows.back().push_back({"writes_saved", balance.saved.value});
    recommended.rows.back().push_back({"writes_saved_low", balance.saved.low});
    recommended.rows.back().push_back({"writes_saved_high", balance.saved.high});
    report.tables.push_back(std::move(recommended));
    report.tables.push_back(front_table(choice.all, costs_, choice.chosen, choice.runner_up));
    report.tables.push_back(table_of("windows", "By window, at an FPR of 0.01", windows));
    report.tables.push_back(table_of("fprs", "By FPR, at the chosen window", fprs));
    report.notes = {"Compared with storing everything, second-hit loses " +
                    interval_text(balance.lost) + " of the requests as hits and saves " +
                    interval_text(balance.saved) +
                    " of the bytes written. The intervals come from " +
                    std::to_string(std::min(always.parts.size(), chosen.parts.size())) +
                    " parts of the trace, one after the other."};
    if (does_pay(balance.lost.high, balance.saved.low) !=
        does_pay(balance.lost.low, balance.saved.high)) {
      report.notes.push_back(
          "The trace does not show whether second-hit pays: the intervals include both. Use a "
          "longer trace.");
    }
    report.notes.push_back(sensitivity(windows, chosen));
    if (!pays) {
      report.notes.push_back(
          "Second-hit does not pay here: it keeps out less than its second misses cost.");
    }
    for (std::string& reason :
         reasons(choice.all[choice.chosen], choice.all[choice.runner_up], costs_)) {
      report.notes.push_back(std::move(reason));
    }
    report.charts = {
        front_chart(choice.all, choice.chosen),
        chart_of("Hits by window", "insertions a generation", "hit ratio", windows,
                 [](const Measured& m) {
                   return Point{.x = static_cast<double>(m.window), .y = m.hits};
                 }),
        chart_of("Bytes written by window", "insertions a generation", "bytes", windows,
                 [](const Measured& m) {
                   return Point{.x = static_cast<double>(m.window),
                                .y = static_cast<double>(m.bytes_written)};
                 }),
        chart_of("Bytes written by FPR", "worst FPR of a cycle", "bytes", fprs,
                 [](const Measured& m) {
                   return Point{.x = m.fpr, .y = static_cast<double>(m.bytes_written)};
                 })};
    report.paste = section(chosen, pays, trace.requests.size(), balance);
    return outcome;
  }

  // The filter's runs; the first one is what they are compared with.
  static Chart chart_of(std::string title, std::string x, std::string y,
                        const std::vector<Measured>& all, Point (*point)(const Measured&)) {
    Series filter{.name = "second-hit", .points = {}};
    Series reference{.name = std::string(to_string(all.front().policy)), .points = {}};
    for (std::size_t i = 1; i < all.size(); ++i) {
      filter.points.push_back(point(all[i]));
      reference.points.push_back({.x = filter.points.back().x, .y = point(all.front()).y});
    }
    return {.title = std::move(title),
            .x_label = std::move(x),
            .y_label = std::move(y),
            .log_x = true,
            .series = {std::move(filter), std::move(reference)}};
  }

  // Text about the effect of half and twice the window.
  static std::string sensitivity(const std::vector<Measured>& windows, const Measured& chosen) {
    const auto at = std::ranges::find(windows, chosen.window, &Measured::window);
    std::string text = "A window of " + std::to_string(chosen.window) + " insertions";
    if (at != windows.begin() + 1 && at != windows.end()) {
      text += "; half of it: " + percent_text((at - 1)->hits - at->hits) + " hits";
    }
    if (at != windows.end() && at + 1 != windows.end()) {
      text += "; twice: " + percent_text((at + 1)->hits - at->hits) + " hits";
    }
    return text + ".";
  }

  std::string section(const Measured& chosen, bool pays, std::size_t requests,
                      const Balance& balance) const {
    std::string text = "[admission]                    # from " + std::to_string(requests) +
                       " requests, a cache of " + size_ + ", " + eviction_ + "\n";
    if (!pays) {
      return text + "policy = \"always\"              # second-hit would lose " +
             percent_text(balance.lost.value) + " of the requests as hits\n";
    }
    text += "policy = \"second-hit\"          # hits " + percent_text(-balance.lost.value) +
            ", writes saved " + percent_text(balance.saved.value) + "\n";
    text += "capacity = " + std::to_string(chosen.window) + "\n";
    text += "fpr = " + short_number(chosen.fpr) + "\n";
    text += "layout = \"" + layout_ + "\"\n";
    return text;
  }

  static std::vector<Column> columns() {
    return {{"admission", "admission"},
            {"capacity", "capacity", Style::kCount},
            {"fpr", "FPR", Style::kRate},
            {"filter_bytes", "filter", Style::kBytes},
            {"object_hit_ratio", "hits", Style::kPercent},
            {"byte_hit_ratio", "of bytes", Style::kPercent},
            {"bytes_written", "written", Style::kBytes},
            {"one_hit_let_in", "one-hit objects in", Style::kCount}};
  }
  static Row make_row(const Measured& one) {
    const bool windowed = one.policy != AdmissionPolicy::kAlways;
    return {{"admission", std::string(to_string(one.policy))},
            {"capacity", windowed ? Value{one.window} : Value{}},
            {"fpr", one.fpr > 0 ? Value{one.fpr} : Value{}},
            {"filter_bytes", windowed ? Value{one.filter_bytes} : Value{}},
            {"requests", one.requests},
            {"object_hit_ratio", one.hits},
            {"byte_hit_ratio", one.byte_hits},
            {"bytes_written", one.bytes_written},
            {"one_hit_let_in", one.complete ? Value{one.one_hit_let_in} : Value{}}};
  }
  static Table table_of(std::string key, std::string title, const std::vector<Measured>& all) {
    Table table{.key = std::move(key), .title = std::move(title), .columns = columns(), .rows = {}};
    for (const Measured& one : all) {
      table.rows.push_back(make_row(one));
    }
    return table;
  }

  TraceArguments trace_;
  std::string size_ = "10%";
  std::string eviction_ = "sieve";
  std::string layout_ = "split";
  std::string object_size_text_ = "largest";
  ObjectSize object_size_ = ObjectSize::kLargest;
  std::string warmup_text_ = "0";
  Warmup warmup_;
  std::uint64_t seed_ = 1;
  std::uint64_t threads_ = 0;
  Costs costs_;
  DiskArguments disk_{config::Cache{}.disk_reinsert / 100.0};
  CacheSize cache_size_;
  cache::NamedEviction policy_;
  filter::Layout filter_layout_ = filter::Layout::kSplit;
};

}  // namespace

std::unique_ptr<Command> make_tune_command() { return std::make_unique<TuneCommand>(); }

}  // namespace encore::sim
