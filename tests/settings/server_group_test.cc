#include "proxy/settings/server_group.h"

#include <map>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "tests/catch.h"

namespace encore::server {
namespace {

constexpr Nanoseconds kRest = std::chrono::seconds(10);

MonotonicTime at(int second) { return MonotonicTime(std::chrono::seconds(second)); }

// Servers named by their ports, 1 and up.
void fill(ServerGroup& group, std::uint16_t count, std::uint16_t backups = 0) {
  for (std::uint16_t port = 1; port <= count; ++port) {
    OriginServer server;
    server.port = port;
    server.pool_key = std::to_string(port);
    server.backup = port > count - backups;
    group.add(std::move(server));
  }
  group.begin(nullptr, ServerGroup::Checks::kKept);
}

// As long as a tenth more than kRest, so that a look behind that is behind it in any case.
ServerGroup::Options options() {
  return {.ejection = {.after = 1, .rest = kRest, .rest_max = 6 * kRest}};
}

int next_port(const ServerGroup& group, MonotonicTime now, ServerGroup::Choice choice = {}) {
  const ServerLease next = group.next(now, choice);
  return next ? next.server()->port : 0;
}

TEST_CASE("servers take turns", "[server][group]") {
  ServerGroup group(options());
  fill(group, 2);
  for (int turn = 0; turn < 3; ++turn) {
    CHECK(next_port(group, at(1)) == 1);
    CHECK(next_port(group, at(1)) == 2);
  }
}

TEST_CASE("a server that failed is left out until its time is up, then one request tries it",
          "[server][group]") {
  ServerGroup group(options());
  fill(group, 3);
  const OriginServer& second = group.servers()[1];
  CHECK(group.note_failure(second, at(100)));
  CHECK_FALSE(group.note_failure(second, at(100)));  // it was already
  for (int turn = 0; turn < 9; ++turn) CHECK(next_port(group, at(109)) != 2);
  int tried = 0;
  for (int turn = 0; turn < 9; ++turn) tried += next_port(group, at(111)) == 2 ? 1 : 0;
  CHECK(tried == 1);
  CHECK(group.note_answer(second, at(111)));
  for (int turn = 0; turn < 9; ++turn) tried += next_port(group, at(111)) == 2 ? 1 : 0;
  CHECK(tried == 1 + 3);
}

TEST_CASE("the last server in turn is not set aside, and with no rest none is", "[server][group]") {
  ServerGroup group(options());
  fill(group, 2);
  CHECK(group.note_failure(group.servers()[0], at(1)));
  CHECK_FALSE(group.note_failure(group.servers()[1], at(1)));
  CHECK(next_port(group, at(2)) == 2);
  ServerGroup without(ServerGroup::Options{});
  fill(without, 2);
  CHECK_FALSE(without.note_failure(without.servers()[0], at(1)));
  ServerGroup single(options());
  fill(single, 1);
  CHECK_FALSE(single.note_failure(single.servers()[0], at(1)));
  CHECK(next_port(single, at(1)) == 1);
}

TEST_CASE("what was tried is not asked again, and what is set aside is the last resort",
          "[server][group]") {
  ServerGroup group(options());
  fill(group, 3);
  CHECK(group.note_failure(group.servers()[0], at(1)));
  CHECK(group.note_failure(group.servers()[1], at(3)));
  std::vector<const OriginServer*> tried = {&group.servers()[2]};
  CHECK(next_port(group, at(4), {.tried = tried, .last_resort = false}) == 0);
  CHECK(next_port(group, at(4), {.tried = tried}) == 1);  // the one whose time ends first
  tried.push_back(&group.servers()[0]);
  CHECK(next_port(group, at(4), {.tried = tried}) == 2);
  tried.push_back(&group.servers()[1]);
  CHECK(next_port(group, at(4), {.tried = tried}) == 0);
}

TEST_CASE("a second choice takes nobody's turn", "[server][group]") {
  ServerGroup group(options());
  fill(group, 2);
  const std::vector<const OriginServer*> tried = {&group.servers()[0]};
  CHECK(next_port(group, at(1)) == 1);
  CHECK(next_port(group, at(1), {.tried = tried}) == 2);
  CHECK(next_port(group, at(1)) == 2);
}

TEST_CASE("of all threads one tries a server whose time is up", "[server][group]") {
  ServerGroup group(options());
  fill(group, 2);
  CHECK(group.note_failure(group.servers()[0], at(1)));
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

TEST_CASE("a backup is asked where none of the others is to be had", "[server][group]") {
  ServerGroup group(options());
  fill(group, 3, 1);
  for (int turn = 0; turn < 6; ++turn) CHECK(next_port(group, at(1)) != 3);
  const std::vector<const OriginServer*> tried = {&group.servers()[0], &group.servers()[1]};
  CHECK(next_port(group, at(1), {.tried = tried}) == 3);
  CHECK(group.note_failure(group.servers()[0], at(1)));
  CHECK(group.note_failure(group.servers()[1], at(1)));  // it is not the last: there is the backup
  CHECK(next_port(group, at(2)) == 3);
  CHECK_FALSE(group.note_failure(group.servers()[2], at(2)));
  // Those that come back are tried before it is asked on.
  CHECK(next_port(group, at(13)) != 3);
}

TEST_CASE("what checks found down is the last that is asked", "[server][group]") {
  ServerGroup group(options());
  fill(group, 3);
  CHECK(group.set_down(group.servers()[0], true, at(1)));
  for (int turn = 0; turn < 6; ++turn) CHECK(next_port(group, at(1)) != 1);
  CHECK(group.note_failure(group.servers()[1], at(1)));
  CHECK_FALSE(group.note_failure(group.servers()[2], at(1)));
  std::vector<const OriginServer*> tried = {&group.servers()[2]};
  CHECK(next_port(group, at(2), {.tried = tried}) == 2);
  tried.push_back(&group.servers()[1]);
  CHECK(next_port(group, at(2), {.tried = tried}) == 1);
  CHECK(group.set_down(group.servers()[0], false, at(3)));
  CHECK_FALSE(group.set_down(group.servers()[0], false, at(3)));
  CHECK(next_port(group, at(3)) != 2);
}

TEST_CASE("what is known of a server that stays is taken over, and of no other",
          "[server][group]") {
  ServerGroup before(options());
  fill(before, 3);
  CHECK(before.note_failure(before.servers()[0], at(1)));
  CHECK(before.set_down(before.servers()[1], true, at(1)));
  const ServerLease under_way = before.next(at(1), {});
  REQUIRE(under_way.server()->port == 3);
  for (const auto checks : {ServerGroup::Checks::kKept, ServerGroup::Checks::kForgotten}) {
    ServerGroup group(options());
    for (std::uint16_t port = 4; port != 0; --port) {
      OriginServer server;
      server.port = port;
      server.pool_key = std::to_string(port);
      group.add(std::move(server));
    }
    group.begin(&before, checks);
    const auto seen = group.look();
    CHECK((seen[0].standing == ServerGroup::Standing::kUp));
    CHECK((seen[1].standing == ServerGroup::Standing::kUp));
    CHECK(seen[1].active == 1);
    CHECK(((seen[2].standing == ServerGroup::Standing::kDown) ==
           (checks == ServerGroup::Checks::kKept)));
    CHECK((seen[3].standing == ServerGroup::Standing::kAside));
    CHECK(group.note_answer(group.servers()[3], at(2)));
  }
}

OriginServer named(const std::string& name, const std::string& pool_key) {
  OriginServer server;
  server.host = name;
  server.url = "http://" + name;
  server.pool_key = pool_key;
  return server;
}

TEST_CASE("what was counted of a server outlives a reload by its URL, wherever it is then",
          "[server][group]") {
  ServerGroup before(options());
  for (const char* name : {"1", "2", "3"}) {
    before.add(named(name, name));
  }
  before.tally(before.servers()[1], 0).add(&ServerCounts::sent, 7);
  before.tally(before.servers()[1], 0).note_failure(std::string(1000, 'x'), WallTime{});
  ServerGroup after(options());
  // Other settings of its TLS: another one to be asked, and the same to be counted.
  for (const char* name : {"2", "9"}) {
    after.add(named(name, std::string(name) + "|other"));
  }
  after.begin(&before, ServerGroup::Checks::kKept);
  const ServerCounters& kept = *after.counters(after.servers()[0]);
  CHECK(kept.sums().sent == 7);
  CHECK(kept.last_failure().why.size() == ServerCounters::kErrorBytes);
  CHECK(after.counters(after.servers()[1])->sums().sent == 0);
  // Requests of the configuration before still count.
  before.tally(before.servers()[1], 0).add(&ServerCounts::sent);
  CHECK(kept.sums().sent == 8);
}

TEST_CASE("servers without series are counted together, too, and one that is named twice is one",
          "[server][group][series]") {
  ServerGroup group(options());
  for (const char* name : {"1", "2", "1"}) {
    group.add(named(name, name));
  }
  const auto others = std::make_shared<ServerCounters>();
  group.count_others([](const OriginServer& server) { return server.host == "1"; }, others);
  for (const OriginServer& server : group.servers()) {
    group.tally(server, 0).add(&ServerCounts::sent);
    group.tally(server, 0).add_failure(ServerFailure::kTls);
  }
  CHECK(group.counters(group.servers()[0])->sums().sent == 2);
  CHECK(group.counters(group.servers()[0]) == group.counters(group.servers()[2]));
  CHECK(group.counters(group.servers()[1])->sums().sent == 1);
  CHECK(others->sums().sent == 1);
  CHECK(others->sums().failures[static_cast<std::size_t>(ServerFailure::kTls)] == 1);
}

TEST_CASE("requests under way are counted until they end", "[server][group]") {
  ServerGroup::Options least = options();
  least.balance = config::Balance::kLeastRequests;
  ServerGroup group(least);
  fill(group, 2);
  std::vector<ServerLease> leases;
  for (int i = 0; i < 10; ++i) leases.push_back(group.next(at(1), {}));
  CHECK(group.look()[0].active == 5);
  CHECK(group.look()[1].active == 5);
  leases[0] = {};
  CHECK(group.look()[0].active + group.look()[1].active == 9);
  leases.clear();
  CHECK(group.look()[0].active + group.look()[1].active == 0);
}

TEST_CASE("a key keeps to its server, and goes on from one that is out", "[server][group]") {
  ServerGroup::Options hash = options();
  hash.balance = config::Balance::kHash;
  ServerGroup group(hash);
  fill(group, 3);
  const ServerGroup::Choice choice = {.hash = 99};
  const int own = next_port(group, at(1), choice);
  for (int i = 0; i < 5; ++i) CHECK(next_port(group, at(1), choice) == own);
  CHECK(group.note_failure(group.servers()[static_cast<std::size_t>(own - 1)], at(1)));
  const int other = next_port(group, at(1), choice);
  CHECK(other != own);
  CHECK(next_port(group, at(1), choice) == other);
}

// Servers that answered `count` requests for a key, by port.
std::set<int> ports_of(const ServerGroup& group, std::uint64_t key, int count) {
  std::set<int> ports;
  for (int i = 0; i < count; ++i) {
    ports.insert(next_port(group, at(1), {.hash = key, .is_hot = group.count_hot(key)}));
  }
  return ports;
}

TEST_CASE("a hot key goes to every server, and the others keep their places", "[server][group]") {
  ServerGroup::Options hash = options();
  hash.balance = config::Balance::kHash;
  hash.hot_share = 0.1;
  ServerGroup group(hash);
  fill(group, 4);
  constexpr std::uint64_t kHot = 0x123456789abcdef0U;
  // The places of others, far apart on the ring.
  const auto key = [](std::uint64_t i) { return i * 0x9e3779b97f4a7c15U; };
  std::map<std::uint64_t, int> homes;
  for (std::uint64_t i = 1; i <= 40; ++i) homes[i] = next_port(group, at(1), {.hash = key(i)});
  std::set<int> hot;
  for (int round = 0; round < 10; ++round) {
    for (const auto& [i, home] : homes) {
      const std::set<int> own = ports_of(group, key(i), 1);
      CHECK(own == std::set<int>{home});
      hot.merge(ports_of(group, kHot, 1));
    }
  }
  CHECK(hot == std::set<int>{1, 2, 3, 4});
  // A reload with the same share knows it still, and one with another begins anew.
  ServerGroup after(hash);
  fill(after, 4);
  after.begin(&group, ServerGroup::Checks::kKept);
  CHECK(after.count_hot(kHot));
  hash.hot_share = 0.2;
  ServerGroup changed(hash);
  fill(changed, 4);
  changed.begin(&group, ServerGroup::Checks::kKept);
  CHECK_FALSE(changed.count_hot(kHot));
}

TEST_CASE("no key is hot for one server, without a share, or by client", "[server][group]") {
  struct Row {
    config::Balance balance;
    double share;
    std::uint16_t servers;
    bool hot;
  };
  const Row row = GENERATE(values<Row>({{config::Balance::kHash, 0.1, 2, true},
                                        {config::Balance::kHash, 0.1, 1, false},
                                        {config::Balance::kHash, 0, 2, false},
                                        {config::Balance::kClient, 0.1, 2, false},
                                        {config::Balance::kRoundRobin, 0.1, 2, false}}));
  ServerGroup::Options set = options();
  set.balance = row.balance;
  set.hot_share = row.share;
  ServerGroup group(set);
  fill(group, row.servers);
  bool hot = false;
  for (int i = 0; i < 100; ++i) hot = group.count_hot(7);
  CHECK(hot == row.hot);
}

TEST_CASE("a client keeps to its server, however busy", "[server][group]") {
  ServerGroup::Options by_client = options();
  by_client.balance = config::Balance::kClient;
  ServerGroup group(by_client);
  fill(group, 3);
  const ServerGroup::Choice choice = {.hash = 99};
  const int own = next_port(group, at(1), choice);
  std::vector<ServerLease> leases;
  for (int i = 0; i < 20; ++i) {
    leases.push_back(group.next(at(1), choice));
    CHECK(leases.back().server()->port == own);
  }
  CHECK(group.note_failure(group.servers()[static_cast<std::size_t>(own - 1)], at(1)));
  const int other = next_port(group, at(1), choice);
  CHECK(other != own);
  CHECK(next_port(group, at(1), choice) == other);
}

}  // namespace
}  // namespace encore::server
