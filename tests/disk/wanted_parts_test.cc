#include "proxy/disk/wanted_parts.h"

#include <algorithm>
#include <vector>

#include "cache/disk_parts.h"
#include "tests/catch.h"

namespace encore::disk {
namespace {

constexpr filter::Hash128 kObject{7, 8};

std::vector<cache::Key> keys_of(std::uint64_t body, std::uint32_t from, std::uint32_t to) {
  std::vector<cache::Key> keys;
  for (std::uint32_t part = from; part < to; ++part) {
    keys.push_back(cache::part_key(kObject, body, part));
  }
  return keys;
}

WantedParts::Body body(std::uint64_t number, std::uint32_t from, std::uint32_t to) {
  return {kObject, number, 100 * cache::kPartBytes, from, to};
}

bool same(const std::vector<cache::Key>& a, const std::vector<cache::Key>& b) {
  return std::ranges::equal(
      a, b, [](const cache::Key& x, const cache::Key& y) { return x.hash == y.hash; });
}

}  // namespace

TEST_CASE("what is wanted are the parts ahead of each reader", "[disk]") {
  WantedParts wanted;
  wanted.set_most(10 * cache::kPartBytes);
  CHECK(wanted.keys().empty());
  const auto first = wanted.add(body(3, 2, 6));
  REQUIRE(first != 0);
  CHECK(same(wanted.keys(), keys_of(3, 2, 6)));
  const auto second = wanted.add(body(4, 0, 1));
  REQUIRE(second != 0);
  wanted.advance(first, 4);
  // Never back, nor beyond its end.
  wanted.advance(first, 3);
  auto keys = keys_of(3, 4, 6);
  keys.push_back(keys_of(4, 0, 1).front());
  CHECK(same(wanted.keys(), keys));
  wanted.advance(first, 9);
  CHECK(same(wanted.keys(), keys_of(4, 0, 1)));
  wanted.remove(second);
  wanted.remove(second);
  CHECK(wanted.keys().empty());
}

TEST_CASE("no more is wanted than may be, and what was given back may be again", "[disk]") {
  WantedParts wanted;
  CHECK(wanted.add(body(1, 0, 1)) == 0);
  wanted.set_most(10 * cache::kPartBytes);
  const auto first = wanted.add(body(1, 0, 8));
  REQUIRE(first != 0);
  CHECK(wanted.add(body(2, 0, 3)) == 0);
  // Nothing was taken for it, and calls with it have no effect.
  wanted.advance(0, 2);
  wanted.remove(0);
  CHECK(same(wanted.keys(), keys_of(1, 0, 8)));
  wanted.advance(first, 1);
  const auto third = wanted.add(body(2, 0, 3));
  CHECK(third != 0);
  CHECK(wanted.add(body(3, 0, 1)) == 0);
  wanted.remove(first);
  CHECK(wanted.add(body(3, 0, 7)) != 0);
  CHECK(wanted.add(body(3, 0, 1)) == 0);
}

TEST_CASE("a last part counts as what it has", "[disk]") {
  WantedParts wanted;
  wanted.set_most(5000);
  const auto first = wanted.add({kObject, 1, 3000, 0, 1});
  REQUIRE(first != 0);
  CHECK(wanted.add({kObject, 2, 2001, 0, 1}) == 0);
  REQUIRE(wanted.add({kObject, 2, cache::kPartBytes + 2000, 1, 2}) != 0);
  CHECK(wanted.add({kObject, 3, 1, 0, 1}) == 0);
  wanted.advance(first, 1);
  CHECK(wanted.add({kObject, 3, 3000, 0, 1}) != 0);
}

}  // namespace encore::disk
