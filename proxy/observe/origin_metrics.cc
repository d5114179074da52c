#include "proxy/observe/origin_metrics.h"

#include <algorithm>
#include <array>
#include <map>
#include <string>
#include <vector>

#include "proxy/observe/series.h"

namespace encore::server {
namespace {

constexpr std::array<std::string_view, 3> kStandings = {"up", "aside", "down"};

// One server, or all that have no series of their own.
struct Line {
  std::string labels;
  ServerSums sums;
  std::uint64_t up = 0;  // how many of them
  std::uint64_t down = 0;
  std::uint64_t requests = 0;
};

std::string server_labels(std::string_view origin, std::string_view server) {
  return fmt::format("origin=\"{}\",server=\"{}\"", label_value(origin), label_value(server));
}

std::vector<Line> lines_of(const Snapshot& snapshot) {
  std::vector<Line> lines;
  const auto line_of = [&](std::string labels, const ServerSums& sums) -> Line& {
    const auto known = std::ranges::find(lines, labels, &Line::labels);
    if (known != lines.end()) return *known;
    return lines.emplace_back(Line{.labels = std::move(labels), .sums = sums});
  };
  const auto add = [](Line& line, const ServerReport& server) {
    line.up += server.standing == "up" ? 1U : 0U;
    line.down += server.standing == "down" ? 1U : 0U;
    line.requests += server.requests;
  };
  for (const ServerReport& server : snapshot.servers) {
    if (!server.has_series) continue;
    Line& line = line_of(server_labels(server.origin, server.server), server.sums);
    add(line, server);
    line.up = std::min<std::uint64_t>(line.up, 1);
    line.down = std::min<std::uint64_t>(line.down, 1);
  }
  for (const ServerReport& server : snapshot.servers) {
    if (server.has_series) continue;
    add(line_of(server_labels(kOtherSeries, kOtherSeries), snapshot.series.other_servers), server);
  }
  return lines;
}

class OriginWriter {
 public:
  OriginWriter(MetricsWriter& out, const std::vector<Line>& lines) : out_(out), lines_(lines) {}

  template <typename Get>
  void each(std::string_view name, std::string_view type, std::string_view help, Get get) {
    out_.family(name, type, help);
    for (const Line& line : lines_) out_.sample(name, line.labels, get(line));
  }
  void counter(std::string_view name, std::string_view help, std::uint64_t ServerSums::* member) {
    each(name, "counter", help, [member](const Line& line) { return line.sums.*member; });
  }
  void failures() {
    constexpr std::string_view kName = "origin_server_failures_total";
    out_.family(kName, "counter", "Failed attempts of a server, by kind.");
    for (const Line& line : lines_) {
      for (std::size_t i = 0; i < kServerFailureCount; ++i) {
        out_.sample(kName, fmt::format("{},kind=\"{}\"", line.labels, kServerFailureNames[i]),
                    line.sums.failures[i]);
      }
    }
  }
  void error_answers() {
    constexpr std::string_view kName = "origin_server_error_answers_total";
    out_.family(kName, "counter", "Responses of a server with an error status.");
    for (const Line& line : lines_) {
      out_.sample(kName, line.labels + ",status=\"4xx\"", line.sums.errors_4xx);
      out_.sample(kName, line.labels + ",status=\"5xx\"", line.sums.errors_5xx);
    }
  }
  void answer_times() {
    constexpr std::string_view kName = "origin_server_answer_seconds";
    out_.family(kName, "histogram", "Time from a request to the head of the server's response.");
    for (const Line& line : lines_) {
      HistogramWriter histogram(out_, kName, line.labels);
      for (std::size_t i = 0; i < kAnswerBuckets; ++i) {
        histogram.bucket(kAnswerBounds[i], line.sums.answer_times[i]);
      }
      histogram.finish(seconds(line.sums.answer_microseconds));
    }
  }
  static double seconds(std::uint64_t microseconds) {
    return static_cast<double>(microseconds) / 1e6;
  }

 private:
  MetricsWriter& out_;
  const std::vector<Line>& lines_;
};

// How many servers of each origin are in which state.
void write_standings(MetricsWriter& out, const std::vector<ServerReport>& servers) {
  constexpr std::string_view kName = "origin_servers";
  std::map<std::string, std::array<std::uint64_t, kStandings.size()>, std::less<>> origins;
  for (const ServerReport& server : servers) {
    auto& counts = origins[server.has_origin_series ? server.origin : std::string(kOtherSeries)];
    for (std::size_t i = 0; i < kStandings.size(); ++i) {
      counts.at(i) += server.standing == kStandings[i] ? 1U : 0U;
    }
  }
  out.family(kName, "gauge", "Servers of an origin by state: up, ejected, down.");
  for (const auto& [origin, counts] : origins) {
    for (std::size_t i = 0; i < kStandings.size(); ++i) {
      out.sample(kName,
                 fmt::format("origin=\"{}\",state=\"{}\"", label_value(origin), kStandings[i]),
                 counts.at(i));
    }
  }
}

}  // namespace

void write_origins(MetricsWriter& out, const Snapshot& snapshot) {
  if (snapshot.servers.empty()) return;
  write_standings(out, snapshot.servers);
  const std::vector<Line> lines = lines_of(snapshot);
  OriginWriter writer(out, lines);
  writer.each("origin_server_up", "gauge", "1: in use; 0: ejected or down.",
              [](const Line& line) { return line.up; });
  writer.each("origin_server_down", "gauge", "1: down by its health checks.",
              [](const Line& line) { return line.down; });
  writer.each("origin_server_requests", "gauge", "Requests to a server in progress.",
              [](const Line& line) { return line.requests; });
  writer.each("origin_server_connections", "gauge", "Open connections to a server.",
              [](const Line& line) { return line.sums.connections; });
  writer.counter("origin_server_sent_requests_total", "Requests sent to a server.",
                 &ServerSums::sent);
  writer.counter("origin_server_sent_bytes_total", "Bytes sent to a server.",
                 &ServerSums::sent_bytes);
  writer.counter("origin_server_received_bytes_total", "Bytes received from a server.",
                 &ServerSums::received_bytes);
  writer.counter("origin_server_connects_total", "Connections opened to a server.",
                 &ServerSums::connects);
  writer.each("origin_server_connect_seconds_total", "counter",
              "Time to open connections to a server, TLS included.", [](const Line& line) {
                return OriginWriter::seconds(line.sums.connect_microseconds);
              });
  writer.counter("origin_server_retries_total",
                 "Requests repeated, here or elsewhere, after a failure of a server.",
                 &ServerSums::retries);
  writer.failures();
  writer.error_answers();
  writer.answer_times();
}

}  // namespace encore::server
