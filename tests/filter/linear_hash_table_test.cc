#include "filter/linear_hash_table.h"

#include <set>
#include <string>

#include "tests/catch.h"
#include "tests/filter/judge.h"

namespace encore::filter {

TEST_CASE("a linear hash table has the keys of a naive set, after every step", "[filter]") {
  for (const LinearHashOptions& options :
       {LinearHashOptions{}, LinearHashOptions{.first_buckets = 1, .bucket_records = 1, .seed = {}},
        LinearHashOptions{.first_buckets = 3, .bucket_records = 4, .load_max = 0.5, .seed = {}},
        // Overflow pages alone take most of the keys.
        LinearHashOptions{.first_buckets = 2, .bucket_records = 2, .load_max = 5, .seed = {}}}) {
    CAPTURE(options.first_buckets, options.bucket_records, options.load_max);
    LinearHashTable table(options);
    std::set<std::string> naive;
    std::uint64_t state = 7;
    bool grows_by_ones = true;
    for (int step = 0; step < 6000; ++step) {
      state = scrambled(state + 0x9e3779b97f4a7c15U);
      const std::string key = step == 9 ? "" : std::to_string(state % 3000);
      REQUIRE(table.find(key) == naive.contains(key));
      const std::uint64_t splits = table.work().splits;
      const auto kept = table.add(key);
      REQUIRE(kept.has_value() == naive.insert(key).second);
      REQUIRE((!kept || *kept == key));
      REQUIRE(table.find(key));
      REQUIRE(table.load() <= options.load_max);
      grows_by_ones = grows_by_ones &&
                      table.buckets() == options.first_buckets + table.work().splits &&
                      table.work().splits - splits <= 2;
      REQUIRE((step % 100 != 0 || table.is_sound()));
    }
    CHECK(grows_by_ones);
    CHECK(table.size() == naive.size());
    CHECK(table.is_sound());
    for (const std::string& key : naive) {
      REQUIRE(table.find(key));
    }
    // The split pointer has been round several times.
    CHECK(table.level() >= 5);
  }
}

TEST_CASE("a linear hash table splits the bucket at its pointer, not the full one", "[filter]") {
  LinearHashTable table({.first_buckets = 4, .bucket_records = 8, .load_max = 0.8, .seed = {}});
  // The 26th key of 4 x 8 records exceeds .8; then every 6.4th.
  const auto add_up_to = [&](std::uint32_t keys) {
    while (table.size() < keys) {
      table.add(testing::Key(0, static_cast<std::uint32_t>(table.size())).bytes());
    }
  };
  add_up_to(25);
  CHECK(table.work().splits == 0);
  add_up_to(26);
  CHECK(table.work().splits == 1);
  CHECK(table.split_pointer() == 1);
  CHECK(table.buckets() == 5);
  add_up_to(45);  // 7 x 6.4 = 44.8
  CHECK(table.buckets() == 8);
  CHECK(table.level() == 1);
  CHECK(table.split_pointer() == 0);
  add_up_to(52);
  CHECK(table.split_pointer() == 1);
}

TEST_CASE("a linear hash table costs about a page per lookup, and splits move half", "[filter]") {
  LinearHashTable table;
  constexpr std::uint32_t kKeys = 50'000;
  for (std::uint32_t i = 0; i < kKeys; ++i) {
    table.add(testing::Key(0, i).bytes());
  }
  const std::uint64_t reads = table.work().page_reads;
  for (std::uint32_t i = 0; i < kKeys; ++i) {
    REQUIRE(table.find(testing::Key(0, i).bytes()));
  }
  const double per_lookup = static_cast<double>(table.work().page_reads - reads) / kKeys;
  CHECK(per_lookup > 1.0);
  CHECK(per_lookup < 1.5);
  // A split moves each of its keys with probability one half.
  const auto moved = static_cast<double>(table.work().keys_moved);
  CHECK(moved > 0.9 * kKeys / 2);
  CHECK(table.memory_bytes() > std::uint64_t{kKeys} * (24 + 8));
  CHECK(table.memory_bytes() < std::uint64_t{kKeys} * 3 * (24 + 8));
  CHECK(table.is_sound());
}

}  // namespace encore::filter
