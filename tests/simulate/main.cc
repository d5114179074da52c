// The whole proxy in a simulated world, one seed after the other: ./dev simulate.
// Ends with 0 and a summary, or with 1 and the first finding, shortened.
#include <malloc.h>
#include <sys/resource.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <thread>

#include "tests/simulate/attempt.h"
#include "tests/simulate/state_coverage.h"

namespace encore::simulate {
namespace {

constexpr std::string_view kUsage =
    "usage: encore_simulate [--seed N] [--requests N] [--seconds S] [--mode forward|reverse|both]\n"
    "       [--round N] [--clients N] [--urls N] [--without FEATURE,...] [--shorten ATTEMPTS]\n"
    "       [--jobs N] [--quiet 1] [--roads 1] [--json FILE]\n"
    "A run is cut in rounds; each has a world, a weather and proxies of its own, by the seed and "
    "the\n"
    "round's number. Rounds run side by side, as many as there are cores or --jobs says; what is\n"
    "found and printed is the same. --roads shows where requests were as things happened to them,\n"
    "--json writes all counters and that table to a file. What can be left out of the adversity, "
    "with --without:\n";

struct Options {
  Plan plan;
  std::string mode = "both";
  std::uint64_t requests = 1'000'000;
  double seconds = 0;
  std::uint32_t attempts = 80;  // to shorten a failing run
  bool quiet = false;           // the last line alone
  bool roads = false;           // and the table of roads
  std::string json;             // a file for counters and table; empty: none
  std::size_t jobs = std::max(1U, std::thread::hardware_concurrency());
};

struct Totals {
  std::map<std::string, std::uint64_t, std::less<>> counters;
  std::uint64_t requests = 0;
  std::uint64_t decisions = 0;
  std::uint64_t rounds = 0;
  std::uint64_t steps = 0;
  std::uint64_t digest = 0;
  double simulated_seconds = 0;

  void add(const RoundResult& result) {
    ++rounds;
    requests += result.requests;
    decisions += result.decisions;
    steps += result.steps;
    simulated_seconds += result.simulated_seconds;
    digest = proxyfuzz::mix(digest ^ result.digest);
    for (const auto& [name, count] : result.counters) counters[name] += count;
  }
};

[[noreturn]] void usage() {
  std::fwrite(kUsage.data(), 1, kUsage.size(), stderr);
#define ENCORE_SIMULATE_LINE(name, text, meaning) \
  std::fprintf(stderr, "  %-14s %s\n", text, meaning);
  ENCORE_SIMULATE_FEATURES(ENCORE_SIMULATE_LINE)
#undef ENCORE_SIMULATE_LINE
  std::exit(2);
}

std::uint64_t number_of(const std::string& text) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) usage();
  return value;
}

void remove_features(Plan& plan, std::string_view names) {
  while (!names.empty()) {
    const std::string_view name = names.substr(0, names.find(','));
    names.remove_prefix(std::min(names.size(), name.size() + 1));
    const auto feature = find_feature(name);
    if (!feature) usage();
    plan.features.remove(*feature);
  }
}

Options read_options(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; i += 2) {
    const std::string_view name = argv[i];
    if (i + 1 == argc) usage();
    const std::string value = argv[i + 1];
    if (name == "--mode" && (value == "forward" || value == "reverse" || value == "both")) {
      options.mode = value;
    } else if (name == "--without") {
      remove_features(options.plan, value);
    } else if (name == "--json") {
      options.json = value;
    } else if (const std::uint64_t number = number_of(value); name == "--seed") {
      options.plan.seed = number;
    } else if (name == "--requests") {
      options.requests = number;
    } else if (name == "--round") {
      options.plan.requests = std::max<std::uint64_t>(number, 1);
    } else if (name == "--seconds") {
      options.seconds = static_cast<double>(number);
    } else if (name == "--clients") {
      options.plan.clients = static_cast<std::uint32_t>(std::max<std::uint64_t>(number, 1));
    } else if (name == "--urls") {
      options.plan.urls = static_cast<std::uint32_t>(std::max<std::uint64_t>(number, 1));
    } else if (name == "--shorten") {
      options.attempts = static_cast<std::uint32_t>(number);
    } else if (name == "--jobs") {
      options.jobs = std::max<std::size_t>(number, 1);
    } else if (name == "--quiet") {
      options.quiet = number != 0;
    } else if (name == "--roads") {
      options.roads = number != 0;
    } else {
      usage();
    }
  }
  return options;
}

double seconds_since(std::chrono::steady_clock::time_point since) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - since).count();
}

// CPU time of this process and of those that it has waited for.
double cpu_seconds() {
  double seconds = 0;
  for (const __rusage_who_t who : {RUSAGE_SELF, RUSAGE_CHILDREN}) {
    rusage used{};
    ::getrusage(who, &used);
    for (const timeval& part : {used.ru_utime, used.ru_stime}) {
      seconds += static_cast<double>(part.tv_sec) + static_cast<double>(part.tv_usec) / 1e6;
    }
  }
  return seconds;
}

void tell_finding(const Options& options, const Plan& plan, const RoundResult& result,
                  const Totals& totals) {
  std::printf("=== FINDING %s, in round %llu, after %llu requests\n--- again: ./dev simulate %s\n",
              result.finding.c_str(), static_cast<unsigned long long>(totals.rounds),
              static_cast<unsigned long long>(totals.requests), arguments_of(plan).c_str());
  Shortened short_run{plan, result};
  if (options.attempts != 0) short_run = shorten(plan, result, options.attempts);
  std::printf("%s\n--- its configuration\n%s--- shortened: ./dev simulate %s\n",
              short_run.result.text.c_str(), short_run.result.configuration.c_str(),
              arguments_of(short_run.plan).c_str());
}

std::uint64_t reached(const Totals& totals, Fate fate, Place place) {
  const auto found = totals.counters.find(counter_of(fate, place));
  return found == totals.counters.end() ? 0 : found->second;
}

template <typename F>
void each_pair(F&& look) {
  for (std::size_t fate = 0; fate < kFateNames.size(); ++fate) {
    for (std::size_t place = 0; place < kPlaceNames.size(); ++place) {
      look(static_cast<Fate>(fate), static_cast<Place>(place));
    }
  }
}

std::string_view name_of(Fate fate) { return kFateNames.at(static_cast<std::size_t>(fate)); }
std::string_view name_of(Place place) { return kPlaceNames.at(static_cast<std::size_t>(place)); }

// How often each pair was reached; '-': it cannot be, and behind the table those that can be and
// were not.
void show_roads(const Totals& totals) {
  std::printf("%-12s", "");
  for (const std::string_view place : kPlaceNames) {
    std::printf(" %10.*s", static_cast<int>(place.size()), place.data());
  }
  std::string never;
  std::size_t met = 0;
  std::size_t possible = 0;
  each_pair([&](Fate fate, Place place) {
    if (place == Place::kDisk) {
      std::printf("\n%-12.*s", static_cast<int>(name_of(fate).size()), name_of(fate).data());
    }
    const std::uint64_t count = reached(totals, fate, place);
    if (!why_never(fate, place).empty()) {
      std::printf(" %10s", "-");
      return;
    }
    std::printf(" %10llu", static_cast<unsigned long long>(count));
    ++possible;
    met += count != 0 ? 1 : 0;
    if (count == 0) {
      never += "  never reached: " + std::string(name_of(fate)) + ", " +
               std::string(name_of(place)) + "\n";
    }
  });
  std::printf("\n%s%zu of %zu pairs reached\n", never.c_str(), met, possible);
}

std::string in_quotes(std::string_view text) { return "\"" + std::string(text) + "\""; }

void write_json(const Options& options, const Totals& totals) {
  std::string out = "{\"requests\": " + std::to_string(totals.requests) + ",\n\"roads\": [";
  const char* comma = "\n";
  each_pair([&](Fate fate, Place place) {
    const std::string_view why = why_never(fate, place);
    out += comma + std::string("{\"fate\": ") + in_quotes(name_of(fate)) +
           ", \"place\": " + in_quotes(name_of(place)) +
           (why.empty() ? ", \"count\": " + std::to_string(reached(totals, fate, place))
                        : ", \"impossible\": " + in_quotes(why)) +
           "}";
    comma = ",\n";
  });
  out += "],\n\"counters\": {";
  comma = "\n";
  for (const auto& [name, count] : totals.counters) {
    out += comma + in_quotes(name) + ": " + std::to_string(count);
    comma = ",\n";
  }
  out += "}}\n";
  std::FILE* const file = std::fopen(options.json.c_str(), "w");
  if (file == nullptr) return std::perror(options.json.c_str());
  (void)std::fwrite(out.data(), 1, out.size(), file);
  std::fclose(file);
}

void summarise(const Options& options, const Totals& totals, double seconds) {
  const double cpu = cpu_seconds();
  if (!options.quiet) {
    for (const auto& [name, count] : totals.counters) {
      if (name.starts_with("road: ")) continue;
      std::printf("  %-50s %10llu\n", name.c_str(), static_cast<unsigned long long>(count));
    }
  }
  std::printf(
      "simulated: %llu rounds, %llu requests in %.0f s, %.1f s of CPU (%.0f/s and core), %.0f "
      "simulated seconds, %llu steps, %llu decisions replayed, digest %016llx\n",
      static_cast<unsigned long long>(totals.rounds),
      static_cast<unsigned long long>(totals.requests), seconds, cpu,
      static_cast<double>(totals.requests) / cpu, totals.simulated_seconds,
      static_cast<unsigned long long>(totals.steps),
      static_cast<unsigned long long>(totals.decisions),
      static_cast<unsigned long long>(totals.digest));
}

int run(int argc, char** argv) {
  const Options options = read_options(argc, argv);
  // Memory of one round is that of the next: none of it goes back to the system meanwhile.
  mallopt(M_MMAP_THRESHOLD, 1 << 30);
  mallopt(M_TRIM_THRESHOLD, 1 << 30);
  mallopt(M_TOP_PAD, 1 << 26);
  const auto started = std::chrono::steady_clock::now();
  Totals totals;
  // They end in any order, and are read in that of their seeds: counts and findings do not depend
  // on how many run at a time.
  std::deque<std::unique_ptr<RunningRound>> running;
  Plan next = options.plan;
  next.requests = std::min(next.requests, options.requests);
  bool failed = false;
  while (!failed && totals.requests < options.requests) {
    while (running.size() < options.jobs &&
           totals.requests + running.size() * next.requests < options.requests &&
           (options.seconds == 0 || seconds_since(started) < options.seconds)) {
      const bool reverse =
          options.mode == "reverse" || (options.mode == "both" && next.seed % 2 == 1);
      next.direction = reverse ? Direction::kReverse : Direction::kForward;
      running.push_back(std::make_unique<RunningRound>(next));
      ++next.seed;
    }
    if (running.empty()) break;
    const std::unique_ptr<RunningRound> first = std::move(running.front());
    running.pop_front();
    const RoundResult result = first->wait();
    totals.add(result);
    failed = !result.finding.empty();
    if (failed) {
      running.clear();
      tell_finding(options, first->plan(), result, totals);
    }
  }
  if (options.roads) show_roads(totals);
  if (!options.json.empty()) write_json(options, totals);
  summarise(options, totals, seconds_since(started));
  std::printf("%llu passed, %d failed\n",
              static_cast<unsigned long long>(totals.rounds - (failed ? 1 : 0)), failed ? 1 : 0);
  return failed ? 1 : 0;
}

}  // namespace
}  // namespace encore::simulate

int main(int argc, char** argv) { return encore::simulate::run(argc, argv); }
