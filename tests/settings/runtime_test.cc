#include "proxy/settings/runtime.h"

#include <vector>

#include "tests/catch.h"

namespace encore::server {
namespace {

using std::chrono::milliseconds;

TEST_CASE("every limit on waiting is looked at often enough to be kept", "[server][runtime]") {
  // Limits that a sweep checks.
  const std::vector<Nanoseconds config::Timeouts::*> limits = {
      &config::Timeouts::tls_handshake,   &config::Timeouts::client_header,
      &config::Timeouts::client_idle,     &config::Timeouts::client_body,
      &config::Timeouts::client_write,    &config::Timeouts::origin_connect,
      &config::Timeouts::origin_response, &config::Timeouts::origin_idle,
      &config::Timeouts::tunnel_idle,     &config::Timeouts::upgrade_idle,
      &config::Timeouts::pool_idle,       &config::Timeouts::dns,
      &config::Timeouts::collapse};
  for (const auto limit : limits) {
    for (const int set : {1, 100, 500, 999, 1000, 1600, 2500, 5000, 16'000, 100'000}) {
      config::Timeouts timeouts;
      timeouts.*limit = milliseconds(set);
      const Nanoseconds late = sweep_interval(timeouts);
      CAPTURE(set, late.count());
      CHECK(late <= std::max<Nanoseconds>(milliseconds(250), milliseconds(set) / 10));
      CHECK(late >= milliseconds(100));
    }
  }
}

TEST_CASE("what is switched off is not looked for, and a look comes once a second at least",
          "[server][runtime]") {
  config::Timeouts timeouts;
  timeouts.tls_handshake = Nanoseconds(0);
  timeouts.collapse = Nanoseconds(0);
  timeouts.dns = milliseconds(6000);
  CHECK(sweep_interval(timeouts) == milliseconds(500));
  timeouts.dns = Nanoseconds(0);
  timeouts.origin_connect = Nanoseconds(0);
  CHECK(sweep_interval(timeouts) == milliseconds(1000));
}

}  // namespace
}  // namespace encore::server
