// A CONNECT that may be decrypted, from its answer to what comes of it.
#include "proxy/client/interceptor.h"

#include <openssl/ssl.h>
#include <sys/stat.h>

#include <chrono>
#include <memory>
#include <string>

#include "proxy/ca/making.h"
#include "tests/catch.h"
#include "tests/client/client_world.h"
#include "tests/temporary_directory.h"

namespace encore::server {
namespace {

using std::chrono::seconds;

constexpr std::string_view kEstablished = "HTTP/1.1 200 Connection established\r\n\r\n";
constexpr std::string_view kHost = "localhost";

// A TLS client without a socket: what it says goes by way of a Client.
class TlsClient {
 public:
  TlsClient() : context_(SSL_CTX_new(TLS_client_method())), ssl_(SSL_new(context_.get())) {
    SSL_set_tlsext_host_name(ssl_.get(), kHost.data());
    SSL_set_bio(ssl_.get(), BIO_new(BIO_s_mem()), BIO_new(BIO_s_mem()));
    SSL_set_connect_state(ssl_.get());
  }
  // Takes the bytes that have come and goes on. Returns its output; `is_done` shows the end.
  std::string step(std::string& heard) {
    BIO_write(SSL_get_rbio(ssl_.get()), heard.data(), static_cast<int>(heard.size()));
    heard.clear();
    is_done = SSL_do_handshake(ssl_.get()) == 1;
    return said();
  }
  std::string encrypted(std::string_view text) {
    SSL_write(ssl_.get(), text.data(), static_cast<int>(text.size()));
    return said();
  }
  std::string decrypted(std::string& heard) {
    BIO_write(SSL_get_rbio(ssl_.get()), heard.data(), static_cast<int>(heard.size()));
    heard.clear();
    char room[4096];
    const int got = SSL_read(ssl_.get(), room, sizeof room);
    return {room, static_cast<std::size_t>(std::max(got, 0))};
  }
  void offer_http2() {
    const std::string names = std::string("\x02h2") + "\x08http/1.1";
    SSL_set_alpn_protos(ssl_.get(), reinterpret_cast<const unsigned char*>(names.data()),
                        static_cast<unsigned>(names.size()));
  }
  std::string chosen() const {
    const unsigned char* name = nullptr;
    unsigned size = 0;
    SSL_get0_alpn_selected(ssl_.get(), &name, &size);
    return {reinterpret_cast<const char*>(name), size};
  }
  bool is_done = false;

 private:
  std::string said() {
    char room[8192];
    const int got = BIO_read(SSL_get_wbio(ssl_.get()), room, sizeof room);
    return {room, static_cast<std::size_t>(std::max(got, 0))};
  }
  template <auto free>
  struct Free {
    void operator()(auto* object) const { free(object); }
  };
  std::unique_ptr<SSL_CTX, Free<SSL_CTX_free>> context_;
  std::unique_ptr<SSL, Free<SSL_free>> ssl_;
};

// A client that has its 200, and may be decrypted.
struct Intercepted {
  explicit Intercepted(const std::function<void(config::Config&)>& change = {})
      : world(config::Mode::kForward,
              [&](config::Config& config) {
                const auto made = ca::make_authority(
                    {.name = "test", .hosts = {}, .any_host = true, .now = wall_now()});
                REQUIRE(made.has_value());
                write_text(directory / "ca.crt", made->certificate);
                write_text(directory / "ca.key", made->key);
                REQUIRE(::chmod((directory / "ca.key").c_str(), 0600) == 0);
                config.intercept.ca_certificate = directory / "ca.crt";
                config.intercept.ca_key = directory / "ca.key";
                config.intercept.hosts = {std::string(kHost)};
                config.intercept.ports = config.forward.connect_ports;
                if (change) change(config);
              }),
        client(world) {
    const std::string target = std::string(kHost) + ":" + std::to_string(world.origin.port());
    client.say("CONNECT " + target + " HTTP/1.1\r\nHost: " + target + "\r\n\r\n");
    world.run_until([&] { return client.heard == kEstablished; });
    client.heard.clear();
    CHECK(world.origin.accepted == 0);
  }
  void shake_hands() {
    for (int i = 0; i < 10 && !tls.is_done; ++i) {
      if (const std::string said = tls.step(client.heard); !said.empty()) client.say(said);
      if (!tls.is_done) world.run_until([&] { return !client.heard.empty() || client.is_over(); });
    }
    REQUIRE(tls.is_done);
    world.run_until([&] { return stats().intercepts.get() == 1; });
  }
  // Asks inside of TLS for what is not stored, and returns the answer.
  std::string ask_if_cached() {
    client.say(
        tls.encrypted("GET / HTTP/1.1\r\nHost: localhost:" + std::to_string(world.origin.port()) +
                      "\r\nCache-Control: only-if-cached\r\n\r\n"));
    std::string answer;
    world.run_until([&] {
      answer += tls.decrypted(client.heard);  // tickets of the session come first
      return answer.contains("\r\n\r\n");
    });
    return answer;
  }
  const WorkerStats& stats() const { return world.world.stats; }

  TemporaryDirectory directory;
  ClientWorld world;
  Client client;
  TlsClient tls;
};

}  // namespace

TEST_CASE("what is no TLS goes to the origin as it is", "[client][intercept]") {
  Intercepted i;
  const std::string first = GENERATE(as<std::string>(), "SSH-2.0-client\r\n", "GET / HTTP/1.1\r\n",
                                     std::string("\x16\x02\x01", 3));
  i.client.say(first);
  i.world.run_until([&] { return i.world.origin.asked == first; });
  i.world.origin.say("hello");
  i.world.run_until([&] { return i.client.heard == "hello"; });
  CHECK(i.stats().intercepts_spliced.get() == 1);
  CHECK(i.stats().intercepts.get() == 0);
  CHECK(i.stats().tunnels.get() == 1);
  CHECK(i.world.records() == 0);
}

TEST_CASE("a socket that is full at any write of an interception delays it and no more",
          "[client][intercept]") {
  const auto nth = GENERATE(range(0, 6));
  CAPTURE(nth);
  const net::FailCalls full(net::FailCalls::Call::kSend, nth, EAGAIN);
  Intercepted f;
  f.shake_hands();
  CHECK(f.ask_if_cached().starts_with("HTTP/1.1 504 "));
}

TEST_CASE("who says nothing is a client of a server that speaks first", "[client][intercept]") {
  Intercepted i([](config::Config& config) { config.intercept.hello_wait = seconds(5); });
  const MonotonicTime now = i.world.world.loop->now();
  i.client.connection().check_timeouts(now + seconds(4));
  i.world.run_turns(5);
  CHECK(i.world.origin.accepted == 0);
  i.client.connection().check_timeouts(now + seconds(6));
  i.world.run_until([&] { return i.world.origin.accepted == 1; });
  i.world.origin.say("220 ready\r\n");
  i.world.run_until([&] { return i.client.heard == "220 ready\r\n"; });
  CHECK(i.stats().intercepts_spliced.get() == 1);
}

TEST_CASE("a hello that does not end fails, and frees its handshake", "[client][intercept]") {
  Intercepted i;
  std::string none;
  const std::string hello = i.tls.step(none);
  REQUIRE(hello.size() > 100);
  i.client.say(hello.substr(0, 50));
  i.world.run_until([&] { return i.stats().tls_handshaking.get() == 1; });
  CHECK(i.world.heads.count() == 1);
  i.client.connection().check_timeouts(i.world.world.loop->now() + std::chrono::hours(1));
  i.world.run_until([&] { return i.client.is_over(); });
  CHECK(i.client.was_reset);
  CHECK(i.stats().intercepts_failed.get() == 1);
  CHECK(i.stats().tls_handshaking.get() == 0);
  CHECK(i.world.heads.count() == 0);
  CHECK(i.world.origin.accepted == 0);
  CHECK(i.world.ended_as(Outcome::kClientAborted) == 1);
  CHECK(i.world.records() == 1);
}

TEST_CASE("a hello is due from its first byte on, however it comes", "[client][intercept]") {
  Intercepted i;
  std::string none;
  const std::string hello = i.tls.step(none);
  i.client.say(hello.substr(0, 20));
  i.world.run_until([&] { return i.stats().tls_handshaking.get() == 1; });
  i.world.run_turns(2);
  const MonotonicTime begun = i.world.world.loop->now();
  for (const std::size_t at : {20U, 40U, 60U}) {
    i.client.say(hello.substr(at, 20));
    i.world.run_until([&] { return i.world.heads.bytes() == at + 20; });
  }
  i.client.connection().check_timeouts(begun + config::Timeouts{}.client_header);
  i.world.run_until([&] { return i.client.is_over(); });
  CHECK(i.stats().intercepts_failed.get() == 1);
}

TEST_CASE("what is asked inside of TLS is a request of its own", "[client][intercept]") {
  Intercepted i;
  i.shake_hands();
  CHECK(i.stats().tls_handshaking.get() == 0);
  CHECK(i.world.ended_as(Outcome::kIntercepted) == 1);
  // One that the proxy answers by itself, so that no origin is needed.
  i.client.say(i.tls.encrypted("GET / HTTP/1.1\r\nHost: localhost\r\nHost: b.test\r\n\r\n"));
  std::string answer;
  i.world.run_until([&] {
    answer += i.tls.decrypted(i.client.heard);  // tickets of the session come first
    return answer.contains("\r\n\r\n");
  });
  CHECK(answer.starts_with("HTTP/1.1 400 "));
  CHECK(i.world.ended_as(Outcome::kBadRequest) == 1);
  CHECK(i.stats().intercepts_rejected.get() == 0);
}

TEST_CASE("each step of an interception ends at its own limit, and not a second before",
          "[client][intercept]") {
  // None is like another, nor like any other limit.
  Intercepted i([](config::Config& config) {
    config.intercept.hello_wait = seconds(3);
    config.timeouts.client_header = seconds(5);
    config.timeouts.tls_handshake = seconds(7);
    config.timeouts.client_idle = seconds(11);
  });
  std::string none;
  Nanoseconds limit{};
  bool is_failure = true;
  // The first of them has begun a little while ago.
  const MonotonicTime from = i.world.world.loop->now() - seconds(1);
  SECTION("a hello that has begun") {
    i.client.say(i.tls.step(none).substr(0, 50));
    i.world.run_until([&] { return i.stats().tls_handshaking.get() == 1; });
    limit = seconds(5);
  }
  SECTION("a handshake") {
    i.client.say(i.tls.step(none));
    i.world.run_until([&] { return !i.client.heard.empty(); });
    limit = seconds(7);
  }
  SECTION("a client that has shaken hands and asks nothing") {
    i.shake_hands();
    limit = seconds(11);
    is_failure = false;
  }
  i.world.run_turns(2);
  const auto to = i.world.world.loop->now();
  i.client.connection().check_timeouts(from + limit);
  i.world.run_turns(3);
  CHECK_FALSE(i.client.is_over());
  i.client.connection().check_timeouts(to + limit);
  i.world.run_until([&] { return i.client.is_over(); });
  CHECK(i.stats().intercepts_failed.get() == (is_failure ? 1 : 0));
  CHECK(i.stats().intercepts_spliced.get() == 0);
}

TEST_CASE("who leaves in the handshake, or right behind it, has refused our certificate",
          "[client][intercept]") {
  Intercepted i;
  std::string none;
  if (GENERATE(false, true)) {
    i.shake_hands();
  } else {
    i.client.say(i.tls.step(none));
    i.world.run_until([&] { return !i.client.heard.empty(); });
  }
  i.client.go();
  i.world.run_until([&] { return i.world.connections() == 0; });
  CHECK(i.stats().intercepts_rejected.get() == 1);
  CHECK(i.stats().intercepts_failed.get() == 0);
  CHECK(i.world.records() == 1);
}

TEST_CASE("who leaves before it has said anything has refused nothing", "[client][intercept]") {
  Intercepted i;
  i.client.go();
  i.world.run_until([&] { return i.world.connections() == 0; });
  CHECK(i.stats().intercepts_rejected.get() == 0);
  CHECK(i.world.ended_as(Outcome::kClientAborted) == 1);
  CHECK(i.world.records() == 1);
}

TEST_CASE("a client has so many handshakes at a time and no more", "[client][intercept]") {
  Intercepted first([](config::Config& config) { config.limits.tls_handshakes_per_client = 1; });
  std::string none;
  const std::string hello = first.tls.step(none);
  first.client.say(hello.substr(0, 50));
  first.world.run_until([&] { return first.stats().tls_handshaking.get() == 1; });
  Client second(first.world);
  const std::string target = std::string(kHost) + ":" + std::to_string(first.world.origin.port());
  second.say("CONNECT " + target + " HTTP/1.1\r\nHost: " + target + "\r\n\r\n" +
             hello.substr(0, 50));
  first.world.run_until([&] { return second.is_over(); });
  CHECK(second.was_reset);
  CHECK(first.stats().tls_refused.get() == 1);
  CHECK(first.stats().tls_handshaking.get() == 1);
  CHECK_FALSE(first.client.is_over());
  CHECK(first.world.ended_as(Outcome::kDenied) == 1);
}

TEST_CASE("a client's handshake is one of its own until it has ended", "[client][intercept]") {
  Intercepted first([](config::Config& config) { config.limits.tls_handshakes_per_client = 1; });
  std::string none;
  SECTION("by success") { first.shake_hands(); }
  SECTION("by a failure") {
    first.client.say(first.tls.step(none).substr(0, 50));
    first.world.run_until([&] { return first.stats().tls_handshaking.get() == 1; });
    first.client.reset();
    first.world.run_until([&] { return first.world.connections() == 0; });
  }
  CHECK(first.stats().tls_handshaking.get() == 0);
  Client second(first.world);
  const std::string target = std::string(kHost) + ":" + std::to_string(first.world.origin.port());
  TlsClient tls;
  second.say("CONNECT " + target + " HTTP/1.1\r\nHost: " + target + "\r\n\r\n" + tls.step(none));
  first.world.run_until([&] { return second.heard.size() > kEstablished.size(); });
  CHECK(first.stats().tls_refused.get() == 0);
  CHECK(first.stats().tls_handshaking.get() == 1);
}

TEST_CASE("half a hello gives way to others, with a reset", "[client][intercept]") {
  Intercepted i;
  std::string none;
  i.client.say(i.tls.step(none).substr(0, 50));
  i.world.run_until([&] { return i.world.heads.count() == 1; });
  CHECK(i.world.heads.bytes() == 50);
  CHECK_FALSE(i.client.connection().may_be_given_up());
  i.world.heads.oldest().refuse_unfinished_head();
  i.world.run_until([&] { return i.client.is_over(); });
  CHECK(i.client.was_reset);
  CHECK(i.client.heard.empty());
  CHECK(i.world.records() == 1);
  CHECK(i.world.ended_as(Outcome::kClientAborted) == 1);
}

TEST_CASE("HTTP/2 is spoken inside of a CONNECT where it is allowed", "[client][intercept]") {
  const bool is_allowed = GENERATE(true, false);
  Intercepted i([=](config::Config& config) { config.intercept.http2 = is_allowed; });
  i.tls.offer_http2();
  i.shake_hands();
  CHECK(i.tls.chosen() == (is_allowed ? "h2" : "http/1.1"));
  if (is_allowed) {
    i.client.say(i.tls.encrypted("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"));
    i.world.run_until([&] { return i.stats().http2_open.get() == 1; });
  } else {
    CHECK(i.ask_if_cached().starts_with("HTTP/1.1 504 "));
    CHECK(i.stats().http2_connections.get() == 0);
  }
}

TEST_CASE("requests inside of a CONNECT follow one the other, and their records say where",
          "[client][intercept]") {
  Intercepted i([](config::Config& config) { config.limits.transfers_per_client = "1"; });
  i.world.keep_records();
  i.shake_hands();
  CHECK(i.client.connection().may_be_given_up());
  for (std::size_t n = 0; n < 3; ++n) {
    const std::string answer = i.ask_if_cached();
    CHECK(answer.starts_with("HTTP/1.1 504 "));
    CHECK(answer.find("Connection: close") == std::string::npos);
    CHECK(i.world.records() == n + 2);
  }
  const auto connect = i.world.record(0);
  CHECK(connect["outcome"] == "intercepted");
  CHECK(connect["method"] == "CONNECT");
  CHECK(connect["status"] == 200);
  CHECK(connect["bytes"] == kEstablished.size());
  const auto inside = i.world.record(1);
  CHECK(inside["outcome"] == "only-if-cached");
  CHECK(inside["url"].get<std::string>().starts_with("https://localhost"));
}

TEST_CASE("an intercepted client that asks nothing ends with a drain, whenever that begins",
          "[client][intercept]") {
  Intercepted i;
  const bool has_shaken = GENERATE(true, false);
  if (has_shaken) i.shake_hands();
  i.world.world.draining = true;
  i.client.connection().drain();
  i.world.run_turns(3);
  CHECK(i.world.connections() == (has_shaken ? 0 : 1));
  if (!has_shaken) i.shake_hands();
  i.world.run_until([&] { return i.client.is_over(); });
  CHECK(i.client.ended);
  CHECK(i.world.ended_as(Outcome::kIntercepted) == 1);
  CHECK(i.world.records() == 1);
}

TEST_CASE("a CONNECT that may be decrypted is revoked with its client", "[client][intercept]") {
  config::Config changed;
  Intercepted i([&](config::Config& config) { changed = config; });
  const bool has_shaken = GENERATE(true, false);
  if (has_shaken) i.shake_hands();
  i.world.world.runtime = *Runtime::create(changed, {}, "test");
  CHECK_FALSE(i.client.connection().revoke());
  changed.forward.connect_ports = {443};
  changed.intercept.ports = {443};
  i.world.world.runtime = *Runtime::create(changed, {}, "test");
  CHECK(i.client.connection().revoke() == !has_shaken);
  CHECK(i.stats().connections_revoked.get() == 1);
  CHECK(i.world.connections() == (has_shaken ? 0 : 1));
}

}  // namespace encore::server
