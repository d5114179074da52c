#include "proxy/origin/origin_pool.h"

#include <sys/socket.h>

#include <algorithm>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <utility>
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

TEST_CASE("the pool agrees with plain lists, whatever is put and taken", "[server][pool]") {
  struct Kept {
    std::uint16_t port;
    MonotonicTime made;
  };
  Fixture f;
  std::mt19937 random(5);
  std::map<std::string, std::vector<Kept>> lists;  // the latest last
  std::uint16_t port = 0;
  const auto size = [&] {
    std::size_t sum = 0;
    for (const auto& [key, list] : lists) sum += list.size();
    return sum;
  };
  constexpr std::size_t kPerServer = 4;
  constexpr std::size_t kInAll = 9;
  for (int step = 0; step < 1200; ++step) {
    const std::string key(1, static_cast<char>('a' + random() % 3));
    std::vector<Kept>& list = lists[key];
    switch (random() % 12) {
      case 0:
        f.pool.close_made_before(MonotonicTime(std::chrono::seconds(20)));
        for (auto& [name, each] : lists) {
          std::erase_if(each, [](const Kept& kept) {
            return kept.made < MonotonicTime(std::chrono::seconds(20));
          });
        }
        break;
      case 1:
        if (random() % 8 != 0) break;
        f.pool.close_all();
        lists.clear();
        break;
      case 2: {
        if (random() % 8 != 0) break;
        const std::size_t left = random() % 5;
        const std::size_t expected = std::min(left, size());
        f.pool.close_beyond(left);
        REQUIRE(f.pool.size() == expected);
        f.pool.close_all();
        lists.clear();
        break;
      }
      case 3: {
        const bool has_one = !list.empty();
        if (has_one) list.erase(list.begin());
        REQUIRE(f.pool.give_up(key) == has_one);
        break;
      }
      case 4:
        // None of them has been idle since before the loop began.
        f.pool.close_idle_since(MonotonicTime{});
        break;
      case 5:
      case 6:
      case 7: {
        const std::uint16_t parity = random() % 2;
        const auto wanted = std::ranges::find_if(
            list.rbegin(), list.rend(), [&](const Kept& kept) { return kept.port % 2 == parity; });
        const PooledConnection taken = f.pool.take(key, [&](const PooledConnection& connection) {
          return connection.stream->peer().port() % 2 == parity;
        });
        REQUIRE((taken.stream != nullptr) == (wanted != list.rend()));
        if (taken.stream == nullptr) break;
        REQUIRE(taken.stream->peer().port() == wanted->port);
        list.erase(std::next(wanted).base());
        break;
      }
      default: {
        PooledConnection made = f.connect(++port);
        made.made = MonotonicTime(std::chrono::seconds(random() % 60));
        list.push_back({port, made.made});
        f.pool.put(key, std::move(made), {.per_server = kPerServer, .in_all = kInAll});
        if (list.size() > kPerServer || size() > kInAll) list.erase(list.begin());
        break;
      }
    }
    REQUIRE(f.pool.size() == size());
    REQUIRE(f.stats.origin_connections.get() == size());
    if (step % 64 == 0) f.turn();
  }
}

TEST_CASE("bytes or an end that lie in a connection keep it from the pool", "[server][pool]") {
  enum class Left : std::uint8_t { kNothing, kBytes, kEnd };
  const Left left = GENERATE(Left::kNothing, Left::kBytes, Left::kEnd);
  Fixture f;
  // Leaves what comes in the stream.
  struct Handler final : public net::StreamHandler {
    std::size_t on_data(net::Stream&, std::span<const std::byte>) override { return 0; }
    void on_writable(net::Stream&) override {}
    void on_eof(net::Stream&) override {}
    void on_error(net::Stream&, net::CloseReason, int) override {}
  } handler;
  PooledConnection connection = f.connect(1);
  connection.stream->set_handler(&handler);
  if (connection.stream->is_reading_paused()) connection.stream->resume_reading();
  if (left == Left::kBytes) REQUIRE(::send(f.far[0].get(), "x", 1, 0) == 1);
  if (left == Left::kEnd) REQUIRE(::shutdown(f.far[0].get(), SHUT_WR) == 0);
  for (int turn = 0; turn < 5; ++turn) f.turn();
  connection.stream->set_handler(nullptr);
  f.pool.put("a", std::move(connection), {.per_server = 8});
  CHECK(f.pool.size() == (left == Left::kNothing ? 1 : 0));
}

TEST_CASE("a connection that comes back makes room for who waits for its server",
          "[server][pool]") {
  Fixture f;
  int calls = 0;
  OriginQueues lines([&] { ++calls; });
  lines.use({.connections = 1, .waiting = 1});
  struct Owner final : public OriginQueues::Waiter::Owner {
    bool on_turn() override { return ++turns != 0; }
    void on_ousted() override {}
    int turns = 0;
  } owner;
  {
    PooledConnection connection = f.connect(1);
    connection.slot = lines.claim("a");
    REQUIRE(connection.slot);
    OriginQueues::Waiter waiter(owner);
    REQUIRE(lines.wait("a", {*net::Address::parse_ip("10.0.0.1", 1), false}, waiter));
    lines.wake();
    const int before = calls;
    CHECK(owner.turns == 0);
    f.pool.put("a", std::move(connection), {.per_server = 8});
    CHECK(calls == before + 1);
    lines.wake();
    CHECK(owner.turns == 1);
    f.pool.close_all();
  }
  lines.wake();
  CHECK(lines.size() == 0);
}

}  // namespace
}  // namespace encore::server
