#include "cache/ghost_queue.h"

#include <algorithm>
#include <deque>
#include <random>

#include "tests/cache/support.h"

namespace encore::cache::test {

TEST_CASE("A queue of ghosts holds what a list of keys would", "[cache][ghosts]") {
  std::mt19937_64 random(GENERATE(1U, 2U, 3U, 4U));
  const std::uint64_t keys = 10 + random() % 3000;
  const std::size_t most = random() % 1500;
  GhostQueue queue;
  std::deque<std::uint64_t> naive;  // the oldest first
  std::size_t differ = 0;
  for (int i = 0; i < 60'000; ++i) {
    const std::uint64_t id = random() % keys;
    const auto at = std::ranges::find(naive, id);
    const bool is_there = at != naive.end();
    if (random() % 3 == 0) {
      differ += queue.take(key(id).hash) == is_there ? 0U : 1U;
      if (is_there) naive.erase(at);
    } else {
      queue.insert(key(id).hash);
      if (is_there) naive.erase(at);
      naive.push_back(id);
    }
    if (random() % 4 != 0) {
      const std::size_t left = random() % 200 == 0 ? most / 2 : most;
      queue.shrink_to(left);
      while (naive.size() > left) naive.pop_front();
    }
    differ += queue.size() == naive.size() ? 0U : 1U;
  }
  CHECK(differ == 0);
  while (!naive.empty()) {
    CHECK(queue.take(key(naive.front()).hash));
    naive.pop_front();
  }
  CHECK(queue.size() == 0);
}

}  // namespace encore::cache::test
