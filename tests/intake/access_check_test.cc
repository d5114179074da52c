// AccessCheck: a listener's lists, its redirection and its limits.
#include "proxy/intake/access_check.h"

#include <chrono>
#include <memory>
#include <string>

#include "tests/catch.h"
#include "tests/request/requests.h"

namespace encore::server {
namespace {

using config::Mode;

// A request as a reverse listener with these settings sees it.
class Asked : public Requests {
 public:
  explicit Asked(const config::Listen& listen, std::string_view lines,
                 std::shared_ptr<const RateLimits> rates = {}, const char* from = "192.0.2.1")
      : Requests(one_route()), policy(ListenerPolicy::make(listen, std::move(rates)).value()) {
    REQUIRE(policy != nullptr);
    REQUIRE(make(Mode::kReverse, lines, from).status == 0);
    view.policy = policy.get();
  }
  AccessCheck check() const { return AccessCheck(*policy, *view.head, view, client); }

  std::unique_ptr<const ListenerPolicy> policy;

 private:
  static config::Config one_route() {
    config::Config config;
    config.origin = {{}};
    return config;
  }
};

config::Listen listen_with(const std::function<void(config::Listen&)>& change) {
  config::Listen listen;
  listen.mode = Mode::kReverse;
  change(listen);
  return listen;
}

constexpr std::string_view kGetWithDots = "GET /a/../b?q HTTP/1.1\nHost: H.example:8080\n";

}  // namespace

TEST_CASE("lists see the request as its origin will get it", "[intake][access]") {
  const auto refused = [](const auto& change, std::string_view lines = kGetWithDots) {
    return std::string(Asked(listen_with(change), lines).check().refused_by_lists());
  };
  CHECK(refused([](auto& listen) { listen.deny_paths = {"/b"}; }) == "path-not-allowed");
  CHECK(refused([](auto& listen) { listen.allow_paths = {"/*"}; }) == "");
  CHECK(refused([](auto& listen) { listen.deny_hosts = {"h.example"}; }) == "host-not-allowed");
  CHECK(refused([](auto& listen) { listen.allow_ports = {"80"}; }) == "port-not-allowed");
  CHECK(refused([](auto& listen) { listen.allow_methods = {"HEAD"}; }) == "method-not-allowed");
  CHECK(refused([](auto& listen) { listen.deny_clients = {"192.0.2.0/24"}; }) ==
        "client-not-allowed");
  CHECK(refused([](auto& listen) { listen.allow_paths = {"/*"}; },
                "OPTIONS * HTTP/1.1\nHost: h\n") != "");
}

TEST_CASE("the connection stays for clients that may come", "[intake][access]") {
  const Asked named(listen_with([](auto& listen) { listen.deny_hosts = {"*"}; }), kGetWithDots);
  const auto refusal = named.check().refuse_by_lists();
  REQUIRE(refusal);
  CHECK(refusal->status == 403);
  CHECK(refusal->outcome == Outcome::kDenied);
  CHECK(refusal->further == Refusal::Further::kMayStay);
  const Asked stranger(listen_with([](auto& listen) { listen.allow_clients = {"10.0.0.0/8"}; }),
                       kGetWithDots);
  CHECK(stranger.check().refuse_by_lists()->further == Refusal::Further::kEnds);
  const Asked allowed(listen_with([](auto& listen) { listen.deny_hosts = {"other"}; }),
                      kGetWithDots);
  CHECK_FALSE(allowed.check().refuse_by_lists());
}

TEST_CASE("clients that ask by http are sent to https", "[intake][access]") {
  const auto by_https = [](std::uint32_t port) {
    return listen_with([&](auto& listen) {
      listen.redirect_https = true;
      listen.redirect_https_port = port;
    });
  };
  Asked asked(by_https(443), kGetWithDots);
  const auto refusal = asked.check().redirect();
  REQUIRE(refusal);
  CHECK(refusal->status == 301);
  CHECK(refusal->fields == "Location: https://h.example/a/../b?q\r\n");
  CHECK(refusal->further == Refusal::Further::kEnds);
  asked.view.secure = true;
  CHECK_FALSE(asked.check().redirect());
  asked.view.secure = false;
  asked.view.purges = true;
  CHECK_FALSE(asked.check().redirect());
  const Asked other(by_https(8443), "POST / HTTP/1.1\nHost: [2001:DB8::1]\nContent-Length: 0\n");
  CHECK(other.check().redirect()->status == 308);
  CHECK(other.check().redirect()->fields == "Location: https://[2001:db8::1]:8443/\r\n");
  CHECK_FALSE(Asked(listen_with([](auto& listen) { listen.via = false; }), kGetWithDots)
                  .check()
                  .redirect());
}

TEST_CASE("a request that comes too often waits for its turn", "[intake][access]") {
  using std::chrono::seconds;
  config::RateLimit limit;
  limit.rate = 1;
  limit.burst = 1;
  const auto rates = std::make_shared<const RateLimits>(std::vector{limit});
  const Asked asked(listen_with([](auto&) {}), kGetWithDots, rates);
  const MonotonicTime start{seconds(100)};
  CHECK(asked.check().take_turn(start).count() == 0);
  CHECK(asked.check().take_turn(start) == seconds(1));
  CHECK(asked.check().take_turn(start + seconds(1)).count() == 0);
  const Asked free(listen_with([](auto& listen) { listen.via = false; }), kGetWithDots);
  CHECK(free.check().take_turn(start).count() == 0);
}

}  // namespace encore::server
