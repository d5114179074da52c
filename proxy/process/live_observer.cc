#include "proxy/process/live_observer.h"

#include <unistd.h>

#include <algorithm>
#include <array>

#include "base/units.h"
#include "config/derive.h"

namespace encore::server {
namespace {

constexpr Nanoseconds kInterval = std::chrono::seconds(1);
constexpr std::size_t kLatestShown = RecentRequests::kLatest;

std::string host_name() {
  std::array<char, 256> name{};
  if (::gethostname(name.data(), name.size() - 1) != 0) return "encore";
  return name.data();
}

}  // namespace

// The row of the first check has all that was counted before it.
LiveObserver::LiveObserver(const std::unique_ptr<Proxy>& proxy, MonotonicTime started,
                           WallTime started_at)
    : proxy_(proxy), started_(started), started_at_(started_at) {
  history_.note({}, milliseconds(started));
}

std::vector<std::string> LiveObserver::warnings() const {
  const config::Config& config = proxy_->config();
  std::vector<std::string> all = config::admin_warnings(config.admin);
  const std::uint64_t connections = proxy_->shared().connections_max();
  if (!few_descriptors_.empty() && !peaks_.empty() && 2 * peaks_.front() >= connections) {
    all.push_back(few_descriptors_);
  }
  const std::uint64_t effective = config::effective_max_object(config);
  if (effective < config.cache.max_object_bytes) {
    all.push_back("cache.max_object is " + format_bytes(config.cache.max_object_bytes) +
                  ", and in effect " + format_bytes(effective) +
                  ": at most an eighth of the space, and a segment of each disk");
  }
  return all;
}

std::vector<LimitReport> LiveObserver::limits(const Snapshot& snapshot) const {
  const Shared& shared = proxy_->shared();
  const config::Config& config = proxy_->config();
  const std::uint64_t connections = shared.connections_allowed(config.limits);
  const std::uint64_t descriptors = shared.descriptors == UINT64_MAX ? 0 : shared.descriptors;
  return {
      {.name = "client connections",
       .current = snapshot.connections_open,
       .limit = connections,
       .refused = snapshot.connections_refused},
      {.name = "descriptors of clients and origins",
       .current = snapshot.connections_open + snapshot.origin_connections,
       .limit = descriptors},
      {.name = "cache memory",
       .is_bytes = true,
       .current = snapshot.kernel.used_bytes,
       .limit = snapshot.kernel.capacity_bytes,
       .refused = snapshot.kernel.counters.reserve_failures},
      {.name = "memory allocated for bodies",
       .is_bytes = true,
       .current = snapshot.store.held_bytes,
       .limit = snapshot.store.limit_bytes,
       .refused = snapshot.store.failed_requests},
      {.name = "memory of unread response data",
       .is_bytes = true,
       .current = snapshot.transfer_memory_bytes,
       .limit = config.limits.transfer_memory_bytes,
       .refused = snapshot.memory_failures},
      {.name = "name lookups in progress",
       .current = snapshot.dns_lookups,
       .limit = std::uint64_t{config.upstream.dns_lookups} * proxy_->workers().size(),
       .refused = snapshot.dns_limited},
      {.name = "connections to origins",
       .current = snapshot.origin_connections,
       .refused = snapshot.origin_busy},
  };
}

void LiveObserver::look(MonotonicTime now) {
  if (looked_ != MonotonicTime{} && now - looked_ < kInterval) return;
  // In step, but for who was late by more than a beat.
  looked_ = now - looked_ < 2 * kInterval ? looked_ + kInterval : now;
  const Snapshot snapshot = proxy_->sample();
  history_.note(snapshot, milliseconds(now));
  rates_.note(snapshot, milliseconds(now));
  const std::vector<LimitReport> reports = limits(snapshot);
  peaks_.resize(reports.size());
  for (std::size_t i = 0; i < reports.size(); ++i) {
    peaks_[i] = std::max(peaks_[i], reports[i].current);
  }
}

std::int64_t LiveObserver::milliseconds(MonotonicTime now) const {
  const auto at = started_at_.time_since_epoch() + (now - started_);
  return std::chrono::floor<std::chrono::milliseconds>(at).count();
}

LiveStatus LiveObserver::status(const Snapshot& snapshot) const {
  LiveStatus live;
  live.name = host_name();
  live.ready = ready_;
  live.last_reload = last_reload_;
  live.warnings = warnings();
  live.limits = limits(snapshot);
  for (std::size_t i = 0; i < live.limits.size(); ++i) {
    LimitReport& limit = live.limits[i];
    limit.peak = std::max(limit.current, i < peaks_.size() ? peaks_[i] : 0);
  }
  for (const auto& stats : proxy_->shared().stats) {
    stats->recent.add_hosts(live.hosts_by_bytes, live.hosts_by_hits);
  }
  live.rotate_after = proxy_->config().admission.rotate_after;
  live.now_ms = milliseconds(monotonic_now());
  return live;
}

OutcomeReport LiveObserver::outcome(Outcome outcome) const {
  OutcomeReport report;
  for (const auto& stats : proxy_->shared().stats) stats->recent.add_to(report, outcome);
  finish(report, kLatestShown);
  return report;
}

TopReport LiveObserver::top() const {
  const WallTime now = wall_now();
  TopReport report{.rates = rates_.rates(), .names = {}, .covered = RecentHitters::covered(now)};
  report.covered = std::min<Nanoseconds>(report.covered, monotonic_now() - started_);
  for (const auto& stats : proxy_->shared().stats) stats->recent.add_top(report.names, now);
  return report;
}

}  // namespace encore::server
