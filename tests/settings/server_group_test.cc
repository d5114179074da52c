#include "proxy/settings/server_group.h"

#include <thread>
#include <vector>

#include "tests/catch.h"

namespace encore::server {
namespace {

constexpr Nanoseconds kRest = std::chrono::seconds(10);

MonotonicTime at(int seconds) { return MonotonicTime(std::chrono::seconds(seconds)); }

// Servers named by their ports, 1 and up.
void fill(ServerGroup& group, std::uint16_t count) {
  for (std::uint16_t port = 1; port <= count; ++port) {
    OriginServer server;
    server.port = port;
    group.add(std::move(server));
  }
}

int next_port(const ServerGroup& group, MonotonicTime now, ServerGroup::Choice choice = {}) {
  choice.rest = kRest;
  const OriginServer* next = group.next(now, choice);
  return next == nullptr ? 0 : next->port;
}

TEST_CASE("servers take turns", "[server][group]") {
  ServerGroup group;
  fill(group, 2);
  for (int turn = 0; turn < 3; ++turn) {
    CHECK(next_port(group, at(1)) == 1);
    CHECK(next_port(group, at(1)) == 2);
  }
}

TEST_CASE("a server that failed is left out until its time is up, then one request tries it",
          "[server][group]") {
  ServerGroup group;
  fill(group, 3);
  const OriginServer& second = group.servers()[1];
  CHECK(group.set_aside(second, at(100), kRest));
  CHECK_FALSE(group.set_aside(second, at(100), kRest));  // it was already
  for (int turn = 0; turn < 9; ++turn) CHECK(next_port(group, at(109)) != 2);
  int tried = 0;
  for (int turn = 0; turn < 9; ++turn) tried += next_port(group, at(110)) == 2 ? 1 : 0;
  CHECK(tried == 1);
  group.put_back(second);
  for (int turn = 0; turn < 9; ++turn) tried += next_port(group, at(110)) == 2 ? 1 : 0;
  CHECK(tried == 1 + 3);
}

TEST_CASE("the last server in turn is not set aside, and with no rest none is", "[server][group]") {
  ServerGroup group;
  fill(group, 2);
  CHECK_FALSE(group.set_aside(group.servers()[0], at(1), Nanoseconds(0)));
  CHECK(group.set_aside(group.servers()[0], at(1), kRest));
  CHECK_FALSE(group.set_aside(group.servers()[1], at(1), kRest));
  CHECK(next_port(group, at(2)) == 2);
  ServerGroup single;
  fill(single, 1);
  CHECK_FALSE(single.set_aside(single.servers()[0], at(1), kRest));
  CHECK(next_port(single, at(1)) == 1);
}

TEST_CASE("what was tried is not asked again, and what is set aside is the last resort",
          "[server][group]") {
  ServerGroup group;
  fill(group, 3);
  CHECK(group.set_aside(group.servers()[0], at(1), kRest));
  CHECK(group.set_aside(group.servers()[1], at(2), kRest));
  std::vector<const OriginServer*> tried = {&group.servers()[2]};
  CHECK(next_port(group, at(3), {.tried = tried, .last_resort = false}) == 0);
  CHECK(next_port(group, at(3), {.tried = tried}) == 1);  // whose time ends first
  tried.push_back(&group.servers()[0]);
  CHECK(next_port(group, at(3), {.tried = tried}) == 2);
  tried.push_back(&group.servers()[1]);
  CHECK(next_port(group, at(3), {.tried = tried}) == 0);
}

TEST_CASE("a second choice takes nobody's turn", "[server][group]") {
  ServerGroup group;
  fill(group, 2);
  const std::vector<const OriginServer*> tried = {&group.servers()[0]};
  CHECK(next_port(group, at(1)) == 1);
  CHECK(next_port(group, at(1), {.tried = tried}) == 2);
  CHECK(next_port(group, at(1)) == 2);
}

TEST_CASE("of all threads one tries a server whose time is up", "[server][group]") {
  ServerGroup group;
  fill(group, 2);
  CHECK(group.set_aside(group.servers()[0], at(1), kRest));
  std::atomic<int> tried = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (int turn = 0; turn < 1000; ++turn) tried += next_port(group, at(50)) == 1 ? 1 : 0;
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(tried == 1);
}

}  // namespace
}  // namespace encore::server
