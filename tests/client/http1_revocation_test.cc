// Connections of HTTP/1 that a reload no longer allows.
#include <string>

#include "tests/catch.h"
#include "tests/client/client_world.h"

namespace encore::server {
namespace {

struct Reloading {
  explicit Reloading(config::Mode mode = config::Mode::kReverse)
      : world(mode, [&](config::Config& config) { changed = config; }), client(world) {
    world.keep_records();
  }
  void reload() { world.world.runtime = *Runtime::create(changed, {}, "test"); }
  void deny_client() {
    changed.listen.front().deny_clients = {"127.0.0.0/8"};
    reload();
  }
  std::uint64_t revoked() const { return world.world.stats.connections_revoked.get(); }

  config::Config changed;
  ClientWorld world;
  Client client;
};

TEST_CASE("an idle connection whose client is no longer allowed closes", "[client][revocation]") {
  Reloading r;
  r.reload();
  CHECK_FALSE(r.client.connection().revoke());
  CHECK_FALSE(r.client.connection().is_revoked());
  CHECK(r.revoked() == 0);
  r.deny_client();
  CHECK_FALSE(r.client.connection().revoke());  // nothing is left to be cut
  CHECK(r.revoked() == 1);
  CHECK(r.world.connections() == 0);
  r.world.run_until([&] { return r.client.is_over(); });
  CHECK(r.client.ended);
  CHECK(r.world.records() == 0);
}

TEST_CASE("a request whose client is no longer allowed has until it is cut",
          "[client][revocation]") {
  Reloading r;
  r.client.say("GET /x HTTP/1.1\r\nHost: h\r\n\r\n");
  r.world.run_until_asked();
  r.deny_client();
  CHECK(r.client.connection().revoke());
  CHECK(r.client.connection().revoke());
  CHECK(r.client.connection().is_revoked());
  CHECK(r.revoked() == 1);
  CHECK(r.world.records() == 0);
  if (GENERATE(true, false)) {
    r.client.connection().cut_revoked({.outcome = Outcome::kDenied, .detail = "revoked"});
    CHECK(r.world.record()["outcome"] == "denied");
    CHECK(r.world.record()["detail"] == "revoked");
    CHECK(r.world.record()["status"] == 0);
  } else {
    r.world.answer("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
    r.world.run_until([&] { return r.client.heard.ends_with("\r\n\r\nok"); });
    CHECK(r.world.record()["status"] == 200);
  }
  CHECK(r.world.records() == 1);
}

TEST_CASE("a reload that allows the client again leaves its connection", "[client][revocation]") {
  Reloading r;
  r.client.say("GET /x HTTP/1.1\r\nHost: h\r\n\r\n");
  r.world.run_until_asked();
  r.deny_client();
  CHECK(r.client.connection().revoke());
  r.changed.listen.front().deny_clients = {};
  r.reload();
  CHECK_FALSE(r.client.connection().revoke());
  CHECK_FALSE(r.client.connection().is_revoked());
  CHECK(r.revoked() == 1);
}

TEST_CASE("a tunnel whose port is no longer allowed is revoked", "[client][revocation]") {
  Reloading r(config::Mode::kForward);
  const std::string target = "127.0.0.1:" + std::to_string(r.world.origin.port());
  r.client.say("CONNECT " + target + " HTTP/1.1\r\nHost: " + target + "\r\n\r\n");
  r.world.run_until([&] { return r.world.world.stats.tunnels_open.get() == 1; });
  r.reload();
  CHECK_FALSE(r.client.connection().revoke());
  r.changed.forward.connect_ports = {443};
  r.reload();
  CHECK(r.client.connection().revoke());
  r.client.connection().cut_revoked({.outcome = Outcome::kDenied, .detail = "revoked"});
  r.world.run_until([&] { return r.client.is_over(); });
  CHECK(r.world.record()["outcome"] == "denied");
  CHECK(r.world.record()["detail"] == "revoked");
  CHECK(r.world.record()["status"] == 200);
  r.world.run_turns(2);
  CHECK(r.world.world.stats.tunnels_open.get() == 0);
}

}  // namespace
}  // namespace encore::server
