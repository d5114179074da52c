#include "proxy/observe/traffic_metrics.h"

#include <cmath>
#include <limits>
#include <string>

namespace encore::server {
namespace {

std::string class_label(std::size_t group) {
  return fmt::format("class=\"{}\"", kOutcomeClassNames[group]);
}

void write_times(MetricsWriter& out, const Snapshot& snapshot) {
  constexpr std::string_view kName = "request_duration_seconds";
  out.family(kName, "histogram", "Time from the request's head to the response's last byte.");
  for (std::size_t group = 0; group < snapshot.latency.size(); ++group) {
    const LatencySnapshot& latency = snapshot.latency[group];
    const std::string labels = class_label(group);
    HistogramWriter histogram(out, kName, labels);
    std::uint64_t several = 0;
    for (std::size_t i = 0; i < kLatencyBuckets; ++i) {
      several += latency.buckets[i];
      const bool last = i + 1 == kLatencyBuckets;
      if (!last && i % 4 != 0) continue;  // one bucket a doubling on the wire
      histogram.bucket(latency_bucket_bound(i), several);
      several = 0;
    }
    histogram.finish(latency.sum_seconds);
  }
}

void write_sizes(MetricsWriter& out, const Snapshot& snapshot) {
  constexpr std::string_view kName = "response_body_bytes";
  constexpr std::size_t kSmallest = 3;  // 64 bytes: few care what is below
  out.family(kName, "histogram", "Sizes of response bodies as sent to clients.");
  for (std::size_t group = 0; group < snapshot.sizes.size(); ++group) {
    const SizeSnapshot& sizes = snapshot.sizes[group];
    const std::string labels = class_label(group);
    HistogramWriter histogram(out, kName, labels);
    std::uint64_t several = 0;
    for (std::size_t i = 0; i < kResponseSizeBuckets; ++i) {
      several += sizes.buckets[i];
      if (i < kSmallest) continue;
      const bool last = i + 1 == kResponseSizeBuckets;
      histogram.bucket(
          last ? std::numeric_limits<double>::infinity() : std::ldexp(1.0, 2 * static_cast<int>(i)),
          several);
      several = 0;
    }
    histogram.finish(sizes.sum);
  }
}

// Requests of each by class of outcome.
template <typename Report>
void write_requests(MetricsWriter& out, std::string_view kind, std::string_view help,
                    const std::vector<Report>& reports) {
  const std::string name = fmt::format("{}_requests_total", kind);
  out.family(name, "counter", help);
  for (const Report& each : reports) {
    for (std::size_t group = 0; group < kOutcomeClassCount; ++group) {
      out.sample(name,
                 fmt::format("{}=\"{}\",{}", kind, label_value(each.name), class_label(group)),
                 each.requests[group]);
    }
  }
}

void write_listeners(MetricsWriter& out, const std::vector<ListenerReport>& listeners) {
  if (listeners.empty()) return;
  const auto each = [&](std::string_view name, std::string_view type, std::string_view help,
                        std::uint64_t ListenerReport::* member) {
    out.family(name, type, help);
    for (const ListenerReport& listener : listeners) {
      out.sample(name, fmt::format("listener=\"{}\"", label_value(listener.name)),
                 listener.*member);
    }
  };
  write_requests(out, "listener", "Requests of a listener, by class of outcome.", listeners);
  each("listener_sent_bytes_total", "counter", "Bytes sent to clients of a listener.",
       &ListenerReport::sent_bytes);
  each("listener_received_bytes_total", "counter", "Bytes received from clients of a listener.",
       &ListenerReport::received_bytes);
  each("listener_accepted_connections_total", "counter", "Connections accepted by a listener.",
       &ListenerReport::accepted);
  each("listener_connections", "gauge", "Open connections of a listener.", &ListenerReport::open);
}

void write_rules(MetricsWriter& out, const std::vector<RuleReport>& rules) {
  if (rules.empty()) return;
  write_requests(out, "rule", "Requests matched by a rule, by class of outcome.", rules);
  constexpr std::string_view kResponses = "rule_responses_total";
  out.family(kResponses, "counter", "Origin responses matched by a rule.");
  for (const RuleReport& each : rules) {
    out.sample(kResponses, fmt::format("rule=\"{}\"", label_value(each.name)), each.responses);
  }
}

void write_errors(MetricsWriter& out, const std::vector<ErrorReport>& errors) {
  if (errors.empty()) return;
  constexpr std::string_view kName = "errors_total";
  out.family(kName, "counter", "Failed requests, by outcome and detail.");
  for (const ErrorReport& each : errors) {
    out.sample(kName,
               fmt::format("outcome=\"{}\",detail=\"{}\"", label_value(each.outcome),
                           label_value(each.detail)),
               each.count);
  }
}

}  // namespace

void write_distributions(MetricsWriter& out, const Snapshot& snapshot) {
  write_times(out, snapshot);
  write_sizes(out, snapshot);
}

void write_series(MetricsWriter& out, const SeriesReport& series) {
  write_listeners(out, series.listeners);
  write_rules(out, series.rules);
  write_errors(out, series.errors);
  constexpr std::string_view kClipped = "metrics_series_clipped";
  out.family(kClipped, "gauge", "Names counted as \"other\", without their own series.");
  const auto clipped = [&](std::string_view kind, std::size_t count) {
    out.sample(kClipped, fmt::format("kind=\"{}\"", kind), count);
  };
  clipped("listener", series.clipped.listeners);
  clipped("origin", series.clipped.origins);
  clipped("server", series.clipped.servers);
  clipped("rule", series.clipped.rules);
  clipped("error", series.clipped.errors);
}

}  // namespace encore::server
