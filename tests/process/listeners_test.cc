// Listeners that a reload opens, and those of ours that may stand in its way.
#include "proxy/process/listeners.h"

#include <string>
#include <utility>
#include <vector>

#include "tests/catch.h"

namespace encore::server {
namespace {

constexpr std::size_t kWorkers = 2;

config::Config config_of(const std::vector<std::string>& addresses) {
  config::Config config;
  config.listen.clear();
  for (const std::string& address : addresses) {
    config::Listen listen;
    listen.address = config::EndpointText(address);
    config.listen.push_back(std::move(listen));
  }
  return config;
}

// A port that nobody has.
std::string free_address() {
  Listeners listeners(1);
  const auto plan = listeners.plan(config_of({"127.0.0.1:0"}));
  REQUIRE(plan);
  return plan->front().bound.to_string();
}

auto adopted(Listeners& listeners, const std::vector<std::string>& addresses) {
  auto plan = listeners.plan(config_of(addresses));
  REQUIRE(plan);
  return listeners.adopt(std::move(*plan), TlsListeners(), {{}, {.workers = 2}, nullptr});
}

}  // namespace

TEST_CASE("what goes may come again before the last worker has closed it", "[process][listeners]") {
  const std::string first = free_address();
  const std::string second = free_address();
  Listeners listeners(kWorkers);
  // As the workers hold them, until they hear of the next change.
  auto sockets = adopted(listeners, {first, second});
  auto going = adopted(listeners, {first});
  for (std::size_t worker = 0; worker < kWorkers; ++worker) {
    CAPTURE(worker);
    CHECK(listeners.plan(config_of({first, second})));
    // Nothing was changed by that, and as often as one asks.
    CHECK(listeners.plan(config_of({first, second})));
    sockets[worker].clear();
    going[worker].clear();
  }
  // All have closed it: from now on it is asked for again whether another has it.
  CHECK(listeners.plan(config_of({first, second})));
}

TEST_CASE("a port that was ours is not taken from who has it since", "[process][listeners]") {
  const std::string first = free_address();
  const std::string second = free_address();
  Listeners listeners(kWorkers);
  auto sockets = adopted(listeners, {first, second});
  {
    const auto going = adopted(listeners, {first});
    CHECK(listeners.plan(config_of({first, second})));
  }
  // The workers say that they have closed it; the sockets that are left are another's.
  const auto plan = listeners.plan(config_of({first, second}));
  REQUIRE_FALSE(plan);
  CHECK(plan.error().message.find("in use") != std::string::npos);
}

TEST_CASE("a change that is not made leaves no port to anybody", "[process][listeners]") {
  const std::string first = free_address();
  const std::string second = free_address();
  Listeners listeners(kWorkers);
  Listeners other(kWorkers);
  auto sockets = adopted(listeners, {first});
  const auto others = adopted(other, {second});
  CHECK_FALSE(listeners.plan(config_of({second})));
  CHECK_FALSE(other.plan(config_of({first, second})));
  REQUIRE(listeners.plan(config_of({first})));
}

}  // namespace encore::server
