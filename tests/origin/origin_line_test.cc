#include "proxy/origin/origin_line.h"

#include <deque>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "tests/catch.h"

namespace encore::server {
namespace {

// Those who wait for one key, and take a slot of at most `limit` when it is their turn.
struct Place {
  OriginLines& lines;
  std::string key;
  const std::size_t& limit;
  OriginLines::Slot slot;
  OriginLines::Waiter waiter{[this] {
    slot = lines.claim(key, limit);
    return static_cast<bool>(slot);
  }};
};

}  // namespace

TEST_CASE("a slot that is freed goes to whoever waits first, by the loop", "[server][line]") {
  int calls = 0;
  OriginLines lines([&] { ++calls; });
  const std::size_t limit = 1;
  auto held = lines.claim("a", limit);
  CHECK(held);
  CHECK_FALSE(lines.claim("a", limit));
  CHECK(lines.claim("b", limit));
  Place first{lines, "a", limit, {}};
  Place second{lines, "a", limit, {}};
  Place third{lines, "a", limit, {}};
  CHECK_FALSE(lines.is_awaited("a"));
  CHECK(lines.wait("a", first.waiter, 2));
  CHECK(lines.wait("a", second.waiter, 2));
  CHECK_FALSE(lines.wait("a", third.waiter, 2));
  CHECK(lines.is_awaited("a"));
  CHECK_FALSE(lines.is_awaited("b"));
  held.reset();
  CHECK(calls == 1);
  CHECK_FALSE(first.slot);
  lines.wake();
  CHECK(first.slot);
  CHECK_FALSE(second.slot);
  CHECK(second.waiter.is_waiting());
  second.waiter.leave();
  first.slot.reset();
  CHECK(lines.size() == 0);
}

TEST_CASE("an idle connection gives the first its turn, and it stays the first where it has none",
          "[server][line]") {
  OriginLines lines([] {});
  const std::size_t limit = 1;
  auto held = lines.claim("a", limit);
  Place first{lines, "a", limit, {}};
  Place second{lines, "a", limit, {}};
  REQUIRE(lines.wait("a", first.waiter, 8));
  REQUIRE(lines.wait("a", second.waiter, 8));
  held.note_idle();
  lines.wake();
  CHECK(lines.waiting() == 2);
  held.reset();
  lines.wake();
  CHECK(first.slot);
  CHECK_FALSE(second.slot);
}

TEST_CASE("a limit that is raised lets more in", "[server][line]") {
  OriginLines lines([] {});
  std::size_t limit = 1;
  auto held = lines.claim("a", limit);
  Place first{lines, "a", limit, {}};
  REQUIRE(lines.wait("a", first.waiter, 8));
  limit = 2;
  lines.look_again();
  lines.wake();
  CHECK(first.slot);
}

TEST_CASE("lines agree with a naive model, whoever comes, goes and gives up", "[server][line]") {
  std::mt19937 random(4711);
  bool room = false;
  OriginLines lines([&] { room = true; });
  const std::size_t limit = 3;
  const std::size_t waiting_max = 5;
  struct Model {
    std::size_t open = 0;
    std::deque<const Place*> line;
  };
  std::map<std::string, Model> models;
  std::vector<std::unique_ptr<Place>> places;
  for (int step = 0; step < 20'000; ++step) {
    const std::string key(1, static_cast<char>('a' + random() % 3));
    if (random() % 2 == 0) {
      Model& model = models[key];
      auto place = std::make_unique<Place>(lines, key, limit);
      REQUIRE(lines.is_awaited(key) == !model.line.empty());
      if (model.line.empty()) place->slot = lines.claim(key, limit);
      REQUIRE(static_cast<bool>(place->slot) == (model.line.empty() && model.open < limit));
      if (place->slot) {
        ++model.open;
      } else {
        const bool waits = lines.wait(key, place->waiter, waiting_max);
        REQUIRE(waits == (model.line.size() < waiting_max));
        if (waits) model.line.push_back(place.get());
      }
      if (place->slot || place->waiter.is_waiting()) places.push_back(std::move(place));
    } else if (!places.empty()) {
      std::swap(places[random() % places.size()], places.back());
      const Place& gone = *places.back();
      Model& model = models[gone.key];
      if (gone.slot) --model.open;
      std::erase(model.line, &gone);
      places.pop_back();
    }
    if (random() % 3 == 0) {
      if (room) lines.wake();
      room = false;
      for (auto& [name, model] : models) {
        for (; model.open < limit && !model.line.empty(); ++model.open) {
          REQUIRE(model.line.front()->slot);
          model.line.pop_front();
        }
        for (const Place* place : model.line) REQUIRE(place->waiter.is_waiting());
      }
    }
  }
  places.clear();
  lines.wake();
  CHECK(lines.size() == 0);
  CHECK(lines.waiting() == 0);
}

}  // namespace encore::server
