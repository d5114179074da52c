// A transfer is overtaken by an invalidation of its own key, and of no other.
#include "proxy/transfer/invalidations.h"

#include "tests/catch.h"

namespace encore::server {
namespace {

TEST_CASE("an invalidation is known for its key alone, from when it was made",
          "[server][invalidations]") {
  Invalidations made;
  const filter::Hash128 key{1, 2};
  const std::uint64_t before = made.count();
  CHECK_FALSE(made.has_since(key, before));
  for (std::uint64_t i = 0; i < 100; ++i) made.add({1, i + 3});
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
  Invalidations made;
  made.add_all();
  CHECK(made.has_since({1, 2}, 0));
  CHECK_FALSE(made.has_since({1, 2}, 1));
}

TEST_CASE("what is no longer known counts as invalidated", "[server][invalidations]") {
  Invalidations made;
  for (std::size_t i = 0; i < Invalidations::kKept; ++i) made.add({7, i});
  CHECK_FALSE(made.has_since({1, 2}, 0));
  made.add({7, 7});
  CHECK(made.has_since({1, 2}, 0));
  CHECK_FALSE(made.has_since({1, 2}, 1));
}

}  // namespace
}  // namespace encore::server
