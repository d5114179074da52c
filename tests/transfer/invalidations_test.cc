// A transfer is overtaken by an invalidation of its own key, and of no other.
#include "proxy/transfer/invalidations.h"

#include <memory>

#include "tests/catch.h"

namespace encore::server {
namespace {

TEST_CASE("an invalidation is known for its key alone, from when it was made",
          "[server][invalidations]") {
  const auto table = std::make_unique<Invalidations>();
  Invalidations& made = *table;
  const filter::Hash128 key{1, 2};
  const std::uint64_t before = made.count();
  CHECK_FALSE(made.has_since(key, before));
  for (std::uint64_t i = 0; i < 100; ++i) made.add({i + 3, 2});
  CHECK_FALSE(made.has_since(key, before));
  made.add(key);
  CHECK(made.has_since(key, before));
  const std::uint64_t after = made.count();
  CHECK_FALSE(made.has_since(key, after));
  made.add({2, 2});
  CHECK(made.has_since(key, before));
  CHECK_FALSE(made.has_since(key, after));
}

TEST_CASE("an invalidation of all is one of every key", "[server][invalidations]") {
  const auto table = std::make_unique<Invalidations>();
  Invalidations& made = *table;
  made.add_all();
  CHECK(made.has_since({1, 2}, 0));
  CHECK_FALSE(made.has_since({1, 2}, 1));
}

TEST_CASE("any number of invalidations of other keys is none of this one",
          "[server][invalidations]") {
  const auto table = std::make_unique<Invalidations>();
  Invalidations& made = *table;
  for (std::size_t i = 0; i < 100'000; ++i) made.add({7, i});
  CHECK_FALSE(made.has_since({1, 2}, 0));
  CHECK(made.has_since({7, 0}, 0));
}

TEST_CASE("keys that share a slot are invalidated together", "[server][invalidations]") {
  const auto table = std::make_unique<Invalidations>();
  Invalidations& made = *table;
  made.add({1 + Invalidations::kSlots, 2});
  CHECK(made.has_since({1, 2}, 0));
  CHECK_FALSE(made.has_since({1, 2}, 1));
}

}  // namespace
}  // namespace encore::server
