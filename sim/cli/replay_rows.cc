#include "sim/cli/replay_rows.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <functional>

#include "base/units.h"
#include "cache/eviction_name.h"
#include "sim/cli/kernel_options.h"
#include "sim/replay/ratio.h"

namespace encore::sim {
namespace {

// On how many requests a row rests; shown where that is not all of them.
const Column kRequests{"requests", "requests", Style::kCount};

std::vector<Column> replay_columns(bool sampled, bool complete) {
  std::vector<Column> columns = {{"cache_bytes", "cache", Style::kBytes},
                                 {"eviction", "eviction"},
                                 {"admission", "admission"},
                                 {"admission_parameter", "with"},
                                 {"capacity", "window c", Style::kCount},
                                 {"object_hit_ratio", "hits", Style::kPercent},
                                 {"byte_hit_ratio", "of bytes", Style::kPercent},
                                 {"bytes_written", "written", Style::kBytes},
                                 {"bytes_rewritten", "again", Style::kBytes},
                                 {"objects_written", "objects", Style::kCount},
                                 {"bytes_from_origin", "from origin", Style::kBytes},
                                 {"one_hit_kept_out", "one-hit out", Style::kCount},
                                 {"one_hit_let_in", "in", Style::kCount},
                                 {"evictions", "evictions", Style::kCount},
                                 {"false_admissions", "false adm.", Style::kCount},
                                 {"fpr_measured", "FPR", Style::kRate},
                                 {"interval_low", "95 % from", Style::kRate},
                                 {"interval_high", "to", Style::kRate},
                                 {"fpr_theory", "theory", Style::kRate}};
  if (sampled) {
    columns.insert(columns.begin() + 6, {{"object_hit_ratio_low", "from", Style::kPercent},
                                         {"object_hit_ratio_high", "to", Style::kPercent}});
  }
  if (!complete) {
    columns.insert(columns.begin() + 5, kRequests);
  }
  return columns;
}

// The column of parameters is for policies that have one.
void drop_unused_parameter(Table& table) {
  constexpr std::string_view kParameter = "admission_parameter";
  const bool used = std::ranges::any_of(table.rows, [&](const Row& row) {
    const Value* value = find(row, kParameter);
    return value != nullptr && !std::holds_alternative<std::monostate>(*value);
  });
  if (!used) {
    std::erase_if(table.columns, [&](const Column& column) { return column.key == kParameter; });
  }
}

Value when(bool there, Value value) { return there ? std::move(value) : Value{}; }

// With the policy they tell apart runs that differ in one number.
Value parameter_of(const FinishedRun& finished) {
  const std::string parameter = admission_parameter(finished);
  return when(!parameter.empty(), parameter);
}
Value window_of(const cache::KernelOptions& kernel) {
  return when(has_window(kernel.admission.policy),
              kernel.admission.filter.capacity * kernel.shards);
}

void append_filter(Row& row, const FinishedRun& finished, const PlannedKernel& planned,
                   double rate) {
  const cache::AdmissionStatistics admission = finished.run->admission();
  const cache::AdmissionOptions& options = finished.kernel.admission;
  const std::uint64_t shards = finished.kernel.shards;
  const filter::MeasuredFpr& measured = admission.measured;
  const bool filtered = admission.has_filter;
  const bool has_shadow = filtered && options.shadow_one_in != 0;
  const bool asked = has_shadow && measured.asked != 0;
  const filter::Interval interval = measured.interval();
  const auto whole = [&](std::uint64_t count) { return estimated_count(count, rate); };
  const bool windowed = has_window(options.policy);
  const auto with = [&](cache::AdmissionPolicy policy, const Value& value) {
    return when(options.policy == policy, value);
  };
  const bool adapts = options.policy == cache::AdmissionPolicy::kAdaptSize;
  const std::string parameter =
      adapts ? "c = " + format_bytes(static_cast<std::uint64_t>(admission.size_parameter))
             : admission_parameter(finished);
  row.insert(
      row.end(),
      {Field{"admission_parameter", when(!parameter.empty(), parameter)},
       {"min_requests", with(cache::AdmissionPolicy::kNthHit, std::uint64_t{options.min_requests})},
       {"probability", with(cache::AdmissionPolicy::kProbability, options.probability)},
       {"size_threshold",
        with(cache::AdmissionPolicy::kSizeThreshold, options.size_threshold_bytes)},
       {"size_parameter", when(adapts, admission.size_parameter)},
       {"capacity", when(windowed, options.filter.capacity * shards)},
       {"fpr_goal", when(filtered && planned.fpr_goal > 0, planned.fpr_goal)},
       {"bits", when(filtered, options.filter.bits * shards)},
       {"hashes", when(filtered, std::uint64_t{options.filter.hashes})},
       {"filter_bytes", when(windowed, whole(admission.memory_bytes))},
       {"rotations", when(windowed, admission.rotations)},
       {"refreshes", when(windowed, whole(admission.refreshes))},
       {"false_admissions",
        when(has_shadow, whole(measured.false_positives * options.shadow_one_in))},
       {"false_negatives", when(has_shadow, measured.false_negatives)},
       {"fpr_measured", when(asked, asked ? measured.rate() : 0)},
       {"fpr_theory",
        when(asked, asked ? measured.expected / static_cast<double>(measured.asked) : 0)},
       {"interval_low", when(has_shadow, interval.low)},
       {"interval_high", when(has_shadow, interval.high)}});
}

// The bounds of a share, null where it is exact.
void append_bounds(Row& row, const std::string& key, double low, double high, bool sampled) {
  row.push_back({key + "_low", when(sampled, low)});
  row.push_back({key + "_high", when(sampled, high)});
}

Row replay_row(const ReplayedTrace& trace, const FinishedRun& finished,
               const PlannedKernel& planned) {
  const ReplayCounts& c = finished.counts;
  const cache::KernelStatistics kernel = finished.run->kernel();
  const HitRatios& ratios = finished.ratios;
  const bool sampled = trace.rate < 1;
  const auto whole = [&](std::uint64_t count) { return estimated_count(count, trace.rate); };
  Row row = {{"trace", trace.names},
             {"eviction", eviction_name(finished.kernel)},
             {"admission", admission_name(finished)},
             {"cache_bytes", finished.kernel.capacity_bytes},
             {"requests", c.requests},
             {"hits", c.hits},
             {"object_hit_ratio", ratios.objects.value},
             {"byte_hit_ratio", ratios.bytes.value}};
  append_bounds(row, "object_hit_ratio", ratios.objects.low, ratios.objects.high, sampled);
  append_bounds(row, "byte_hit_ratio", ratios.bytes.low, ratios.bytes.high, sampled);
  row.insert(row.end(),
             {Field{"validations", c.validations},
              {"bytes_requested", c.bytes_requested},
              {"bytes_from_origin", c.bytes_from_origin},
              {"bytes_written", c.bytes_written},
              {"bytes_rewritten", when(trace.objects_rate >= 1, c.bytes_rewritten)},
              {"objects_written", c.objects_written},
              {"too_large_or_full", c.not_stored_full},
              {"one_hit_kept_out", when(finished.complete, finished.one_hit_kept_out)},
              {"one_hit_let_in", when(finished.complete, finished.one_hit_let_in)},
              {"evictions", whole(kernel.counters.evictions)},
              {"expirations", whole(kernel.counters.expirations)},
              {"resident_objects", whole(kernel.objects)},
              {"used_bytes", whole(kernel.used_bytes)},
              {"footprint_bytes", when(trace.footprint_known, trace.footprint_bytes)},
              {"footprint_objects", when(trace.footprint_known, trace.footprint_objects)}});
  append_filter(row, finished, planned, trace.rate);
  row.push_back({"sample_rate", when(sampled, trace.rate)});
  row.push_back({"sample_requests", when(sampled, trace.sample_requests)});
  row.push_back({"objects_rate", when(trace.objects_rate < 1, trace.objects_rate)});
  return row;
}

Row curve_row(const ReplayedTrace& trace, const CurvePoint& point, const PlannedKernel& planned) {
  const bool sampled = trace.rate < 1;
  const BoundedShare& objects = point.ratios.objects;
  const BoundedShare& bytes = point.ratios.bytes;
  const cache::KernelOptions& kernel = point.kernel;
  const bool filtered = has_filter(kernel.admission.policy);
  const bool windowed = has_window(kernel.admission.policy);
  const std::string parameter = admission_parameter(kernel.admission);
  Row row = {{"trace", trace.names},
             {"eviction", eviction_name(kernel)},
             {"admission", std::string(to_string(kernel.admission.policy))},
             {"admission_parameter", when(!parameter.empty(), parameter)},
             {"capacity", when(windowed, kernel.admission.filter.capacity * kernel.shards)},
             {"fpr_goal", when(filtered && planned.fpr_goal > 0, planned.fpr_goal)},
             {"cache_bytes", kernel.capacity_bytes},
             {"footprint_share", ratio_of(kernel.capacity_bytes, trace.footprint_bytes)},
             {"requests", point.requests},
             {"object_miss_ratio", 1 - objects.value}};
  append_bounds(row, "object_miss_ratio", 1 - objects.high, 1 - objects.low, sampled);
  row.push_back({"byte_miss_ratio", 1 - bytes.value});
  append_bounds(row, "byte_miss_ratio", 1 - bytes.high, 1 - bytes.low, sampled);
  row.push_back(
      {"method", std::string(point.by_stack_distances ? "stack distances" : "simulation")});
  row.push_back({"sample_rate", when(sampled, trace.rate)});
  return row;
}

}  // namespace

std::string admission_name(const FinishedRun& finished) {
  const ReplayOptions& options = finished.run->options();
  return std::string(options.probation ? kProbationName
                     : options.tuning  ? kProxyProbationName
                                       : to_string(finished.kernel.admission.policy));
}

std::string admission_parameter(const FinishedRun& finished) {
  const ReplayOptions& options = finished.run->options();
  const auto& probation = options.tuning ? options.tuning : options.probation;
  if (!probation) {
    return admission_parameter(finished.kernel.admission);
  }
  std::array<char, 64> text{};
  if (probation->write_cost) {
    std::snprintf(text.data(), text.size(), "write cost %g", *probation->write_cost);
  } else {
    std::snprintf(text.data(), text.size(), "w %g", probation->settings.rule.window);
  }
  return text.data();
}

Table replay_table(const ReplayedTrace& trace, const std::vector<FinishedRun>& runs,
                   const std::vector<PlannedKernel>& planned) {
  Table table{.key = "rows",
              .title = "",
              .columns = replay_columns(trace.rate < 1, trace.complete),
              .rows = {}};
  for (std::size_t i = 0; i < runs.size(); ++i) {
    table.rows.push_back(replay_row(trace, runs[i], planned[i]));
  }
  drop_unused_parameter(table);
  return table;
}

void append_parts(Table& table, const std::vector<FinishedRun>& runs, std::uint64_t most) {
  constexpr std::array kKeys = {"requests", "hits", "bytes_requested", "bytes_hit",
                                "bytes_written"};
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const bool has_disk = runs[i].run->options().has_disk();
    std::vector<std::array<std::uint64_t, kKeys.size()>> parts;
    for (const ReplayInterval& interval : runs[i].run->intervals()) {
      const ReplayCounts& c = interval.counts;
      if (c.requests != 0) {
        const std::uint64_t written =
            has_disk ? c.disk_bytes_admitted + c.disk_bytes_moved : c.bytes_written;
        parts.push_back({c.requests, c.hits, c.bytes_requested, c.bytes_hit, written});
      }
    }
    // Intervals begin with the trace: a warm-up cuts the first one.
    if (parts.size() > most) {
      std::ranges::transform(parts[0], parts[1], parts[1].begin(), std::plus());
      parts.erase(parts.begin());
    }
    std::vector<Row> rows(parts.size());
    for (std::size_t j = 0; j < parts.size(); ++j) {
      for (std::size_t k = 0; k < kKeys.size(); ++k) {
        rows[j].push_back({kKeys[k], parts[j][k]});
      }
    }
    table.rows[i].push_back({"parts", std::move(rows)});
  }
}

Table interval_table(const std::vector<FinishedRun>& runs,
                     const std::vector<PlannedKernel>& planned) {
  Table table{.key = "intervals", .title = "", .columns = {}, .rows = {}};
  for (std::size_t i = 0; i < runs.size(); ++i) {
    for (const ReplayInterval& interval : runs[i].run->intervals()) {
      const ReplayCounts& c = interval.counts;
      table.rows.push_back({{"run", std::uint64_t{i}},
                            {"eviction", eviction_name(planned[i].options)},
                            {"admission", admission_name(runs[i])},
                            {"admission_parameter", parameter_of(runs[i])},
                            {"capacity", window_of(planned[i].options)},
                            {"cache_bytes", runs[i].kernel.capacity_bytes},
                            {"from_request", interval.from_request},
                            {"requests", c.requests},
                            {"hits", c.hits},
                            {"object_hit_ratio", ratio_of(c.hits, c.requests)},
                            {"byte_hit_ratio", ratio_of(c.bytes_hit, c.bytes_requested)},
                            {"bytes_written", c.bytes_written},
                            {"bytes_rewritten", c.bytes_rewritten},
                            {"resident_objects", interval.resident_objects},
                            {"used_bytes", interval.used_bytes},
                            {"filter_fill", interval.filter_fill},
                            {"fpr_theory", interval.fpr_theory},
                            {"rotations", interval.rotations},
                            {"working_set_objects", interval.objects_requested},
                            {"working_set_bytes", interval.object_bytes}});
    }
  }
  return table;
}

namespace {

void append_space(const DiskSpace::Sums& sums, Row& row) {
  row.insert(row.end(), {Field{"space_bodies", sums.body_bytes},
                         {"space_beside_bodies", sums.beside_bytes},
                         {"space_gaps", sums.gap_bytes},
                         {"space_headers_and_footers", sums.described_bytes},
                         {"space_unfilled", sums.unfilled_bytes},
                         {"space_free", sums.free_bytes},
                         {"space_dead", sums.dead_bytes}});
}

}  // namespace

Table disk_table(const std::vector<FinishedRun>& runs) {
  Table table{.key = "disk",
              .title = "On disk",
              .columns = {{"cache_bytes", "cache", Style::kBytes},
                          {"disk_bytes", "disk", Style::kBytes},
                          {"eviction", "eviction"},
                          {"admission", "admission"},
                          {"admission_parameter", "with"},
                          {"capacity", "window c", Style::kCount},
                          {"memory_hit_ratio", "hits in memory", Style::kPercent},
                          {"disk_hit_ratio", "on disk", Style::kPercent},
                          {"memory_byte_hit_ratio", "of bytes", Style::kPercent},
                          {"disk_byte_hit_ratio", "on disk", Style::kPercent},
                          {"disk_bytes_written", "written", Style::kBytes},
                          {"disk_bytes_moved", "of it moved", Style::kBytes},
                          {"disk_write_amplification", "amplification", Style::kRate},
                          {"disk_objects", "objects", Style::kCount}},
              .rows = {}};
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const ReplayCounts& c = runs[i].run->counts();
    const cache::KernelStatistics kernel = runs[i].run->kernel();
    const std::uint64_t written = c.disk_bytes_admitted + c.disk_bytes_moved;
    std::uint64_t disk_bytes = 0;
    for (const cache::DiskStatistics::Disk& disk : kernel.disk.disks) {
      disk_bytes += disk.segments * disk.segment_bytes;
    }
    table.rows.push_back(
        {{"run", std::uint64_t{i}},
         {"eviction", eviction_name(runs[i].kernel)},
         {"admission", admission_name(runs[i])},
         {"admission_parameter", parameter_of(runs[i])},
         {"capacity", window_of(runs[i].kernel)},
         {"cache_bytes", runs[i].kernel.capacity_bytes},
         {"disk_bytes", disk_bytes},
         {"memory_hits", c.hits - c.disk_hits},
         {"disk_hits", c.disk_hits},
         {"memory_hit_ratio", ratio_of(c.hits - c.disk_hits, c.requests)},
         {"disk_hit_ratio", ratio_of(c.disk_hits, c.requests)},
         {"memory_byte_hit_ratio", ratio_of(c.bytes_hit - c.disk_bytes_hit, c.bytes_requested)},
         {"disk_byte_hit_ratio", ratio_of(c.disk_bytes_hit, c.bytes_requested)},
         {"disk_bytes_written", written},
         {"disk_bytes_admitted", c.disk_bytes_admitted},
         {"disk_bytes_moved", c.disk_bytes_moved},
         {"disk_write_amplification",
          c.disk_bytes_admitted == 0 ? 1.0 : ratio_of(written, c.disk_bytes_admitted)},
         {"disk_objects_dropped", c.disk_objects_dropped},
         {"disk_objects_refused", c.disk_objects_refused},
         {"disk_parts_dropped", c.disk_parts_dropped},
         {"disk_objects_broken", c.disk_objects_broken},
         {"disk_objects_alone", kernel.disk.counters.stored_alone},
         {"disk_objects", kernel.disk.entries},
         {"disk_parts", kernel.disk.parts},
         {"disk_index_bytes", kernel.disk.index_bytes}});
    if (runs[i].run->probation() == nullptr) {
      append_space(runs[i].run->disk_space(), table.rows.back());
    }
  }
  return table;
}

Row replay_machine(const ReplayedTrace& trace, const std::vector<FinishedRun>& runs) {
  std::vector<Row> each;
  double rate_min = 0;
  double bytes_max = 0;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const double seconds = runs[i].cpu_seconds;
    const double rate = seconds > 0 ? static_cast<double>(trace.sample_requests) / seconds : 0;
    const double bytes = ratio_of(runs[i].run->kernel().index_bytes, runs[i].run->most_objects());
    rate_min = i == 0 ? rate : std::min(rate_min, rate);
    bytes_max = std::max(bytes_max, bytes);
    each.push_back({{"run", std::uint64_t{i}},
                    {"eviction", eviction_name(runs[i].kernel)},
                    {"run_requests_per_cpu_second", rate},
                    {"bytes_per_resident_object", bytes}});
  }
  return {{"run_requests_per_cpu_second", rate_min},
          {"bytes_per_resident_object", bytes_max},
          {"distinct_objects", trace.sample_objects},
          {"bytes_per_distinct_object", ratio_of(trace.table_bytes, trace.sample_objects)},
          {"runs", std::move(each)}};
}

Table curve_table(const ReplayedTrace& trace, const std::vector<CurvePoint>& points,
                  const std::vector<PlannedKernel>& planned) {
  Table table{.key = "rows",
              .title = "",
              .columns = {{"eviction", "eviction"},
                          {"admission", "admission"},
                          {"admission_parameter", "with"},
                          {"capacity", "window c", Style::kCount},
                          {"cache_bytes", "cache", Style::kBytes},
                          {"footprint_share", "of footprint", Style::kPercent},
                          {"object_miss_ratio", "misses", Style::kPercent}},
              .rows = {}};
  const bool sampled = trace.rate < 1;
  if (!trace.complete) {
    table.columns.insert(table.columns.end() - 1, kRequests);
  }
  if (sampled) {
    table.columns.push_back({"object_miss_ratio_low", "from", Style::kPercent});
    table.columns.push_back({"object_miss_ratio_high", "to", Style::kPercent});
  }
  table.columns.push_back({"byte_miss_ratio", "of bytes", Style::kPercent});
  if (sampled) {
    table.columns.push_back({"byte_miss_ratio_low", "from", Style::kPercent});
    table.columns.push_back({"byte_miss_ratio_high", "to", Style::kPercent});
  }
  table.columns.push_back({"method", "by"});
  for (std::size_t i = 0; i < points.size(); ++i) {
    table.rows.push_back(curve_row(trace, points[i], planned[i]));
  }
  drop_unused_parameter(table);
  return table;
}

std::string unread_note(std::uint64_t requests_read) {
  return "Nothing was simulated: only " + std::to_string(requests_read) +
         " requests of the trace were read.";
}

std::string forgotten_note(const ReplayedTrace& trace) {
  const auto percent = [](double error, std::uint64_t of) {
    return of == 0 ? 0 : 100 * error / static_cast<double>(of);
  };
  std::array<char, 400> text{};
  std::snprintf(
      text.data(), text.size(),
      "Counts of objects (one-hit, footprint) are estimated from %.3g %% of the objects, for the "
      "others were forgotten as they left the caches: %llu objects +- %.2g %%, their bytes +- %.2g "
      "%% (95 %%). Hits are exact. --remember-objects 0 counts all.",
      100 * trace.objects_rate, static_cast<unsigned long long>(trace.footprint_objects),
      percent(trace.footprint_objects_error, trace.footprint_objects),
      percent(trace.footprint_bytes_error, trace.footprint_bytes));
  return text.data();
}

std::string sample_note(const ReplayedTrace& trace) {
  std::array<char, 400> text{};
  std::snprintf(
      text.data(), text.size(),
      "A sample of %.3g %% of the objects by the hash of their keys: %llu objects with %llu of "
      "%llu requests, in caches and filters reduced likewise; the figures are estimates for the "
      "whole trace. From and to: 95 %%, from the spread of eight disjoint parts of the sample.",
      100 * trace.rate, static_cast<unsigned long long>(trace.sample_objects),
      static_cast<unsigned long long>(trace.sample_requests),
      static_cast<unsigned long long>(trace.requests));
  return text.data();
}

}  // namespace encore::sim
