// Which keys are hot, against exact counts.
#include "proxy/settings/hot_keys.h"

#include <random>

#include "tests/catch.h"

namespace encore::server {
namespace {

TEST_CASE("a key is hot from its share on, and not before it was requested often enough",
          "[server][hot]") {
  HotKeys keys(0.5);
  for (std::uint64_t i = 1; i < HotKeys::kRequestsMin; ++i) CHECK_FALSE(keys.count(1));
  CHECK(keys.count(1));
  // 32 of 64 is half; of 65, less.
  for (std::uint64_t i = 0; i < 31; ++i) keys.count(1000 + i);
  CHECK(keys.count(1));
  for (std::uint64_t i = 0; i < 4; ++i) keys.count(2000 + i);
  CHECK_FALSE(keys.count(1));
}

TEST_CASE("a key cools down within two windows", "[server][hot]") {
  HotKeys keys(0.05);
  for (int i = 0; i < 100; ++i) keys.count(1);
  CHECK(keys.count(1));
  for (std::uint64_t i = 0; i < 2 * HotKeys::kWindow; ++i) keys.count(10 + i);
  CHECK_FALSE(keys.count(1));
}

TEST_CASE("a key with twice the share is hot among very many, and none of those is",
          "[server][hot]") {
  HotKeys keys(0.05);
  std::mt19937_64 random(GENERATE(1U, 2U, 3U));
  std::uint64_t hot = 0;
  std::uint64_t cold_hot = 0;
  std::uint64_t asked = 0;
  for (std::uint64_t i = 0; i < 20 * HotKeys::kWindow; ++i) {
    // One key has a tenth of the requests; the others come once in 100,000.
    const bool is_heavy = random() % 10 == 0;
    const bool is_hot = keys.count(is_heavy ? 0 : 1 + random() % 100000);
    if (!is_heavy) {
      cold_hot += is_hot ? 1 : 0;
    } else if (i > HotKeys::kWindow) {
      ++asked;
      hot += is_hot ? 1 : 0;
    }
  }
  CHECK(asked > 1500);
  CHECK(hot == asked);
  CHECK(cold_hot == 0);
}

}  // namespace
}  // namespace encore::server
