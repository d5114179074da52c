#include "sim/cli/blocks_theory.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <string_view>

#include "filter/exact_theory.h"
#include "filter/theory.h"

namespace encore::sim {

Value of(const std::optional<double>& number) { return number ? Value{*number} : Value{}; }

std::string theory_refusal(const filter::Ring& ring) {
  constexpr double kAnsweredMax = 0.4;  // measured: docs/decisions/0340
  constexpr double kBitsASquare = 100;  // bits per k squared: the mean is off by some k^2/m
  const double k = ring.shape.hashes;
  if (static_cast<double>(ring.shape.bits) < kBitsASquare * k * k) {
    return "a generation of " + std::to_string(ring.shape.bits) +
           " bits is small for k = " + std::to_string(ring.shape.hashes) +
           ", accepted: from 100 k^2 bits on";
  }
  const double p = filter::fpr(ring.shape, filter::effective_insertions(ring.shape, ring.capacity));
  if (!(p <= kAnsweredMax)) {
    return "a full generation is overfull: it answers more than 40 % of all new keys, and its fill "
           "differs too much from one to the next";
  }
  return {};
}

BlockTheory theory_for(const BlockResult& result, const BlockWorkload& workload) {
  const BlockFilter& filter = result.filter;
  if (!result.theory_refused.empty()) {
    return {};
  }
  if (!filter.single_or_pair()) {
    return {result.fpr_theory_end, result.all.by_theory(), result.one_off.by_theory()};
  }
  const filter::FilterShape shape{filter.layout, filter.bits, filter.hashes};
  if (filter.pair()) {
    const filter::Ring ring{.shape = shape,
                            .capacity = static_cast<double>(filter.capacity),
                            .generations = filter.generations,
                            .counting = filter::Counting::kEffective,
                            .refresh = filter.refresh};
    return {filter::ring_cycle(ring).high, result.all.by_theory(), result.one_off.by_theory()};
  }
  // With one seed, all runs are complete or the only one is not.
  const double runs =
      static_cast<double>(std::max<std::uint64_t>(1, result.events / workload.events));
  const double keys = static_cast<double>(result.all.tests) / runs;
  if (filter::is_small(shape)) {
    // Numbers of keys are few as well: what the runs had of them counts, not their expectation.
    const auto exact = filter::fpr_exact(shape, static_cast<std::uint64_t>(std::llround(keys)));
    return {of(exact), result.all.by_theory(), result.one_off.by_theory()};
  }
  const filter::BlockExperiment experiment{
      .events = static_cast<double>(result.events) / runs,
      .reused_blocks = static_cast<double>(workload.reused_blocks),
      .one_off_share = workload.one_off_percent / 100.0};
  return {
      filter::fpr(shape, keys), result.all.by_theory(),
      workload.one_off_percent == 0 ? 0.0 : filter::fpr_weighted_incremental(shape, experiment)};
}

void append_theory_notes(Report& report, const std::vector<BlockResult>& results) {
  for (const BlockResult& result : results) {
    if (!result.theory_refused.empty()) {
      report.notes.push_back("k = " + std::to_string(result.filter.hashes) +
                             ": theory is left out: " + result.theory_refused + ".");
    }
  }
}

void drop_unknown_z(Table& table) {
  constexpr std::string_view kKey = "z_theory";
  const bool known = std::ranges::any_of(table.rows, [&](const Row& row) {
    const Value* value = find(row, kKey);
    return value != nullptr && !std::holds_alternative<std::monostate>(*value);
  });
  if (!known) {
    std::erase_if(table.columns, [&](const Column& column) { return column.key == kKey; });
  }
}

}  // namespace encore::sim
