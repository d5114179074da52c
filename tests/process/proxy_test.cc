#include "proxy/process/proxy.h"

#include <sys/socket.h>

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "proxy/net/socket.h"
#include "proxy/net/socket_options.h"
#include "tests/catch.h"

namespace encore::server {
namespace {

// Enough for anything that happens on this machine; a test that needs more hangs.
constexpr int kProxyTurnsMax = 1'000'000;

// An origin that answers every request on a connection of its own, and counts them.
class Origin {
 public:
  Origin()
      : listener_(net::listen_on(net::Address::loopback_v4(0), 16, net::SharePort::kNo).value()) {}

  std::string url() const { return "http://" + net::bound_address(listener_).to_string(); }
  int requests() const { return requests_; }

  void step() {
    if (!connection_) {
      connection_ = net::Socket(::accept4(listener_.get(), nullptr, nullptr, SOCK_NONBLOCK));
      text_.clear();
      return;
    }
    std::array<char, 4096> bytes;
    const ssize_t got = ::recv(connection_.get(), bytes.data(), bytes.size(), 0);
    if (got > 0) text_.append(bytes.data(), static_cast<std::size_t>(got));
    if (!text_.ends_with("\r\n\r\n")) return;
    ++requests_;
    constexpr std::string_view kReply =
        "HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nContent-Length: 5\r\n"
        "Connection: close\r\n\r\nhello";
    REQUIRE(::send(connection_.get(), kReply.data(), kReply.size(), MSG_NOSIGNAL) ==
            static_cast<ssize_t>(kReply.size()));
    connection_.reset();
  }

 private:
  net::Socket listener_;
  net::Socket connection_;
  std::string text_;
  int requests_ = 0;
};

// A proxy before that origin, whose workers take turns on the test's thread.
class Site {
 public:
  explicit Site(std::uint32_t workers) {
    config_.listen = {{.address = "127.0.0.1:0", .mode = config::Mode::kReverse}};
    config_.origin.emplace_back().servers = {origin_.url()};
    config_.cache.memory_bytes = 8 * kMiB;
    config_.cache.shards = 1;
    auto made = Proxy::create(config_, {.identity_seed = {1, 2},
                                        .started = monotonic_now(),
                                        .instance = "test",
                                        .workers = workers});
    REQUIRE(made.has_value());
    proxy_ = std::move(*made);
    for (const auto& worker : proxy_->workers()) {
      worker->begin();
      running_.push_back(worker.get());
    }
  }

  // One turn of each worker that runs, which does not sleep, and a step of the origin.
  void turn() {
    std::erase_if(running_, [](Worker* worker) {
      worker->post([] {});
      return !worker->turn();
    });
    origin_.step();
  }

  // Returns the response to a request, up to the end of the connection.
  std::string ask(std::string_view path) {
    const net::Address& address = proxy_->listening().at(0);
    const net::Socket client = net::open_tcp(address.family());
    (void)::connect(client.get(), address.data(), address.size());
    const std::string request =
        "GET " + std::string(path) + " HTTP/1.1\r\nHost: site\r\nConnection: close\r\n\r\n";
    std::string reply;
    bool sent = false;
    for (int i = 0; i < kProxyTurnsMax; ++i) {
      if (!sent) sent = ::send(client.get(), request.data(), request.size(), MSG_NOSIGNAL) > 0;
      turn();
      std::array<char, 4096> bytes;
      const ssize_t got = ::recv(client.get(), bytes.data(), bytes.size(), 0);
      if (got == 0) return reply;
      if (got > 0) reply.append(bytes.data(), static_cast<std::size_t>(got));
    }
    return reply + "(no end)";
  }

  Proxy& proxy() { return *proxy_; }
  Origin& origin() { return origin_; }
  config::Config& config() { return config_; }
  std::size_t running() const { return running_.size(); }

 private:
  Origin origin_;
  config::Config config_;
  std::unique_ptr<Proxy> proxy_;
  std::vector<Worker*> running_;
};

TEST_CASE("workers that take turns on one thread serve, store and hit", "[process][proxy]") {
  Site site(2);
  CHECK(site.ask("/a").ends_with("\r\n\r\nhello"));
  CHECK(site.ask("/a").ends_with("\r\n\r\nhello"));
  CHECK(site.origin().requests() == 2);
  // Whichever worker is asked: both have stored it in one cache.
  for (int i = 0; i < 8; ++i) CHECK(site.ask("/a").ends_with("\r\n\r\nhello"));
  CHECK(site.origin().requests() == 2);
  CHECK(site.proxy().shared().kernel->statistics().objects == 1);
}

TEST_CASE("a reload to another eviction policy keeps what is stored", "[process][proxy]") {
  Site site(1);
  CHECK(site.ask("/a").ends_with("hello"));
  CHECK(site.ask("/a").ends_with("hello"));
  const int asked = site.origin().requests();
  config::Config other = site.config();
  other.cache.eviction = cache::EvictionPolicy::kLru;
  REQUIRE(site.proxy().reload(other).has_value());
  CHECK(site.proxy().config().cache.eviction == cache::EvictionPolicy::kLru);
  CHECK(site.ask("/a").ends_with("hello"));
  CHECK(site.origin().requests() == asked);
  CHECK(site.proxy().shared().kernel->statistics().objects == 1);
}

TEST_CASE("a reload that cannot be taken over changes nothing", "[process][proxy]") {
  Site site(1);
  const config::Config before = site.config();
  config::Config more = before;
  more.cache.memory_bytes = std::uint64_t{1} << 50U;
  more.cache.collapse = !before.cache.collapse;
  const auto refused = site.proxy().reload(more);
  REQUIRE_FALSE(refused.has_value());
  CHECK(refused.error().message ==
        "`encore upgrade` is needed for a cache.memory this large; no request fails");
  CHECK(site.proxy().config() == before);

  config::Config unreadable = before;
  unreadable.upstream.tls_ca_file = "/nonexistent/ca.pem";
  unreadable.origin[0].servers = {"https://127.0.0.1:1"};
  REQUIRE_FALSE(site.proxy().reload(unreadable).has_value());
  CHECK(site.proxy().config() == before);
  CHECK(site.ask("/a").ends_with("hello"));
}

TEST_CASE("workers answer by the configuration that a reload brought", "[process][proxy]") {
  Site site(2);
  CHECK(site.ask("/a").ends_with("hello"));
  config::Config next = site.config();
  next.origin[0].path = "/elsewhere/";
  REQUIRE(site.proxy().reload(next).has_value());
  CHECK(site.ask("/a").starts_with("HTTP/1.1 404"));
  CHECK(site.ask("/elsewhere/a").ends_with("hello"));
}

TEST_CASE("a cache that a reload has made smaller is evicted down to it, tick by tick",
          "[process][proxy]") {
  Site site(1);
  for (int i = 0; i < 40; ++i) {
    const std::string path = "/" + std::to_string(i);
    (void)site.ask(path);
    (void)site.ask(path);
  }
  cache::Kernel& kernel = *site.proxy().shared().kernel;
  REQUIRE(kernel.statistics().objects == 40);
  config::Config less = site.config();
  less.cache.memory_bytes = 1 * kMiB;
  REQUIRE(site.proxy().reload(less).has_value());
  for (int i = 0; i < 100; ++i) site.proxy().tick();
  CHECK(kernel.statistics().used_bytes <= 1 * kMiB);
  CHECK(site.proxy().shared().store->stats().limit_bytes == store_limit(less));
}

TEST_CASE("a drain ends the turns of each worker once", "[process][proxy]") {
  Site site(2);
  CHECK(site.ask("/a").ends_with("hello"));
  site.proxy().drain();
  for (int i = 0; i < kProxyTurnsMax && site.running() != 0; ++i) site.turn();
  CHECK(site.running() == 0);
  CHECK(site.proxy().shared().connections.load() == 0);
}

}  // namespace
}  // namespace encore::server
