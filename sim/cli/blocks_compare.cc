#include "sim/cli/blocks_compare.h"

#include <cmath>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/time.h"
#include "filter/theory.h"
#include "sim/cli/parallel.h"
#include "sim/replay/block_experiment.h"
#include "sim/replay/seen_set.h"

namespace encore::sim {
namespace {

struct HashedEvent {
  filter::Hash128 hash;
  bool is_new = false;
};

struct Candidate {
  std::string name;
  double theory = 0;
  Result<std::unique_ptr<SeenSet>> set;
};

std::vector<Candidate> make_candidates(const filter::FilterShape& shape, std::uint64_t keys,
                                       double capacity) {
  const auto count = static_cast<double>(keys);
  std::vector<Candidate> all;
  all.push_back({"exact (128-bit hashes)", 0, make_hash_table(keys, 16)});
  for (const std::uint32_t bytes : {8U, 6U, 5U, 4U, 3U, 2U, 1U}) {
    all.push_back({std::to_string(8 * bytes) + "-bit hashes",
                   short_hash_fpr_incremental(8 * bytes, count), make_hash_table(keys, bytes)});
  }
  all.push_back(
      {"Bloom filter, " + std::string(to_string(shape.layout)) +
           ", k = " + std::to_string(shape.hashes),
       filter::fpr_incremental_exact(shape, keys).value_or(filter::fpr_incremental(shape, count)),
       make_bloom_set({.layout = shape.layout,
                       .bits = shape.bits,
                       .hashes = shape.hashes,
                       .capacity = static_cast<std::uint64_t>(capacity),
                       .seed = {}})});
  return all;
}

// Requests between two checks of the monitor.
constexpr std::size_t kReport = 1024;

// The workload's events and how many of them are new; fewer of them if the monitor stops it.
std::vector<HashedEvent> make_events(const BlockWorkload& workload, Monitor& monitor,
                                     std::uint64_t& keys) {
  monitor.begin("events", workload.events);
  BlockEvents source(workload);
  std::vector<HashedEvent> events;
  events.reserve(workload.events);
  while (events.size() < workload.events && !monitor.stopped()) {
    const BlockEvents::Event made = source.next();
    const std::string_view bytes(reinterpret_cast<const char*>(made.block.data()),
                                 made.block.size());
    events.push_back(
        {filter::hash_key(filter::HashFamily::kXxh3, {workload.seed, workload.seed}, bytes),
         made.is_new});
    keys += made.is_new ? 1 : 0;
    monitor.done += events.size() % kReport == 0 ? kReport : 0;
  }
  return events;
}

// Nothing if the monitor stops it.
std::optional<std::uint64_t> count_false_positives(SeenSet& set,
                                                   std::span<const HashedEvent> events,
                                                   Monitor& monitor) {
  std::uint64_t false_positives = 0;
  for (std::size_t i = 0; i < events.size(); ++i) {
    const bool seen = set.test_and_set(events[i].hash);
    false_positives += seen && events[i].is_new ? 1U : 0U;
    if ((i + 1) % kReport == 0 && !monitor.advance(kReport)) {
      return std::nullopt;
    }
  }
  return false_positives;
}

}  // namespace

Result<void> compare_structures(const BlockWorkload& workload, const filter::FilterShape& shape,
                                Monitor& monitor, Report& report) {
  if (auto fine = check(workload); !fine) {
    return fine;
  }
  constexpr std::uint64_t kEventsMax = 200'000'000;
  if (workload.events > kEventsMax) {
    return fail(std::to_string(workload.events) +
                " events for a comparison that holds them in memory, accepted: up to 200000000");
  }
  std::uint64_t keys = 0;
  const std::vector<HashedEvent> events = make_events(workload, monitor, keys);
  if (events.size() < workload.events) {
    report.tables.push_back({.key = "rows", .title = "", .columns = {}, .rows = {}});
    return {};
  }
  Table table{.key = "rows",
              .title = std::to_string(events.size()) + " events, " + std::to_string(keys) +
                       " distinct blocks",
              .columns = {{"structure", "structure", Style::kText},
                          {"memory_bytes", "memory", Style::kBytes},
                          {"bits_per_key", "bits a key", Style::kReal},
                          {"false_positives", "false positives", Style::kCount},
                          {"fpr_measured", "measured", Style::kRate},
                          {"fpr_theory", "theory", Style::kRate}},
              .rows = {}};
  std::vector<Row> times;
  auto candidates = make_candidates(shape, keys, static_cast<double>(workload.events));
  monitor.begin("structures", candidates.size() * events.size());
  for (Candidate& candidate : candidates) {
    if (!candidate.set) {
      return std::unexpected(candidate.set.error());
    }
    SeenSet& set = **candidate.set;
    const MonotonicTime started = monotonic_now();
    const std::optional<std::uint64_t> counted = count_false_positives(set, events, monitor);
    if (!counted) {
      break;
    }
    const std::uint64_t false_positives = *counted;
    const double spent = std::chrono::duration<double>(monotonic_now() - started).count();
    table.rows.push_back(
        {{"structure", candidate.name},
         {"memory_bytes", set.memory_bytes()},
         {"bits_per_key",
          8.0 * static_cast<double>(set.memory_bytes()) / static_cast<double>(keys)},
         {"new_blocks", keys},
         {"false_positives", false_positives},
         {"fpr_measured", static_cast<double>(false_positives) / static_cast<double>(keys)},
         {"fpr_theory", candidate.theory}});
    times.push_back({{"structure", candidate.name},
                     {"ns_per_event", 1e9 * spent / static_cast<double>(events.size())}});
  }
  report.tables.push_back(std::move(table));
  report.machine.push_back({"structures", std::move(times)});
  return {};
}

Result<void> compare_hashes(const HashComparison& comparison, Monitor& monitor, Report& report) {
  const std::vector<BlockHash> hashes = all_block_hashes();
  monitor.begin("", hashes.size() * comparison.workload.events);
  std::vector<Result<std::vector<BlockResult>>> runs(hashes.size());
  parallel_for(hashes.size(), [&](std::size_t i) {
    const BlockFilter filter{
        .hash = hashes[i], .bits = comparison.bits, .hashes = comparison.hashes};
    if (!monitor.stopped()) {
      runs[i] = run_blocks(comparison.workload, std::span(&filter, 1), &monitor);
    }
  });
  Table table{.key = "rows",
              .title = "",
              .columns = {{"hash", "hash", Style::kText},
                          {"new_blocks", "N", Style::kCount},
                          {"false_positives", "false positives", Style::kCount},
                          {"fpr_measured", "measured", Style::kRate},
                          {"fpr_incremental", "theory", Style::kRate},
                          {"ratio", "measured / theory", Style::kReal},
                          {"sigmas", "sigmas off", Style::kReal}},
              .rows = {}};
  for (const auto& run : runs) {
    if (!run) {
      return std::unexpected(run.error());
    }
    if (run->empty() || run->front().all.tests == 0) {
      continue;
    }
    const BlockResult& result = run->front();
    const filter::FilterShape shape{filter::Layout::kClassic, comparison.bits, comparison.hashes};
    const auto tests = static_cast<double>(result.all.tests);
    const double theory = filter::fpr_incremental_exact(shape, result.all.tests)
                              .value_or(filter::fpr_incremental(shape, tests));
    const double sigma = std::sqrt(tests * theory * (1 - theory));
    table.rows.push_back(
        {{"hash", to_string(result.filter.hash)},
         {"hashes", std::uint64_t{comparison.hashes}},
         {"events", result.events},
         {"new_blocks", result.all.tests},
         {"false_positives", result.all.false_positives},
         {"fpr_measured", result.all.measured()},
         {"fpr_incremental", theory},
         {"ratio", result.all.measured() / theory},
         {"sigmas", (static_cast<double>(result.all.false_positives) - tests * theory) / sigma}});
  }
  report.tables.push_back(std::move(table));
  return {};
}

}  // namespace encore::sim
