// encore-sim drive: a trace through a running proxy, over real HTTP.
#include <algorithm>
#include <array>
#include <cmath>
#include <fstream>
#include <map>
#include <optional>

#include "base/units.h"
#include "config/load.h"
#include "config/network.h"
#include "sim/cli/commands.h"
#include "sim/cli/drive_plan.h"
#include "sim/cli/memory_need.h"
#include "sim/cli/replay_rows.h"
#include "sim/cli/trace_options.h"
#include "sim/drive/client.h"
#include "sim/drive/synthetic_origin.h"
#include "sim/trace/open_trace.h"

namespace encore::sim {
namespace {

constexpr std::uint64_t kRequestsMax = 100'000'000;
constexpr std::size_t kDifferencesShown = 10;

double share(std::uint64_t part, std::uint64_t whole) {
  return whole == 0 ? 0 : static_cast<double>(part) / static_cast<double>(whole);
}

bool is_loopback(const std::string& host) {
  return host == "localhost" || host == "::1" || host.starts_with("127.");
}

class DriveCommand final : public Command {
 public:
  std::string name() const override { return "drive"; }
  std::string summary() const override {
    return "Send a trace through a running proxy over HTTP and check every response byte by byte";
  }
  std::string example() const override {
    return "encore-sim drive trace.csv.zst --proxy http://127.0.0.1:3128 --connections 64 "
           "--limit 10000";
  }
  void declare(Arguments& a) override {
    trace_.declare(a);
    a.text("--proxy", proxy_, "URL of the proxy, as http://127.0.0.1:3128");
    a.text("--config", config_,
           "simulate the same requests with this configuration; with --proxy and one connection, "
           "every outcome must be equal");
    a.flag("--reverse", reverse_, "drive a reverse proxy whose [[origin]] is this program");
    a.text("--origin-address", origin_address_,
           "address of this program's origin (port 0: any free port)");
    a.number("--connections", connections_, "number of connections to the proxy",
             {.min = 1, .max = kConnectionsMax});
    a.real("--rate", rate_, "requests per second, open loop (0: each follows a response)",
           {.max = kRateMax});
    a.number("--limit", limit_, "send the first N requests of the trace",
             {.min = 1, .max = kRequestsMax});
    a.text("--ttl", ttl_, "max-age of objects without a TTL in the trace");
    a.real("--size-scale", size_scale_, "factor for all sizes", {.max = 1e9});
    a.text("--max-size", max_size_, "largest object");
    a.output("--outcomes", outcomes_,
             "write the outcome of each request to this file, one per line");
  }

  Result<Outcome> run(const Context& context) override {
    // A comparison of outcomes requires a single connection.
    if (!proxy_.empty() && !config_.empty() && !context.arguments.given("--connections")) {
      connections_ = 1;
    }
    const auto options = check(context.arguments);
    auto trace_options = trace_.options();
    if (!options || !trace_options) {
      return std::unexpected(options ? trace_options.error() : options.error());
    }
    trace_options->monitor = &context.monitor;
    std::optional<config::Config> config;
    if (!config_.empty()) {
      auto loaded = config::load_config({.path = config_, .sets = {}});
      if (!loaded) {
        return std::unexpected(loaded.error());
      }
      config = std::move(*loaded);
    }
    auto reader = open_traces(trace_.files(), *trace_options);
    if (!reader) {
      return std::unexpected(reader.error());
    }
    auto plan = read_drive_plan(**reader, options->plan, context.monitor);
    if (!plan) {
      return std::unexpected(plan.error());
    }
    if (context.monitor.stopped()) {
      Outcome outcome = start_outcome();
      outcome.report.notes = {unread_note(plan->requests.size())};
      return outcome;
    }
    if (auto fits = check_bodies(*plan, proxy_.empty() ? 0 : options->client.connections); !fits) {
      return std::unexpected(fits.error());
    }
    auto origin = SyntheticOrigin::start(origin_address_);
    if (!origin) {
      return std::unexpected(origin.error());
    }
    Sides sides;
    if (config) {
      auto simulation = simulate_drive(*plan, *config, (*origin)->authority(), context.monitor);
      if (!simulation) {
        return std::unexpected(simulation.error());
      }
      sides.simulated = std::move(*simulation);
    }
    if (!proxy_.empty()) {
      context.monitor.begin("driving", plan->requests.size());
      ClientOptions client = options->client;
      client.authority = (*origin)->authority();
      const MonotonicTime begin = monotonic_now();
      auto driven = drive_plan(*plan, client, context.monitor);
      if (!driven) {
        return std::unexpected(driven.error());
      }
      sides.driven = std::move(*driven);
      sides.seconds = std::chrono::duration<double>(monotonic_now() - begin).count();
    }
    if (auto written = write_outcomes(*plan, sides); !written) {
      return std::unexpected(written.error());
    }
    Outcome outcome = report(*plan, sides, **origin);
    outcome.report.tables.push_back(TraceArguments::sources(**reader));
    for (std::string& note : TraceArguments::notes(**reader, *trace_options)) {
      outcome.report.notes.push_back(std::move(note));
    }
    return outcome;
  }

 private:
  struct Options {
    DrivePlanOptions plan;
    ClientOptions client;
  };
  // The available results of the two: the real one and the simulated one.
  struct Sides {
    std::optional<Driven> driven;
    std::optional<DriveSimulation> simulated;
    double seconds = 0;
    // Both words for a request; empty where it was not asked.
    std::string_view driven_word(std::size_t i) const {
      return driven->outcomes[i] == OutcomeNames::kNotAsked
                 ? std::string_view()
                 : std::string_view(driven->names.name(driven->outcomes[i]));
    }
    std::string_view simulated_word(std::size_t i) const {
      return i < simulated->outcomes.size() ? to_string(simulated->outcomes[i])
                                            : std::string_view();
    }
  };

  Result<Options> check(const Arguments& arguments) const {
    if (proxy_.empty() && config_.empty()) {
      return fail("nothing to drive: add --proxy URL, --config FILE, or both");
    }
    if (auto fine = check_client(arguments); !fine) {
      return std::unexpected(fine.error());
    }
    const auto ttl = parse_time_span("--ttl", ttl_);
    const auto max_size = parse_size("--max-size", max_size_, {.max = kDrivenSizeMax});
    if (!ttl || !max_size) {
      return std::unexpected(!ttl ? ttl.error() : max_size.error());
    }
    const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(*ttl).count();
    Options options;
    options.plan = {.requests_max = limit_,
                    .size_scale = size_scale_,
                    .size_max = *max_size,
                    .default_ttl_seconds = static_cast<std::uint32_t>(
                        std::clamp<std::int64_t>(seconds, 0, kNoTtl - 1))};
    std::string url = proxy_;
    if (url.ends_with('/')) {
      url.pop_back();
    }
    options.client = {.proxy = url,
                      .authority = {},
                      .reverse = reverse_,
                      .connections = static_cast<std::uint32_t>(connections_),
                      .rate = rate_};
    return options;
  }

  Result<void> check_client(const Arguments& arguments) const {
    if (proxy_.empty()) {
      return {};
    }
    const auto url = config::parse_server_url(proxy_);
    if (!url || url->tls) {
      return fail("--proxy \"" + proxy_ + "\", accepted: http://HOST:PORT");
    }
    if (!is_loopback(url->host) && !arguments.given("--limit")) {
      return fail("--proxy " + proxy_ +
                  " is another machine: set --limit, the number of requests to send to it");
    }
    if (reverse_ && !arguments.given("--origin-address")) {
      return fail("--reverse needs --origin-address, the address of the proxy's [[origin]]");
    }
    if (!config_.empty() && (connections_ != 1 || rate_ > 0 || reverse_)) {
      return fail(
          "--config with --proxy compares each outcome, which needs a known order of decisions: "
          "use --connections 1, no --rate and a forward proxy");
    }
    return {};
  }

  // The origin makes a body whole before it sends it.
  static Result<void> check_bodies(const DrivePlan& plan, std::uint32_t connections) {
    std::uint64_t largest = 0;
    for (const DrivenObject& object : plan.objects) {
      largest = std::max(largest, object.size_bytes);
    }
    return check_memory({.what = std::to_string(connections) + " bodies (--connections) of " +
                                 format_bytes(largest) + " (--max-size, --size-scale)",
                         .bytes = static_cast<double>(largest) * connections});
  }

  Result<void> write_outcomes(const DrivePlan& plan, const Sides& sides) const {
    if (outcomes_.empty()) {
      return {};
    }
    std::ofstream file(outcomes_, std::ios::trunc);
    for (std::size_t i = 0; i < plan.requests.size(); ++i) {
      const std::string_view word = sides.driven ? sides.driven_word(i) : sides.simulated_word(i);
      file << (word.empty() ? "not-asked" : word) << ' ' << path_of(plan.objects[plan.requests[i]])
           << '\n';
    }
    file.flush();
    return file ? Result<void>{} : fail("cannot write " + outcomes_);
  }

  Outcome start_outcome() const {
    Outcome outcome;
    Report& report = outcome.report;
    report.parameters = trace_.parameters();
    for (Field& field : Row{{"proxy", proxy_},
                            {"config", config_},
                            {"reverse", reverse_},
                            {"connections", connections_},
                            {"rate", rate_},
                            {"limit", limit_},
                            {"ttl", ttl_},
                            {"size_scale", size_scale_},
                            {"max_size", max_size_}}) {
      report.parameters.push_back(std::move(field));
    }
    return outcome;
  }

  Outcome report(const DrivePlan& plan, const Sides& sides, const SyntheticOrigin& origin) const {
    Outcome outcome = start_outcome();
    Report& report = outcome.report;
    Table rows{.key = "rows", .title = "", .columns = columns(), .rows = {}};
    if (sides.driven) {
      rows.rows.push_back(driven_row(*sides.driven, origin));
      outcome.verdict = sides.driven->errors + sides.driven->mismatches == 0
                            ? Verdict::kGood
                            : Verdict::kCheckFailed;
      report.notes = sides.driven->faults;
      fill_machine(report, sides);
    }
    if (sides.simulated) {
      rows.rows.push_back(simulated_row(*sides.simulated));
    }
    report.tables.push_back(std::move(rows));
    report.tables.push_back(outcome_table(plan, sides));
    if (sides.driven && sides.simulated && !compare(plan, sides, report.notes)) {
      outcome.verdict = Verdict::kCheckFailed;
    }
    return outcome;
  }

  // True if the two agree on every request that was sent; adds a note that says so, or where they
  // do not.
  static bool compare(const DrivePlan& plan, const Sides& sides, std::vector<std::string>& notes) {
    std::uint64_t compared = 0;
    std::uint64_t differences = 0;
    for (std::size_t i = 0; i < plan.requests.size(); ++i) {
      const std::string_view real = sides.driven_word(i);
      const std::string_view simulated = sides.simulated_word(i);
      if (real.empty() || simulated.empty()) {
        continue;
      }
      ++compared;
      if (real != simulated && ++differences <= kDifferencesShown) {
        notes.push_back("Request " + std::to_string(i + 1) + ", " +
                        path_of(plan.objects[plan.requests[i]]) + ": the proxy said " +
                        std::string(real) + ", the simulator " + std::string(simulated) + ".");
      }
    }
    notes.push_back("Proxy and simulator: " + std::to_string(compared) + " outcomes compared, " +
                    std::to_string(differences) + " differences.");
    return differences == 0;
  }

  static std::vector<Column> columns() {
    return {{"run", "run"},
            {"requests", "requests", Style::kCount},
            {"hits", "hits", Style::kCount},
            {"object_hit_ratio", "hit ratio", Style::kPercent},
            {"byte_hit_ratio", "of bytes", Style::kPercent},
            {"bytes", "bytes", Style::kBytes},
            {"origin_requests", "at the origin", Style::kCount},
            {"origin_bytes", "from origin", Style::kBytes},
            {"errors", "errors", Style::kCount},
            {"mismatches", "wrong bodies", Style::kCount},
            {"evictions", "evictions", Style::kCount},
            {"rotations", "rotations", Style::kCount}};
  }

  static Row driven_row(const Driven& driven, const SyntheticOrigin& origin) {
    std::uint64_t hits = 0;
    for (const std::uint8_t outcome : driven.outcomes) {
      hits += driven.names.name(outcome) == "hit" ? 1U : 0U;
    }
    return {{"run", "proxy"},
            {"requests", driven.answered},
            {"hits", hits},
            {"object_hit_ratio", share(hits, driven.answered)},
            {"byte_hit_ratio", share(driven.hit_bytes, driven.body_bytes)},
            {"bytes", driven.body_bytes},
            {"origin_requests", origin.requests()},
            {"origin_validations", origin.validations()},
            {"origin_bytes", origin.body_bytes()},
            {"errors", driven.errors},
            {"mismatches", driven.mismatches}};
  }

  static Row simulated_row(const DriveSimulation& simulated) {
    const ReplayCounts& c = simulated.run->counts();
    const cache::KernelStatistics kernel = simulated.run->kernel();
    return {{"run", "simulator"},
            {"requests", c.requests},
            {"hits", c.hits},
            {"object_hit_ratio", share(c.hits, c.requests)},
            {"byte_hit_ratio", share(c.bytes_hit, c.bytes_requested)},
            {"bytes", c.bytes_requested},
            {"origin_requests", c.requests - c.hits},
            {"origin_validations", c.validations},
            {"origin_bytes", c.bytes_from_origin},
            {"evictions", kernel.counters.evictions},
            {"rotations", simulated.run->admission().rotations},
            {"objects", kernel.objects},
            {"used_bytes", kernel.used_bytes}};
  }

  // By outcome, how many requests had it.
  static Table outcome_table(const DrivePlan& plan, const Sides& sides) {
    std::map<std::string, std::array<std::uint64_t, 2>, std::less<>> counts;
    const auto add = [&](std::string_view word, std::size_t side) {
      auto at = counts.find(word);
      if (at == counts.end() && !word.empty()) {
        at = counts.emplace(word, std::array<std::uint64_t, 2>{}).first;
      }
      if (at != counts.end()) {
        ++at->second[side];
      }
    };
    for (std::size_t i = 0; i < plan.requests.size(); ++i) {
      add(sides.driven ? sides.driven_word(i) : "", 0);
      add(sides.simulated ? sides.simulated_word(i) : "", 1);
    }
    Table table{.key = "outcomes",
                .title = "Outcomes of the requests",
                .columns = {{"outcome", "outcome"}},
                .rows = {}};
    if (sides.driven) {
      table.columns.push_back({"proxy", "proxy", Style::kCount});
    }
    if (sides.simulated) {
      table.columns.push_back({"simulator", "simulator", Style::kCount});
    }
    for (const auto& [word, both] : counts) {
      Row row = {{"outcome", word}};
      if (sides.driven) {
        row.push_back({"proxy", both[0]});
      }
      if (sides.simulated) {
        row.push_back({"simulator", both[1]});
      }
      table.rows.push_back(std::move(row));
    }
    return table;
  }

  static void fill_machine(Report& report, const Sides& sides) {
    std::vector<std::uint32_t> latencies = sides.driven->latency_us;
    std::ranges::sort(latencies);
    const auto percentile = [&](double part) {
      const auto at = static_cast<std::size_t>(part * static_cast<double>(latencies.size()));
      return latencies.empty() ? std::uint64_t{0}
                               : std::uint64_t{latencies[std::min(at, latencies.size() - 1)]};
    };
    report.machine = {
        {"requests_per_second",
         sides.seconds > 0 ? static_cast<double>(sides.driven->answered) / sides.seconds : 0.0},
        {"latency_us_p50", percentile(0.5)},
        {"latency_us_p90", percentile(0.9)},
        {"latency_us_p99", percentile(0.99)},
        {"latency_us_p999", percentile(0.999)},
        {"latency_us_max", percentile(1)}};
  }

  TraceArguments trace_;
  std::string proxy_;
  std::string config_;
  bool reverse_ = false;
  std::string origin_address_ = "127.0.0.1:0";
  std::uint64_t connections_ = 8;
  double rate_ = 0;
  std::uint64_t limit_ = 1'000'000;
  std::string ttl_ = "1h";
  double size_scale_ = 1;
  std::string max_size_ = "64MiB";
  std::string outcomes_;
};

}  // namespace

std::unique_ptr<Command> make_drive_command() { return std::make_unique<DriveCommand>(); }

}  // namespace encore::sim
