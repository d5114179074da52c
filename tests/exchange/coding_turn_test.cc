#include "proxy/exchange/coding_turn.h"

#include <algorithm>
#include <memory>

#include "tests/catch.h"

namespace encore::server {
namespace {

// Another turn, in which time has passed.
void pass_turn(net::Loop& loop) {
  const MonotonicTime before = loop.now();
  while (loop.now() == before) {
    loop.post([] {});
    loop.turn();
  }
}

}  // namespace

TEST_CASE("however many bodies are coded in a turn, they share what it has", "[exchange]") {
  const auto loop = std::move(*net::Loop::create());
  CodingTurn turn(*loop);
  for (const std::size_t bodies : {1U, 2U, 3U, 50U, 128U, 1U}) {
    std::size_t all = 0;
    for (int turns = 0; turns < 2; ++turns) {  // in the first one it learns how many there are
      pass_turn(*loop);
      all = 0;
      for (std::size_t body = 0; body < bodies; ++body) {
        const std::size_t share = turn.share();
        CHECK(share >= CodingTurn::kShareMin);
        CHECK(share <= CodingTurn::kShareMax);
        all += share;
      }
    }
    CHECK(all <= CodingTurn::kBytes);
    CHECK(all >= std::min(CodingTurn::kBytes / 2, bodies * CodingTurn::kShareMax));
  }
}

TEST_CASE("a crowd that comes at once takes little more than a turn has", "[exchange]") {
  const auto loop = std::move(*net::Loop::create());
  CodingTurn turn(*loop);
  pass_turn(*loop);
  std::size_t all = 0;
  for (int body = 0; body < 200; ++body) all += turn.share();
  CHECK(all <= 8 * CodingTurn::kBytes);
}

}  // namespace encore::server
