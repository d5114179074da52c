// Several loops in threads: what workers do to each other.
#include <atomic>
#include <memory>
#include <thread>
#include <vector>

#include "proxy/net/connector.h"
#include "proxy/net/listener.h"
#include "proxy/net/timer.h"
#include "proxy/net/tls.h"
#include "tests/catch.h"
#include "tests/net/certificates.h"
#include "tests/net/net_test_support.h"
#include "tests/net/tls_server_of.h"

namespace encore::net {
namespace {

// Echoes until the peer ends; owned by its worker.
class Echo final : public StreamHandler {
 public:
  Echo(Loop& loop, Socket socket, const Address& peer, const TlsServer& tls)
      : stream(loop, std::move(socket), peer, this, tls.session()) {
    stream.resume_reading();
  }
  std::size_t on_data(Stream& s, std::span<const std::byte> bytes) override {
    return s.write({reinterpret_cast<const char*>(bytes.data()), bytes.size()}).bytes;
  }
  void on_writable(Stream& s) override { s.resume_reading(); }
  void on_eof(Stream& s) override { s.close_gracefully(); }
  void on_error(Stream& s, CloseReason, int) override { s.close(); }
  Stream stream;
};

struct Worker {
  Worker(const Address& address, const TlsServer& tls_server) : tls(tls_server) {
    auto created = Loop::create();
    REQUIRE(created.has_value());
    loop = std::move(*created);
    listener = listen(*loop, address, [this](Socket socket, const Address& peer) {
      accepted.fetch_add(1, std::memory_order_relaxed);
      echoes.push_back(std::make_unique<Echo>(*loop, std::move(socket), peer, tls));
    });
  }
  void start() {
    thread = std::thread([this] { loop->run(); });
  }
  void stop() {
    loop->stop();
    thread.join();
    echoes.clear();
    listener.reset();
  }
  const TlsServer& tls;
  std::unique_ptr<Loop> loop;
  std::unique_ptr<Listener> listener;
  std::vector<std::unique_ptr<Echo>> echoes;
  std::atomic<int> accepted = 0;
  std::thread thread;
};

}  // namespace

TEST_CASE("workers share a port and a TLS context, each with its own connections",
          "[net][workers]") {
  const TestCertificates certificates;
  const auto server_tls = tls_server_of(certificates.certificate_file(), certificates.key_file());
  const auto client_tls = TlsContext::client({.ca_file = certificates.ca_file()});
  REQUIRE(client_tls.has_value());
  Worker first(Address::loopback_v4(0), *server_tls);
  Worker second(first.listener->address(), *server_tls);
  first.start();
  second.start();

  TestLoop loop;
  constexpr int kConnections = 40;
  std::vector<std::unique_ptr<Connector>> connectors;
  std::vector<std::unique_ptr<Stream>> streams;
  std::vector<std::unique_ptr<Recorder>> handlers;
  int failed = 0;
  for (int i = 0; i < kConnections; ++i) {
    connectors.push_back(std::make_unique<Connector>(
        *loop,
        Connector::Options{.addresses = {first.listener->address()},
                           .tls = &*client_tls,
                           .tls_host = "origin.test"},
        [&](std::expected<std::unique_ptr<Stream>, ConnectFailure> result) {
          if (!result) {
            ++failed;
            return;
          }
          Recorder& handler = *handlers.emplace_back(std::make_unique<Recorder>());
          Stream& stream = *streams.emplace_back(std::move(*result));
          stream.set_handler(&handler);
          stream.resume_reading();
          stream.write("echo this");
        }));
  }
  loop.run_until([&] {
    int done = failed;
    for (const auto& handler : handlers) done += handler->received == "echo this" ? 1 : 0;
    return done == kConnections;
  });
  CHECK(failed == 0);
  streams.clear();
  first.stop();
  second.stop();
  CHECK(first.accepted + second.accepted == kConnections);
}

}  // namespace encore::net
