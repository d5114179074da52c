#include "proxy/origin/origin_pool.h"

#include <sys/socket.h>

#include <memory>
#include <string>
#include <vector>

#include "proxy/net/loop.h"
#include "tests/catch.h"

namespace encore::server {
namespace {

// A pool with the connections it was given; the far ends are the origins.
struct Fixture {
  Fixture() {
    auto made = net::Loop::create();
    REQUIRE(made.has_value());
    loop = std::move(*made);
  }
  ~Fixture() { pool.close_all(); }
  Fixture(const Fixture&) = delete;
  Fixture& operator=(const Fixture&) = delete;

  // Returns a connection that is counted, in the pool or outside of it.
  PooledConnection connect(std::uint16_t port) {
    int ends[2];
    REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends) == 0);
    far.emplace_back(ends[1]);
    return {std::make_unique<net::Stream>(*loop, net::Socket(ends[0]),
                                          *net::Address::parse_ip("127.0.0.1", port), nullptr),
            {},
            ConnectionCount(stats)};
  }
  void turn() {
    loop->stop();
    loop->run();
  }
  std::unique_ptr<net::Stream> take(std::string_view key) {
    return pool.take(key, [](const PooledConnection&) { return true; }).stream;
  }

  std::unique_ptr<net::Loop> loop;
  WorkerStats stats;
  OriginPool pool;
  std::vector<net::Socket> far;
};

TEST_CASE("the connection put last is taken first, and only under its key", "[server][pool]") {
  Fixture f;
  f.pool.put("a", f.connect(1), {.per_server = 8});
  f.pool.put("a", f.connect(2), {.per_server = 8});
  f.pool.put("b", f.connect(3), {.per_server = 8});
  CHECK(f.pool.size() == 3);
  CHECK(f.take("c") == nullptr);
  CHECK(f.take("a")->peer().port() == 2);
  CHECK(f.take("a")->peer().port() == 1);
  CHECK(f.take("a") == nullptr);
  CHECK(f.pool.size() == 1);
}

TEST_CASE("a connection to an address that is not accepted stays for others", "[server][pool]") {
  Fixture f;
  f.pool.put("a", f.connect(1), {.per_server = 8});
  f.pool.put("a", f.connect(2), {.per_server = 8});
  const auto taken = f.pool
                         .take("a",
                               [](const PooledConnection& connection) {
                                 return connection.stream->peer().port() == 1;
                               })
                         .stream;
  REQUIRE(taken != nullptr);
  CHECK(taken->peer().port() == 1);
  CHECK(f.pool.take("a", [](const PooledConnection&) { return false; }).stream == nullptr);
  CHECK(f.pool.size() == 1);
}

TEST_CASE("what is too old is closed wherever it stands, and nothing else", "[server][pool]") {
  Fixture f;
  for (std::uint16_t port = 1; port <= 4; ++port) {
    PooledConnection connection = f.connect(port);
    connection.made = MonotonicTime(std::chrono::seconds(port % 2 == 0 ? 10 : 20));
    f.pool.put(port < 3 ? "a" : "b", std::move(connection), {.per_server = 8});
  }
  f.pool.close_made_before(MonotonicTime(std::chrono::seconds(10)));
  CHECK(f.pool.size() == 4);
  f.pool.close_made_before(MonotonicTime(std::chrono::seconds(11)));
  CHECK(f.pool.size() == 2);
  CHECK(f.take("a")->peer().port() == 1);
  CHECK(f.take("b")->peer().port() == 3);
  CHECK(f.stats.origin_connections.get() == 0);
}

TEST_CASE("beyond the limit the oldest is closed, and counted as closed", "[server][pool]") {
  Fixture f;
  for (std::uint16_t port = 1; port <= 4; ++port)
    f.pool.put("a", f.connect(port), {.per_server = 3});
  CHECK(f.pool.size() == 3);
  CHECK(f.stats.origin_connections.get() == 3);
  f.pool.put("a", f.connect(5), {.per_server = 0});
  CHECK(f.stats.origin_connections.get() == 3);
  f.pool.close_all();
  CHECK(f.pool.size() == 0);
  CHECK(f.stats.origin_connections.get() == 0);
}

TEST_CASE("a limit for all keys together closes the oldest of the key, or does not keep it",
          "[server][pool]") {
  Fixture f;
  for (std::uint16_t port = 1; port <= 3; ++port) {
    f.pool.put("a", f.connect(port), {.per_server = 8, .in_all = 2});
  }
  CHECK(f.pool.size() == 2);
  f.pool.put("b", f.connect(4), {.per_server = 8, .in_all = 2});
  CHECK(f.take("b") == nullptr);
  f.pool.put("b", f.connect(5), {.per_server = 8});
  f.pool.close_beyond(1);
  CHECK(f.pool.size() == 1);
  f.pool.close_beyond(1);
  CHECK(f.pool.size() == 1);
  f.pool.close_beyond(0);
  CHECK(f.pool.size() == 0);
  CHECK(f.stats.origin_connections.get() == 0);
}

TEST_CASE("a connection that its origin closes or writes to is dropped", "[server][pool]") {
  Fixture f;
  f.pool.put("a", f.connect(1), {.per_server = 8});
  f.pool.put("a", f.connect(2), {.per_server = 8});
  f.pool.put("a", f.connect(3), {.per_server = 8});
  f.far[0].reset();
  REQUIRE(::send(f.far[1].get(), "HTTP/1.1 200 OK\r\n", 17, 0) == 17);
  f.turn();
  CHECK(f.pool.size() == 1);
  CHECK(f.stats.origin_connections.get() == 1);
  CHECK(f.take("a")->peer().port() == 3);
}

TEST_CASE("what has been idle for too long is closed, the rest is kept", "[server][pool]") {
  Fixture f;
  f.pool.put("a", f.connect(1), {.per_server = 8});
  f.turn();
  const MonotonicTime between = monotonic_now();
  f.turn();
  f.pool.put("a", f.connect(2), {.per_server = 8});
  f.pool.put("b", f.connect(3), {.per_server = 8});
  f.pool.close_idle_since(between);
  CHECK(f.pool.size() == 2);
  CHECK(f.stats.origin_connections.get() == 2);
  CHECK(f.take("a")->peer().port() == 2);
  f.pool.close_idle_since(monotonic_now() + std::chrono::hours(1));
  CHECK(f.pool.size() == 0);
}

TEST_CASE("a connection that has ended or said more than asked is not kept", "[server][pool]") {
  Fixture f;
  auto closed = f.connect(1);
  closed.stream->close();
  f.pool.put("a", std::move(closed), {.per_server = 8});
  CHECK(f.pool.size() == 0);
  CHECK(f.stats.origin_connections.get() == 0);
}

}  // namespace
}  // namespace encore::server
