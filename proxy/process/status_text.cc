#include "proxy/process/status_text.h"

#include <fmt/core.h>

#include <chrono>
#include <nlohmann/json.hpp>

#include "base/readable.h"
#include "base/units.h"
#include "config/derive.h"

namespace encore::server {
namespace {

// As long as an operator may watch a start.
constexpr Nanoseconds kAfterStart = std::chrono::hours(1);

void append_line(std::string& out, std::string_view label, std::string_view text) {
  out += fmt::format("{:<16}{}\n", label, text);
}

std::string counted(std::uint64_t count, std::string_view noun) {
  return fmt::format("{} {}{}", count, noun, count == 1 ? "" : "s");
}

// How a command line reaches the admin listener.
std::string curl_of(const config::Config& config) {
  const config::Endpoint endpoint = config::admin_endpoints(config.admin).front();
  std::string text = "curl -X POST ";
  if (!config.admin.token_file.empty()) {
    text += "-H \"Authorization: Bearer $(cat " + config.admin.token_file + ")\" ";
  }
  if (!endpoint.socket.empty()) {
    return text + "--unix-socket " + endpoint.socket + " http://localhost/purge -d all=1";
  }
  std::string address = config::to_string(endpoint);
  if (address.starts_with("[::]:")) address.replace(0, 4, "127.0.0.1");
  return text + address + "/purge -d all=1";
}

}  // namespace

std::string status_text(const config::Config& config, const LiveStatus& live,
                        const Snapshot& snapshot, const ProcessStatus& process) {
  const auto uptime = std::chrono::floor<std::chrono::seconds>(process.uptime);
  std::string out;
  append_line(out, "state",
              fmt::format("{} {}, up {}, {}, {} refused", ENCORE_VERSION,
                          live.ready ? "ready" : "draining", about_duration(uptime),
                          counted(process.reloads, "reload"), process.reload_failures));
  for (const PredecessorReport& each : process.predecessors) {
    append_line(
        out, "predecessor",
        fmt::format("process {}, {}, {}, replaced {} ago", each.process,
                    counted(each.connections, "connection"), counted(each.tunnels, "tunnel"),
                    about_duration(std::chrono::floor<std::chrono::seconds>(each.replaced))));
  }
  std::uint64_t requests = 0;
  for (const std::uint64_t each : snapshot.requests) requests += each;
  append_line(
      out, "requests",
      fmt::format("{}, hits {}, errors {}", requests, snapshot.requests_of(OutcomeClass::kHit),
                  snapshot.requests_of(OutcomeClass::kError)));
  append_line(out, "memory",
              fmt::format("{}, {} of {}", counted(snapshot.kernel.objects, "response"),
                          format_bytes(snapshot.kernel.used_bytes),
                          format_bytes(snapshot.kernel.capacity_bytes)));
  std::uint64_t found = 0;
  for (const disk::DiskReport& device : snapshot.devices) {
    found += device.segments;
    append_line(out, "disk",
                fmt::format("{}: {}, {} at the start", device.path, to_string(device.condition),
                            counted(device.segments, "segment")));
  }
  append_line(out, "overtaken", counted(snapshot.overtaken, "response") + " not stored");
  append_line(out, "refused purges", std::to_string(snapshot.purges_refused));
  for (const std::string& warning : live.warnings) append_line(out, "warning", warning);
  if (found == 0 || config.cache.purge_at_start || process.uptime >= kAfterStart) return out;
  append_line(out, "note",
              "The disks serve objects from before the start. If the site was edited while the "
              "proxy was down, purge all:");
  append_line(out, "", curl_of(config));
  append_line(out, "", "cache.purge_at_start = true does so at every start.");
  return out;
}

std::string status_json(const LiveStatus& live, const Snapshot& snapshot,
                        const ProcessStatus& process) {
  using Json = nlohmann::ordered_json;
  Json requests = Json::object();
  for (std::size_t i = 0; i < kOutcomeClassCount; ++i) {
    requests[std::string(kOutcomeClassNames[i])] =
        snapshot.requests_of(static_cast<OutcomeClass>(i));
  }
  Json disks = Json::array();
  for (const disk::DiskReport& device : snapshot.devices) {
    disks.push_back({{"path", device.path},
                     {"condition", to_string(device.condition)},
                     {"segments_at_start", device.segments}});
  }
  Json predecessors = Json::array();
  for (const PredecessorReport& each : process.predecessors) {
    predecessors.push_back(
        {{"process", each.process},
         {"connections", each.connections},
         {"tunnels", each.tunnels},
         {"replaced_seconds", std::chrono::duration<double>(each.replaced).count()}});
  }
  Json reload = nullptr;
  if (live.last_reload) reload = live.last_reload->fault.empty() ? "done" : live.last_reload->fault;
  const Json out = {
      {"name", live.name},
      {"version", ENCORE_VERSION},
      {"state", live.ready ? "ready" : "draining"},
      {"uptime_seconds", std::chrono::duration<double>(process.uptime).count()},
      {"workers", process.workers},
      {"reloads", process.reloads},
      {"reload_failures", process.reload_failures},
      {"last_reload", reload},
      {"upgrade_failures", process.upgrade_failures},
      {"predecessors", predecessors},
      {"requests", requests},
      {"connections",
       {{"clients", snapshot.connections_open}, {"origins", snapshot.origin_connections}}},
      {"cache",
       {{"objects", snapshot.kernel.objects},
        {"used_bytes", snapshot.kernel.used_bytes},
        {"capacity_bytes", snapshot.kernel.capacity_bytes}}},
      {"disks", disks},
      {"overtaken", snapshot.overtaken},
      {"purges_refused", snapshot.purges_refused},
      {"warnings", live.warnings}};
  return out.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace encore::server
