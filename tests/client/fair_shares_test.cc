// Clients that ask for something large again and again, by turns of the loop: nobody waits for
// ever, and somebody who wants little waits for a turn. Counts turns and bytes, and no time.
#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "tests/catch.h"
#include "tests/client/client_world.h"
#include "tests/client/http2_client.h"
#include "tests/letters.h"

namespace encore::server {
namespace {

// An eighth of the cache of this world is the most.
constexpr std::size_t kLargeBytes = 1U << 20U;
constexpr std::uint64_t kHeadBytesMax = 512;

std::string get_from_example(std::string_view path) {
  return "GET " + std::string(path) + " HTTP/1.1\r\nHost: a.example\r\n\r\n";
}

void fill_cache(ClientWorld& world, Client& client, std::string_view path, std::string_view body) {
  client.say(get_from_example(path));
  world.run_until_asked();
  world.answer("HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nContent-Length: " +
               std::to_string(body.size()) + "\r\n\r\n" + std::string(body));
  world.run_until([&] { return client.heard.ends_with(body); });
  client.heard.clear();
  world.origin.asked.clear();
}

// Asks for the large object, and again as soon as it has it.
struct Greedy {
  // By TCP, a busy machine lets the kernel take more for one than for another.
  explicit Greedy(ClientWorld& world) : client(world, Client::Narrow{.kernel_bytes = 128 << 10}) {
    client.say(get_from_example("/large"));
  }
  void look() {
    total += client.heard.size();
    left += client.heard.size();
    client.heard.clear();
    // Less than one more head is missing.
    if (left >= kLargeBytes) {
      left = 0;
      client.say(get_from_example("/large"));
      ++answers;
    }
  }
  Client client;
  std::uint64_t total = 0;
  std::uint64_t left = 0;
  int answers = 0;
};

struct GreedyFixture {
  explicit GreedyFixture(std::size_t count) : first(world), small(world) {
    fill_cache(world, first, "/large", letters(kLargeBytes));
    fill_cache(world, small, "/small", "small");
    for (std::size_t i = 0; i < count; ++i) all.push_back(std::make_unique<Greedy>(world));
  }
  void turn() {
    world.run_turns(1);
    for (const auto& each : all) each->look();
  }
  std::uint64_t total() const {
    std::uint64_t sum = 0;
    for (const auto& each : all) sum += each->total;
    return sum;
  }

  ClientWorld world;
  Client first;
  Client small;
  std::vector<std::unique_ptr<Greedy>> all;
};

TEST_CASE("clients that want much get as much as one another, turn by turn", "[client][shares]") {
  GreedyFixture f(24);
  int turns = 0;
  while (f.all.front()->answers < 12) {
    f.turn();
    REQUIRE(++turns < 10'000);
    std::uint64_t least = UINT64_MAX;
    std::uint64_t most = 0;
    for (const auto& each : f.all) {
      least = std::min(least, each->total);
      most = std::max(most, each->total);
    }
    // Two whole answers: one is given while the other's client is asked what it wants next.
    REQUIRE(most - least <= 2 * (kLargeBytes + kHeadBytesMax));
  }
  CHECK(f.world.origin.asked.empty());
}

TEST_CASE("somebody who wants little waits for a turn, and a turn is bounded", "[client][shares]") {
  GreedyFixture f(24);
  for (int i = 0; i < 40; ++i) f.turn();
  for (int i = 0; i < 200; ++i) {
    const std::uint64_t before = f.total();
    f.small.say(get_from_example("/small"));
    f.turn();
    REQUIRE(f.small.heard.ends_with("small"));
    f.small.heard.clear();
    REQUIRE(f.total() - before <= net::TurnShares::kTurnBytes * 2);
  }
  CHECK(f.total() > 100 * kLargeBytes);
}

TEST_CASE("a client of HTTP/2 among them has share after share, though it says nothing more",
          "[client][shares][http2]") {
  GreedyFixture f(24);
  for (int i = 0; i < 40; ++i) f.turn();
  constexpr std::uint32_t kWide = 1 << 24;
  Http2Client client(f.world, Client::Narrow{.kernel_bytes = 128 << 10});
  client.greet(h2::test::setting(h2::Setting::kInitialWindowSize, kWide) +
               h2::test::window(0, kWide));
  client.ask(1, "/large");
  for (int turns = 0; !client.has_end(1); ++turns) {
    REQUIRE(turns < 10'000);
    f.turn();
  }
  CHECK((client.content(1) == letters(kLargeBytes)));
}

TEST_CASE("a client of HTTP/2 gets as much in a turn as those of HTTP/1",
          "[client][shares][http2]") {
  GreedyFixture f(24);
  constexpr std::uint32_t kWide = (1U << 31U) - 1;
  Http2Client client(f.world, Client::Narrow{.kernel_bytes = 128 << 10});
  client.greet(h2::test::setting(h2::Setting::kInitialWindowSize, kWide) +
               h2::test::window(0, kWide - 65535));
  h2::StreamId asked = 1;
  client.ask(asked, "/large");
  for (int i = 0; i < 40; ++i) f.turn();
  const std::uint64_t others_before = f.total();
  const std::uint64_t before = client.heard.size();
  for (int i = 0; i < 150; ++i) {
    f.turn();
    // Less than one more is in progress.
    while (client.heard.size() >= (asked + 1) / 2 * kLargeBytes) client.ask(asked += 2, "/large");
  }
  const double others = static_cast<double>(f.total() - others_before) / 24;
  const double own = static_cast<double>(client.heard.size() - before);
  CAPTURE(others, own);
  CHECK(own >= others * 0.8);
  CHECK(own <= others * 1.25);
  // A frame of which a part has left counts as sent: nothing is compared in the middle of one.
  for (int turns = 0; !client.has_end(asked); ++turns) {
    REQUIRE(turns < 10'000);
    f.turn();
  }
}

}  // namespace
}  // namespace encore::server
