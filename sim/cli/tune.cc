// encore-sim tune: what to configure for a trace and a cache size, with the evidence.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>

#include "base/units.h"
#include "config/derive.h"
#include "sim/cli/commands.h"
#include "sim/cli/kernel_options.h"
#include "sim/cli/replay_rows.h"
#include "sim/cli/simulation.h"
#include "sim/cli/trace_options.h"
#include "sim/cli/warmup.h"
#include "sim/replay/ratio.h"
#include "sim/trace/open_trace.h"

namespace encore::sim {
namespace {

using cache::AdmissionPolicy;

// The smallest window within this share of the best hit ratio is chosen: beyond it more memory
// buys next to nothing.
constexpr double kKneeShare = 0.995;
// The cheapest FPR whose writes are within this share of those of the exact rule.
constexpr double kWritesShare = 1.02;
// Second-hit pays if it loses no more than this of the hit ratio ...
constexpr double kHitsLostMax = 0.005;
// ... or if it saves this share of the writes and loses no more than that.
constexpr double kWritesSavedMin = 0.3;
constexpr double kHitsLostForWritesMax = 0.02;

struct Measured {
  AdmissionPolicy policy = AdmissionPolicy::kAlways;
  std::uint64_t window = 0;
  double fpr = 0;
  std::uint64_t requests = 0;  // on which the rest stands: fewer than all where it was interrupted
  bool complete = true;
  double hits = 0;
  double byte_hits = 0;
  std::uint64_t bytes_written = 0;
  std::uint64_t filter_bytes = 0;
  std::uint64_t one_hit_let_in = 0;
};

std::string percent(double share) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.2f %%", 100 * share);
  return text.data();
}
std::string plain(double number) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%g", number);
  return text.data();
}

class TuneCommand final : public Command {
 public:
  std::string name() const override { return "tune"; }
  std::string summary() const override {
    return "Recommends an [admission] section for a trace and a cache size, with the evidence";
  }
  std::string example() const override {
    return "encore-sim tune trace.csv.zst --cache-size 1GiB --eviction sieve";
  }
  void declare(Arguments& a) override {
    trace_.declare(a);
    a.text("--cache-size", size_, "64MiB, or 10% of the trace's footprint");
    a.text("--object-size", object_size_text_, kObjectSizeHelp);
    a.text("--eviction", eviction_, "the cache's eviction policy");
    a.text("--layout", layout_, "classic, partitioned, blocked, split");
    a.text("--warmup", warmup_text_, "share of the requests that is not counted, as 20%");
    a.number("--seed", seed_, "seed of the keys' hashes");
    a.number("--threads", threads_, "runs at once (0: one a core)", {.max = kThreadsMax});
  }

  Result<Outcome> run(const Context& context) override {
    auto options = trace_.options();
    if (!options) {
      return std::unexpected(options.error());
    }
    if (auto read = read_options(); !read) {
      return std::unexpected(read.error());
    }
    options->identity_seed = {seed_, seed_};
    options->monitor = &context.monitor;
    auto reader = open_traces(trace_.files(), *options);
    if (!reader) {
      return std::unexpected(reader.error());
    }
    const auto trace =
        hold_trace(**reader, {.sample = {}, .object_size = object_size_}, context.monitor);
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
    const auto eviction = cache::parse_eviction(eviction_);
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
    if (*eviction == cache::EvictionPolicy::kBelady) {
      return fail(
          "--eviction belady knows the future, accepted: what a cache can be configured with");
    }
    cache_size_ = sizes->front();
    policy_ = *eviction;
    filter_layout_ = *layout;
    warmup_ = *warmup;
    object_size_ = *object_size;
    return {};
  }

  Result<std::vector<Measured>> measure(const HeldTrace& trace, std::vector<Measured> wanted,
                                        Monitor& monitor, const char* phase) const {
    std::vector<PlannedRun> plan;
    for (const Measured& one : wanted) {
      auto planned = plan_for(one);
      if (!planned) {
        return std::unexpected(planned.error());
      }
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
      const ReplayCounts& c = (*runs)[i].counts;
      // An interrupt leaves some that had not begun.
      if (c.requests == 0) {
        continue;
      }
      wanted[i].requests = c.requests;
      wanted[i].complete = (*runs)[i].complete;
      wanted[i].hits = ratio_of(c.hits, c.requests);
      wanted[i].byte_hits = ratio_of(c.bytes_hit, c.bytes_requested);
      wanted[i].bytes_written = c.bytes_written;
      wanted[i].filter_bytes = (*runs)[i].run->admission().memory_bytes;
      wanted[i].one_hit_let_in = (*runs)[i].one_hit_let_in;
      measured.push_back(wanted[i]);
    }
    return measured;
  }

  Result<PlannedRun> plan_for(const Measured& one) const {
    PlannedRun planned{.options = {}, .footprint_share = cache_size_.footprint_share};
    cache::KernelOptions& kernel = planned.options.kernel;
    kernel.capacity_bytes = std::max<std::uint64_t>(cache_size_.bytes, 1);
    kernel.max_object_share = 1;
    kernel.shards = 1;
    kernel.entry_overhead_bytes = 0;
    kernel.eviction = policy_;
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
    return planned;
  }

  Result<Outcome> study(const TraceReader& reader, const HeldTrace& trace, Monitor& monitor) {
    if (auto fine = TraceArguments::check_counted(reader); !fine) {
      return std::unexpected(fine.error());
    }
    const auto warmup = warmup_requests(warmup_, trace.requests.size());
    if (!warmup) {
      return std::unexpected(warmup.error());
    }
    warmup_ = {.requests = *warmup};
    return compare(trace, monitor);
  }

  Result<Outcome> compare(const HeldTrace& trace, Monitor& monitor) const {
    // First by window, with the exact rule beside it.
    std::vector<Measured> wanted = {{.policy = AdmissionPolicy::kAlways}};
    const auto objects = static_cast<double>(trace.objects.objects());
    for (int step = -6; step <= 1; ++step) {
      const auto window =
          static_cast<std::uint64_t>(std::max(16.0, std::ceil(objects * std::exp2(step))));
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
    const Measured knee = choose_window(*windows);
    // Then by FPR at that window.
    wanted = {{.policy = AdmissionPolicy::kExactSecondHit, .window = knee.window}};
    for (const double fpr : {0.2, 0.1, 0.05, 0.02, 0.01, 0.005, 0.001}) {
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

  static Measured choose_window(const std::vector<Measured>& windows) {
    double best = 0;
    for (std::size_t i = 1; i < windows.size(); ++i) {
      best = std::max(best, windows[i].hits);
    }
    return *std::find_if(windows.begin() + 1, windows.end(),
                         [&](const Measured& one) { return one.hits >= kKneeShare * best; });
  }

  static Measured choose_fpr(const std::vector<Measured>& fprs) {
    const Measured& exact = fprs.front();
    const auto chosen = std::find_if(fprs.begin() + 1, fprs.end(), [&](const Measured& one) {
      return static_cast<double>(one.bytes_written) <=
             kWritesShare * static_cast<double>(exact.bytes_written);
    });
    return chosen == fprs.end() ? fprs.back() : *chosen;
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
    return outcome;
  }

  // Of an interrupted run: what was measured, and no recommendation.
  Outcome without_verdict(const std::vector<Measured>& windows,
                          const std::vector<Measured>& fprs) const {
    Outcome outcome = start_outcome();
    Report& report = outcome.report;
    report.tables = {table_of("windows", "By window, at an FPR of 0.01", windows),
                     table_of("fprs", "By FPR, at the chosen window", fprs)};
    for (Table& table : report.tables) {
      table.columns.insert(table.columns.begin() + 4, {"requests", "requests", Style::kCount});
    }
    report.notes = {"Nothing is recommended: not everything that is to be compared was simulated."};
    return outcome;
  }
  Outcome unread(std::uint64_t requests_read) const {
    Outcome outcome = without_verdict({}, {});
    outcome.report.notes.push_back(unread_note(requests_read));
    return outcome;
  }

  Outcome make_report(const HeldTrace& trace, const Measured& always,
                      const std::vector<Measured>& windows,
                      const std::vector<Measured>& fprs) const {
    const Measured chosen = choose_fpr(fprs);
    const double lost = always.hits - chosen.hits;
    const double saved = always.bytes_written == 0
                             ? 0
                             : 1 - static_cast<double>(chosen.bytes_written) /
                                       static_cast<double>(always.bytes_written);
    const bool pays =
        lost <= kHitsLostMax || (saved >= kWritesSavedMin && lost <= kHitsLostForWritesMax);
    Outcome outcome = start_outcome();
    Report& report = outcome.report;
    Table recommended{.key = "rows", .title = "Recommended", .columns = columns(), .rows = {}};
    recommended.rows.push_back(make_row(always));
    recommended.rows.push_back(make_row(chosen));
    recommended.rows.back().push_back({"pays", pays});
    recommended.rows.back().push_back({"hits_lost", lost});
    recommended.rows.back().push_back({"writes_saved", saved});
    report.tables.push_back(std::move(recommended));
    report.tables.push_back(table_of("windows", "By window, at an FPR of 0.01", windows));
    report.tables.push_back(table_of("fprs", "By FPR, at the chosen window", fprs));
    report.notes = {"Against storing everything, second-hit " +
                    std::string(lost > 0 ? "costs " : "gains ") + percent(std::abs(lost)) +
                    " of the requests as hits and saves " + percent(saved) +
                    " of the bytes written."};
    report.notes.push_back(sensitivity(windows, chosen));
    if (!pays) {
      report.notes.push_back(
          "Second-hit does not pay here: what it keeps out is worth less than the second "
          "requests that it sends to the origin.");
    }
    report.charts = {
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
    report.paste = section(chosen, pays, trace.requests.size(), {lost, saved});
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

  // What half and twice the window would change.
  static std::string sensitivity(const std::vector<Measured>& windows, const Measured& chosen) {
    const auto at = std::ranges::find(windows, chosen.window, &Measured::window);
    std::string text = "A window of " + std::to_string(chosen.window) + " insertions";
    if (at != windows.begin() + 1 && at != windows.end()) {
      text += "; half of it: " + percent((at - 1)->hits - at->hits) + " hits";
    }
    if (at != windows.end() && at + 1 != windows.end()) {
      text += "; twice: " + percent((at + 1)->hits - at->hits) + " hits";
    }
    return text + ".";
  }

  struct Balance {
    double lost;
    double saved;
  };
  std::string section(const Measured& chosen, bool pays, std::size_t requests,
                      const Balance& balance) const {
    std::string text = "[admission]                    # from " + std::to_string(requests) +
                       " requests, a cache of " + size_ + ", " + eviction_ + "\n";
    if (!pays) {
      return text + "policy = \"always\"              # second-hit would lose " +
             percent(balance.lost) + " of the requests as hits\n";
    }
    text += "policy = \"second-hit\"          # hits " + percent(-balance.lost) +
            ", writes saved " + percent(balance.saved) + "\n";
    text += "capacity = " + std::to_string(chosen.window) + "\n";
    text += "fpr = " + plain(chosen.fpr) + "\n";
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
  CacheSize cache_size_;
  cache::EvictionPolicy policy_ = cache::EvictionPolicy::kSieve;
  filter::Layout filter_layout_ = filter::Layout::kSplit;
};

}  // namespace

std::unique_ptr<Command> make_tune_command() { return std::make_unique<TuneCommand>(); }

}  // namespace encore::sim
