#include "proxy/net/turn_shares.h"

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tests/catch.h"

namespace encore::net {
namespace {

// A connection that always has more to write, each time its whole allowance; it writes down what it
// wrote.
struct Writer : DeferredNode {
  Writer(TurnShares& all, std::vector<char>& calls, char its_name)
      : shares(all), order(calls), name(its_name) {}
  ~Writer() {
    if (waits_for_share) shares.leave(*this);
  }
  Writer(const Writer&) = delete;
  Writer& operator=(const Writer&) = delete;

  // As a request or a writable socket does.
  void on_event() {
    if (!waits_for_share) go();
  }
  void go() {
    const std::size_t allowed = std::min(shares.allowance(), room);
    if (allowed != 0) {
      order.push_back(name);
      shares.count_written(*this, allowed, cost);
      written += allowed;
    }
    // Its socket is full until its client has read.
    if (allowed == room) return;
    shares.wait(*this, [](DeferredNode& node) { static_cast<Writer&>(node).go(); });
  }

  TurnShares& shares;
  std::vector<char>& order;
  char name;
  std::uint64_t cost = 1;
  std::size_t room = SIZE_MAX;  // bytes that its socket takes at each event
  std::uint64_t written = 0;
};

struct SharesFixture {
  explicit SharesFixture(std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) {
      writers.push_back(std::make_unique<Writer>(shares, order, static_cast<char>('a' + i % 26)));
    }
  }
  // Events come in the same order each turn, as epoll tells them: the same ones are always first.
  void turn() {
    shares.begin_turn();
    for (const auto& writer : writers) writer->on_event();
    shares.serve();
  }
  std::uint64_t spread() const {
    std::uint64_t least = UINT64_MAX;
    std::uint64_t most = 0;
    for (const auto& writer : writers) {
      least = std::min(least, writer->written);
      most = std::max(most, writer->written);
    }
    return most - least;
  }

  TurnShares shares;
  std::vector<char> order;
  std::vector<std::unique_ptr<Writer>> writers;
};

TEST_CASE("the share of each becomes smaller when many wait, between two bounds", "[net][shares]") {
  CHECK(TurnShares::share_of(1) == TurnShares::kShareMax);
  CHECK(TurnShares::share_of(4) == TurnShares::kShareMax);
  CHECK(TurnShares::share_of(6) == TurnShares::kTurnBytes / 6);
  CHECK(TurnShares::share_of(10'000) == TurnShares::kShareMin);
}

TEST_CASE("whoever waits in vain in one turn goes first in the next", "[net][shares]") {
  SharesFixture f(6);
  f.turn();
  // The first event finds nobody that waits; then all wait, until the turn is used up.
  CHECK(std::string(f.order.begin(), f.order.end()) == "aabcde");
  f.order.clear();
  f.shares.begin_turn();
  f.writers[0]->on_event();  // an event comes first for one that has had its share
  f.shares.serve();
  CHECK(std::string(f.order.begin(), f.order.end()).starts_with("fabcde"));
}

TEST_CASE("after each turn all have written the same but for two shares, however many they are",
          "[net][shares]") {
  const auto count = GENERATE(std::size_t{2}, std::size_t{16}, std::size_t{64}, std::size_t{256});
  SharesFixture f(count);
  for (int turn = 0; turn < 200; ++turn) {
    f.turn();
    REQUIRE(f.spread() <= 2 * TurnShares::kShareMax);
  }
  for (const auto& writer : f.writers) CHECK(writer->written > 0);
}

TEST_CASE("those whose sockets are full before they have their share take turns, too",
          "[net][shares]") {
  // The clients of the first read first, so that their events are always the first ones.
  const auto count = GENERATE(std::size_t{2}, std::size_t{24}, std::size_t{64}, std::size_t{256});
  const auto room = GENERATE(std::size_t{16} << 10, std::size_t{100} << 10, std::size_t{256} << 10);
  CAPTURE(count, room);
  SharesFixture f(count);
  for (const auto& writer : f.writers) writer->room = room;
  // Small responses to others, which take no turns, are counted in between.
  DeferredNode other;
  for (int turn = 0; turn < 400; ++turn) {
    f.turn();
    for (int i = 0; i < 1500; ++i) f.shares.count_written(other, 1, 1);
    REQUIRE(f.spread() <= 2 * room);
  }
}

TEST_CASE("a newcomer stands behind all that wait", "[net][shares]") {
  SharesFixture f(8);
  f.turn();
  const std::size_t waited = f.shares.waiting();
  REQUIRE(waited == 8);
  std::vector<char> order;
  Writer late(f.shares, order, 'z');
  f.shares.begin_turn();
  late.on_event();
  CHECK(late.written == 0);
  CHECK(f.shares.allowance() == 0);
  f.order.clear();
  f.shares.serve();
  CHECK(f.order.size() >= 8);
}

TEST_CASE("a turn ends after its bytes, and under TLS after fewer of them", "[net][shares]") {
  const bool tls = GENERATE(false, true);
  SharesFixture f(64);
  for (const auto& writer : f.writers) writer->cost = tls ? TurnShares::kTlsCost : 1;
  f.turn();
  std::uint64_t before = 0;
  for (const auto& writer : f.writers) before += writer->written;
  f.turn();
  std::uint64_t written = 0;
  for (const auto& writer : f.writers) written += writer->written;
  const std::uint64_t cost = (written - before) * (tls ? TurnShares::kTlsCost : 1);
  CHECK(cost <= TurnShares::kTurnBytes + TurnShares::kTlsCost * TurnShares::kShareMin);
  CHECK(cost >= TurnShares::kTurnBytes * 3 / 4);
}

TEST_CASE(
    "turns are short for a while after a small response, so that the next one waits for little",
    "[net][shares]") {
  const auto waiting = GENERATE(std::size_t{1}, std::size_t{12}, std::size_t{16}, std::size_t{64});
  const std::size_t short_turn = std::clamp(waiting * TurnShares::kShortTurnEach,
                                            TurnShares::kShortTurnMin, TurnShares::kShortTurnMax);
  SharesFixture f(waiting);
  std::uint64_t before = 0;
  const auto moved = [&] {
    f.turn();
    std::uint64_t written = 0;
    for (const auto& writer : f.writers) written += writer->written;
    return written - std::exchange(before, written);
  };
  CHECK(moved() >= TurnShares::kTurnBytes);
  f.shares.count_response(TurnShares::kLittleBytes + 1);
  CHECK(moved() >= TurnShares::kTurnBytes);
  for (int again = 0; again < 2; ++again) {
    f.shares.count_response(TurnShares::kLittleBytes);
    for (int turn = 1; turn < TurnShares::kShortTurns; ++turn) {
      const std::uint64_t now = moved();
      REQUIRE(now <= short_turn * (turn == 1 ? 2 : 1));
      REQUIRE(now >= short_turn - TurnShares::kCallCost);
      REQUIRE(f.spread() <= short_turn + 2 * TurnShares::kShareMax);
    }
  }
  CHECK(moved() >= TurnShares::kTurnBytes);
}

TEST_CASE("a short turn is the longer the more small responses have ended in the turn before",
          "[net][shares]") {
  const auto responses =
      GENERATE(std::uint64_t{1}, std::uint64_t{10}, std::uint64_t{50}, std::uint64_t{10'000});
  const bool is_used_up = GENERATE(false, true);  // by others, before those that wait
  SharesFixture f(64);
  f.turn();
  for (std::uint64_t i = 0; i < responses; ++i) f.shares.count_response(1000);
  std::uint64_t before = 0;
  for (const auto& writer : f.writers) before += writer->written;
  f.shares.begin_turn();
  DeferredNode reader;
  if (is_used_up) f.shares.count_read(reader, TurnShares::kTurnBytes, 1);
  f.shares.serve();
  std::uint64_t moved = 0;
  for (const auto& writer : f.writers) moved += writer->written;
  moved -= before;
  const std::uint64_t wanted = std::clamp<std::uint64_t>(
      responses * TurnShares::kLittleCost, TurnShares::kShortTurnMax, TurnShares::kTurnBytes);
  const std::uint64_t calls = 1 + moved / TurnShares::kShortTurnMax;
  CHECK(moved + calls * TurnShares::kCallCost >= wanted);
  CHECK(moved <= wanted + TurnShares::kShortTurnMax);
  // The number is of one turn.
  before += moved;
  f.turn();
  moved = 0;
  for (const auto& writer : f.writers) moved += writer->written;
  CHECK(moved - before <= 2 * TurnShares::kShortTurnMax);
}

TEST_CASE("whoever writes from within an event has a small share of a short turn",
          "[net][shares]") {
  TurnShares shares;
  CHECK(shares.allowance() == TurnShares::kShareMax);
  DeferredNode node;
  for (const std::size_t responses : {std::size_t{1}, std::size_t{4}}) {
    CAPTURE(responses);
    for (std::size_t i = 0; i < responses; ++i) shares.count_response(0);
    shares.begin_turn();
    CHECK(shares.allowance() == TurnShares::kShortTurnMin);
    const std::size_t turn =
        std::max(TurnShares::kShortTurnMin, responses * TurnShares::kLittleCost);
    shares.count_written(node, turn - 1, 1);
    CHECK(shares.allowance() == TurnShares::kShortTurnMin);
    shares.count_written(node, 1, 1);
    CHECK(shares.allowance() == 0);
  }
}

TEST_CASE("those that wait have a part of each turn, whatever the others move in it",
          "[net][shares]") {
  SharesFixture f(3);
  f.turn();
  f.order.clear();
  f.shares.begin_turn();
  DeferredNode reader;
  f.shares.count_read(reader, 10 * TurnShares::kTurnBytes, 1);
  f.shares.serve();
  CHECK_FALSE(f.order.empty());
}

TEST_CASE("calls that move nothing end a turn, too, and one may leave the queue in any call",
          "[net][shares]") {
  TurnShares shares;
  struct Idle : DeferredNode {
    TurnShares* shares = nullptr;
    Idle* other = nullptr;
    int calls = 0;
  } a, b;
  a.shares = b.shares = &shares;
  a.other = &b;
  static void (*again)(DeferredNode&);
  again = [](DeferredNode& node) {
    auto& idle = static_cast<Idle&>(node);
    ++idle.calls;
    if (idle.other != nullptr && idle.other->waits_for_share) idle.shares->leave(*idle.other);
    idle.shares->wait(node, again);
  };
  shares.wait(a, again);
  shares.wait(b, again);
  shares.begin_turn();
  shares.serve();
  CHECK(a.calls > 0);
  CHECK(a.calls < 10'000);
  CHECK(b.calls == 0);
  CHECK(shares.waiting() == 1);
  shares.leave(a);
  CHECK(shares.waiting() == 0);
}

}  // namespace
}  // namespace encore::net
