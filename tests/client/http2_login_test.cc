// Logins over HTTP/2: each stream waits for its own, and others go on.
#include "proxy/client/http2_pending_stream.h"

#include <string>

#include "tests/catch.h"
#include "tests/client/http2_tunnels.h"
#include "tests/intake/held_checks.h"
#include "tests/temporary_directory.h"

namespace encore::server {
namespace {

using h2::test::data;
using h2::test::headers;
using h2::test::rst;

// The hash of "secret".
constexpr std::string_view kHash = "$2y$04$o7a32LtrLk7cLYVa2tWvvuNuGjv5ZEqlqmcmgXtp43nGtcdDlIgTm";
const std::pair<std::string, std::string> kRightLogin = {"authorization", "Basic YW5uOnNlY3JldA=="};
const std::pair<std::string, std::string> kWrongLogin = {"authorization", "Basic YW5uOndyb25n"};

struct LoginWorld {
  explicit LoginWorld(config::Mode mode = config::Mode::kReverse)
      : world(mode,
              [&](config::Config& config) {
                write_text(directory / "users", "ann:" + std::string(kHash) + "\n");
                config.listen.front().users_file = directory / "users";
              }),
        client(world),
        held(world.passwords) {
    world.keep_records();
    client.greet();
    world.run_until([&] { return !client.frames().empty(); });
  }
  // Says it, until the proxy has begun so many streams.
  void say(std::string_view text, std::uint64_t streams) {
    client.say(text);
    while (world.world.stats.http2_streams.get() != streams) world.world.run_turn();
  }
  // Lets the password be found right, and the connection have the outcome.
  void find_right() {
    const Login login{.scheme = Login::Scheme::kBasic, .name = "ann", .secret = "secret"};
    const net::Digest id = world.passwords.id_of(login, std::string(kHash));
    held.let_go();
    world.run_until([&] { return world.passwords.is_remembered(id, monotonic_now()); });
    world.run_turns(3);
  }
  WorkerStats& stats() { return world.world.stats; }

  TemporaryDirectory directory;
  ClientWorld world;
  Http2Client client;
  HeldChecks held;  // each test lets its logins be checked when it has said what comes before
};

std::string post(h2::StreamId stream, bool ends = false) {
  h2::test::FieldList fields = h2::test::get("/", {kRightLogin});
  fields.front().second = "POST";
  return headers(stream, fields, ends);
}

TEST_CASE("streams wait for their logins, each for its own", "[client][http2][login]") {
  LoginWorld l;
  l.say(headers(1, h2::test::get("/", {kRightLogin})) +
            headers(3, h2::test::get("/", {kWrongLogin})) + headers(5, h2::test::get("/")),
        3);
  l.held.let_go();
  l.world.run_until_asked();
  CHECK(l.world.origin.asked.find("authorization") == std::string::npos);
  l.world.answer("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
  l.world.run_until([&] { return l.client.has_end(1) && l.client.has_end(3); });
  l.world.run_until([&] { return l.client.has_end(5); });
  CHECK(l.client.status(1) == "200");
  CHECK(l.client.content(1) == "ok");
  CHECK(l.client.status(3) == "401");
  CHECK(l.client.status(5) == "401");
  CHECK(l.stats().logins_right.get() == 1);
  CHECK(l.stats().logins_failed.get() == 1);
  l.world.run_turns(3);
  CHECK(l.world.records() == 3);
  CHECK(l.stats().http2_streams_open.get() == 0);
  CHECK(l.client.connection().may_be_given_up());
  // In the order in which they ended.
  std::string users;
  for (std::size_t i = 0; i < 3; ++i) users += l.world.record(i).value("user", "");
  CHECK(users == "ann");
}

TEST_CASE("content that comes while its login is checked goes to the origin",
          "[client][http2][login]") {
  LoginWorld l;
  const std::string content = GENERATE(as<std::string>(), "", "some");
  const bool ends = GENERATE(true, false);
  l.say(post(1) + (content.empty() && !ends ? std::string() : data(1, content, ends)), 1);
  l.world.run_turns(3);
  l.held.let_go();
  l.world.run_until_asked();
  CHECK(l.stats().logins_right.get() == 1);
  if (!ends) l.client.say(data(1, " more", true));
  const std::string all = content + (ends ? "" : " more");
  l.world.run_until([&] { return l.world.origin.asked.ends_with("0\r\n\r\n"); });
  std::string sent;
  for (const char each : l.world.origin.asked.substr(l.world.origin.asked.find("\r\n\r\n"))) {
    if (std::string_view("some ra").find(each) != std::string_view::npos) sent += each;
  }
  CHECK(sent == all);
  l.world.answer("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
  l.world.run_until([&] { return l.client.has_end(1); });
  CHECK(l.client.status(1) == "200");
}

TEST_CASE("trailers that come while a login is checked go with their content",
          "[client][http2][login]") {
  LoginWorld l;
  l.say(post(1) + data(1, "some") +
            h2::test::frame(h2::FrameType::kHeaders, h2::kFlagEndHeaders | h2::kFlagEndStream, 1,
                            h2::test::block_of({{"x-check", "sum"}})),
        1);
  l.world.run_turns(3);
  l.held.let_go();
  l.world.run_until_asked();
  l.world.run_until([&] { return l.world.origin.asked.ends_with("sum\r\n\r\n"); });
  CHECK(l.world.origin.asked.find("\r\n4\r\nsome\r\n0\r\n") != std::string::npos);
}

TEST_CASE("a stream that its client resets while its login is checked is nobody's",
          "[client][http2][login]") {
  LoginWorld l;
  l.say(post(1) + rst(1), 1);
  l.world.run_until([&] { return l.client.connection().may_be_given_up(); });
  l.find_right();
  CHECK(l.world.origin.accepted == 0);
  CHECK(l.stats().http2_streams_open.get() == 0);
  l.client.say(headers(3, h2::test::get("/", {kRightLogin})));
  l.world.run_until_asked();
  CHECK(l.stats().http2_streams.get() == 2);
}

TEST_CASE("a connection that is cut while a login is checked asks nobody",
          "[client][http2][login]") {
  LoginWorld l;
  l.say(post(1), 1);
  l.client.connection().cut();
  CHECK(l.world.connections() == 0);
  l.world.run_until([&] { return l.client.is_over(); });
  l.find_right();
  CHECK(l.world.origin.asked.empty());
  CHECK(l.stats().http2_open.get() == 0);
  CHECK(l.stats().http2_streams_open.get() == 0);
}

TEST_CASE("a client that ends its side while a login is checked has its stream reset",
          "[client][http2][login]") {
  LoginWorld l;
  l.client.say(post(1));
  l.client.end();
  l.world.run_until([&] { return l.client.was_stream_reset(1); });
  CHECK(reset_code(l.client, 1) == h2::ErrorCode::kCancel);
  l.world.run_until([&] { return l.world.connections() == 0; });
  CHECK(l.stats().http2_streams_open.get() == 0);
  l.find_right();
  CHECK(l.world.origin.accepted == 0);
}

TEST_CASE("a tunnel may wait for its login, too", "[client][http2][login]") {
  LoginWorld l(config::Mode::kForward);
  const bool is_right = GENERATE(true, false);
  const auto& login = is_right ? kRightLogin : kWrongLogin;
  l.say(connect_frame(1, l.world.origin.port(), {{"proxy-" + login.first, login.second}}) +
            data(1, "early"),
        1);
  l.world.run_turns(3);
  l.held.let_go();
  if (is_right) {
    l.world.run_until([&] { return l.world.origin.asked == "early"; });
    l.world.origin.say("down");
    l.world.run_until([&] { return l.client.content(1) == "down"; });
    CHECK(l.client.status(1) == "200");
    CHECK(l.stats().tunnels_open.get() == 1);
    l.client.say(data(1, "", true));
    l.world.run_until([&] { return l.world.origin.ended; });
    l.world.origin.end();
    l.world.run_until([&] { return l.client.has_end(1); });
    CHECK(l.world.record()["user"] == "ann");
    CHECK(l.world.record()["outcome"] == "tunnel");
  } else {
    l.world.run_until([&] { return l.client.has_end(1); });
    CHECK(l.client.status(1) == "407");
    CHECK(l.world.record()["status"] == 407);
    CHECK(l.world.origin.accepted == 0);
  }
  l.world.run_turns(3);
  CHECK(l.world.records() == 1);
  CHECK(l.stats().tunnels_open.get() == 0);
  CHECK(l.stats().http2_streams_open.get() == 0);
  CHECK(l.client.connection().may_be_given_up());
}

TEST_CASE("a request for another protocol may wait for its login", "[client][http2][login]") {
  LoginWorld l;
  l.say(headers(1,
                {{":method", "CONNECT"},
                 {":protocol", "raw"},
                 {":scheme", "http"},
                 {":authority", "a.example"},
                 {":path", "/"},
                 kRightLogin},
                false) +
            data(1, "early"),
        1);
  l.world.run_turns(3);
  l.held.let_go();
  l.world.run_until_asked();
  l.world.origin.say("HTTP/1.1 101 Go\r\nConnection: upgrade\r\nUpgrade: raw\r\n\r\nfirst");
  l.world.run_until([&] { return l.world.origin.asked == "early"; });
  l.world.run_until([&] { return l.client.content(1) == "first"; });
  l.client.say(data(1, "last", true));
  l.world.run_until([&] { return l.world.origin.asked == "earlylast" && l.world.origin.ended; });
  l.world.origin.end();
  l.world.run_until([&] { return l.client.has_end(1); });
  CHECK(l.world.record()["outcome"] == "upgrade");
  CHECK(l.world.record()["user"] == "ann");
  l.world.run_turns(3);
  CHECK(l.stats().upgrades_open.get() == 0);
  CHECK(l.client.connection().may_be_given_up());
}

}  // namespace
}  // namespace encore::server
