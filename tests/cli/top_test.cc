// The screen of encore top: what it shows, and that peers cannot write to the terminal by it.
#include "proxy/cli/top.h"

#include <algorithm>
#include <string>

#include "tests/catch.h"

namespace encore::cli {
namespace {

std::string json(const std::string& host, int clients) {
  std::string list;
  for (int i = 0; i < clients; ++i) {
    list += (i == 0 ? "" : ",") + std::string(R"({"name":"10.0.0.)") + std::to_string(i) +
            R"(","requests":600,"error":0})";
  }
  return R"({"name":"node7","version":"0.1.0","state":"ready","uptime_seconds":7500,
    "rates":{"seconds":10,"requests_per_second":{"hit":90,"miss":10,"pass":0,"error":0.5},
    "bytes_to_clients_per_second":2097152,"object_hit_ratio":0.9,"byte_hit_ratio":null,
    "latency_seconds":{"hit":{"p50":0.0001,"p90":0.0002,"p99":0.001},"miss":null}},
    "connections":{"clients":12,"origins":3},
    "cache":{"objects":1234,"used_bytes":1048576,"capacity_bytes":2097152},
    "names_seconds":60,
    "hosts_by_requests":[{"name":")" +
         host + R"(","requests":6000,"error":0},{"name":"doubtful","requests":10,"error":9}],
    "hosts_by_bytes":[{"name":")" +
         host + R"(","bytes":61440,"error":0}],
    "clients_by_requests":[)" +
         list + R"(],"clients_by_bytes":[]})";
}

TEST_CASE("the screen has ratios, rates, latencies, hosts and clients", "[cli][top]") {
  const auto screen = top_screen(json("a.example", 1), 40);
  REQUIRE(screen.has_value());
  CHECK(*screen ==
        "encore 0.1.0 on node7   ready, up 2h 5m\n"
        "requests  100/s: hits 90, misses 10, passed 0, errors 0.50\n"
        "hit ratio 90.0 % of requests, - of bytes   sent 2MiB/s\n"
        "latency   hits p50 0.10 ms, p90 0.20 ms, p99 1 ms; misses -\n"
        "cache     1MiB of 2MiB, 1234 responses   connections 12 clients, 3 origins\n"
        "\n"
        "top hosts  requests/s  bytes/s\n"
        "a.example         100     1KiB\n"
        "\n"
        "top clients  requests/s  bytes/s\n"
        "10.0.0.0             10        -\n");
}

TEST_CASE("the screen is no higher than the terminal", "[cli][top]") {
  for (const std::size_t lines : {13U, 24U, 60U}) {
    const auto screen = top_screen(json("a.example", 50), lines);
    REQUIRE(screen.has_value());
    CHECK(std::ranges::count(*screen, '\n') <= static_cast<std::ptrdiff_t>(lines));
  }
}

TEST_CASE("names cannot command the terminal", "[cli][top]") {
  const auto screen = top_screen(json(R"(\u001b[2Jevil\u0007)", 1), 40);
  REQUIRE(screen.has_value());
  CHECK(screen->find('\x1b') == std::string::npos);
  CHECK(screen->find('\a') == std::string::npos);
  CHECK(screen->find("?[2Jevil?") != std::string::npos);
}

TEST_CASE("what is no report is refused", "[cli][top]") {
  CHECK_FALSE(top_screen("", 40).has_value());
  CHECK_FALSE(top_screen("[]", 40).has_value());
  CHECK_FALSE(top_screen("{}", 40).has_value());
  CHECK(top_screen(R"({"rates":{}})", 40).has_value());
}

}  // namespace
}  // namespace encore::cli
