#include "proxy/settings/client_hosts.h"

#include <thread>

#include "tests/catch.h"

namespace encore::server {
namespace {

using std::chrono::hours;
using std::chrono::seconds;

constexpr MonotonicTime kStart{hours(10)};

net::Address client_address(const std::string& text) { return *net::Address::parse_ip(text, 1); }

}  // namespace

TEST_CASE("A client that rejects is known for a host, and for a while", "[settings][intercept]") {
  ClientHosts pairs;
  CHECK_FALSE(pairs.noted_at(client_address("10.0.0.1"), "a.example", kStart));
  CHECK(pairs.note(client_address("10.0.0.1"), "a.example", kStart, hours(1)));
  CHECK(pairs.noted_at(client_address("10.0.0.1"), "a.example", kStart + seconds(1)) == kStart);
  CHECK_FALSE(pairs.noted_at(client_address("10.0.0.2"), "a.example", kStart));
  CHECK_FALSE(pairs.noted_at(client_address("10.0.0.1"), "b.example", kStart));
  CHECK(pairs.noted_at(client_address("10.0.0.1"), "a.example", kStart + hours(1) - seconds(1)));
  CHECK_FALSE(pairs.noted_at(client_address("10.0.0.1"), "a.example", kStart + hours(1)));
  CHECK(pairs.size(kStart + hours(1)) == 0);
  CHECK(pairs.note(client_address("10.0.0.1"), "a.example", kStart + hours(1), hours(1)));
}

TEST_CASE("What is noted again is no news, and lasts longer", "[settings][intercept]") {
  ClientHosts pairs;
  CHECK(pairs.note(client_address("10.0.0.1"), "a.example", kStart, hours(1)));
  CHECK_FALSE(pairs.note(client_address("10.0.0.1"), "a.example", kStart + seconds(10), hours(1)));
  CHECK(pairs.size(kStart) == 1);
  CHECK(pairs.noted_at(client_address("10.0.0.1"), "a.example", kStart + hours(1) + seconds(9)));
}

TEST_CASE("A client is a network, where it has one", "[settings][intercept]") {
  ClientHosts pairs;
  pairs.note(client_address("2001:db8::1"), "a.example", kStart, hours(1));
  CHECK(pairs.noted_at(client_address("2001:db8::ffff"), "a.example", kStart));
  CHECK_FALSE(pairs.noted_at(client_address("2001:db8:0:1::1"), "a.example", kStart));
  pairs.note(client_address("10.0.0.1"), "a.example", kStart, hours(1));
  CHECK(pairs.noted_at(client_address("::ffff:10.0.0.1"), "a.example", kStart));
}

TEST_CASE("There is a bound, and the oldest pair leaves", "[settings][intercept]") {
  ClientHosts pairs(3, 3);
  for (const char* const host : {"a", "b", "c"}) {
    CHECK(pairs.note(client_address("10.0.0.1"), host, kStart, hours(1)));
  }
  CHECK_FALSE(pairs.note(client_address("10.0.0.1"), "a", kStart, hours(1)));
  CHECK(pairs.note(client_address("10.0.0.2"), "a", kStart, hours(1)));  // in the place of b
  CHECK(pairs.size(kStart) == 3);
  CHECK_FALSE(pairs.noted_at(client_address("10.0.0.1"), "b", kStart));
  CHECK(pairs.noted_at(client_address("10.0.0.1"), "a", kStart));
  CHECK(pairs.noted_at(client_address("10.0.0.2"), "a", kStart));
  const auto newest = pairs.newest(2, kStart + seconds(1));
  REQUIRE(newest.size() == 2);
  CHECK(newest[0].client == "10.0.0.2");
  CHECK(newest[0].host == "a");
  CHECK(newest[0].left == hours(1) - seconds(1));
  CHECK(newest[1].client == "10.0.0.1");
}

TEST_CASE("One client drives out nobody else's pairs", "[settings][intercept]") {
  ClientHosts pairs(100, 2);
  pairs.note(client_address("10.0.0.9"), "mine", kStart, hours(1));
  for (int i = 0; i < 1000; ++i) {
    const std::string host = "h" + std::to_string(i);
    CHECK(pairs.note(client_address("10.0.0.1"), host, kStart, hours(1)) == (i < 2));
  }
  CHECK(pairs.size(kStart) == 3);
  CHECK(pairs.noted_at(client_address("10.0.0.9"), "mine", kStart));
  // When its own have ended there is room for it again.
  CHECK(pairs.note(client_address("10.0.0.1"), "later", kStart + hours(1), hours(1)));
  CHECK(pairs.size(kStart + hours(1)) == 1);
}

TEST_CASE("A pair has connections as long as they last", "[settings][intercept]") {
  ClientHosts pairs;
  CHECK_FALSE(pairs.is_open(client_address("10.0.0.1"), "a.example"));
  pairs.open(client_address("10.0.0.1"), "a.example", kStart, hours(1));
  pairs.open(client_address("10.0.0.1"), "a.example", kStart + seconds(1), hours(1));
  CHECK(pairs.noted_at(client_address("10.0.0.1"), "a.example", kStart + seconds(2)) ==
        kStart + seconds(1));
  CHECK(pairs.is_open(client_address("10.0.0.1"), "a.example"));
  CHECK_FALSE(pairs.is_open(client_address("10.0.0.2"), "a.example"));
  CHECK_FALSE(pairs.is_open(client_address("10.0.0.1"), "b.example"));
  pairs.close(client_address("10.0.0.1"), "a.example");
  CHECK(pairs.is_open(client_address("10.0.0.1"), "a.example"));
  pairs.close(client_address("10.0.0.1"), "a.example");
  CHECK_FALSE(pairs.is_open(client_address("10.0.0.1"), "a.example"));
  CHECK(pairs.size(kStart) == 1);
}

TEST_CASE("A pair with connections outlasts its time", "[settings][intercept]") {
  ClientHosts pairs;
  pairs.open(client_address("10.0.0.1"), "a.example", kStart, hours(1));
  pairs.note(client_address("10.0.0.2"), "a.example", kStart, hours(1));
  CHECK(pairs.size(kStart + hours(1)) == 1);
  CHECK(pairs.is_open(client_address("10.0.0.1"), "a.example"));
  CHECK(pairs.noted_at(client_address("10.0.0.1"), "a.example", kStart + hours(1)) == kStart);
  pairs.close(client_address("10.0.0.1"), "a.example");
  CHECK(pairs.size(kStart + hours(2)) == 0);
}

TEST_CASE("A pair is known from what it did last on a connection", "[settings][intercept]") {
  ClientHosts pairs;
  const auto client = client_address("10.0.0.1");
  const auto latest = pairs.open(client, "a.example", kStart, hours(1));
  REQUIRE(latest != nullptr);
  CHECK(pairs.open(client, "a.example", kStart, hours(1)) == latest);
  latest->store(kStart + seconds(1800));
  CHECK(pairs.noted_at(client, "a.example", kStart + seconds(1800)) == kStart + seconds(1800));
  pairs.close(client, "a.example");
  pairs.close(client, "a.example");
  CHECK(pairs.size(kStart + hours(1)) == 1);
  CHECK(pairs.noted_at(client, "a.example", kStart + seconds(5399)));
  CHECK_FALSE(pairs.noted_at(client, "a.example", kStart + seconds(5400)));
  CHECK(pairs.size(kStart + seconds(5400)) == 0);
}

TEST_CASE("A pair beyond its client's share has no connections", "[settings][intercept]") {
  ClientHosts pairs(100, 1);
  CHECK(pairs.open(client_address("10.0.0.1"), "a.example", kStart, hours(1)) != nullptr);
  CHECK(pairs.open(client_address("10.0.0.1"), "b.example", kStart, hours(1)) == nullptr);
  pairs.close(client_address("10.0.0.1"), "b.example");
}

TEST_CASE("What a pair had that has left meanwhile is not counted below nothing",
          "[settings][intercept]") {
  ClientHosts pairs(1, 1);
  pairs.open(client_address("10.0.0.1"), "a.example", kStart, hours(1));
  pairs.note(client_address("10.0.0.2"), "a.example", kStart, hours(1));  // in its place
  CHECK_FALSE(pairs.is_open(client_address("10.0.0.1"), "a.example"));
  pairs.close(client_address("10.0.0.1"), "a.example");
  pairs.note(client_address("10.0.0.1"), "a.example", kStart, hours(1));
  pairs.close(client_address("10.0.0.1"), "a.example");
  CHECK_FALSE(pairs.is_open(client_address("10.0.0.1"), "a.example"));
}

TEST_CASE("Threads share the rejected clients", "[settings][intercept]") {
  ClientHosts pairs(64, 16);
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 4; ++thread) {
    threads.emplace_back([&, thread] {
      const net::Address mine = client_address("10.0.0." + std::to_string(thread + 1));
      for (int i = 0; i < 200; ++i) {
        const std::string host = "h" + std::to_string(i % 16);
        pairs.note(mine, host, kStart + seconds(i), hours(1));
        (void)pairs.noted_at(mine, host, kStart + seconds(i));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(pairs.size(kStart + seconds(200)) == 64);
}

}  // namespace encore::server
