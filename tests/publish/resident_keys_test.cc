#include "proxy/publish/resident_keys.h"

#include <string>

#include "filter/published/squid_digest.h"
#include "tests/catch.h"

namespace encore::publish {
namespace {

constexpr std::uint32_t kResidentCapacity = 1000;

filter::FilterParameters parameters() {
  filter::FilterParameters made;
  made.layout = filter::Layout::kClassic;
  made.bits = 9'600;
  made.hashes = 7;
  made.capacity = kResidentCapacity;
  return made;
}

std::string url(std::uint32_t i) { return "http://h/" + std::to_string(i); }

}  // namespace

TEST_CASE("What is resident is in both filters, and what has gone is in none",
          "[publish][resident]") {
  auto keys = ResidentKeys::create(parameters());
  REQUIRE(keys);
  ResidentKeys& resident = **keys;
  for (std::uint32_t i = 0; i < kResidentCapacity; ++i) resident.add(url(i));
  // In the place of another of the same key, and variants of one.
  resident.add(url(0));
  resident.remove(url(0));
  resident.add(url(1));
  const auto digest_of = [&] {
    auto digest = resident.digest();
    REQUIRE(digest);
    return *digest;
  };
  const auto full = resident.filter();
  const auto full_digest = filter::filter_of(digest_of());
  REQUIRE(full);
  REQUIRE(full_digest);
  const filter::AnyFilter digest(filter::BloomFilter::load(full_digest->save()).value());
  std::uint32_t there = 0;
  for (std::uint32_t i = 0; i < kResidentCapacity; ++i) {
    there += full->test(url(i)) && digest.test(url(i)) ? 1U : 0U;
  }
  CHECK(there == kResidentCapacity);
  CHECK(digest_of().count == kResidentCapacity + 1);
  CHECK(digest_of().deletions == 1);
  CHECK(digest_of().capacity == kResidentCapacity);
  CHECK(resident.counts().stored == kResidentCapacity + 1);
  for (std::uint32_t i = 0; i < kResidentCapacity; ++i) resident.remove(url(i));
  CHECK(resident.filter()->test(url(1)));
  resident.remove(url(1));
  CHECK(resident.filter()->info().set_bits == 0);
  CHECK(digest_of().mask == std::string(kResidentCapacity * 5 / 8, '\0'));
  CHECK(resident.counts().stored == 0);
}

TEST_CASE("What is resident is published without a seed", "[publish][resident]") {
  auto seeded = parameters();
  seeded.seed = {1, 2};
  CHECK_FALSE(ResidentKeys::create(seeded));
  auto large = parameters();
  large.capacity = filter::kSquidCapacityMax + 1;
  CHECK_FALSE(ResidentKeys::create(large));
}

}  // namespace encore::publish
