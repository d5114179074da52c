#include "proxy/intake/client_counter.h"

#include <array>
#include <atomic>
#include <cstddef>
#include <thread>
#include <utility>
#include <vector>

#include "tests/catch.h"

namespace encore::server {
namespace {

net::Address address(const char* text, std::uint16_t port = 1) {
  return net::Address::parse_ip(text, port).value();
}

// Seats that are kept.
struct Seats {
  ClientCounter counter;
  std::vector<ClientCounter::Seat> taken;

  bool take(const net::Address& client, std::uint32_t limit) {
    ClientCounter::Seat seat;
    const bool let_in = seat.take(counter, client, limit);
    if (let_in) taken.push_back(std::move(seat));
    return let_in;
  }
};

TEST_CASE("a client has as many connections as the limit, whatever their ports",
          "[client][clients]") {
  Seats seats;
  for (std::uint16_t port = 1; port <= 3; ++port) {
    CHECK(seats.take(address("192.0.2.1", port), 3));
  }
  CHECK_FALSE(seats.take(address("192.0.2.1", 4), 3));
  // Others have their own, and one that is refused is not counted.
  CHECK(seats.take(address("192.0.2.2"), 3));
  seats.taken[1].leave();
  CHECK(seats.take(address("192.0.2.1", 5), 3));
  CHECK_FALSE(seats.take(address("192.0.2.1", 6), 3));
}

TEST_CASE("a limit that a reload has lowered lets nobody in until enough have left",
          "[client][clients]") {
  Seats seats;
  for (int i = 0; i < 3; ++i) CHECK(seats.take(address("2001:db8::1"), 3));
  CHECK_FALSE(seats.take(address("2001:db8::1"), 2));
  seats.taken[0].leave();
  CHECK_FALSE(seats.take(address("2001:db8::1"), 2));
  seats.taken[1].leave();
  CHECK(seats.take(address("2001:db8::1"), 2));
}

TEST_CASE("a mapped address is its IPv4 one", "[client][clients]") {
  Seats seats;
  CHECK(seats.take(address("192.0.2.1"), 1));
  CHECK_FALSE(seats.take(address("::ffff:192.0.2.1"), 1));
}

TEST_CASE("an IPv6 network of 64 bits is one client", "[client][clients]") {
  Seats seats;
  CHECK(seats.take(address("2001:db8:0:1::1"), 1));
  CHECK_FALSE(seats.take(address("2001:db8:0:1:ffff::2"), 1));
  CHECK(seats.take(address("2001:db8:0:2::1"), 1));
  CHECK(seats.take(address("192.0.2.1"), 1));
  CHECK(seats.take(address("192.0.2.2"), 1));
}

TEST_CASE("a seat that is taken again counts for whom it is taken then", "[client][clients]") {
  Seats seats;
  ClientCounter::Seat seat;
  CHECK(seat.take(seats.counter, address("192.0.2.1"), 1));
  seat.leave();
  seat.leave();  // once is enough
  CHECK(seat.take(seats.counter, address("192.0.2.2"), 1));
  CHECK(seats.take(address("192.0.2.1"), 1));
  CHECK_FALSE(seats.take(address("192.0.2.2"), 1));
  // The same client by another port, and as a mapped address.
  seat.leave();
  CHECK(seats.take(address("192.0.2.2", 7), 1));
  CHECK_FALSE(seat.take(seats.counter, address("::ffff:192.0.2.2", 8), 1));
  CHECK(seat.take(seats.counter, address("::ffff:192.0.2.2", 8), 2));
}

TEST_CASE("a seat that is moved is taken once", "[client][clients]") {
  Seats seats;
  ClientCounter::Seat first;
  CHECK(first.take(seats.counter, address("192.0.2.1"), 1));
  ClientCounter::Seat second(std::move(first));
  CHECK_FALSE(seats.take(address("192.0.2.1"), 1));
  second = ClientCounter::Seat();
  CHECK(seats.take(address("192.0.2.1"), 1));
}

TEST_CASE("of many threads one at a time has the only seat", "[client][clients]") {
  constexpr int kThreads = 4;
  constexpr int kTurns = 500'000;
  ClientCounter counter;
  std::atomic<int> under_way = 0;
  std::atomic<int> too_many = 0;
  const auto client = address("192.0.2.1");
  const auto work = [&] {
    ClientCounter::Seat seat;
    for (int turn = 0; turn < kTurns; ++turn) {
      if (!seat.take(counter, client, 1)) continue;
      if (under_way.fetch_add(1) != 0) ++too_many;
      under_way.fetch_sub(1);
      seat.leave();
    }
  };
  std::vector<std::thread> threads;
  for (int thread = 0; thread < kThreads; ++thread) threads.emplace_back(work);
  for (std::thread& thread : threads) thread.join();
  CHECK(too_many == 0);
}

// The counter's end sees that no record of a client stays behind.
TEST_CASE("many threads never have more of a client's than its limit", "[client][clients]") {
  constexpr std::uint32_t kLimit = 3;
  constexpr std::size_t kClients = 3;
  constexpr int kThreads = 8;
  constexpr int kTurns = 20'000;
  ClientCounter counter;
  std::array<std::atomic<std::uint32_t>, kClients> under_way{};
  std::atomic<std::uint32_t> most = 0;
  std::atomic<std::uint64_t> let_in = 0;
  const auto work = [&](int thread) {
    ClientCounter::Seat kept;
    for (int turn = 0; turn < kTurns; ++turn) {
      const auto which = static_cast<std::size_t>(thread + turn / 64) % kClients;
      const auto client = address(which == 0   ? "192.0.2.1"
                                  : which == 1 ? "2001:db8::1"
                                               : "198.51.100.9");
      ClientCounter::Seat fresh;
      ClientCounter::Seat& seat = turn % 3 == 0 ? fresh : kept;
      if (!seat.take(counter, client, kLimit)) continue;
      const std::uint32_t now = ++under_way.at(which);
      std::uint32_t before = most.load();
      while (before < now && !most.compare_exchange_weak(before, now)) {
      }
      if (turn % 16 == 0) std::this_thread::yield();
      --under_way.at(which);
      ++let_in;
      seat.leave();
    }
  };
  std::vector<std::thread> threads;
  for (int thread = 0; thread < kThreads; ++thread) threads.emplace_back(work, thread);
  for (std::thread& thread : threads) thread.join();
  CHECK(most.load() <= kLimit);
  CHECK(let_in.load() > kTurns);
  // All have left.
  ClientCounter::Seat last;
  for (const char* client : {"192.0.2.1", "2001:db8::1", "198.51.100.9"}) {
    CHECK(last.take(counter, address(client), 1));
    last.leave();
  }
}

}  // namespace
}  // namespace encore::server
