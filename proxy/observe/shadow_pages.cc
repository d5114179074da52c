#include "proxy/observe/shadow_pages.h"

#include <fmt/core.h>

#include <nlohmann/json.hpp>
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

std::string percent(double share) { return fmt::format("{:.2f} %", 100 * share); }

std::string bounded(const cache::ShadowShare& share) {
  return fmt::format("<td>{}</td><td>{} .. {}</td>", percent(share.value), percent(share.low),
                     percent(share.high));
}

std::string row_of(const ShadowReport& report) {
  const cache::ShadowCounts& in_force = report.in_force;
  return fmt::format(
      "<tr><td>{}</td><td>{} + {}</td>{}<td>{}</td>{}<td>{}</td><td>{}</td><td>{}</td><td>{}</td>"
      "<td>{}</td></tr>\n",
      report.name, report.admission, report.eviction, bounded(report.object_hit_ratio),
      percent(ratio(in_force.hits, in_force.requests)), bounded(report.byte_hit_ratio),
      percent(ratio(in_force.bytes_hit, in_force.bytes_requested)),
      format_bytes(report.estimated.bytes_written), format_bytes(in_force.bytes_written),
      report.sampled.requests, format_bytes(report.memory_bytes));
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
  return json.dump(2) + "\n";
}

std::string shadow_html(const ShadowReports& reports) {
  std::string page =
      "<!doctype html>\n<html lang=\"en\"><meta charset=\"utf-8\"><meta http-equiv=\"refresh\" "
      "content=\"5\"><title>encore: shadow policies</title>\n"
      "<style>body{font-family:sans-serif;margin:1em}td,th{padding:.2em .6em;text-align:right}"
      "</style>\n<h1>What other policies would do</h1>\n";
  if (reports.sample == 0) return page + "<p>Nothing is simulated: shadow.policies is empty.\n";
  page += fmt::format("<p>One key in {}. Bounds: {}.\n", reports.sample, kBound);
  page +=
      "<table><tr><th>policy</th><th></th><th>hit ratio</th><th>bounds</th><th>in force</th>"
      "<th>byte hit ratio</th><th>bounds</th><th>in force</th><th>written</th><th>in force</th>"
      "<th>requests sampled</th><th>memory</th></tr>\n";
  for (const ShadowReport& report : reports.policies) page += row_of(report);
  return page + "</table>\n";
}

void write_shadow_metrics(MetricsWriter& out, const ShadowReports& reports) {
  if (reports.sample == 0) return;
  out.one("shadow_sample", "gauge", "Of so many keys one is simulated.", reports.sample);
  out.one("shadow_dropped_requests_total", "counter",
          "Requests that were not simulated because their thread was behind.", reports.dropped);
  write_share(out, reports, "shadow_object_hit_ratio",
              "Hits of requests that the policy would have had, with the bounds of the estimate.",
              &ShadowReport::object_hit_ratio);
  write_share(out, reports, "shadow_byte_hit_ratio",
              "Bytes of hits of those requested that the policy would have had, with bounds.",
              &ShadowReport::byte_hit_ratio);
  write_each(out, reports, "shadow_requests_total", "counter",
             "Requests that the policy was compared by, those of the sample and all others.",
             [](const ShadowReport& report) { return report.in_force.requests; });
  write_each(out, reports, "shadow_sampled_requests_total", "counter",
             "Of these, those of the sample.",
             [](const ShadowReport& report) { return report.sampled.requests; });
  write_each(out, reports, "shadow_in_force_hits_total", "counter",
             "Of these requests, hits of the cache itself.",
             [](const ShadowReport& report) { return report.in_force.hits; });
  write_each(out, reports, "shadow_written_bytes", "gauge",
             "Charge of what the policy would have stored, estimated.",
             [](const ShadowReport& report) { return report.estimated.bytes_written; });
  write_each(out, reports, "shadow_in_force_written_bytes", "gauge",
             "Charge of what the cache itself has stored meanwhile.",
             [](const ShadowReport& report) { return report.in_force.bytes_written; });
  write_each(out, reports, "shadow_memory_bytes", "gauge",
             "Memory of the simulation: index and admission.",
             [](const ShadowReport& report) { return report.memory_bytes; });
}

}  // namespace encore::server
