// Connections of HTTP/1 that a reload no longer allows.
#include <memory>
#include <string>
#include <vector>

#include "proxy/net/tls_server.h"
#include "tests/catch.h"
#include "tests/client/client_world.h"
#include "tests/net/certificates.h"

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

TEST_CASE("a large hit that a rule no longer allows is cut while it is sent",
          "[client][revocation]") {
  Reloading r;
  const std::string body(2'000'000, 'x');
  r.client.say("GET /big HTTP/1.1\r\nHost: h\r\n\r\n");
  r.world.run_until_asked();
  r.world.answer(
      "HTTP/1.1 200 OK\r\nCache-Control: max-age=100\r\nContent-Length: 2000000\r\n\r\n" + body);
  r.world.run_until([&] { return r.client.heard.ends_with(body); });
  Client slow(r.world, Client::Narrow{});
  slow.reads = false;
  slow.say("GET /big HTTP/1.1\r\nHost: h\r\n\r\n");
  r.world.run_turns(50);
  r.reload();
  CHECK_FALSE(slow.connection().revoke());
  config::Rule denied;
  denied.path = {"/big"};
  denied.deny = 403;
  r.changed.rule = {denied};
  r.reload();
  CHECK(slow.connection().revoke());
  CHECK(r.revoked() == 1);
  slow.connection().cut_revoked({.outcome = Outcome::kDenied, .detail = "revoked"});
  slow.reads = true;
  r.world.run_until([&] { return slow.is_over(); });
  CHECK(slow.heard.size() < body.size());
  CHECK(r.world.ended_as(Outcome::kDenied) == 1);
}

TEST_CASE("handshakes of a client are limited where there is a limit", "[client][tls]") {
  constexpr std::uint32_t kClients = 3;
  const std::uint32_t limit = GENERATE(0U, 1U, 2U);
  ClientWorld world(config::Mode::kReverse, [&](config::Config& config) {
    config.limits.tls_handshakes_per_client = limit;
  });
  auto tickets = net::TlsTickets::create(monotonic_now());
  REQUIRE(tickets);
  const net::TestCertificates& files = net::certificates();
  auto server = net::TlsServer::create({.pairs = {{files.certificate_file(), files.key_file()}},
                                        .tickets = *tickets,
                                        .now = wall_now()});
  REQUIRE(server);
  world.tls = *server;
  std::vector<std::unique_ptr<Client>> clients;
  for (std::uint32_t i = 0; i < kClients; ++i) clients.push_back(std::make_unique<Client>(world));
  const std::uint32_t allowed = limit == 0 ? kClients : limit;
  CHECK(world.world.stats.tls_handshaking.get() == allowed);
  CHECK(world.world.stats.tls_refused.get() == kClients - allowed);
  CHECK(world.connections() == allowed);
}

}  // namespace
}  // namespace encore::server
