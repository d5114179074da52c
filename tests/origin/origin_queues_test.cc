#include "proxy/origin/origin_queues.h"

#include <algorithm>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "tests/catch.h"

namespace encore::server {
namespace {

OriginQueues::Party client(std::string_view ip, bool speaks_for_many = false) {
  const auto address = net::Address::parse_ip(ip, 1);
  REQUIRE(address.has_value());
  return {*address, speaks_for_many};
}

// A fetch: its share, its slot, and its place in line.
struct Place final : OriginQueues::Waiter::Owner {
  Place(OriginQueues& of, std::string_view server, const OriginQueues::Party& whose)
      : lines(of), key(server), party(whose) {}
  // As OriginLink does it: what there is, or a place in line.
  bool ask() { return (!lines.must_wait(key, party) && take()) || lines.wait(key, party, waiter); }
  bool take() {
    share = lines.enter(key, party);
    if (share) slot = lines.claim(key);
    if (!slot) share.reset();
    if (slot && order != nullptr) order->push_back(this);
    return static_cast<bool>(slot);
  }
  bool on_turn() override { return take(); }
  void on_ousted() override { ousted = true; }
  void end() {
    slot.reset();
    share.reset();
  }

  OriginQueues& lines;
  std::string key;
  OriginQueues::Party party;
  std::vector<const Place*>* order = nullptr;  // places that had their turn
  bool ousted = false;
  OriginQueues::Share share;
  OriginQueues::Slot slot;
  OriginQueues::Waiter waiter{*this};
};

}  // namespace

TEST_CASE("a slot that is freed goes to whoever waits first, by the loop", "[server][line]") {
  int calls = 0;
  OriginQueues lines([&] { ++calls; });
  lines.use({.connections = 1, .waiting = 2});
  const auto whose = client("10.0.0.1");
  auto held = lines.claim("a");
  CHECK(held);
  CHECK_FALSE(lines.claim("a"));
  CHECK(lines.claim("b"));
  Place first{lines, "a", whose};
  Place second{lines, "a", whose};
  Place third{lines, "a", whose};
  CHECK_FALSE(lines.must_wait("a", whose));
  CHECK(first.ask());
  CHECK(second.ask());
  CHECK_FALSE(third.ask());
  CHECK(lines.must_wait("a", whose));
  CHECK_FALSE(lines.must_wait("b", whose));
  held.reset();
  CHECK(calls == 1);
  CHECK_FALSE(first.slot);
  lines.wake();
  CHECK(first.slot);
  CHECK_FALSE(second.slot);
  CHECK(second.waiter.is_waiting());
  second.waiter.leave();
  first.end();
  CHECK(lines.size() == 0);
}

TEST_CASE("an idle connection gives the first its turn, and it stays the first where it has none",
          "[server][line]") {
  OriginQueues lines([] {});
  lines.use({.connections = 1, .waiting = 8});
  const auto whose = client("10.0.0.1");
  auto held = lines.claim("a");
  Place first{lines, "a", whose};
  Place second{lines, "a", whose};
  REQUIRE(first.ask());
  REQUIRE(second.ask());
  held.note_idle();
  lines.wake();
  CHECK(lines.waiting() == 2);
  held.reset();
  lines.wake();
  CHECK(first.slot);
  CHECK_FALSE(second.slot);
}

TEST_CASE("limits that are raised let more in", "[server][line]") {
  OriginQueues lines([] {});
  lines.use({.connections = 1, .waiting = 8});
  auto held = lines.claim("a");
  Place first{lines, "a", client("10.0.0.1")};
  REQUIRE(first.ask());
  lines.use({.connections = 3, .per_client = 1, .waiting = 8});
  lines.wake();
  CHECK(first.slot);
  Place second{lines, "a", client("10.0.0.1")};
  REQUIRE(second.ask());
  CHECK_FALSE(second.slot);
  lines.use({.connections = 3, .per_client = 2, .waiting = 8});
  lines.wake();
  CHECK(second.slot);
}

TEST_CASE("a client has its share of a server, and the rest is there when another comes",
          "[server][line]") {
  OriginQueues lines([] {});
  lines.use({.connections = 4, .per_client = 2, .waiting = 8});
  const auto one = client("10.0.0.1");
  std::deque<Place> places;
  for (int i = 0; i < 4; ++i) REQUIRE(places.emplace_back(lines, "a", one).ask());
  CHECK(places[1].slot);
  CHECK_FALSE(places[2].slot);
  // Nobody who waits for their own share holds up another, nor does a connection too few.
  Place other{lines, "a", client("10.0.0.2")};
  REQUIRE(other.ask());
  CHECK(other.slot);
  // The client has its share of another server, too.
  Place elsewhere{lines, "b", one};
  REQUIRE(elsewhere.ask());
  CHECK(elsewhere.slot);
  other.end();
  lines.wake();
  CHECK_FALSE(places[2].slot);
  // Its own next one goes on where one of its own has ended.
  places[0].end();
  lines.wake();
  CHECK(places[2].slot);
  CHECK_FALSE(places[3].slot);
}

TEST_CASE("an IPv6 network of 64 bits is one client, and who speaks for many has no share",
          "[server][line]") {
  OriginQueues lines([] {});
  lines.use({.connections = 3, .per_client = 1});
  Place first{lines, "a", client("2001:db8::1")};
  Place second{lines, "a", client("2001:db8::ffff:1")};
  Place other{lines, "a", client("2001:db8:0:1::1")};
  CHECK(first.ask());
  CHECK_FALSE(second.ask());
  CHECK(other.ask());
  first.end();
  other.end();
  std::deque<Place> proxies;
  for (int i = 0; i < 3; ++i)
    CHECK(proxies.emplace_back(lines, "a", client("10.0.0.1", true)).ask());
}

TEST_CASE("clients in line take turns, whoever came first", "[server][line]") {
  OriginQueues lines([] {});
  lines.use({.connections = 1, .waiting = 100});
  std::deque<Place> places;
  std::vector<const Place*> order;
  const auto add = [&](const OriginQueues::Party& whose) {
    Place& place = places.emplace_back(lines, "a", whose);
    place.order = &order;
    REQUIRE(place.ask());
  };
  for (int i = 0; i < 6; ++i) add(client("10.0.0.1"));
  for (int i = 0; i < 2; ++i) add(client("10.0.0.2"));
  for (int i = 0; i < 2; ++i) add(client("10.0.0.3"));
  while (order.size() < places.size()) {
    auto* running = const_cast<Place*>(order.back());
    running->end();
    lines.wake();
  }
  std::vector<std::ptrdiff_t> turns;
  for (const Place* each : order) {
    turns.push_back(std::ranges::find(places, each, [](const Place& p) { return &p; }) -
                    places.begin());
  }
  CHECK(turns == std::vector<std::ptrdiff_t>{0, 1, 6, 8, 2, 7, 9, 3, 4, 5});
}

TEST_CASE("a full line takes in who waits less by the last of the longest", "[server][line]") {
  int calls = 0;
  OriginQueues lines([&] { ++calls; });
  lines.use({.connections = 1, .waiting = 4});
  auto held = lines.claim("a");
  std::deque<Place> places;
  const auto add = [&](std::string_view ip) -> Place& {
    return places.emplace_back(lines, "a", client(ip));
  };
  for (int i = 0; i < 4; ++i) REQUIRE(add("10.0.0.1").ask());
  CHECK_FALSE(add("10.0.0.1").ask());
  CHECK(add("10.0.0.2").ask());
  CHECK(calls == 1);
  CHECK_FALSE(places[3].ousted);  // it learns it from the loop
  lines.wake();
  CHECK(places[3].ousted);
  CHECK_FALSE(places[3].waiter.is_waiting());
  CHECK(lines.waiting() == 4);
  // Three and one: a place that moves makes them even, and then nobody gives way any more.
  CHECK(add("10.0.0.2").ask());
  CHECK_FALSE(add("10.0.0.2").ask());
  CHECK(add("10.0.0.3").ask());
  // A waiter that leaves before it is notified takes nothing along.
  places.pop_front();
  lines.wake();
  CHECK(lines.waiting() <= 4);
  places.clear();
  held.reset();
  lines.wake();
  CHECK(lines.size() == 0);
}

TEST_CASE("lines agree with a naive model, whoever comes, goes and gives up", "[server][line]") {
  std::mt19937 random(4711);
  bool room = false;
  OriginQueues lines([&] { room = true; });
  constexpr std::size_t kConnections = 4;
  constexpr std::size_t kPerClient = 2;
  constexpr std::size_t kWaiting = 6;
  lines.use({.connections = kConnections, .per_client = kPerClient, .waiting = kWaiting});
  const std::vector<OriginQueues::Party> clients = {client("10.0.0.1"), client("10.0.0.2"),
                                                    client("10.0.0.3")};
  std::vector<std::unique_ptr<Place>> places;
  const auto count = [&](std::string_view key, const OriginQueues::Party* whose, auto which) {
    return static_cast<std::size_t>(std::ranges::count_if(places, [&](const auto& place) {
      return place->key == key && (whose == nullptr || place->party == *whose) && which(*place);
    }));
  };
  const auto is_open = [](const Place& place) { return static_cast<bool>(place.slot); };
  const auto is_waiting = [](const Place& place) { return place.waiter.is_waiting(); };
  for (int step = 0; step < 20'000; ++step) {
    const std::string key(1, static_cast<char>('a' + random() % 3));
    if (random() % 2 == 0) {
      // One that asks for more than the others.
      const auto& whose = clients[random() % 4 % 3];
      const bool share_left = count(key, &whose, is_open) < kPerClient;
      const bool free = count(key, nullptr, is_open) < kConnections;
      std::size_t longest = 0;
      for (const auto& each : clients) longest = std::max(longest, count(key, &each, is_waiting));
      const bool place = count(key, nullptr, is_waiting) < kWaiting ||
                         longest >= count(key, &whose, is_waiting) + 2;
      const bool waits = lines.must_wait(key, whose);
      auto asks = std::make_unique<Place>(lines, key, whose);
      const bool taken = asks->ask();
      REQUIRE(static_cast<bool>(asks->slot) == (!waits && share_left && free));
      REQUIRE(taken == (asks->slot || place));
      if (taken) places.push_back(std::move(asks));
    } else if (!places.empty()) {
      std::swap(places[random() % places.size()], places.back());
      places.pop_back();
    }
    if (random() % 3 == 0) {
      if (room) lines.wake();
      room = false;
      std::erase_if(places, [](const auto& place) { return place->ousted; });
      for (const std::string name : {"a", "b", "c"}) {
        const bool full = count(name, nullptr, is_open) == kConnections;
        REQUIRE(count(name, nullptr, is_open) <= kConnections);
        REQUIRE(count(name, nullptr, is_waiting) <= kWaiting);
        for (const auto& each : clients) {
          const std::size_t open = count(name, &each, is_open);
          REQUIRE(open <= kPerClient);
          // Nobody waits in vain.
          if (count(name, &each, is_waiting) != 0) REQUIRE((full || open == kPerClient));
        }
      }
    }
  }
  places.clear();
  lines.wake();
  CHECK(lines.size() == 0);
  CHECK(lines.waiting() == 0);
}

TEST_CASE("records of clients that come and go do not pile up", "[server][line]") {
  OriginQueues lines([] {});
  lines.use({.connections = 3, .per_client = 2, .waiting = 8});
  Place held{lines, "a", client("10.0.0.1")};
  REQUIRE(held.ask());
  for (int i = 0; i < 1000; ++i) {
    Place once{lines, "a",
               client("10.1." + std::to_string(i / 256) + "." + std::to_string(i % 256))};
    REQUIRE(once.ask());
    REQUIRE(once.slot);
  }
  CHECK(lines.clients_known("a") <= 64);
  held.end();
  CHECK(lines.size() == 0);
}

}  // namespace encore::server
