#include "proxy/process/series_reports.h"

#include <set>
#include <string>

#include "base/check.h"
#include "proxy/observe/series.h"

namespace encore::server {
namespace {

std::string_view name_of(ServerGroup::Standing standing) {
  switch (standing) {
    case ServerGroup::Standing::kUp:
      return "up";
    case ServerGroup::Standing::kAside:
      return "aside";
    case ServerGroup::Standing::kDown:
      return "down";
  }
  return "up";
}

void add(ClassCounts& sums, const std::array<Counter, kOutcomeClassCount>& part) {
  for (std::size_t i = 0; i < sums.size(); ++i) sums[i] += part[i].get();
}

std::vector<ListenerReport> listener_reports(const Runtime& runtime) {
  std::vector<ListenerReport> reports;
  runtime.listeners.each([&](std::string_view name, const PerWorker<ListenerCounts>& counts) {
    ListenerReport& report = reports.emplace_back();
    report.name = name;
    counts.each([&](const ListenerCounts& part) {
      add(report.requests, part.requests);
      report.sent_bytes += part.sent_bytes.get();
      report.received_bytes += part.received_bytes.get();
      report.accepted += part.accepted.get();
      report.open += part.open.get();
    });
  });
  return reports;
}

std::vector<RuleReport> rule_reports(const Runtime& runtime) {
  std::vector<RuleReport> reports;
  runtime.rules.series().each([&](std::string_view name, const PerWorker<RuleCounts>& counts) {
    RuleReport& report = reports.emplace_back();
    report.name = name;
    counts.each([&](const RuleCounts& part) {
      add(report.requests, part.requests);
      report.responses += part.responses.get();
    });
  });
  return reports;
}

std::vector<ErrorReport> error_reports(const Shared& shared) {
  const auto count_at = [&](std::size_t place) {
    std::uint64_t count = 0;
    for (const auto& stats : shared.stats) count += stats->errors.at(place);
    return count;
  };
  std::vector<ErrorReport> reports;
  const auto names = shared.errors.names();
  for (std::size_t i = 0; i < names.size(); ++i) {
    reports.push_back({.outcome = std::string(to_string(names[i].outcome)),
                       .detail = names[i].detail,
                       .count = count_at(i)});
  }
  if (const std::uint64_t others = count_at(ErrorNames::kOther); others != 0) {
    const std::string name(kOtherSeries);
    reports.push_back({.outcome = name, .detail = name, .count = others});
  }
  return reports;
}

}  // namespace

std::vector<ServerReport> server_reports(const Runtime& runtime) {
  std::vector<ServerReport> reports;
  const Router::Series& series = runtime.router.series();
  std::set<const Route*> seen;
  for (const config::Origin& origin : runtime.config.origin) {
    const Route* route = runtime.router.find(origin.host, origin.path);
    ENCORE_CHECK(route != nullptr, "each origin of a config has its route");
    if (!seen.insert(route).second) continue;  // the first of two with one host and path is asked
    const auto states = route->group().look();
    for (std::size_t i = 0; i < states.size(); ++i) {
      const OriginServer& server = route->group().servers()[i];
      const std::string name = origin.host + origin.path;
      const ServerCounters& counters = *route->group().counters(server);
      reports.push_back({.origin = name,
                         .server = server.url,
                         .standing = name_of(states[i].standing),
                         .requests = states[i].active,
                         .sums = counters.sums(),
                         .last_failure = counters.last_failure(),
                         .has_series = series.servers.has(server_series(name, server.url)),
                         .has_origin_series = series.origins.has(name)});
    }
  }
  return reports;
}

SeriesReport series_report(const Runtime& runtime, const Shared& shared) {
  const Router::Series& origins = runtime.router.series();
  return {.listeners = listener_reports(runtime),
          .rules = rule_reports(runtime),
          .errors = error_reports(shared),
          .other_servers = origins.others->sums(),
          .clipped = {.listeners = runtime.listeners.clipped(),
                      .origins = origins.origins.clipped(),
                      .servers = origins.servers.clipped(),
                      .rules = runtime.rules.series().clipped(),
                      .errors = shared.errors.clipped()}};
}

}  // namespace encore::server
