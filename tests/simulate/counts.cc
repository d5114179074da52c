#include "tests/simulate/counts.h"

#include <numeric>
#include <set>

#include "proxy/observe/outcome.h"

namespace encore::simulate {
namespace {

// That a TLS listener sends to who speaks plain HTTP.
constexpr std::uint64_t kPlainRefusalBytes = 157;

class Comparison {
 public:
  explicit Comparison(const std::function<void(const std::string&)>& on_fault)
      : on_fault_(on_fault) {}
  void same(std::uint64_t value, std::uint64_t wanted, const std::string& what) const {
    if (value != wanted) tell(value, "", wanted, what);
  }
  void at_most(std::uint64_t value, std::uint64_t most, const std::string& what) const {
    if (value > most) tell(value, "at most ", most, what);
  }

 private:
  void tell(std::uint64_t value, const char* how, std::uint64_t other,
            const std::string& what) const {
    on_fault_(what + ": " + std::to_string(value) + " counted, " + how + std::to_string(other) +
              " by the other account");
  }
  const std::function<void(const std::string&)>& on_fault_;
};

server::ServerSums sums_of(const server::Snapshot& counts) {
  server::ServerSums sums;
  std::set<std::string> seen;
  for (const server::ServerReport& each : counts.servers) {
    // Two with one URL are counted together.
    if (!seen.insert(each.server).second) continue;
    sums.sent += each.sums.sent;
    sums.sent_bytes += each.sums.sent_bytes;
    sums.received_bytes += each.sums.received_bytes;
    sums.connects += each.sums.connects;
    sums.retries += each.sums.retries;
    sums.answers += each.sums.answers;
    sums.connections += each.sums.connections;
  }
  return sums;
}

// Each number of a server is counted for all of them, too. A redirection leads to hosts that are
// none of the servers.
void compare_servers(const Counted& counted, const Comparison& compare) {
  const server::Snapshot& counts = counted.counts;
  const server::ServerSums sums = sums_of(counts);
  const auto same = [&](std::uint64_t value, std::uint64_t of_all, const std::string& what) {
    compare.at_most(value, of_all, what);
    if (!counted.has_rules) compare.at_most(of_all, value, "by server: " + what);
  };
  same(sums.sent, counts.origin_requests, "requests to origins");
  same(sums.sent_bytes, counts.bytes_to_origins, "bytes to origins");
  same(sums.received_bytes, counts.bytes_from_origins, "bytes from origins");
  same(sums.connects, counts.origin_connects, "connections to origins");
  same(sums.connections, counts.origin_connections, "open connections");
  compare.at_most(sums.answers, sums.sent, "answers of origins");
  if (!counted.has_rules) compare.at_most(counts.origin_retries, sums.retries, "repeated requests");
}

// Each answer that a client has was counted, whether there is a log or not.
void compare_answered(const Counted& counted, const Comparison& compare) {
  // A rule that was not there for a while begins anew.
  if (!counted.has_rules || counted.answered.tables.size() > 1) return;
  for (const server::RuleReport& rule : counted.counts.series.rules) {
    const auto found = counted.answered.by_rule.find(rule.name);
    if (found == counted.answered.by_rule.end()) continue;
    const std::uint64_t counts =
        std::accumulate(rule.requests.begin(), rule.requests.end(), std::uint64_t{0});
    compare.at_most(found->second, counts, "answers, of rule " + rule.name);
  }
}

}  // namespace

void compare_counts(const Counted& counted, const proxyfuzz::Accounts::Sums* logged,
                    const std::function<void(const std::string& what)>& on_fault) {
  const Comparison compare(on_fault);
  const server::Snapshot& counts = counted.counts;
  std::uint64_t requests = 0;
  for (const std::uint64_t each : counts.requests) requests += each;
  std::uint64_t timed = 0;
  for (const auto& each : counts.latency) timed += each.count;
  std::uint64_t content = 0;
  for (const auto& each : counts.sizes) content += each.sum;
  compare.same(timed, requests, "requests, by their latencies");
  std::uint64_t by_listener = 0;
  std::uint64_t sent = 0;
  std::uint64_t received = 0;
  for (const auto& each : counts.series.listeners) {
    for (const std::uint64_t count : each.requests) by_listener += count;
    sent += each.sent_bytes;
    received += each.received_bytes;
  }
  compare.same(by_listener, requests, "requests, by listener");
  // Plain bytes to a client that should speak TLS are no answer to a request.
  const std::uint64_t plain = counts.tls_plain_http * kPlainRefusalBytes;
  compare.same(sent + plain, counts.bytes_to_clients, "bytes to clients, by listener");
  compare.same(received, counts.bytes_from_clients, "bytes from clients, by listener");
  if (counted.is_reverse) compare_servers(counted, compare);
  if (counted.is_plain) {
    const System::Traffic& moved = counted.traffic;
    // Each byte once, and none that no socket took, but for refusals and hits over HTTP/2: these
    // are counted when they are queued, and their client may be gone before the write.
    if (logged != nullptr) {
      compare.at_most(counts.bytes_to_clients, moved.to_clients + logged->untaken,
                      "bytes to clients");
    }
    // Frames of HTTP/2 that belong to no response are not counted.
    if (!counted.has_tunnels && !counted.has_breaks && !counted.has_http2) {
      compare.at_most(moved.to_clients, counts.bytes_to_clients,
                      "bytes that clients' sockets took");
    }
    compare.at_most(counts.bytes_from_clients, moved.from_clients, "bytes from clients");
    if (!counted.has_tunnels && !counted.has_http2_origins) {
      compare.same(counts.bytes_to_origins, moved.to_origins, "bytes to origins");
      compare.at_most(counts.bytes_from_origins, moved.from_origins, "bytes from origins");
    }
  }
  compare_answered(counted, compare);
  if (logged == nullptr) return;
  compare.same(requests, logged->requests, "requests, in the log");
  compare.same(counts.bytes_to_clients, logged->bytes + plain, "bytes to clients, in the log");
  compare.same(content, logged->content, "bytes of content, in the log");
  for (const server::RuleReport& rule : counts.series.rules) {
    if (!counted.has_rules) break;
    std::uint64_t of_rule = 0;
    for (const std::uint64_t count : rule.requests) of_rule += count;
    const auto found = logged->rules.find(rule.name);
    const std::uint64_t known = found == logged->rules.end() ? 0 : found->second;
    // A rule that was not there for a while begins anew.
    compare.at_most(of_rule, known, "requests, of rule " + rule.name);
    if (logged->tables.size() <= 1) {
      compare.same(of_rule, known, "requests, of rule " + rule.name);
    }
  }
  for (std::size_t i = 0; i < server::kOutcomeCount; ++i) {
    const std::string_view outcome = server::to_string(static_cast<server::Outcome>(i));
    const auto found = logged->outcomes.find(outcome);
    compare.same(counts.requests[i], found == logged->outcomes.end() ? 0 : found->second,
                 "requests, of outcome " + std::string(outcome));
  }
}

}  // namespace encore::simulate
