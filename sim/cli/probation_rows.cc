#include "sim/cli/probation_rows.h"

#include <algorithm>
#include <string>

#include "base/units.h"
#include "sim/cli/replay_rows.h"
#include "sim/replay/ratio.h"

namespace encore::sim {
namespace {

// The rule in force at the end: "w 0.5", "seldom", "all".
std::string rule_in_force(const cache::TunedProbation& probation, const std::string& fixed) {
  const cache::ProbationSamples* const samples = probation.samples();
  if (samples != nullptr) {
    return std::string(to_string(samples->followed()));
  }
  return fixed;
}

Row probation_row(std::uint64_t number, const FinishedRun& finished) {
  const cache::TunedProbation& probation = *finished.run->probation();
  const ReplayProbation& planned = *finished.run->options().probation;
  const cache::ProbationCache& cache = probation.cache();
  const cache::VisitedLog& log = cache.log();
  const cache::ProbationRule& rule = cache.probation().rule();
  const filter::RotatingStatistics keys = cache.probation().keys().statistics();
  const ReplayCounts& c = finished.counts;
  const auto count = [](std::uint64_t n) { return Value{n}; };
  return {{"run", number},
          {"admission_parameter", admission_parameter(finished)},
          {"cache_bytes", finished.kernel.capacity_bytes},
          {"disk_bytes", log.size_bytes()},
          {"write_cost", planned.write_cost ? Value{*planned.write_cost} : Value{}},
          {"fill", planned.settings.fill},
          {"copies_bytes", planned.settings.copies_bytes},
          {"rule", rule_in_force(probation, admission_parameter(finished))},
          {"window", rule.window},
          {"object_hit_ratio", ratio_of(c.hits, c.requests)},
          {"memory_hit_ratio", ratio_of(c.hits - c.disk_hits, c.requests)},
          {"disk_hit_ratio", ratio_of(c.disk_hits, c.requests)},
          {"byte_hit_ratio", ratio_of(c.bytes_hit, c.bytes_requested)},
          {"bytes_hit", c.bytes_hit},
          {"disk_bytes_written", c.disk_bytes_admitted + c.disk_bytes_moved},
          {"disk_bytes_first", c.disk_bytes_admitted - c.disk_bytes_filled},
          {"disk_bytes_moved", c.disk_bytes_moved},
          {"disk_bytes_filled", c.disk_bytes_filled},
          {"written_hit_share",
           log.counts().admitted_dropped == 0
               ? Value{}
               : Value{ratio_of(log.counts().admitted_visited, log.counts().admitted_dropped)}},
          {"full_once", log.has_been_full()},
          {"waiting_objects", cache.probation().queue().objects()},
          {"waiting_keys",
           count(cache.probation().queue().entries() - cache.probation().queue().objects())},
          {"disk_objects", log.objects()},
          {"pair_capacity_max", keys.generations.front().parameters.capacity},
          {"pair_rotations", keys.rotations},
          {"pair_bytes", keys.memory_bytes},
          {"fpr_theory", keys.fpr_theory}};
}

}  // namespace

Table probation_table(const std::vector<FinishedRun>& runs) {
  Table table{.key = "probation",
              .title = "On probation",
              .columns = {{"admission_parameter", "with"},
                          {"cache_bytes", "memory", Style::kBytes},
                          {"disk_bytes", "disk", Style::kBytes},
                          {"object_hit_ratio", "hits", Style::kPercent},
                          {"memory_hit_ratio", "in memory", Style::kPercent},
                          {"disk_hit_ratio", "on disk", Style::kPercent},
                          {"byte_hit_ratio", "of bytes", Style::kPercent},
                          {"disk_bytes_written", "written", Style::kBytes},
                          {"disk_bytes_first", "first", Style::kBytes},
                          {"disk_bytes_moved", "moved", Style::kBytes},
                          {"disk_bytes_filled", "fill", Style::kBytes},
                          {"written_hit_share", "hit before they left", Style::kPercent},
                          {"rule", "in force"}},
              .rows = {}};
  for (std::size_t i = 0; i < runs.size(); ++i) {
    if (runs[i].run->probation() != nullptr) {
      table.rows.push_back(probation_row(i, runs[i]));
    }
  }
  return table;
}

std::vector<std::string> probation_notes(const std::vector<FinishedRun>& runs) {
  // With fewer the memory passes on keys before a burst of requests is over.
  constexpr double kObjectsMin = 64;
  std::vector<std::string> notes;
  for (const FinishedRun& finished : runs) {
    if (finished.run->probation() == nullptr) {
      continue;
    }
    const cache::Probation& probation = finished.run->probation()->cache().probation();
    const double objects =
        static_cast<double>(probation.memory_bytes()) / std::max(1.0, probation.mean_bytes());
    const std::string note = "A memory of " + format_bytes(probation.memory_bytes()) + " holds " +
                             std::to_string(static_cast<std::uint64_t>(objects)) +
                             " objects of the recent mean size: below 64, probation loses hits.";
    if (objects < kObjectsMin && std::ranges::find(notes, note) == notes.end()) {
      notes.push_back(note);
    }
  }
  return notes;
}

Table what_if_table(const std::vector<FinishedRun>& runs) {
  Table table{.key = "what_if",
              .title = "Samples of the requests by each rule",
              .columns = {{"admission_parameter", "with"},
                          {"rule", "rule"},
                          {"object_hit_ratio", "hits", Style::kPercent},
                          {"byte_hit_ratio", "of bytes", Style::kPercent},
                          {"written_share", "written of bytes", Style::kPercent},
                          {"cost", "cost", Style::kBytes},
                          {"followed_share", "followed", Style::kPercent}},
              .rows = {}};
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const cache::TunedProbation* const probation = runs[i].run->probation();
    const cache::ProbationSamples* const samples =
        probation == nullptr ? nullptr : probation->samples();
    if (samples == nullptr) {
      continue;
    }
    std::uint64_t judgements = 0;
    for (std::size_t s = 0; s < cache::kProbationSampleCount; ++s) {
      judgements += samples->state(static_cast<cache::ProbationSample>(s)).judgements;
    }
    for (std::size_t s = 0; s < cache::kProbationSampleCount; ++s) {
      const auto sample = static_cast<cache::ProbationSample>(s);
      const cache::ProbationSamples::State state = samples->state(sample);
      const cache::ProbationCounts& c = state.counts;
      table.rows.push_back(
          {{"run", std::uint64_t{i}},
           {"admission_parameter", admission_parameter(runs[i])},
           {"rule", std::string(to_string(sample))},
           {"sample_rate", samples->rate()},
           {"sample_requests", c.requests},
           {"object_hit_ratio", ratio_of(c.memory_hits + c.disk_hits, c.requests)},
           {"byte_hit_ratio", ratio_of(c.memory_hit_bytes + c.disk_hit_bytes, c.bytes)},
           {"sample_bytes_written", state.log.written_bytes()},
           {"written_share", ratio_of(state.log.written_bytes(), c.bytes)},
           {"cost", static_cast<std::uint64_t>(state.cost)},
           {"judgements", state.judgements},
           {"followed_share", ratio_of(state.judgements, judgements)}});
    }
  }
  return table;
}

}  // namespace encore::sim
