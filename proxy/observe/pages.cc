#include "proxy/observe/pages.h"

#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>

#include "proxy/observe/disk_metrics.h"
#include "proxy/observe/fleet_metrics.h"
#include "proxy/observe/metrics_writer.h"
#include "proxy/observe/origin_metrics.h"
#include "proxy/observe/shadow_pages.h"
#include "proxy/observe/traffic_metrics.h"

namespace encore::server {
namespace {

using Json = nlohmann::ordered_json;

std::uint64_t resident_bytes() {
  std::ifstream file("/proc/self/statm");
  std::uint64_t total_pages = 0;
  std::uint64_t resident_pages = 0;
  if (!(file >> total_pages >> resident_pages)) return 0;
  return resident_pages * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
}

void write_cache(MetricsWriter& out, const Snapshot& snapshot) {
  const cache::KernelStatistics& kernel = snapshot.kernel;
  out.one("cache_objects", "gauge", "Stored responses.", kernel.objects);
  out.one("cache_used_bytes", "gauge", "Memory charge of stored responses and reservations.",
          kernel.used_bytes);
  out.one("cache_capacity_bytes", "gauge", "Value of cache.memory.", kernel.capacity_bytes);
  out.one("cache_index_bytes", "gauge", "Memory of index and entries.", kernel.index_bytes);
  out.one("store_held_bytes", "gauge", "Memory that the store has allocated.",
          snapshot.store.held_bytes);
  out.one("store_live_bytes", "gauge", "Allocated memory in use.", snapshot.store.live_bytes);
  out.one("store_in_flight_bytes", "gauge", "Memory of bodies in flight.",
          snapshot.store.in_flight_bytes);
  out.one("store_pinned_bytes", "gauge", "Memory of evicted responses that are still being read.",
          snapshot.store.pinned_bytes);
  out.one("store_limit_bytes", "gauge", "Largest memory of the store.", snapshot.store.limit_bytes);
  out.one("transfer_memory_bytes", "gauge",
          "Response data buffered for clients that do not read it.",
          snapshot.transfer_memory_bytes);
#define ENCORE_KERNEL_SAMPLE(member, help) \
  out.one("cache_" #member "_total", "counter", help, kernel.counters.member);
  ENCORE_KERNEL_COUNTERS(ENCORE_KERNEL_SAMPLE)
#undef ENCORE_KERNEL_SAMPLE
  out.family("admissions_total", "counter", "Admission decisions by reason.");
  for (std::size_t i = 0; i < cache::kAdmitReasonCount; ++i) {
    out.sample("admissions_total",
               fmt::format("reason=\"{}\"", to_string(static_cast<cache::AdmitReason>(i))),
               kernel.counters.admissions[i]);
  }
}

// Figures of probation in front of the disks.
void write_probation(MetricsWriter& out, const Snapshot& snapshot) {
  const cache::KernelStatistics& kernel = snapshot.kernel;
  out.one("probation_objects", "gauge", "Stored responses on probation in memory.",
          kernel.waiting_objects);
  out.one("probation_bytes", "gauge", "Memory charge of responses on probation.",
          kernel.waiting_bytes);
  out.one("probation_keys", "gauge", "Keys on probation of responses too large for the memory.",
          snapshot.admission.keys_waiting);
  out.one("probation_hits_total", "counter", "Hits on responses on probation.",
          kernel.waiting_hits);
  out.one("probation_mean_bytes", "gauge", "Mean size of fetched responses.",
          snapshot.admission.mean_bytes);
  out.one("probation_window", "gauge",
          "Keys per generation in force, in objects that the full disks hold.", kernel.rule.window);
  out.one("probation_writes_all", "gauge", "1: the rule in force writes every response to disk.",
          kernel.rule.all ? 1 : 0);
}

void write_adopted(MetricsWriter& out, const cache::AdmissionStatistics& admission) {
  out.one("filter_adoptions_total", "counter", "Adopted filters of other caches.",
          admission.adoptions);
  out.one("filter_adopted_generations", "gauge",
          "Adopted generations still in use, the most of any shard.",
          admission.adopted.generations);
  out.one("filter_adopted_memory_bytes", "gauge", "Memory of adopted generations.",
          admission.adopted_memory_bytes);
  out.one("filter_adopted_answers_total", "counter", "Keys known only to an adopted generation.",
          admission.adopted.answers);
  out.family("filter_adopted_fpr", "gauge",
             "False-positive rate of adopted generations only; filter_fpr includes them.");
  out.sample("filter_adopted_fpr", "source=\"theory\"", admission.adopted.fpr_theory);
  out.sample("filter_adopted_fpr", "source=\"bits\"", admission.adopted.fpr_bits);
}

void write_filter(MetricsWriter& out, const cache::AdmissionStatistics& admission) {
  if (!admission.has_filter) return;
  out.family("filter_fill_ratio", "gauge", "Ratio of set bits, by generation.");
  for (std::size_t i = 0; i < admission.generations.size(); ++i) {
    out.sample("filter_fill_ratio", fmt::format("generation=\"{}\"", i == 0 ? "current" : "older"),
               admission.generations[i].fill);
  }
  out.family("filter_generation_insertions", "gauge", "Keys inserted, by generation.");
  for (std::size_t i = 0; i < admission.generations.size(); ++i) {
    out.sample("filter_generation_insertions",
               fmt::format("generation=\"{}\"", i == 0 ? "current" : "older"),
               admission.generations[i].insertions);
  }
  out.one("filter_insertions_total", "counter", "Keys inserted, refreshes included.",
          admission.insertions);
  out.one("filter_refreshes_total", "counter", "Keys copied from the older generation.",
          admission.refreshes);
  out.one("filter_rotations_total", "counter", "Rotations, over all shards.", admission.rotations);
  out.one("filter_memory_bytes", "gauge", "Memory of both generations.", admission.memory_bytes);
  write_adopted(out, admission);
  out.family("filter_fpr", "gauge", "False-positive rate: by theory, by the bits, measured.");
  const auto interval = admission.measured.interval();
  out.sample("filter_fpr", "source=\"theory\"", admission.fpr_theory);
  out.sample("filter_fpr", "source=\"bits\"", admission.fpr_bits);
  out.sample("filter_fpr", "source=\"measured\"", admission.measured.rate());
  out.sample("filter_fpr", "source=\"measured-low\"", interval.low);
  out.sample("filter_fpr", "source=\"measured-high\"", interval.high);
  out.one("filter_probes_total", "counter", "Sampled unseen keys tested against the filter.",
          admission.measured.asked);
  out.one("filter_false_positives_total", "counter", "Sampled unseen keys reported as seen.",
          admission.measured.false_positives);
  out.one("filter_false_negatives_total", "counter",
          "Sampled seen keys reported as new; must be 0.", admission.measured.false_negatives);
}

double seconds_of(Nanoseconds time) { return std::chrono::duration<double>(time).count(); }

std::string certificate_labels(const CertificateReport& report) {
  return fmt::format("listener=\"{}\",names=\"{}\",file=\"{}\"", label_value(report.listener),
                     label_value(report.names), label_value(report.file));
}

void write_certificates(MetricsWriter& out, std::span<const CertificateReport> certificates) {
  if (certificates.empty()) return;
  const auto write = [&](std::string_view name, std::string_view help,
                         Nanoseconds CertificateReport::* time) {
    out.family(name, "gauge", help);
    for (const CertificateReport& each : certificates) {
      out.sample(name, certificate_labels(each), std::floor(seconds_of(each.*time)));
    }
  };
  write("tls_certificate_expiry_seconds",
        "Remaining validity of a certificate for clients; negative: expired.",
        &CertificateReport::left);
  write("tls_certificate_lifetime_seconds", "Whole validity of a certificate for clients.",
        &CertificateReport::life);
  const auto write_flag = [&](std::string_view name, std::string_view help,
                              bool CertificateReport::* flag) {
    out.family(name, "gauge", help);
    for (const CertificateReport& each : certificates) {
      out.sample(name, certificate_labels(each), each.*flag ? 1 : 0);
    }
  };
  write_flag("tls_certificate_self_signed",
             "1: a self-signed certificate is served because the files do not exist.",
             &CertificateReport::is_stand_in);
  write_flag("tls_certificate_refused",
             "1: the files have changed and cannot be used; the previous certificate is served.",
             &CertificateReport::is_refused);
}

Json certificates_json(std::span<const CertificateReport> certificates) {
  Json out = Json::array();
  for (const CertificateReport& each : certificates) {
    out.push_back({{"listener", each.listener},
                   {"names", each.names},
                   {"file", each.file},
                   {"expiry_seconds", std::floor(seconds_of(each.left))},
                   {"self_signed", each.is_stand_in},
                   {"refused", each.is_refused}});
  }
  return out;
}

void write_intercept(MetricsWriter& out, const InterceptReport& report) {
  out.one("intercept_authority_expiry_seconds", "gauge",
          "Expiry of the CA of [intercept], in seconds since 1970.", report.authority_ends);
  out.one("intercept_certificates_made_total", "counter",
          "Certificates issued for intercepted hosts by this CA.", report.certificates_made);
  out.one("intercept_certificates", "gauge", "Cached certificates for intercepted hosts.",
          report.certificates_kept);
  out.one("intercept_rejected_pairs", "gauge",
          "Pairs of client and host that pass unread after refusals.", report.rejected);
}

Json rejected_pairs(const InterceptReport& report) {
  Json newest = Json::array();
  for (const InterceptReport::Rejected& each : report.newest) {
    newest.push_back({{"client", each.client},
                      {"host", each.host},
                      {"refusals", each.refusals},
                      {"seconds_left", each.seconds_left}});
  }
  return newest;
}

Json intercept_json(const InterceptReport& report) {
  return {{"authority", report.authority},
          {"authority_ends", report.authority_ends},
          {"hosts", report.hosts},
          {"certificates_made", report.certificates_made},
          {"certificates_kept", report.certificates_kept},
          {"rejected_pairs", report.rejected},
          {"rejected_newest", rejected_pairs(report)}};
}

Json servers_json(std::span<const ServerReport> servers) {
  Json out = Json::array();
  for (const ServerReport& server : servers) {
    const auto failed =
        std::chrono::floor<std::chrono::milliseconds>(server.last_failure.when.time_since_epoch());
    const bool any = !server.last_failure.why.empty();
    out.push_back({{"origin", server.origin},
                   {"server", server.server},
                   {"standing", server.standing},
                   {"requests", server.requests},
                   {"last_failure", any ? Json(server.last_failure.why) : Json(nullptr)},
                   {"last_failure_ms", any ? Json(failed.count()) : Json(nullptr)}});
#define ENCORE_JSON(member, meaning) out.back()[#member] = server.sums.member;
    ENCORE_SERVER_COUNTERS(ENCORE_JSON)
#undef ENCORE_JSON
    out.back()["connections"] = server.sums.connections;
    for (std::size_t i = 0; i < kServerFailureCount; ++i) {
      out.back()["failures"][std::string(kServerFailureNames[i])] = server.sums.failures[i];
    }
  }
  return out;
}

Json classes_json(const ClassCounts& requests) {
  Json out;
  for (std::size_t i = 0; i < kOutcomeClassCount; ++i) {
    out[std::string(kOutcomeClassNames[i])] = requests[i];
  }
  return out;
}

Json series_json(const SeriesReport& series) {
  Json out = {{"listeners", Json::array()}, {"rules", Json::array()}, {"errors", Json::array()}};
  for (const ListenerReport& each : series.listeners) {
    out["listeners"].push_back({{"name", each.name},
                                {"requests", classes_json(each.requests)},
                                {"sent_bytes", each.sent_bytes},
                                {"received_bytes", each.received_bytes},
                                {"accepted", each.accepted},
                                {"connections", each.open}});
  }
  for (const RuleReport& each : series.rules) {
    out["rules"].push_back({{"name", each.name},
                            {"requests", classes_json(each.requests)},
                            {"responses", each.responses}});
  }
  for (const ErrorReport& each : series.errors) {
    out["errors"].push_back(
        {{"outcome", each.outcome}, {"detail", each.detail}, {"count", each.count}});
  }
  return out;
}

Json requests_json(const Snapshot& snapshot) {
  Json outcomes;
  for (std::size_t i = 0; i < kOutcomeCount; ++i) {
    outcomes[std::string(kOutcomeNames[i])] = snapshot.requests[i];
  }
  return outcomes;
}

Json ratios_json(const Snapshot& snapshot) {
  const std::uint64_t hits = snapshot.requests_of(OutcomeClass::kHit);
  const std::uint64_t cacheable = hits + snapshot.requests_of(OutcomeClass::kMiss);
  const auto ratio = [](std::uint64_t part, std::uint64_t whole) {
    return whole == 0 ? 0.0 : static_cast<double>(part) / static_cast<double>(whole);
  };
  return {{"object_hit_ratio", ratio(hits, cacheable)},
          {"byte_hit_ratio", ratio(snapshot.body_bytes_hit, snapshot.body_bytes_all)}};
}

Json latency_json(const Snapshot& snapshot) {
  Json out;
  for (std::size_t group = 0; group < snapshot.latency.size(); ++group) {
    const LatencySnapshot& latency = snapshot.latency[group];
    const auto quantile = [&](double q) {
      const double value = latency.quantile(q);
      return std::isfinite(value) ? Json(value) : Json(nullptr);
    };
    out[std::string(kOutcomeClassNames[group])] = {
        {"count", latency.count},
        {"mean_seconds",
         latency.count == 0 ? 0.0 : latency.sum_seconds / static_cast<double>(latency.count)},
        {"p50_seconds", quantile(0.5)},
        {"p90_seconds", quantile(0.9)},
        {"p99_seconds", quantile(0.99)},
        {"p999_seconds", quantile(0.999)}};
  }
  return out;
}

Json admission_json(const Snapshot& snapshot) {
  const cache::AdmissionStatistics& admission = snapshot.admission;
  Json decisions;
  for (std::size_t i = 0; i < cache::kAdmitReasonCount; ++i) {
    decisions[std::string(to_string(static_cast<cache::AdmitReason>(i)))] =
        snapshot.kernel.counters.admissions[i];
  }
  Json out = {{"decisions", decisions}};
  if (snapshot.on_probation) {
    const cache::KernelStatistics& kernel = snapshot.kernel;
    out["probation"] = {{"objects", kernel.waiting_objects},  {"bytes", kernel.waiting_bytes},
                        {"keys", admission.keys_waiting},     {"hits", kernel.waiting_hits},
                        {"mean_bytes", admission.mean_bytes}, {"window", kernel.rule.window},
                        {"writes_all", kernel.rule.all},      {"chance", kernel.rule.chance}};
  }
  if (!admission.has_filter) return out;
  Json generations = Json::array();
  for (const filter::GenerationStatistics& generation : admission.generations) {
    generations.push_back({{"shard_bits", generation.parameters.bits},
                           {"hashes", generation.parameters.hashes},
                           {"layout", to_string(generation.parameters.layout)},
                           {"hash", to_string(generation.parameters.hash)},
                           {"insertions", generation.insertions},
                           {"fill", generation.fill},
                           {"fpr_theory", generation.fpr_theory}});
  }
  const auto interval = admission.measured.interval();
  out["filter"] = {{"capacity", admission.capacity},
                   {"insertions", admission.insertions},
                   {"refreshes", admission.refreshes},
                   {"rotations", admission.rotations},
                   {"memory_bytes", admission.memory_bytes},
                   {"shadow_bytes", admission.shadow_bytes},
                   {"generations", generations},
                   {"adopted",
                    {{"adoptions", admission.adoptions},
                     {"memories", admission.adopted.memories},
                     {"generations", admission.adopted.generations},
                     {"memory_bytes", admission.adopted_memory_bytes},
                     {"answers", admission.adopted.answers},
                     {"fpr_theory", admission.adopted.fpr_theory},
                     {"fpr_bits", admission.adopted.fpr_bits}}},
                   {"fpr_theory", admission.fpr_theory},
                   {"fpr_bits", admission.fpr_bits},
                   {"fpr_measured", admission.measured.rate()},
                   {"fpr_measured_low", interval.low},
                   {"fpr_measured_high", interval.high},
                   {"probes", admission.measured.asked},
                   {"false_positives", admission.measured.false_positives},
                   {"false_positives_expected", admission.measured.expected},
                   {"false_negatives", admission.measured.false_negatives}};
  return out;
}

Json device_json(const disk::DiskReport& device) {
  Json out = {{"path", device.path},
              {"condition", to_string(device.condition)},
              {"written_bytes",
               {{"admit", device.admit_bytes},
                {"move", device.move_bytes},
                {"format", device.format_bytes}}},
              {"segments_found", device.segments},
              {"segments_loaded", device.segments_loaded}};
  for (const DeviceFigure& figure : kDeviceFigures) {
    out[std::string(figure.name)] = device.*figure.member;
  }
  return out;
}

Json disk_json(const Snapshot& snapshot) {
  const cache::DiskStatistics& disk = snapshot.kernel.disk;
  Json out = {{"entries", disk.entries},
              {"parts", disk.parts},
              {"index_bytes", disk.index_bytes},
              {"write_amplification", disk.counters.write_amplification()}};
#define ENCORE_JSON(member, help) out[#member] = disk.counters.member;
  ENCORE_DISK_COUNTERS(ENCORE_JSON)
#undef ENCORE_JSON
  for (std::size_t i = 0; i < cache::kDiskOutcomeCount; ++i) {
    const std::string name(cache::kDiskOutcomeNames[i]);
    out["outcomes"][name] = disk.counters.outcomes[i];
    out["part_outcomes"][name] = disk.counters.part_outcomes[i];
  }
  for (std::size_t i = 0; i < cache::kDiskLossCount; ++i) {
    const std::string name(cache::kDiskLossNames[i]);
    out["losses"][name] = disk.counters.losses[i];
    out["part_losses"][name] = disk.counters.part_losses[i];
  }
  for (std::size_t i = 0; i < disk.disks.size(); ++i) {
    const cache::DiskStatistics::Disk& each = disk.disks[i];
    out["disks"].push_back({{"segments", each.segments},
                            {"free_segments", each.free_segments},
                            {"segment_bytes", each.segment_bytes},
                            {"objects", each.objects},
                            {"parts", each.parts},
                            {"live_bytes", each.live_bytes},
                            {"admitted_bytes", each.admitted_bytes},
                            {"moved_bytes", each.moved_bytes},
                            {"write_amplification", each.write_amplification()},
                            {"offline", each.offline},
                            {"loading", each.loading}});
    if (i < snapshot.devices.size()) {
      out["disks"].back()["device"] = device_json(snapshot.devices[i]);
    }
  }
  return out;
}

// Converts a label's value for PromQL: "client-connections".
std::string slug(std::string_view name) {
  std::string text(name);
  std::ranges::replace(text, ' ', '-');
  return text;
}

// Processes that this one has replaced.
void write_predecessors(MetricsWriter& out, const ProcessStatus& process) {
  out.one("predecessors", "gauge", "Replaced processes that still have clients.",
          process.predecessors.size());
  std::uint64_t connections = 0;
  std::uint64_t tunnels = 0;
  Nanoseconds oldest{};
  for (const PredecessorReport& each : process.predecessors) {
    connections += each.connections;
    tunnels += each.tunnels;
    oldest = std::max(oldest, each.replaced);
  }
  out.one("predecessor_connections", "gauge", "Their client connections.", connections);
  out.one("predecessor_tunnels", "gauge", "Their tunnels, WebSocket included.", tunnels);
  out.one("predecessor_age_seconds", "gauge", "Time since the oldest of them was replaced.",
          std::chrono::duration<double>(oldest).count());
}

void write_process(MetricsWriter& out, const ProcessStatus& process) {
  out.family("build_info", "gauge", "Version of the program.");
  out.sample("build_info", "version=\"" ENCORE_VERSION "\"", 1);
  out.one("ready", "gauge", "1: accepting requests; 0: draining.", process.ready ? 1 : 0);
  out.one("resident_bytes", "gauge", "Resident memory of the process.", resident_bytes());
  out.one("reloads_total", "counter", "Accepted reloads.", process.reloads);
  out.one("reload_failures_total", "counter", "Rejected reloads.", process.reload_failures);
  out.one("process_upgrade_failures_total", "counter",
          "Failed upgrades of the program; this process continued.", process.upgrade_failures);
  write_predecessors(out, process);
  if (process.fleet) write_fleet(out, *process.fleet);
  if (process.limits.empty()) return;
  const auto each = [&](std::string_view name, std::string_view help, auto value) {
    out.family(name, "gauge", help);
    for (const LimitReport& limit : process.limits) {
      if (limit.limit == 0) continue;
      out.sample(name, fmt::format("limit=\"{}\"", label_value(slug(limit.name))), value(limit));
    }
  };
  each("limit_used", "Used part of a limit.",
       [](const LimitReport& limit) { return limit.current; });
  each("limit_max", "Value of a limit.", [](const LimitReport& limit) { return limit.limit; });
}

}  // namespace

std::string metrics_text(const Snapshot& snapshot, const ProcessStatus& process) {
  MetricsWriter out;
  write_process(out, process);
  out.family("requests_total", "counter", "Requests by outcome.");
  for (std::size_t i = 0; i < kOutcomeCount; ++i) {
    out.sample("requests_total", fmt::format("outcome=\"{}\"", kOutcomeNames[i]),
               snapshot.requests[i]);
  }
  write_distributions(out, snapshot);
#define ENCORE_COUNTER_SAMPLE(member, name, help) out.one(name, "counter", help, snapshot.member);
  ENCORE_COUNTERS(ENCORE_COUNTER_SAMPLE)
  ENCORE_BODY_COUNTERS(ENCORE_COUNTER_SAMPLE)
#undef ENCORE_COUNTER_SAMPLE
#define ENCORE_GAUGE_SAMPLE(member, name, help) out.one(name, "gauge", help, snapshot.member);
  ENCORE_GAUGES(ENCORE_GAUGE_SAMPLE)
#undef ENCORE_GAUGE_SAMPLE
  write_http2(out, snapshot.http2);
  write_origin_http2(out, snapshot.origin_http2);
  write_certificates(out, snapshot.certificates);
  write_series(out, snapshot.series);
  write_origins(out, snapshot);
  if (snapshot.intercept) write_intercept(out, *snapshot.intercept);
  write_cache(out, snapshot);
  write_disks(out, snapshot.kernel.disk, snapshot.devices);
  if (snapshot.on_probation) {
    write_probation(out, snapshot);
    write_tuning_metrics(out, snapshot.shadows.tuning);
  }
  write_filter(out, snapshot.admission);
  write_shadow_metrics(out, snapshot.shadows);
  return out.take();
}

std::string rejected_json(const InterceptReport& report) {
  const Json out = {{"unread", report.rejected}, {"newest", rejected_pairs(report)}};
  return out.dump() + "\n";
}

std::string rejected_text(const InterceptReport& report) {
  std::string out = fmt::format("{} pairs of a client and a host pass unread\n", report.rejected);
  for (const InterceptReport::Rejected& each : report.newest) {
    const std::string state =
        each.seconds_left == 0 ? "decrypted" : fmt::format("unread for {} s", each.seconds_left);
    out += fmt::format("{} {} refusals {} {}\n", each.client, each.host, each.refusals, state);
  }
  return out;
}

std::string stats_json(const Snapshot& snapshot, const ProcessStatus& process) {
  Json counters;
#define ENCORE_JSON(member, name, help) counters[#member] = snapshot.member;
  ENCORE_COUNTERS(ENCORE_JSON)
  ENCORE_BODY_COUNTERS(ENCORE_JSON)
  ENCORE_GAUGES(ENCORE_JSON)
#undef ENCORE_JSON
  const cache::KernelStatistics& kernel = snapshot.kernel;
  Json cache = {{"objects", kernel.objects},
                {"used_bytes", kernel.used_bytes},
                {"reserved_bytes", kernel.reserved_bytes},
                {"capacity_bytes", kernel.capacity_bytes},
                {"index_bytes", kernel.index_bytes}};
#define ENCORE_JSON(member, help) cache[#member] = kernel.counters.member;
  ENCORE_KERNEL_COUNTERS(ENCORE_JSON)
#undef ENCORE_JSON
  const store::StoreStats& store = snapshot.store;
  const auto uptime = std::chrono::duration<double>(process.uptime);
  Json out = {{"version", ENCORE_VERSION},
              {"uptime_seconds", uptime.count()},
              {"workers", process.workers},
              {"resident_bytes", resident_bytes()},
              {"reloads", process.reloads},
              {"reload_failures", process.reload_failures},
              {"predecessors", process.predecessors.size()},
              {"upgrade_failures", process.upgrade_failures},
              {"fleet", process.fleet ? Json::parse(fleet_json(*process.fleet)) : Json(nullptr)},
              {"requests", requests_json(snapshot)},
              {"ratios", ratios_json(snapshot)},
              {"latency", latency_json(snapshot)},
              {"counters", counters},
              {"series", series_json(snapshot.series)},
              {"cache", cache},
              {"admission", admission_json(snapshot)},
              {"transfer_memory_bytes", snapshot.transfer_memory_bytes},
              {"store",
               {{"objects", store.objects},
                {"live_bytes", store.live_bytes},
                {"held_bytes", store.held_bytes},
                {"limit_bytes", store.limit_bytes},
                {"pinned_bytes", store.pinned_bytes},
                {"in_flight_bytes", store.in_flight_bytes},
                {"moved_objects", store.moved_objects},
                {"failed_requests", store.failed_requests}}}};
  if (!snapshot.certificates.empty()) {
    out["certificates"] = certificates_json(snapshot.certificates);
  }
  if (snapshot.intercept) out["intercept"] = intercept_json(*snapshot.intercept);
  if (!snapshot.servers.empty()) out["servers"] = servers_json(snapshot.servers);
  if (!kernel.disk.disks.empty()) out["disk"] = disk_json(snapshot);
  // Text about a server's failure need not be UTF-8.
  return out.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace encore::server
