// Intake: its decision about a request, by the head and what is known of the connection.
#include "proxy/intake/intake.h"

#include <string>
#include <string_view>

#include "tests/catch.h"
#include "tests/intake/intake_world.h"
#include "tests/temporary_directory.h"

namespace encore::server {
namespace {

using config::Mode;

constexpr std::string_view kGet = "GET /a HTTP/1.1\nHost: h\n";

// The hash of "secret".
constexpr std::string_view kUserAnn =
    "ann:$2y$04$o7a32LtrLk7cLYVa2tWvvuNuGjv5ZEqlqmcmgXtp43nGtcdDlIgTm\n";

}  // namespace

TEST_CASE("a request for what is stored is a hit, and any other one starts", "[intake]") {
  IntakeWorld world;
  const auto& start = world.take<Intake::Start>(kGet);
  CHECK(start.request->head.target == "/a");
  CHECK(start.request->client.same_ip(address_of("192.0.2.1")));
  CHECK_FALSE(world.found.object);
  world.put();
  const auto& hit = world.take<Intake::Hit>(kGet);
  CHECK(hit.form == HitForm::kIdentity);
  CHECK(primary_key_of(*world.found.object) == world.view.key);
  // The stored object goes along if the request asks for a closer look.
  (void)world.take<Intake::Start>("HEAD /a HTTP/1.1\nHost: h\n");
  CHECK_FALSE(world.found.object);
  for (const char* field : {"Expect: 100-continue\n", "Upgrade: x\n", "Range: bytes=0-0\n"}) {
    (void)world.take<Intake::Start>(std::string(kGet) + field);
    CHECK(bool(world.found.object));
  }
  (void)world.take<Intake::Start>("GET /b HTTP/1.1\nHost: h\n");
  CHECK_FALSE(world.found.object);
}

TEST_CASE("what no route or listener takes is refused", "[intake]") {
  IntakeWorld world([](auto& config) { config.origin[0].host = "h"; });
  CHECK(world.refused("GET / HTTP/1.1\nHost: other\n") == "404 no-route");
  CHECK(world.refused("CONNECT h:443 HTTP/1.1\nHost: h:443\n") ==
        "405 connect-on-reverse-listener");
  world.listener.closed = true;
  CHECK(world.refused(kGet) == "503 listener-closed");
}

TEST_CASE("a listener's lists, limits and logins are passed in this order", "[intake]") {
  const TemporaryDirectory directory;
  write_text(directory / "users", std::string(kUserAnn));
  IntakeWorld world([&](config::Config& config) {
    config.listen[0].deny_paths = {"/no*"};
    config.listen[0].users_file = directory / "users";
    config.limit = {{}};
    config.limit[0].rate = 1;
    config.limit[0].burst = 1;
  });
  CHECK(world.refused("GET /no HTTP/1.1\nHost: h\n") == "403 path-not-allowed");
  CHECK(world.stats.access_denied.get() == 1);
  CHECK(world.refused(kGet) == "401 no-credentials");
  CHECK(world.stats.logins_failed.get() == 0);
  const std::string with_login = std::string(kGet) + "Authorization: Basic YW5uOnNlY3JldA==\n";
  (void)world.take<Intake::Wait>(with_login);
  while (world.resumed == 0) world.loop->turn();
  const auto& start = world.again<Intake::Start>();
  CHECK(start.request->user == "ann");
  CHECK_FALSE(start.request->login.empty());
  // The credentials were for us.
  CHECK_FALSE(world.head.fields.has(http::FieldId::kAuthorization));
  CHECK(world.stats.logins_right.get() == 1);
  // A request that waited was counted once.
  CHECK(world.refused(with_login) == "429 rate-limit");
  CHECK(world.stats.rate_limited.get() == 1);
}

TEST_CASE("a client has as many requests under way as its share", "[intake]") {
  IntakeWorld world([](config::Config& config) { config.limits.transfers_per_client = "1"; });
  (void)world.take<Intake::Start>(kGet);
  ClientCounter::Seat first = std::move(world.seat);
  CHECK(world.refused(kGet) == "429 transfers-per-client");
  CHECK(std::get<Intake::Refuse>(world.outcome).refusal.further == Refusal::Further::kMayStay);
  CHECK(world.stats.transfers_refused.get() == 1);
  first.leave();
  (void)world.take<Intake::Start>(kGet);
  // A hit takes none.
  world.put();
  first = std::move(world.seat);
  (void)world.take<Intake::Hit>(kGet);
}

TEST_CASE("a CONNECT is a tunnel", "[intake]") {
  IntakeWorld world({}, Mode::kForward);
  constexpr std::string_view kConnect = "CONNECT h:443 HTTP/1.1\nHost: h:443\n";
  CHECK_FALSE(world.take<Intake::Tunnel>(kConnect).is_decrypted);
  CHECK(std::get<Intake::Tunnel>(world.outcome).request->target.authority.host == "h");
}

TEST_CASE("requests inside a CONNECT are its client's, for its host alone", "[intake]") {
  IntakeWorld world({}, Mode::kForward);
  (void)world.take<Intake::Tunnel>("CONNECT h:443 HTTP/1.1\nHost: h:443\n");
  const net::Address client = world.identity->client();
  world.identity->enter(
      {.host = "h",
       .port = 443,
       .use = std::make_shared<const InterceptUse>(std::make_shared<ClientHosts>(), client, "h",
                                                   world.loop->now(), Nanoseconds(0))});
  // Nothing is decrypted by this configuration.
  CHECK(world.refused(kGet) == "421 no-longer-decrypted");
}

TEST_CASE("a refusal has its response and its record", "[intake]") {
  IntakeWorld world([](auto& config) { config.origin[0].host = "h"; });
  const auto& refused = world.take<Intake::Refuse>("HEAD / HTTP/1.1\nHost: other\n");
  const Intake::Refused whom{
      .listener = world.listener, .identity = *world.identity, .view = &world.view};
  Intake::Reply reply = world.intake.reply_to(refused.refusal, whom);
  CHECK(reply.text.head.starts_with("HTTP/1.1 404 Not Found\r\nDate: "));
  CHECK(reply.text.head.contains("Cache-Status: encore; detail=no-route\r\n"));
  CHECK_FALSE(reply.text.head.contains("Connection:"));
  CHECK(reply.text.head.ends_with("\r\n"));
  CHECK(reply.text.body.empty());  // HEAD has none
  CHECK(reply.record.status == 404);
  CHECK(reply.record.outcome == Outcome::kNoRoute);
  CHECK(reply.record.detail == "no-route");
  CHECK(reply.record.listener_name == "front");
  CHECK(reply.record.head == world.view.head);
  world.intake.record(reply);
  CHECK(world.stats.requests[static_cast<std::size_t>(Outcome::kNoRoute)].get() == 1);
  CHECK(reply.record.body_bytes == 0);
  // With content.
  const auto& other = world.take<Intake::Refuse>("GET / HTTP/1.1\nHost: other\n");
  const Intake::Reply whole = world.intake.reply_to(other.refusal, whom);
  CHECK_FALSE(whole.text.body.empty());
  CHECK(whole.record.body_bytes == whole.text.body.size());
  // Without a head.
  const Intake::Reply late = world.intake.reply_to(
      request_timeout(), {.listener = world.listener, .identity = *world.identity});
  CHECK(late.text.head.starts_with("HTTP/1.1 408 "));
  CHECK(late.text.body.contains("Reason: request-timeout."));
  CHECK(late.record.taken_bytes == 0);
}

TEST_CASE("each request has an id where the configuration asks for it", "[intake]") {
  IntakeWorld world([](config::Config& config) {
    config.listen[0].trusted_proxies = {"192.0.2.1/32"};
    config.log.request_id = config::RequestIds::kRespond;
  });
  CHECK(world.take<Intake::Start>(kGet).request->request_id.size() == 32);
  const std::string named = std::string(kGet) + "X-Request-Id: ours-1\n";
  CHECK(world.take<Intake::Start>(named).request->request_id == "ours-1");
  world.connect("192.0.2.2");
  CHECK(world.take<Intake::Start>(named).request->request_id.size() == 32);
}

}  // namespace encore::server
