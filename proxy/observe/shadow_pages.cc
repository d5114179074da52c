#include "proxy/observe/shadow_pages.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "base/units.h"

namespace encore::server {
namespace {

using Json = nlohmann::ordered_json;

// How the bounds come about; the page and the API say it with the numbers.
constexpr std::string_view kBound =
    "95 % by Student's t over the sample's 8 disjoint parts (random groups; Wolter 2007, 2.2), "
    "sqrt(1 - R) for a sample without replacement, and what SHARDS-adj (Waldspurger et al. 2015) "
    "moved the value by";

double ratio(std::uint64_t part, std::uint64_t whole) {
  return whole == 0 ? 0 : static_cast<double>(part) / static_cast<double>(whole);
}

Json json_of(const cache::ShadowShare& share) {
  return {{"value", share.value}, {"low", share.low}, {"high", share.high}};
}

Json json_of(const cache::ShadowCounts& counts) {
  return {{"requests", counts.requests},          {"hits", counts.hits},
          {"validations", counts.validations},    {"bytes_requested", counts.bytes_requested},
          {"bytes_hit", counts.bytes_hit},        {"objects_written", counts.objects_written},
          {"bytes_written", counts.bytes_written}};
}

Json json_of(const ShadowReport& report) {
  Json in_force = json_of(report.in_force);
  in_force["object_hit_ratio"] = ratio(report.in_force.hits, report.in_force.requests);
  in_force["byte_hit_ratio"] = ratio(report.in_force.bytes_hit, report.in_force.bytes_requested);
  return {{"policy", report.name},
          {"admission", report.admission},
          {"eviction", report.eviction},
          {"capacity_bytes", report.capacity_bytes},
          {"seconds", std::chrono::duration<double>(report.since).count()},
          {"object_hit_ratio", json_of(report.object_hit_ratio)},
          {"byte_hit_ratio", json_of(report.byte_hit_ratio)},
          {"estimated", json_of(report.estimated)},
          {"sampled", json_of(report.sampled)},
          {"in_force", std::move(in_force)},
          {"objects", report.objects},
          {"memory_bytes", report.memory_bytes}};
}

std::string labels_of(const ShadowReport& report) {
  // Names are made of letters, digits and -:+. alone.
  return fmt::format("policy=\"{}\"", report.name);
}

template <typename Value>
void write_each(MetricsWriter& out, const ShadowReports& reports, std::string_view name,
                std::string_view type, std::string_view help, Value value) {
  out.family(name, type, help);
  for (const ShadowReport& report : reports.policies) {
    out.sample(name, labels_of(report), value(report));
  }
}

void write_share(MetricsWriter& out, const ShadowReports& reports, std::string_view name,
                 std::string_view help, cache::ShadowShare ShadowReport::* share) {
  out.family(name, "gauge", help);
  for (const ShadowReport& report : reports.policies) {
    const std::string labels = labels_of(report);
    out.sample(name, labels + ",bound=\"value\"", (report.*share).value);
    out.sample(name, labels + ",bound=\"low\"", (report.*share).low);
    out.sample(name, labels + ",bound=\"high\"", (report.*share).high);
  }
}

// Write costs for which the page says what they would bring.
constexpr std::array kWriteCosts = {0.0, 0.1, 0.3, 1.0, 3.0};

Json json_of(const TuningReport& tuning) {
  Json tried = Json::array();
  for (const TriedReport& each : tuning.tried) {
    tried.push_back({{"rule", each.rule},
                     {"followed", each.followed},
                     {"judgements", each.judgements},
                     {"cost", each.cost},
                     {"requests", each.requests},
                     {"hits", each.hits},
                     {"bytes_requested", each.bytes_requested},
                     {"bytes_missed", each.bytes_missed},
                     {"bytes_written", each.bytes_written}});
  }
  Json frontier = Json::array();
  for (const double cost : kWriteCosts) {
    const TriedReport* const best = tuning.best_at(cost);
    if (best == nullptr) continue;
    frontier.push_back({{"write_cost", cost},
                        {"rule", best->rule},
                        {"object_hit_ratio", ratio(best->hits, best->requests)},
                        {"written_ratio", ratio(best->bytes_written, best->bytes_requested)}});
  }
  return {{"rate", tuning.rate},
          {"write_cost", tuning.write_cost},
          {"memory_bytes", tuning.memory_bytes},
          {"rules", std::move(tried)},
          {"frontier", std::move(frontier)}};
}

std::string percent(double share) { return fmt::format("{:.2f} %", 100 * share); }

std::string bounded(const cache::ShadowShare& share) {
  return fmt::format("<td class=\"n\">{}</td><td class=\"n\">{} to {}</td>", percent(share.value),
                     percent(share.low), percent(share.high));
}

std::string row_of(const ShadowReport& report) {
  const cache::ShadowCounts& in_force = report.in_force;
  std::string row = fmt::format("<tr><td>{}</td><td>{} + {}</td>", report.name, report.admission,
                                report.eviction);
  const auto add = [&row](std::string_view text) {
    row += fmt::format("<td class=\"n\">{}</td>", text);
  };
  row += bounded(report.object_hit_ratio);
  add(percent(ratio(in_force.hits, in_force.requests)));
  row += bounded(report.byte_hit_ratio);
  add(percent(ratio(in_force.bytes_hit, in_force.bytes_requested)));
  add(format_bytes(report.estimated.bytes_written));
  add(format_bytes(in_force.bytes_written));
  add(std::to_string(report.sampled.requests));
  add(format_bytes(report.memory_bytes));
  return row + "</tr>\n";
}

}  // namespace

std::string shadow_json(const ShadowReports& reports) {
  Json policies = Json::array();
  for (const ShadowReport& report : reports.policies) policies.push_back(json_of(report));
  const Json json = {{"sample", reports.sample},
                     {"rate", reports.sample == 0 ? 0 : 1.0 / reports.sample},
                     {"bounds", kBound},
                     {"dropped_requests", reports.dropped},
                     {"policies", std::move(policies)}};
  Json all = json;
  if (reports.tuning) all["probation"] = json_of(*reports.tuning);
  return all.dump(2) + "\n";
}

namespace {

std::string tuning_html(const TuningReport& tuning) {
  std::string page =
      "<h2>What another admission.write_cost would give</h2>\n<div class=\"card scroll\"><table>\n"
      "<thead><tr><th class=\"n\">write cost</th><th>rule</th><th class=\"n\">hit ratio</th>"
      "<th class=\"n\">written of bytes requested</th></tr></thead>\n<tbody>\n";
  for (const double cost : kWriteCosts) {
    const TriedReport* const best = tuning.best_at(cost);
    if (best == nullptr) continue;
    page += fmt::format(
        "<tr><td class=\"n\">{}</td><td>{}</td><td class=\"n\">{}</td><td "
        "class=\"n\">{}</td></tr>\n",
        cost, best->rule, percent(ratio(best->hits, best->requests)),
        percent(ratio(best->bytes_written, best->bytes_requested)));
  }
  const auto followed = std::ranges::find_if(tuning.tried, &TriedReport::followed);
  return page + fmt::format(
                    "</tbody></table></div>\n<p class=\"sub\">By samples of {} of the keys since "
                    "they were taken; in force: write cost {}, {}.</p>\n",
                    percent(tuning.rate), tuning.write_cost,
                    followed == tuning.tried.end() ? std::string_view("none") : followed->rule);
}

}  // namespace

std::string shadow_html(const ShadowReports& reports) {
  std::string page = reports.tuning ? tuning_html(*reports.tuning) : std::string();
  page += "<h2>What other policies would do</h2>\n";
  if (reports.sample == 0) {
    return page + "<p class=\"card\">Nothing is simulated: shadow.policies is empty.</p>\n";
  }
  page +=
      "<div class=\"card scroll\"><table>\n<thead><tr><th>policy</th><th>admission and "
      "eviction</th>"
      "<th class=\"n\">hit ratio</th><th class=\"n\">bounds</th><th class=\"n\">in force</th>"
      "<th class=\"n\">byte hit ratio</th><th class=\"n\">bounds</th><th class=\"n\">in force</th>"
      "<th class=\"n\">written</th><th class=\"n\">in force</th>"
      "<th class=\"n\">requests sampled</th><th class=\"n\">memory</th></tr></thead>\n<tbody>\n";
  for (const ShadowReport& report : reports.policies) page += row_of(report);
  return page +
         fmt::format("</tbody></table></div>\n<p class=\"sub\">One key in {}. Bounds: {}.</p>\n",
                     reports.sample, kBound);
}

void write_tuning_metrics(MetricsWriter& out, const std::optional<TuningReport>& tuning) {
  TuningReport none;
  for (const std::string_view rule : cache::kProbationSampleNames) {
    none.tried.push_back({.rule = rule});
  }
  const TuningReport& told = tuning ? *tuning : none;
  out.one("probation_sample_rate", "gauge", "Part of the keys in probation's samples.", told.rate);
  const auto each = [&](std::string_view name, std::string_view type, std::string_view help,
                        auto value) {
    out.family(name, type, help);
    for (const TriedReport& tried : told.tried) {
      out.sample(name, fmt::format("rule=\"{}\"", tried.rule), value(tried));
    }
  };
  each("probation_sample_followed", "gauge", "1: the rule in force.",
       [](const TriedReport& tried) { return tried.followed ? 1 : 0; });
  each("probation_sample_cost_bytes", "gauge",
       "Recent bytes missed plus the cost of bytes written.",
       [](const TriedReport& tried) { return tried.cost; });
  each("probation_sample_requests", "gauge", "Requests in a rule's sample.",
       [](const TriedReport& tried) { return tried.requests; });
  each("probation_sample_hits", "gauge", "Hits in a rule's sample.",
       [](const TriedReport& tried) { return tried.hits; });
  each("probation_sample_missed_bytes", "gauge", "Bytes missed in a rule's sample.",
       [](const TriedReport& tried) { return tried.bytes_missed; });
  each("probation_sample_written_bytes", "gauge", "Bytes written in a rule's sample.",
       [](const TriedReport& tried) { return tried.bytes_written; });
}

void write_shadow_metrics(MetricsWriter& out, const ShadowReports& reports) {
  if (reports.sample == 0) return;
  out.one("shadow_sample", "gauge", "Simulated part of the keys: one in this number.",
          reports.sample);
  out.one("shadow_dropped_requests_total", "counter",
          "Requests not simulated because the thread lagged.", reports.dropped);
  write_share(out, reports, "shadow_object_hit_ratio",
              "Estimated object hit ratio of the policy, with bounds.",
              &ShadowReport::object_hit_ratio);
  write_share(out, reports, "shadow_byte_hit_ratio",
              "Estimated byte hit ratio of the policy, with bounds.",
              &ShadowReport::byte_hit_ratio);
  write_each(out, reports, "shadow_requests_total", "counter", "Requests compared, sampled or not.",
             [](const ShadowReport& report) { return report.in_force.requests; });
  write_each(out, reports, "shadow_sampled_requests_total", "counter", "Sampled requests.",
             [](const ShadowReport& report) { return report.sampled.requests; });
  write_each(out, reports, "shadow_in_force_hits_total", "counter",
             "Hits of the cache itself for the compared requests.",
             [](const ShadowReport& report) { return report.in_force.hits; });
  write_each(out, reports, "shadow_written_bytes", "gauge",
             "Estimated charge of responses that the policy would have stored.",
             [](const ShadowReport& report) { return report.estimated.bytes_written; });
  write_each(out, reports, "shadow_in_force_written_bytes", "gauge",
             "Charge of responses stored by the cache itself meanwhile.",
             [](const ShadowReport& report) { return report.in_force.bytes_written; });
  write_each(out, reports, "shadow_memory_bytes", "gauge",
             "Memory of the simulation: index and admission.",
             [](const ShadowReport& report) { return report.memory_bytes; });
}

}  // namespace encore::server
