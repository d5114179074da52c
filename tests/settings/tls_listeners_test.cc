// TlsListeners: what it makes of a configuration, and what it says when files change.
#include "proxy/settings/tls_listeners.h"

#include <filesystem>
#include <string>
#include <vector>

#include "tests/catch.h"
#include "tests/temporary_directory.h"

namespace encore::server {
namespace {

using Names = std::vector<std::string>;

config::Listen listener_of(const TemporaryDirectory& place) {
  config::Listen listen;
  listen.mode = config::Mode::kReverse;
  listen.tls = {config::TlsPairText("certificate=" + (place / "a.pem") +
                                    "\nkey=" + (place / "a.key") + "\nmissing=self-signed\n")};
  return listen;
}

}  // namespace

TEST_CASE("a self-signed certificate is for the names of origins", "[settings][tls]") {
  config::Config config;
  config::Listen reverse;
  reverse.mode = config::Mode::kReverse;
  CHECK(stand_in_names(config, reverse) == Names{"localhost"});
  for (const char* host : {"*", "a.example", "*.b.example", "192.0.2.1", "a.example",
                           "[2001:db8::1]", "c.example,email:x"}) {
    config.origin.emplace_back().host = host;
  }
  CHECK(stand_in_names(config, reverse) == Names{"a.example", "*.b.example"});
  config::Listen forward;
  CHECK(stand_in_names(config, forward) == Names{"localhost"});
  for (int i = 0; i < 200; ++i) config.origin.emplace_back().host = "h" + std::to_string(i) + ".x";
  CHECK(stand_in_names(config, reverse).size() == 100);
}

TEST_CASE("a fault of a file is said once, and goes with it", "[settings][tls]") {
  const TemporaryDirectory place;
  config::Config config;
  config.listen = {listener_of(place)};
  const auto made = TlsListeners::create(config, nullptr);
  REQUIRE(made.has_value());
  auto reports = known_certificates(config, *made, wall_now());
  REQUIRE(reports.size() == 1);
  CHECK(reports[0].is_stand_in);
  CHECK(stand_in_text(reports[0]).contains(place / "a.pem"));
  const std::vector<bool> due = {true};
  CHECK(made->renew(config, due).listeners == nullptr);
  write_text(place / "a.pem", "no certificate");
  write_text(place / "a.key", "no key");
  CHECK(made->renew(config, {false}).listeners == nullptr);
  const auto refused = made->renew(config, due);
  REQUIRE(refused.listeners != nullptr);
  REQUIRE(refused.faults.size() == 1);
  CHECK(refused.faults[0].contains(place / "a.key"));
  CHECK(refused.listeners->of(0) == made->of(0));
  CHECK(known_certificates(config, *refused.listeners, wall_now())[0].is_refused);
  const auto again = refused.listeners->renew(config, due);
  CHECK(again.listeners == nullptr);
  CHECK(again.faults.empty());
  std::filesystem::remove(place / "a.key");
  const auto gone = refused.listeners->renew(config, due);
  REQUIRE(gone.listeners != nullptr);
  CHECK(gone.faults.empty());
  CHECK_FALSE(known_certificates(config, *gone.listeners, wall_now())[0].is_refused);
}

}  // namespace encore::server
