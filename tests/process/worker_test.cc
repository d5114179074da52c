#include "proxy/process/worker.h"

#include <openssl/ssl.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "proxy/net/linger.h"
#include "proxy/net/socket.h"
#include "proxy/net/socket_options.h"
#include "proxy/process/proxy.h"
#include "tests/catch.h"
#include "tests/net/certificates.h"
#include "tests/net/net_test_support.h"

namespace encore::server {
namespace {

// Enough for anything that happens on this machine; a test that needs more hangs.
constexpr int kTurnsMax = 1'000'000;
// More than anything needs that has all it waits for.
constexpr int kTurnsToSettle = 50;
// Long enough that nothing but the test's own pause is.
constexpr std::chrono::milliseconds kIdle{600};

std::size_t receive(const net::Socket& socket) {
  static std::array<char, 65536> room;
  std::size_t sum = 0;
  ssize_t got = 0;
  while ((got = ::recv(socket.get(), room.data(), room.size(), 0)) > 0) {
    sum += static_cast<std::size_t>(got);
  }
  return sum;
}

// A tunnel through the one worker of a forward proxy, both of whose ends the test has.
class TunnelSite {
 public:
  TunnelSite()
      : listener_(net::listen_on(net::Address::loopback_v4(0), 16, net::SharePort::kNo).value()) {
    const net::Address origin = net::bound_address(listener_);
    config::Config config;
    config.listen = {{.address = "127.0.0.1:0", .mode = config::Mode::kForward}};
    config.forward.connect_ports = {origin.port()};
    config.forward.private_destinations = config::PrivateDestinations::kAlways;
    config.timeouts.tunnel_idle = kIdle;
    config.cache.memory_bytes = 8 * kMiB;
    config.cache.shards = 1;
    auto made = Proxy::create(
        config, {.identity_seed = {1, 2}, .started = monotonic_now(), .instance = "test"});
    REQUIRE(made.has_value());
    proxy_ = std::move(*made);
    worker().begin();
    const net::Address& address = proxy_->listening().at(0);
    client_ = net::open_tcp(address.family());
    (void)::connect(client_.get(), address.data(), address.size());
    const std::string head =
        "CONNECT " + origin.to_string() + " HTTP/1.1\r\nHost: " + origin.to_string() + "\r\n\r\n";
    bool sent = false;
    run_until([&] {
      if (!sent) sent = ::send(client_.get(), head.data(), head.size(), MSG_NOSIGNAL) > 0;
      if (!origin_) {
        origin_ = net::Socket(::accept4(listener_.get(), nullptr, nullptr, SOCK_NONBLOCK));
      }
      return origin_ && receive(client_) != 0;
    });
  }

  // One that does not sleep.
  void turn() {
    worker().post([] {});
    (void)worker().turn();
  }
  void run_until(const std::function<bool()>& done) {
    int left = kTurnsMax;
    while (!done() && --left != 0) turn();
    REQUIRE(left != 0);
  }
  Worker& worker() { return *proxy_->workers()[0]; }
  const net::Socket& client() const { return client_; }
  const net::Socket& origin() const { return origin_; }
  std::uint64_t open_tunnels() { return worker().stats().tunnels_open.get(); }

 private:
  net::Socket listener_;
  std::unique_ptr<Proxy> proxy_;
  net::Socket client_;
  net::Socket origin_;
};

TEST_CASE("a tunnel in which nothing moves ends in time", "[process][worker]") {
  TunnelSite site;
  const auto since = std::chrono::steady_clock::now();
  site.run_until([&] {
    return site.open_tunnels() == 0 || std::chrono::steady_clock::now() - since > 10 * kIdle;
  });
  CHECK(site.open_tunnels() == 0);
  CHECK(std::chrono::steady_clock::now() - since >= kIdle - std::chrono::milliseconds(100));
}

TEST_CASE("a tunnel that can go on is not idle, though its worker's turn comes late",
          "[process][worker]") {
  TunnelSite site;
  // Until nobody takes any more.
  const std::string bytes(65536, 'x');
  std::size_t sent = 0;
  for (int vain = 0; vain < 20; ++vain) {
    const ssize_t taken = ::send(site.client().get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (taken > 0) {
      sent += static_cast<std::size_t>(taken);
      vain = 0;
    }
    site.turn();
  }
  // No turn comes until its time is over; meanwhile the origin takes what the kernel holds.
  std::size_t came = 0;
  const auto until = std::chrono::steady_clock::now() + kIdle + kIdle / 4;
  while (std::chrono::steady_clock::now() < until) {
    came += receive(site.origin());
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  REQUIRE(came != 0);
  REQUIRE(came < sent);
  for (int i = 0; i < kTurnsMax && came < sent && site.open_tunnels() != 0; ++i) {
    site.turn();
    came += receive(site.origin());
  }
  CHECK(came == sent);
  CHECK(site.open_tunnels() == 1);
}

// A worker whose listener speaks TLS, and a client that is refused.
TEST_CASE("a drain lasts until the end of an answer under TLS is sent", "[process][worker]") {
  const net::TestCertificates certificates;
  config::Config config;
  config.listen = {{.address = "127.0.0.1:0", .mode = config::Mode::kForward}};
  config.listen[0].tls = {"certificate=" + certificates.certificate_file() +
                          "\nkey=" + certificates.key_file()};
  config.cache.memory_bytes = 8 * kMiB;
  config.cache.shards = 1;
  auto made = Proxy::create(
      config, {.identity_seed = {1, 2}, .started = monotonic_now(), .instance = "test"});
  REQUIRE(made.has_value());
  Proxy& proxy = **made;
  Worker& worker = *proxy.workers()[0];
  worker.begin();
  const net::Address& address = proxy.listening().at(0);
  const net::Socket client = net::open_tcp(address.family());
  (void)::connect(client.get(), address.data(), address.size());
  const std::unique_ptr<SSL_CTX, decltype(&SSL_CTX_free)> context(SSL_CTX_new(TLS_client_method()),
                                                                  &SSL_CTX_free);
  const std::unique_ptr<SSL, decltype(&SSL_free)> ssl(SSL_new(context.get()), &SSL_free);
  SSL_set_fd(ssl.get(), client.get());
  const auto turn = [&] {
    worker.post([] {});
    return worker.turn();
  };
  int left = kTurnsMax;
  while (SSL_connect(ssl.get()) != 1 && --left != 0) (void)turn();
  for (int i = 0; i < kTurnsToSettle; ++i) (void)turn();  // its ticket is sent
  const std::string request = "GET / HTTP/1.0\r\n\r\n";
  REQUIRE(SSL_write(ssl.get(), request.data(), static_cast<int>(request.size())) > 0);
  net::Lingering& lingering = net::Lingering::of(worker.loop());
  {
    // The answer is the first that is sent, its end is not.
    const net::FailCalls full(net::FailCalls::Call::kSend, 1, EAGAIN, kTurnsMax);
    while (!lingering.has_unsent() && --left != 0) (void)turn();
    REQUIRE(left != 0);
    proxy.drain();
    for (int i = 0; i < kTurnsToSettle; ++i) CHECK(turn());
  }
  while (turn() && --left != 0) {
  }
  REQUIRE(left != 0);
  std::array<char, 4096> answer{};
  int got = 0;
  while ((got = SSL_read(ssl.get(), answer.data(), answer.size())) > 0) {
  }
  CHECK(SSL_get_error(ssl.get(), got) == SSL_ERROR_ZERO_RETURN);
  worker.finish();
}

TEST_CASE("a turn ends a part of many idle connections, and the others follow",
          "[process][worker]") {
  constexpr std::size_t kClients = 300;
  constexpr std::size_t kPart = 256;
  const bool some_leave = GENERATE(false, true);
  CAPTURE(some_leave);
  config::Config config;
  config.listen = {{.address = "127.0.0.1:0", .mode = config::Mode::kForward}};
  config.timeouts.client_idle = kIdle;
  config.cache.memory_bytes = 8 * kMiB;
  config.cache.shards = 1;
  auto made = Proxy::create(
      config, {.identity_seed = {1, 2}, .started = monotonic_now(), .instance = "test"});
  REQUIRE(made.has_value());
  Proxy& proxy = **made;
  Worker& worker = *proxy.workers()[0];
  worker.begin();
  const auto open = [&] { return worker.stats().connections_open.get(); };
  const auto turn = [&] {
    worker.post([] {});
    return worker.turn();
  };
  const net::Address& address = proxy.listening().at(0);
  std::vector<net::Socket> clients;
  int left = kTurnsMax;
  for (std::size_t i = 0; i < kClients; ++i) {
    clients.push_back(net::open_tcp(address.family()));
    (void)::connect(clients.back().get(), address.data(), address.size());
    while (open() != clients.size() && --left != 0) (void)turn();
  }
  REQUIRE(left != 0);
  // No turn comes until all have been idle for too long.
  const auto until = std::chrono::steady_clock::now() + kIdle;
  while (std::chrono::steady_clock::now() < until) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  std::size_t largest = 0;
  std::size_t rest = kClients;
  int turns = 0;
  while (open() != 0 && --left != 0) {
    (void)turn();
    const std::size_t ended = rest - static_cast<std::size_t>(open());
    largest = std::max(largest, ended);
    rest -= ended;
    turns += rest != kClients;
    // Those that came first are swept last: in front of them, each second one goes.
    if (some_leave && ended != 0) {
      for (std::size_t i = 1; i < rest; i += 2) clients[i].reset();
    }
  }
  REQUIRE(left != 0);
  CHECK(turns < kTurnsToSettle);  // rather than those until the next sweep
  CHECK(largest > 1);
  CHECK(largest <= kPart);
  proxy.drain();
  while (turn() && --left != 0) {
  }
  worker.finish();
}

}  // namespace
}  // namespace encore::server
