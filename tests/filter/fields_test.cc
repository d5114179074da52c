#include <cmath>

#include "filter/bloom_filter.h"
#include "filter/counting_filter.h"
#include "tests/catch.h"
#include "tests/filter/judge.h"

namespace encore::filter {
namespace {

using testing::Key;
using testing::kSigmas;

BloomFilter seven_hashes(HashFamily family, std::uint64_t bits) {
  auto filter = BloomFilter::create({.layout = Layout::kClassic,
                                     .hash = family,
                                     .bits = bits,
                                     .hashes = 7,
                                     .capacity = 1,
                                     .seed = {}});
  REQUIRE(filter.has_value());
  return std::move(*filter);
}

}  // namespace

TEST_CASE("fields reach some positions more often, and the rate by the bits knows it",
          "[filter][theory]") {
  struct Make {
    HashFamily family;
    std::uint32_t bits;
    bool uneven;
  };
  // 2^20 is 1.3 m, 34.95 m and 2 m; 2^17 is 1.3 m and m; 2^32 is 42,949.67 m.
  for (const auto& [family, bits, uneven] : {Make{HashFamily::kSha1Fields20, 800'000, true},
                                             Make{HashFamily::kSha1Fields20, 30'000, false},
                                             Make{HashFamily::kSha1Fields20, 524'288, false},
                                             Make{HashFamily::kMd5Fields, 100'000, true},
                                             Make{HashFamily::kSha256Fields, 131'072, false},
                                             Make{HashFamily::kSha256Fields32, 100'000, false}}) {
    CAPTURE(to_string(family), bits);
    BloomFilter filter = seven_hashes(family, bits);
    for (std::uint32_t i = 0; i < bits / 5; ++i) {
      filter.add(Key(0, i).bytes());
    }
    const auto deviation = [&](double p) {
      return testing::false_positive_deviation(
          30'000, p, [&](std::string_view key) { return filter.test(key); });
    };
    CHECK(std::abs(deviation(filter.fpr_from_bits())) < kSigmas);
    // Planted: as if all were reached alike.
    const double alike = std::pow(filter.fill(), 7);
    CHECK((std::abs(deviation(alike)) > kSigmas) == uneven);
    const auto counting = CountingFilter::create(filter.parameters());
    REQUIRE(counting);
    CHECK(counting->fpr_from_bits().value() == 0);
  }
}

}  // namespace encore::filter
