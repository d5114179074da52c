#include "filter/published/squid_digest.h"

#include <limits>

#include "tests/catch.h"

namespace encore::filter {
namespace {

SquidDigest digest_of_keys(std::uint64_t capacity, int keys) {
  auto filter = BloomFilter::create(squid_digest_parameters(capacity));
  REQUIRE(filter.has_value());
  for (int i = 0; i < keys; ++i) {
    filter->add("http://example.com/" + std::to_string(i));
  }
  return squid_digest_of(*filter).value();
}

std::string changed(std::string bytes, std::size_t at, std::string_view by) {
  return bytes.replace(at, by.size(), by);
}

}  // namespace

TEST_CASE("A key's bits are the words of its MD5", "[published]") {
  // md5(1, "http://example.com/") = 5c910903 4c1d089f b6d92f72 58b2f5c3
  auto filter = BloomFilter::create(squid_digest_parameters(1000));
  REQUIRE(filter->parameters().bits == 5000);
  filter->add("http://example.com/");
  std::vector<std::uint64_t> set;
  for (std::uint64_t i = 0; i < 5000; ++i) {
    if (filter->bit(i)) {
      set.push_back(i);
    }
  }
  CHECK(set == std::vector<std::uint64_t>{1167, 1770, 3331, 3899});
}

TEST_CASE("A digest has Squid's header", "[published]") {
  const std::string bytes = write_squid_digest(digest_of_keys(1003, 10));
  CHECK(bytes.size() == 128 + 627);
  const std::string head("\0\5\0\3\0\0\3\xeb\0\0\0\x0a\0\0\0\0\0\0\2\x73\5\4", 22);
  CHECK(bytes.substr(0, head.size()) == head);
  CHECK(bytes.substr(head.size(), 128 - head.size()) == std::string(128 - head.size(), '\0'));
}

TEST_CASE("What is written as a digest is read again", "[published]") {
  for (const std::uint64_t capacity : {1U, 2U, 3U, 7U, 8U, 9U, 1000U, 1001U, 1002U, 1003U}) {
    CAPTURE(capacity);
    const SquidDigest digest = digest_of_keys(capacity, 1);
    CHECK(digest.bits_per_entry == 5);
    CHECK(digest.capacity == capacity);
    const std::string bytes = write_squid_digest(digest);
    const auto again = read_squid_digest(bytes);
    REQUIRE(again.has_value());
    const auto filter = filter_of(*again);
    REQUIRE(filter.has_value());
    CHECK(filter->test("http://example.com/0"));
    CHECK(filter->insertions() == 1);
    CHECK(write_squid_digest(squid_digest_of(*filter).value()) == bytes);
  }
}

TEST_CASE("A digest of another number of bits an entry stays as it is", "[published]") {
  SquidDigest digest = digest_of_keys(1600, 100);
  digest.capacity = 1000;
  digest.bits_per_entry = 8;
  const auto again = read_squid_digest(write_squid_digest(digest));
  REQUIRE(again.has_value());
  const auto written = squid_digest_of(filter_of(*again).value());
  REQUIRE(written.has_value());
  CHECK(written->capacity == 1000);
  CHECK(written->bits_per_entry == 8);
}

TEST_CASE("A filter with a capacity of its own makes a digest that Squid takes", "[published]") {
  for (const std::uint64_t bits : {8U, 16U, 24U, 5000U, 8000U}) {
    for (const std::uint64_t capacity : {1U, 3U, 999U, 1000U, 1'000'000U}) {
      CAPTURE(bits, capacity);
      FilterParameters parameters = squid_digest_parameters(1);
      parameters.bits = bits;
      parameters.capacity = capacity;
      const auto digest = squid_digest_of(*BloomFilter::create(parameters));
      REQUIRE(digest.has_value());
      CHECK(read_squid_digest(write_squid_digest(*digest)).has_value());
    }
  }
}

TEST_CASE("Damaged and hostile digests are refused", "[published]") {
  const std::string good = write_squid_digest(digest_of_keys(1000, 100));
  REQUIRE(read_squid_digest(good).has_value());
  for (std::size_t size = 0; size < good.size(); ++size) {
    REQUIRE_FALSE(read_squid_digest(good.substr(0, size)).has_value());
  }
  CHECK_FALSE(read_squid_digest(good + '\0').has_value());
  const std::pair<std::size_t, std::string> defects[] = {
      {2, std::string("\0\6", 2)},            // a version beyond ours is required
      {0, std::string("\0\2", 2)},            // an older one than it requires
      {4, std::string(4, '\0')},              // no capacity
      {4, "\xff\xff\xff\xff"},                // more than the mask has room for
      {4, std::string("\0\0\3\xe0", 4)},      // less
      {16, std::string(4, '\0')},             // no mask
      {16, "\xff\xff\xff\xff"},               // one of 4 GiB
      {16, std::string("\x7f\xff\xff\xff")},  //
      {20, std::string(1, '\0')},             // no bits an entry
      {20, "\xff"},                           //
      {21, std::string(1, '\0')},             // no hash functions
      {21, "\5"}};
  for (const auto& [at, by] : defects) {
    CAPTURE(at, by);
    const auto refused = read_squid_digest(changed(good, at, by));
    REQUIRE_FALSE(refused.has_value());
    CHECK(refused.error().message.starts_with("Squid digest refused: "));
  }
  // All of it is consistent, and there is nothing behind it.
  const std::string huge("\0\5\0\3\x33\x33\x33\x32\0\0\0\0\0\0\0\0\x1f\xff\xff\xff\5\4", 22);
  CHECK_FALSE(read_squid_digest(huge + std::string(128 - huge.size(), '\0')).has_value());
}

TEST_CASE("More entries than set bits are no more insertions than those", "[published]") {
  SquidDigest digest = digest_of_keys(1000, 3);
  digest.count = std::numeric_limits<std::uint32_t>::max();
  const auto filter = filter_of(digest);
  REQUIRE(filter.has_value());
  CHECK(filter->insertions() == filter->set_bits());
  CHECK(BloomFilter::load(filter->save()).has_value());
}

TEST_CASE("Other filters are no digests", "[published]") {
  const auto other = BloomFilter::create({.layout = Layout::kClassic,
                                          .hash = HashFamily::kMd5,
                                          .bits = 5000,
                                          .hashes = 4,
                                          .capacity = 1000,
                                          .seed = {}});
  const auto refused = squid_digest_of(*other);
  REQUIRE_FALSE(refused.has_value());
  CHECK(refused.error().message.find("4 hashes md5 is no Squid digest") != std::string::npos);
}

TEST_CASE("A digest's parameters are what Squid can have", "[published]") {
  FilterParameters parameters = squid_digest_parameters(1000);
  parameters.hashes = 5;
  CHECK_FALSE(checked(parameters).has_value());
  parameters = squid_digest_parameters(1000);
  parameters.seed = {1, 0};
  CHECK_FALSE(checked(parameters).has_value());
  parameters = squid_digest_parameters(1000);
  parameters.layout = Layout::kSplit;
  CHECK_FALSE(checked(parameters).has_value());
  parameters = squid_digest_parameters(1000);
  parameters.bits = kSquidBitsMax;
  CHECK_FALSE(checked(parameters).has_value());
  parameters.bits = 4993;
  CHECK(checked(parameters)->bits == 5000);
  CHECK(checked(squid_digest_parameters(kSquidCapacityMax)).has_value());
}

}  // namespace encore::filter
