#include "proxy/net/tls.h"

#include <openssl/ssl.h>
#include <sys/socket.h>

#include <cerrno>
#include <optional>
#include <vector>

#include "proxy/net/connector.h"
#include "proxy/net/linger.h"
#include "proxy/net/listener.h"
#include "proxy/net/tls_session.h"
#include "tests/catch.h"
#include "tests/net/certificates.h"
#include "tests/net/net_test_support.h"
#include "tests/net/tls_server_of.h"

namespace encore::net {
namespace {

using ConnectResult = std::expected<std::unique_ptr<Stream>, ConnectFailure>;

TlsContext trusting() {
  auto context = TlsContext::client({.ca_file = certificates().ca_file()});
  REQUIRE(context.has_value());
  return std::move(*context);
}

// One that had its time in the past serves as well: it is for the client to refuse.
std::shared_ptr<const TlsServer> serving(const std::string& certificate) {
  return tls_server_of(certificate, certificates().key_file(),
                       wall_now() - std::chrono::hours(5 * 24));
}

// A TLS server on our own streams, and a connector to it.
struct Secured {
  explicit Secured(const std::string& certificate = certificates().certificate_file())
      : server_context(serving(certificate)) {
    listener = listen(*loop, Address::loopback_v4(0), [this](Socket socket, const Address& peer) {
      server = std::make_unique<Stream>(*loop, std::move(socket), peer, &server_handler,
                                        server_context->session());
      server->resume_reading();
    });
  }

  // True where the handshake was done and the host accepted.
  bool connect(const TlsContext& context, const std::string& host) {
    std::optional<ConnectResult> result;
    const Connector connector(
        *loop, {.addresses = {listener->address()}, .tls = &context, .tls_host = host},
        [&](ConnectResult r) { result = std::move(r); });
    loop.run_until([&] { return result.has_value(); });
    if (!result->has_value()) {
      failure = result->error();
      return false;
    }
    client = std::move(**result);
    client->set_handler(&client_handler);
    client->resume_reading();
    loop.run_until([&] { return server_handler.readies + server_handler.errors > 0; });
    return true;
  }

  TestLoop loop;
  std::shared_ptr<const TlsServer> server_context;
  std::unique_ptr<Listener> listener;
  Recorder server_handler;
  Recorder client_handler;
  std::unique_ptr<Stream> server;
  std::unique_ptr<Stream> client;
  ConnectFailure failure;
};

}  // namespace

TEST_CASE("bytes pass both ways under TLS", "[net][tls]") {
  Secured s;
  const TlsContext context = trusting();
  REQUIRE(s.connect(context, "origin.test"));
  CHECK(s.client->is_tls());
  CHECK(s.client->write("question").status == WriteStatus::kAll);
  s.loop.run_until([&] { return s.server_handler.received == "question"; });
  CHECK(s.server->write("answer").status == WriteStatus::kAll);
  s.loop.run_until([&] { return s.client_handler.received == "answer"; });
}

TEST_CASE("a name that the certificate has is accepted, another refused", "[net][tls]") {
  const TlsContext context = trusting();
  for (const char* host : {"origin.test", "ORIGIN.test", "a.wild.test", "127.0.0.1", "::1"}) {
    CAPTURE(host);
    Secured s;
    CHECK(s.connect(context, host));
  }
  for (const char* host : {"other.test", "wild.test", "a.b.wild.test", "127.0.0.2", "::2",
                           "origin.test.evil.test", ""}) {
    CAPTURE(host);
    Secured s;
    REQUIRE_FALSE(s.connect(context, host));
    const bool is_asked_for = *host != '\0';
    CHECK(s.failure.outcome == (is_asked_for ? ConnectOutcome::kTlsVerify : ConnectOutcome::kTls));
    CHECK(s.failure.certificate_fault.empty() != is_asked_for);
    CHECK(s.failure.message.find(s.listener->address().to_string()) == 0);
  }
}

TEST_CASE("who is not trusted, or no longer, is refused unless told otherwise", "[net][tls]") {
  auto system = TlsContext::client({});
  REQUIRE(system.has_value());
  {
    Secured s;
    REQUIRE_FALSE(s.connect(*system, "origin.test"));
    CHECK(s.failure.message.find("unable to get local issuer certificate") != std::string::npos);
  }
  {
    Secured s(certificates().expired_file());
    const TlsContext context = trusting();
    REQUIRE_FALSE(s.connect(context, "origin.test"));
    CHECK(s.failure.message.find("expired") != std::string::npos);
  }
  auto careless = TlsContext::client({.verify_peer = false});
  REQUIRE(careless.has_value());
  Secured s(certificates().expired_file());
  CHECK(s.connect(*careless, "whoever.test"));
}

TEST_CASE("a peer that does not speak TLS is a failed handshake", "[net][tls]") {
  TestLoop loop;
  std::vector<Socket> sockets;
  const std::string greeting = GENERATE("HTTP/1.1 400 Bad Request\r\n\r\n", "");
  const auto listener = listen(*loop, Address::loopback_v4(0), [&](Socket socket, const Address&) {
    send_all(socket, greeting);
    if (!greeting.empty()) sockets.push_back(std::move(socket));
  });
  const TlsContext context = trusting();
  std::optional<ConnectResult> result;
  const Connector connector(
      *loop, {.addresses = {listener->address()}, .tls = &context, .tls_host = "origin.test"},
      [&](ConnectResult r) { result = std::move(r); });
  loop.run_until([&] { return result.has_value(); });
  REQUIRE_FALSE(result->has_value());
  INFO(result->error().message);
  CHECK(result->error().message.size() > 20);
}

TEST_CASE("a big body passes under TLS with a slow reader, in order", "[net][tls]") {
  Secured s;
  const TlsContext context = trusting();
  REQUIRE(s.connect(context, "origin.test"));
  std::string head = "head";
  std::string all(24 << 20, ' ');
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = static_cast<char>('a' + i % 23);
  const std::string whole = head + all;
  std::size_t sent = 0;
  const auto go_on = [&](Stream& stream) {
    const iovec parts[] = {
        {head.data() + std::min(sent, head.size()), head.size() - std::min(sent, head.size())},
        {all.data() + (sent - std::min(sent, head.size())),
         all.size() - (sent - std::min(sent, head.size()))}};
    const WriteResult result = stream.write(parts);
    CHECK(result.status != WriteStatus::kError);
    CHECK((result.status == WriteStatus::kAll) == (sent + result.bytes == whole.size()));
    sent += result.bytes;
    if (sent == whole.size()) stream.shutdown_write();
  };
  s.server_handler.writable = go_on;
  s.client->pause_reading();
  go_on(*s.server);
  s.loop.run_turns(20);
  CHECK(sent < whole.size());
  s.client->resume_reading();
  s.loop.run_until([&] { return s.client_handler.eofs == 1; });
  CHECK(s.client_handler.received == whole);
  CHECK(s.client_handler.errors == 0);
}

TEST_CASE("what is taken under TLS is the socket's, to the last byte", "[net][tls]") {
  Secured s;
  const TlsContext context = trusting();
  REQUIRE(s.connect(context, "origin.test"));
  s.client->pause_reading();
  int blocked = 0;
  std::size_t taken = 0;
  // Sizes vary: the last byte of a record may be all that a write has left to send.
  for (std::size_t size = 1; blocked < 50; size = (size * 7 + 3) % 40'000 + 1) {
    const std::string block(size, 'x');
    std::size_t of_block = 0;
    while (of_block < size) {
      const WriteResult result = s.server->write(std::string_view(block).substr(of_block));
      REQUIRE(result.status != WriteStatus::kError);
      of_block += result.bytes;
      CHECK((result.status == WriteStatus::kAll) == (of_block == size));
      if (result.status == WriteStatus::kAll) break;
      ++blocked;
      s.client->resume_reading();
      s.loop.run_turns(2);
      s.client->pause_reading();
    }
    taken += of_block;
  }
  // With nothing of its own unsent, the end is the kernel's as in plain.
  s.server->close();
  s.client->resume_reading();
  s.loop.run_until([&] { return s.client_handler.eofs + s.client_handler.errors > 0; });
  CHECK(s.client_handler.received.size() == taken);
}

TEST_CASE("a graceful close sends the record that the socket did not take", "[net][tls]") {
  Secured s;
  const TlsContext context = trusting();
  REQUIRE(s.connect(context, "origin.test"));
  s.client->pause_reading();
  const std::string block(100'000, 'x');
  std::size_t taken = 0;
  WriteResult result;
  do {
    result = s.server->write(block);
    taken += result.bytes;
  } while (result.status == WriteStatus::kAll);
  REQUIRE(result.status == WriteStatus::kBlocked);
  int sent = 0;
  Lingering& lingering = Lingering::of(*s.loop);
  lingering.set_on_sent([&] { ++sent; });
  s.server->close_gracefully();
  CHECK(lingering.has_unsent());
  s.client->resume_reading();
  s.loop.run_until([&] { return s.client_handler.eofs + s.client_handler.errors > 0; });
  CHECK(s.client_handler.eofs == 1);
  CHECK(s.client_handler.received.size() == taken + 1);  // the record's last byte
  CHECK(!lingering.has_unsent());
  CHECK(sent == 1);
}

TEST_CASE("bytes already decrypted come though the socket is silent", "[net][tls]") {
  Secured s;
  const TlsContext context = trusting();
  REQUIRE(s.connect(context, "origin.test"));
  // Two records in one segment: the handler pauses after the first.
  s.client_handler.data = [&](Stream& stream, std::string_view bytes) {
    s.client_handler.received += bytes;
    stream.pause_reading();
    return bytes.size();
  };
  s.client->pause_reading();
  CHECK(s.server->write("first ").status == WriteStatus::kAll);
  CHECK(s.server->write("second").status == WriteStatus::kAll);
  s.loop.run_turns(3);
  s.client->resume_reading();
  s.loop.run_until([&] { return s.client_handler.received == "first "; });
  s.loop.run_turns(3);
  CHECK(s.client_handler.received == "first ");
  s.client->resume_reading();
  s.loop.run_until([&] { return s.client_handler.received == "first second"; });
}

TEST_CASE("an end without close_notify is a truncation, with it an end", "[net][tls]") {
  Secured s;
  const TlsContext context = trusting();
  REQUIRE(s.connect(context, "origin.test"));
  const int how = GENERATE(0, 1, 2, 3);
  CAPTURE(how);
  CHECK(s.server->write("half").status == WriteStatus::kAll);
  if (how == 0) s.server->shutdown_write();
  if (how == 1) s.server->close();
  if (how == 2) s.server->close_gracefully();
  if (how == 3) s.server->abort();
  s.loop.run_until([&] { return s.client_handler.eofs + s.client_handler.errors > 0; });
  CHECK(s.client_handler.eofs == (how == 3 ? 0 : 1));
  if (how != 3) CHECK(s.client_handler.received == "half");
}

TEST_CASE("a close_notify that the socket does not take at once still comes", "[net][tls]") {
  Secured s;
  const TlsContext context = trusting();
  REQUIRE(s.connect(context, "origin.test"));
  const int how = GENERATE(0, 1, 2);
  CAPTURE(how);
  if (how == 2) {  // the client has ended its side
    s.client->shutdown_write();
    s.loop.run_until([&] { return s.server_handler.eofs == 1; });
  }
  CHECK(s.server->write("all of it").status == WriteStatus::kAll);
  const FailCalls failing(FailCalls::Call::kSend, 0, EAGAIN, 2);
  if (how == 0) s.server->shutdown_write();
  if (how != 0) s.server->close_gracefully();
  s.loop.run_until([&] { return s.client_handler.eofs + s.client_handler.errors > 0; });
  CHECK(failing.failed());
  CHECK(s.client_handler.eofs == 1);
  CHECK(s.client_handler.received == "all of it");
}

TEST_CASE("a connection cut in the middle is a truncation", "[net][tls]") {
  // The server's raw socket is shut down below TLS.
  TestLoop loop;
  Secured s;
  const TlsContext context = trusting();
  SocketPair pair;
  Recorder client_handler;
  Recorder server_handler;
  const int raw = pair.far.get();
  Stream server(*loop, std::move(pair.far), Address(), &server_handler,
                s.server_context->session());
  Stream client(*loop, std::move(pair.near), Address(), &client_handler,
                context.session("origin.test"));
  server.resume_reading();
  client.resume_reading();
  loop.run_until([&] { return client_handler.readies == 1 && server_handler.readies == 1; });
  ::shutdown(raw, SHUT_WR);
  loop.run_until([&] { return client_handler.errors == 1; });
  CHECK(client_handler.reason == CloseReason::kTlsTruncated);
}

TEST_CASE("TLS survives interrupted calls and ends cleanly on broken ones", "[net][tls]") {
  using Call = FailCalls::Call;
  const auto call = GENERATE(Call::kReceive, Call::kSend);
  // Not ECONNRESET: OpenSSL overlooks it while a server sends tickets, and the next call meets it.
  const int os_error = GENERATE(EINTR, EAGAIN, ETIMEDOUT, ENOBUFS);
  CAPTURE(static_cast<int>(call), os_error);
  const bool transient = os_error == EINTR || os_error == EAGAIN;
  const auto server_context = serving(certificates().certificate_file());
  const TlsContext context = trusting();
  bool failed = true;
  for (int nth = 0; failed; ++nth) {
    CAPTURE(nth);
    REQUIRE(nth < 40);
    TestLoop loop;
    SocketPair pair;
    Recorder near_handler;
    Recorder far_handler;
    Stream near(*loop, std::move(pair.near), Address(), &near_handler,
                context.session("origin.test"));
    Stream far(*loop, std::move(pair.far), Address(), &far_handler, server_context->session());
    bool dead = false;
    const auto die = [&](Stream& stream) {
      dead = true;
      stream.abort();
    };
    std::string owed;
    const auto send = [&](Stream& stream, std::string_view bytes) {
      const WriteResult result = stream.write(bytes);
      if (result.status == WriteStatus::kError) return die(stream);
      owed = bytes.substr(result.bytes);
    };
    for (Recorder* handler : {&near_handler, &far_handler}) {
      handler->error = die;
      handler->eof = die;
      handler->writable = [&](Stream& stream) { send(stream, std::string(owed)); };
    }
    near_handler.ready = [&](Stream& stream) { send(stream, "question"); };
    far_handler.data = [&](Stream& stream, std::string_view bytes) -> std::size_t {
      if (bytes.size() < 8) return 0;
      send(stream, "answer");
      return bytes.size();
    };
    const FailCalls fail(call, nth, os_error);
    near.resume_reading();
    far.resume_reading();
    loop.run_until([&] { return dead || near_handler.received == "answer"; });
    failed = fail.failed();
    CHECK(dead == (failed && !transient));
  }
}

TEST_CASE("a stream may be destroyed in on_ready", "[net][tls]") {
  Secured s;
  const TlsContext context = trusting();
  s.server_handler.ready = [&](Stream&) { s.server.reset(); };
  s.connect(context, "origin.test");
  CHECK(s.server_handler.readies == 1);
  CHECK(s.server == nullptr);
}

TEST_CASE("a later connection takes the session up again", "[net][tls]") {
  const TlsContext context = trusting();
  Secured s;
  for (int i = 0; i < 3; ++i) {
    s.server_handler.readies = 0;
    s.client_handler.received.clear();
    REQUIRE(s.connect(context, "origin.test"));
    // The ticket comes with the first bytes.
    CHECK(s.server->write("x").status == WriteStatus::kAll);
    s.loop.run_until([&] { return s.client_handler.received == "x"; });
    CHECK(s.client->is_tls_resumed() == (i > 0));
  }
}

TEST_CASE("files that are not what they should be are refused by name", "[net][tls]") {
  const auto& c = certificates();
  const auto no_ca = TlsContext::client({.ca_file = c.key_file()});
  REQUIRE_FALSE(no_ca.has_value());
  CHECK(no_ca.error().message.find(c.key_file()) != std::string::npos);
}

}  // namespace encore::net
