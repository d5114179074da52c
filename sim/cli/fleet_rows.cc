#include "sim/cli/fleet_rows.h"

#include <algorithm>
#include <string>

#include "cache/eviction_name.h"
#include "sim/cli/replay_rows.h"
#include "sim/replay/cache_group.h"
#include "sim/replay/ratio.h"

namespace encore::sim {
namespace {

std::vector<Column> columns_of(const FleetOptions& fleet) {
  std::vector<Column> columns = {{"cache_bytes", "cache", Style::kBytes},
                                 {"eviction", "eviction"},
                                 {"admission", "admission"},
                                 {"nodes", "nodes", Style::kCount},
                                 {"balance", "balance"},
                                 {"memory", "memory"},
                                 {"node_hit_ratio", "hits at nodes", Style::kPercent},
                                 {"node_byte_hit_ratio", "of bytes", Style::kPercent},
                                 {"node_objects_written", "objects", Style::kCount}};
  if (fleet.has_parents()) {
    columns.insert(columns.end(), {{"parents", "parents", Style::kCount},
                                   {"parent_hit_ratio", "hits there", Style::kPercent},
                                   {"parent_byte_hit_ratio", "of bytes", Style::kPercent},
                                   {"parent_objects_written", "objects", Style::kCount}});
  }
  columns.insert(columns.end(), {{"origin_requests", "to origin", Style::kCount},
                                 {"node_requests_min", "a node: requests", Style::kCount},
                                 {"node_requests_max", "to", Style::kCount},
                                 {"node_hits_min", "hits", Style::kCount},
                                 {"node_hits_max", "to", Style::kCount}});
  if (fleet.front.balance == NodeChoice::kBounded) {
    columns.push_back({"passed_on", "passed on", Style::kCount});
  }
  if (fleet.front.lost_at != UINT64_MAX) {
    columns.insert(columns.end(), {{"hit_ratio_before_loss", "before loss", Style::kPercent},
                                   {"hit_ratio_after_loss", "after", Style::kPercent}});
  }
  return columns;
}

// Null for no requests at all.
Value ratio_or_null(std::uint64_t part, std::uint64_t whole) {
  return whole == 0 ? Value{} : Value{ratio_of(part, whole)};
}

Row fleet_row(std::uint64_t number, const FinishedRun& finished) {
  const FleetOptions& fleet = *finished.run->options().fleet;
  const FleetReport report = finished.run->fleet()->report();
  const ReplayCounts& nodes = report.nodes.counts;
  const ReplayCounts& parents = report.parents.counts;
  const bool has_parents = fleet.has_parents();
  const bool is_lost = fleet.front.lost_at != UINT64_MAX;
  const auto of_parents = [&](Value value) { return has_parents ? std::move(value) : Value{}; };
  const std::string parameter = admission_parameter(finished);
  return {{"run", number},
          {"eviction", eviction_name(finished.kernel)},
          {"admission", admission_name(finished)},
          {"admission_parameter", parameter.empty() ? Value{} : Value{parameter}},
          {"cache_bytes", finished.kernel.capacity_bytes},
          {"nodes", std::uint64_t{fleet.front.nodes}},
          {"balance", std::string(to_string(fleet.front.balance))},
          {"memory", std::string(to_string(fleet.memory))},
          {"parents", std::uint64_t{fleet.parents}},
          {"node_requests", nodes.requests},
          {"node_hits", nodes.hits},
          {"node_hit_ratio", ratio_of(nodes.hits, nodes.requests)},
          {"node_byte_hit_ratio", ratio_of(nodes.bytes_hit, nodes.bytes_requested)},
          {"node_objects_written", nodes.objects_written},
          {"node_bytes_written", nodes.bytes_written},
          {"node_requests_min", report.nodes.requests_min},
          {"node_requests_max", report.nodes.requests_max},
          {"node_hits_min", report.nodes.hits_min},
          {"node_hits_max", report.nodes.hits_max},
          {"parent_requests", of_parents(parents.requests)},
          {"parent_hits", of_parents(parents.hits)},
          {"parent_hit_ratio", of_parents(ratio_or_null(parents.hits, parents.requests))},
          {"parent_byte_hit_ratio",
           of_parents(ratio_or_null(parents.bytes_hit, parents.bytes_requested))},
          {"parent_objects_written", of_parents(parents.objects_written)},
          {"parent_bytes_written", of_parents(parents.bytes_written)},
          {"parent_requests_min", of_parents(report.parents.requests_min)},
          {"parent_requests_max", of_parents(report.parents.requests_max)},
          {"parent_hits_min", of_parents(report.parents.hits_min)},
          {"parent_hits_max", of_parents(report.parents.hits_max)},
          {"origin_requests", report.origin_requests},
          {"passed_on",
           fleet.front.balance == NodeChoice::kBounded ? Value{report.passed_on} : Value{}},
          {"hit_ratio_before_loss",
           is_lost ? ratio_or_null(report.before_loss.hits, report.before_loss.requests) : Value{}},
          {"hit_ratio_after_loss",
           is_lost ? ratio_or_null(report.after_loss.hits, report.after_loss.requests) : Value{}}};
}

}  // namespace

Table fleet_table(const std::vector<FinishedRun>& runs) {
  Table table{.key = "fleet", .title = "Fleet", .columns = {}, .rows = {}};
  if (!runs.empty()) {
    table.columns = columns_of(*runs.front().run->options().fleet);
  }
  for (std::size_t i = 0; i < runs.size(); ++i) {
    table.rows.push_back(fleet_row(i, runs[i]));
  }
  return table;
}

void append_fleet(Table& table, const std::vector<FinishedRun>& runs) {
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const FleetOptions& fleet = *runs[i].run->options().fleet;
    const std::uint64_t of_node = runs[i].kernel.capacity_bytes;
    const std::uint64_t of_parent =
        fleet.parent_cache_bytes == 0 ? of_node : fleet.parent_cache_bytes;
    table.rows[i].push_back(
        {"fleet_cache_bytes", of_node * fleet.front.nodes + of_parent * fleet.parents});
  }
}

}  // namespace encore::sim
