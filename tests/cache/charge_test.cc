// Charges and slots by their description: sizes of slots, the slot for each number of bytes, and
// what an object costs whose body lies in it or next to it.
#include "cache/charge.h"

#include <algorithm>
#include <bit>
#include <random>
#include <set>
#include <vector>

#include "cache/size_class.h"
#include "tests/catch.h"

namespace encore::cache {
namespace {

constexpr std::uint64_t round_to(std::uint64_t bytes, std::uint64_t step) {
  return bytes % step == 0 ? bytes : bytes + step - bytes % step;
}

// As many slots a page as numbers of five bits tell, and four larger ones.
std::vector<std::uint32_t> slots_by_description() {
  std::set<std::uint32_t> slots = {10 * 1024, 12 * 1024, 14 * 1024, 15 * 1024};
  for (std::uint32_t count = 4; count <= 512; ++count) {
    const std::uint32_t step = std::max(1U, std::bit_floor(count) / 16);
    if (count % step == 0) slots.insert(64 * 1024 / count / 16 * 16);
  }
  return {slots.begin(), slots.end()};
}

std::uint64_t own_by_description(std::uint64_t bytes) {
  if (bytes > 16 * 1024) return round_to(bytes, 4096);
  const auto slots = slots_by_description();
  return *std::ranges::lower_bound(slots, bytes);
}

}  // namespace

TEST_CASE("Slots are of the sizes that are described, and each number of bytes has the smallest",
          "[cache][charge]") {
  const std::vector<std::uint32_t> slots = slots_by_description();
  REQUIRE(size_class_count() == slots.size());
  for (std::size_t i = 0; i < slots.size(); ++i) {
    CAPTURE(i);
    CHECK(size_class(i).slot_bytes == slots[i]);
    CHECK(size_class(i).slots_per_page == 64 * 1024 / slots[i]);
  }
  std::size_t expected = 0;
  bool is_alike = true;
  for (std::size_t bytes = 0; bytes <= kSlotBytesMax; ++bytes) {
    while (slots[expected] < bytes) ++expected;
    is_alike =
        is_alike && size_class_for(bytes) == expected && slot_bytes(bytes) == slots[expected];
  }
  CHECK(is_alike);
}

TEST_CASE("An object is charged for what it takes, its body in it or next to it",
          "[cache][charge]") {
  std::mt19937_64 random(2);
  // Around the bounds, and anywhere.
  const auto some = [&](std::uint64_t bound) {
    return random() % 2 == 0 ? random() % (2 * bound) : bound - 3 + random() % 6;
  };
  int inline_ones = 0;
  int with_runs = 0;
  for (int i = 0; i < 4000; ++i) {
    ObjectSizes sizes;
    sizes.key = i % 5 == 0 ? some(65'535) : random() % 200;
    sizes.meta = random() % 200;
    sizes.head = i % 7 == 0 ? some(256 * 1024 - 300) : i % 3 == 0 ? some(16 * 1024) : some(300);
    sizes.body = i % 4 == 0   ? 0
                 : i % 4 == 1 ? some(16 * 1024)
                 : i % 4 == 2 ? some(1024 * 1024)
                              : some(3 * 1024 * 1024);
    CAPTURE(sizes.key, sizes.meta, sizes.head, sizes.body);
    const std::uint64_t fixed = 40 + round_to(sizes.meta, 8) + sizes.key + sizes.head;
    const bool is_one = sizes.key <= 65'535 && fixed <= 256 * 1024;
    const bool lies_in_it = sizes.body == 0 ? is_one : fixed + sizes.body <= 16 * 1024;
    CHECK(is_object(sizes) == is_one);
    REQUIRE(is_inline(sizes) == lies_in_it);
    std::uint64_t charge = own_by_description(fixed + (lies_in_it ? sizes.body : 0));
    if (!lies_in_it) {
      std::uint64_t runs = 0;
      for (std::uint64_t at = 0; at < sizes.body; at += 1024 * 1024) ++runs;
      charge += own_by_description(120) + round_to(sizes.body, 4096);
      if (runs > 1) charge += (runs - 1) * own_by_description(56);
      with_runs += runs > 1 ? 1 : 0;
    }
    inline_ones += lies_in_it ? 1 : 0;
    REQUIRE(charge_for(sizes) == charge);
  }
  CHECK(inline_ones > 200);
  CHECK(with_runs > 200);
}

}  // namespace encore::cache
