// Listener, Connector and Tunnel.
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <algorithm>
#include <optional>
#include <vector>

#include "proxy/net/connector.h"
#include "proxy/net/listener.h"
#include "proxy/net/tunnel.h"
#include "tests/catch.h"
#include "tests/net/full_backlog.h"
#include "tests/net/net_test_support.h"
#include "tests/net/reset.h"

namespace encore::net {
namespace {

using ConnectResult = std::expected<std::unique_ptr<Stream>, ConnectFailure>;

Address on_loopback() { return Address::loopback_v4(0); }

// A port on which nobody listens: bound, so that nobody else gets it, but silent.
struct ClosedPort {
  ClosedPort() : socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    Address any = Address::loopback_v4(0);
    REQUIRE(::bind(socket.get(), any.data(), any.size()) == 0);
    sockaddr_in bound{};
    socklen_t size = sizeof bound;
    ::getsockname(socket.get(), reinterpret_cast<sockaddr*>(&bound), &size);
    address = Address(bound);
  }
  Socket socket;
  Address address;
};

struct Accepted {
  std::vector<Socket> sockets;
  std::vector<Address> peers;
  std::vector<int> overloads;
  std::unique_ptr<Listener> listen(Loop& loop, const Address& address) {
    return net::listen(
        loop, address,
        [this](Socket socket, const Address& peer) {
          sockets.push_back(std::move(socket));
          peers.push_back(peer);
        },
        [this](int os_error) { overloads.push_back(os_error); });
  }
};

}  // namespace

TEST_CASE("a listener accepts, and a connector reaches it", "[net][connect]") {
  TestLoop loop;
  Accepted accepted;
  const auto listener = accepted.listen(*loop, on_loopback());
  CHECK(listener->address().port() != 0);
  std::optional<ConnectResult> result;
  Connector connector(*loop, {.addresses = {listener->address()}},
                      [&](ConnectResult r) { result = std::move(r); });
  CHECK_FALSE(result.has_value());
  loop.run_until([&] { return result && accepted.sockets.size() == 1; });
  REQUIRE(result->has_value());
  Stream& stream = ***result;
  CHECK(stream.is_reading_paused());
  CHECK(stream.peer() == listener->address());
  CHECK(stream.local() == accepted.peers[0]);
  // Inherited from the listening socket, so that accepting costs one system call.
  for (const int option : {TCP_NODELAY, TCP_KEEPIDLE}) {
    int value = 0;
    socklen_t size = sizeof value;
    ::getsockopt(accepted.sockets[0].get(), IPPROTO_TCP, option, &value, &size);
    CHECK(value == (option == TCP_NODELAY ? 1 : 60));
  }
  CHECK(stream.write("ping").status == WriteStatus::kAll);
  CHECK(receive_now(accepted.sockets[0]) == "ping");
}

TEST_CASE("a listener on :: takes IPv4 too and shows its clients as IPv4", "[net][connect]") {
  TestLoop loop;
  Accepted accepted;
  const auto listener = accepted.listen(*loop, *Address::parse_ip("::", 0));
  std::optional<ConnectResult> result;
  Connector connector(*loop, {.addresses = {Address::loopback_v4(listener->address().port())}},
                      [&](ConnectResult r) { result = std::move(r); });
  loop.run_until([&] { return result && !accepted.peers.empty(); });
  CHECK(accepted.peers[0].is_v4());
  CHECK(accepted.peers[0].ip_string() == "127.0.0.1");
}

TEST_CASE("two workers listen on one port, others are told that it is in use", "[net][connect]") {
  TestLoop loop;
  Accepted accepted;
  const auto first = accepted.listen(*loop, on_loopback());
  const auto second = accepted.listen(*loop, first->address());
  CHECK(first->address() == second->address());
  const auto third = Listener::check_unused(first->address());
  REQUIRE_FALSE(third);
  CHECK(third.error().message.find(first->address().to_string()) != std::string::npos);
}

TEST_CASE("a stopped listener refuses, a paused one lets wait", "[net][connect]") {
  TestLoop loop;
  Accepted accepted;
  const auto listener = accepted.listen(*loop, on_loopback());
  const Address address = listener->address();
  listener->pause();
  std::optional<ConnectResult> result;
  const Connector waits(*loop, {.addresses = {address}},
                        [&](ConnectResult r) { result = std::move(r); });
  loop.run_until([&] { return result.has_value(); });
  CHECK(result->has_value());
  CHECK(accepted.sockets.empty());
  listener->resume();
  loop.run_until([&] { return accepted.sockets.size() == 1; });
  listener->stop();
  std::optional<ConnectResult> late;
  const Connector refused(*loop, {.addresses = {address}},
                          [&](ConnectResult r) { late = std::move(r); });
  loop.run_until([&] { return late.has_value(); });
  REQUIRE_FALSE(late->has_value());
  CHECK(late->error().outcome == ConnectOutcome::kRefused);
}

TEST_CASE("a listener may be destroyed by its callback", "[net][connect]") {
  TestLoop loop;
  std::unique_ptr<Listener> listener;
  bool accepted = false;
  listener = listen(*loop, on_loopback(), [&](Socket, const Address&) {
    accepted = true;
    listener.reset();
  });
  std::optional<ConnectResult> result;
  const Connector connector(*loop, {.addresses = {listener->address()}},
                            [&](ConnectResult r) { result = std::move(r); });
  loop.run_until([&] { return accepted && result; });
  CHECK(listener == nullptr);
}

TEST_CASE("a listener outlives every way in which accept fails", "[net][connect]") {
  const int os_error = GENERATE(EMFILE, ENFILE, ENOBUFS, ENOMEM, ECONNABORTED, EINTR, EPROTO);
  CAPTURE(os_error);
  const bool overload = os_error != ECONNABORTED && os_error != EINTR && os_error != EPROTO;
  bool failed = true;
  for (int nth = 0; failed; ++nth) {
    REQUIRE(nth < 20);
    TestLoop loop;
    Accepted accepted;
    const auto listener = accepted.listen(*loop, on_loopback());
    const FailCalls fail(FailCalls::Call::kAccept4, nth, os_error);
    std::vector<ConnectResult> results;
    std::vector<std::unique_ptr<Connector>> connectors;
    for (int i = 0; i < 3; ++i) {
      connectors.push_back(
          std::make_unique<Connector>(*loop, Connector::Options{.addresses = {listener->address()}},
                                      [&](ConnectResult r) { results.push_back(std::move(r)); }));
    }
    loop.run_until([&] { return results.size() == 3; });
    failed = fail.failed();
    // With no descriptors one client is taken and closed; all others get in.
    const bool spare = overload && (os_error == EMFILE || os_error == ENFILE);
    loop.run_until([&] {
      failed = fail.failed();
      const std::size_t lost = failed && spare && nth < 3 ? 1 : 0;
      return accepted.sockets.size() >= 3 - lost;
    });
    loop.run_turns(3);
    failed = fail.failed();
    CHECK(accepted.overloads.size() == (failed && overload ? 1 : 0));
  }
}

TEST_CASE("a connection that is refused says where and why", "[net][connect]") {
  TestLoop loop;
  const ClosedPort closed;
  std::optional<ConnectResult> result;
  const Connector connector(*loop, {.addresses = {closed.address}},
                            [&](ConnectResult r) { result = std::move(r); });
  loop.run_until([&] { return result.has_value(); });
  REQUIRE_FALSE(result->has_value());
  CHECK(result->error().outcome == ConnectOutcome::kRefused);
  CHECK(result->error().os_error == ECONNREFUSED);
  CHECK(result->error().message == closed.address.to_string() + ": Connection refused");
}

TEST_CASE("the next address is tried where one fails", "[net][connect]") {
  TestLoop loop;
  const ClosedPort closed;
  Accepted accepted;
  const auto listener = accepted.listen(*loop, on_loopback());
  std::optional<ConnectResult> result;
  const Connector connector(*loop,
                            {.addresses = {closed.address, closed.address, listener->address()}},
                            [&](ConnectResult r) { result = std::move(r); });
  loop.run_until([&] { return result.has_value(); });
  REQUIRE(result->has_value());
  CHECK((**result)->peer() == listener->address());
}

TEST_CASE("the next address is tried while one is silent", "[net][connect]") {
  TestLoop loop;
  Accepted accepted;
  const auto listener = accepted.listen(*loop, on_loopback());
  const Socket silent(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  Address any = Address::loopback_v4(0);
  REQUIRE(::bind(silent.get(), any.data(), any.size()) == 0);
  const std::vector<Socket> fillers = fill_backlog(silent);
  sockaddr_in bound{};
  socklen_t size = sizeof bound;
  ::getsockname(silent.get(), reinterpret_cast<sockaddr*>(&bound), &size);
  std::optional<ConnectResult> result;
  const Connector connector(
      *loop,
      {.addresses = {Address(bound), listener->address()}, .stagger = std::chrono::milliseconds(1)},
      [&](ConnectResult r) { result = std::move(r); });
  loop.run_until([&] { return result.has_value(); });
  REQUIRE(result->has_value());
  CHECK((**result)->peer() == listener->address());

  std::optional<ConnectResult> late;
  const Connector times_out(
      *loop, {.addresses = {Address(bound)}, .timeout = std::chrono::milliseconds(5)},
      [&](ConnectResult r) { late = std::move(r); });
  loop.run_until([&] { return late.has_value(); });
  REQUIRE_FALSE(late->has_value());
  CHECK(late->error().outcome == ConnectOutcome::kTimeout);
}

TEST_CASE("a proxy opens a tunnel by a status of 2xx and by nothing else", "[net][connect]") {
  CHECK(tunnel_request("[::1]:443") == "CONNECT [::1]:443 HTTP/1.1\r\nHost: [::1]:443\r\n\r\n");
  for (const std::string_view head :
       {"HTTP/1.1 200 OK\r\n\r\n", "HTTP/1.0 200 Connection established\r\nVia: x\r\n\r\n",
        "HTTP/1.1 204\r\n\r\n"}) {
    CAPTURE(head);
    CHECK(opens_tunnel(head));
  }
  for (const std::string_view head :
       {"", "\r\n\r\n", "HTTP/1.1 407 Who\r\n\r\n", "HTTP/1.1 100 Continue\r\n\r\n",
        "HTTP/2.0 200 OK\r\n\r\n", "HTTP/1.1 2000\r\n\r\n", "HTTP/1.1  200 OK\r\n\r\n",
        "HTTP/1.1 20\r\n\r\n", "http/1.1 200 OK\r\n\r\n"}) {
    CAPTURE(head);
    CHECK_FALSE(opens_tunnel(head));
  }
}

TEST_CASE("a cancelled connector never calls", "[net][connect]") {
  TestLoop loop;
  Accepted accepted;
  const auto listener = accepted.listen(*loop, on_loopback());
  bool called = false;
  auto connector =
      std::make_unique<Connector>(*loop, Connector::Options{.addresses = {listener->address()}},
                                  [&](ConnectResult) { called = true; });
  connector.reset();
  loop.run_turns(10);
  CHECK_FALSE(called);
}

TEST_CASE("a connector ends with an answer whichever call fails", "[net][connect]") {
  using Call = FailCalls::Call;
  const auto call = GENERATE(Call::kSocket, Call::kConnect);
  const int os_error = GENERATE(EMFILE, ENOBUFS, ENETUNREACH, EADDRNOTAVAIL);
  CAPTURE(static_cast<int>(call), os_error);
  bool failed = true;
  for (int nth = 0; failed; ++nth) {
    REQUIRE(nth < 10);
    TestLoop loop;
    Accepted accepted;
    const auto listener = accepted.listen(*loop, on_loopback());
    for (const int times : {1, 2}) {
      const FailCalls fail(call, nth, os_error, times);
      std::optional<ConnectResult> result;
      std::unique_ptr<Connector> connector;
      connector = std::make_unique<Connector>(
          *loop, Connector::Options{.addresses = {listener->address(), listener->address()}},
          [&](ConnectResult r) {
            result = std::move(r);
            connector.reset();
          });
      loop.run_until([&] { return result.has_value(); });
      failed = fail.failed();
      CHECK(result->has_value() == (nth > 0 || times == 1));
      if (!result->has_value()) CHECK(result->error().os_error == os_error);
      CHECK(connector == nullptr);
    }
  }
}

namespace {

// A tunnel with the test at both far ends.
struct Tunnelled {
  Tunnelled()
      : first(*loop, std::move(a.near), a.far_address, &nobody),
        second(*loop, std::move(b.near), b.far_address, &nobody) {}
  void join() {
    tunnel.emplace(first, second, [this](TunnelOutcome o) { outcome = o; });
  }
  TestLoop loop;
  SocketPair a;
  SocketPair b;
  Recorder nobody;
  Stream first;
  Stream second;
  std::optional<Tunnel> tunnel;
  std::optional<TunnelOutcome> outcome;
};

}  // namespace

TEST_CASE("a tunnel passes bytes and ends both ways", "[net][tunnel]") {
  Tunnelled t;
  t.join();
  REQUIRE(send_all(t.a.far, "question"));
  std::string got;
  t.loop.run_until([&] { return (got += receive_now(t.b.far)) == "question"; });
  ::shutdown(t.a.far.get(), SHUT_WR);
  t.loop.run_until([&] {
    char byte;
    return ::recv(t.b.far.get(), &byte, 1, MSG_DONTWAIT) == 0;
  });
  CHECK_FALSE(t.outcome);
  REQUIRE(send_all(t.b.far, "answer after the end"));
  got.clear();
  t.loop.run_until([&] { return (got += receive_now(t.a.far)) == "answer after the end"; });
  ::shutdown(t.b.far.get(), SHUT_WR);
  t.loop.run_until([&] { return t.outcome.has_value(); });
  CHECK(t.outcome == TunnelOutcome::kClosed);
}

TEST_CASE("a tunnel passes on first what a stream kept", "[net][tunnel]") {
  Tunnelled t;
  t.nobody.data = [](Stream& stream, std::string_view) -> std::size_t {
    stream.pause_reading();
    return 0;
  };
  t.first.resume_reading();
  REQUIRE(send_all(t.a.far, "early "));
  t.loop.run_until([&] { return t.first.kept_bytes() == 6; });
  REQUIRE(send_all(t.a.far, "late"));
  ::shutdown(t.a.far.get(), SHUT_WR);
  t.join();
  std::string got;
  t.loop.run_until([&] { return (got += receive_now(t.b.far)).size() == 10; });
  CHECK(got == "early late");
}

TEST_CASE("a tunnel holds little while its slow side is not read, and loses nothing",
          "[net][tunnel]") {
  Tunnelled t;
  t.join();
  std::string all(32 << 20, ' ');
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = static_cast<char>('a' + i % 23);
  std::size_t sent = 0;
  std::string got;
  std::size_t kept_most = 0;
  bool ended = false;
  bool reads = false;
  int stalls = 0;
  t.loop.run_until([&] {
    const ssize_t more =
        ::send(t.a.far.get(), all.data() + sent, all.size() - sent, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (more > 0) sent += static_cast<std::size_t>(more);
    if (more < 0 && t.first.kept_bytes() > 0 && ++stalls > 20) reads = true;
    if (sent == all.size() && !std::exchange(ended, true)) ::shutdown(t.a.far.get(), SHUT_WR);
    kept_most = std::max(kept_most, t.first.kept_bytes());
    if (reads || ended) got += receive_now(t.b.far);
    return got.size() == all.size();
  });
  CHECK(got == all);
  CHECK(kept_most > 0);
  CHECK(kept_most <= Loop::kScratchBytes);
}

TEST_CASE("a tunnel says which side failed and may be destroyed then", "[net][tunnel]") {
  Tunnelled t;
  t.tunnel.emplace(t.first, t.second, [&](TunnelOutcome outcome) {
    t.outcome = outcome;
    t.second.abort();
    t.tunnel.reset();
  });
  reset_connection(t.a.far);
  t.loop.run_until([&] { return t.outcome.has_value(); });
  CHECK(t.outcome == TunnelOutcome::kFirstFailed);
  char byte;
  CHECK(::recv(t.b.far.get(), &byte, 1, MSG_DONTWAIT) == -1);
}

}  // namespace encore::net
