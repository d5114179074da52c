// Generations that share keys, by their bits: against probes, against counting every probe that
// there can be, and what the product of independent generations makes of the same bits.
#include "filter/joint_bits.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "filter/line_memory.h"
#include "tests/catch.h"
#include "tests/filter/judge.h"

namespace encore::filter {
namespace {

using testing::Key;
using testing::kSeed;
using testing::kSigmas;

// Generations side by side; of the keys of each, the first `shared` are in all of them.
class JointRing {
 public:
  JointRing(const FilterParameters& parameters, std::size_t generations)
      : parameters_(checked(parameters).value()),
        memory_(LineMemory::create(GenerationBits::lines_for(parameters_) * generations).value()) {
    for (std::size_t g = 0; g < generations; ++g) {
      bits_.emplace_back(parameters_, memory_.words() + kLineWords * g, generations);
    }
    for (const GenerationBits& bits : bits_) {
      pointers_.push_back(&bits);
    }
  }
  void fill(std::uint32_t shared, std::uint32_t own) {
    for (std::uint32_t g = 0; g < bits_.size(); ++g) {
      for (std::uint32_t i = 0; i < shared; ++i) bits_[g].insert(hash_of(0, i));
      for (std::uint32_t i = 0; i < own; ++i) bits_[g].insert(hash_of(g + 1, i));
    }
  }
  Hash128 hash_of(std::uint32_t stream, std::uint32_t i) const {
    return hash_key(parameters_.hash, kSeed, Key(stream, i).bytes());
  }
  bool some_has(const Hash128& hash) const {
    return std::ranges::any_of(bits_, [&](const auto& bits) { return bits.test(hash); });
  }
  Generations generations() const { return pointers_; }
  double independent() const {
    double says_no = 1;
    for (const GenerationBits* bits : pointers_) says_no *= 1 - fpr_from_bits({&bits, 1});
    return 1 - says_no;
  }
  const FilterParameters& parameters() const { return parameters_; }
  GenerationBits& operator[](std::size_t g) { return bits_[g]; }

 private:
  FilterParameters parameters_;
  LineMemory memory_;
  std::vector<GenerationBits> bits_;
  std::vector<const GenerationBits*> pointers_;
};

struct Case {
  Layout layout;
  std::uint32_t hashes;
};
constexpr std::array kCases{Case{Layout::kClassic, 1},     Case{Layout::kClassic, 2},
                            Case{Layout::kPartitioned, 2}, Case{Layout::kPartitioned, 3},
                            Case{Layout::kBlocked, 1},     Case{Layout::kBlocked, 2},
                            Case{Layout::kSplit, 8}};

FilterParameters parameters_of(const Case& c, std::uint64_t bits) {
  return {.layout = c.layout, .bits = bits, .hashes = c.hashes, .capacity = 1, .seed = kSeed};
}

double deviation_from(const JointRing& ring, double p) {
  return testing::false_positive_deviation(400'000, p, [&](std::string_view bytes) {
    return ring.some_has(hash_key(ring.parameters().hash, kSeed, bytes));
  });
}

}  // namespace

TEST_CASE("generations that share keys answer as often as their bits say, in every layout",
          "[filter][theory]") {
  for (const Case& c : kCases) {
    for (const std::size_t generations : {2U, 3U, 8U}) {
      CAPTURE(to_string(c.layout), c.hashes, generations);
      JointRing ring(parameters_of(c, 20'011), generations);
      ring.fill(2000, 800);
      CHECK(std::abs(deviation_from(ring, fpr_from_bits(ring.generations()))) < kSigmas);
      // Planted: the product of independent generations.
      CHECK(deviation_from(ring, ring.independent()) < -2 * kSigmas);
    }
  }
}

TEST_CASE("p by the bits is the share of all probes that there are", "[filter][theory]") {
  // 700 positions, two hashes: all 700 x 700 pairs; in two slices, 350 x 350.
  const auto check = [](Layout layout, std::size_t generations) {
    CAPTURE(to_string(layout), generations);
    JointRing ring(parameters_of({layout, 2}, 700), generations);
    ring.fill(60, 40);
    const bool slices = layout == Layout::kPartitioned;
    const std::uint64_t end = slices ? 350 : 700;
    std::uint64_t positives = 0;
    for (std::uint64_t i = 0; i < end; ++i) {
      for (std::uint64_t j = slices ? end : 0; j < 700; ++j) {
        positives += std::ranges::any_of(ring.generations(), [&](const GenerationBits* bits) {
          return bits->bit(i) && bits->bit(j);
        });
      }
    }
    const double pairs = static_cast<double>(end) * (slices ? 350.0 : 700.0);
    CHECK(fpr_from_bits(ring.generations()) ==
          Approx(static_cast<double>(positives) / pairs).epsilon(1e-12));
  };
  for (const std::size_t generations : {1U, 2U, 3U}) {
    check(Layout::kClassic, generations);
    check(Layout::kPartitioned, generations);
  }
}

TEST_CASE("a sample of the lines is near the whole, and only the sample is read",
          "[filter][theory]") {
  for (const Case& c : kCases) {
    CAPTURE(to_string(c.layout), c.hashes);
    JointRing ring(parameters_of(c, 4'000'000), 2);
    ring.fill(250'000, 150'000);
    const double whole = fpr_from_bits(ring.generations());
    CHECK(fpr_from_bits(ring.generations(), 1U << 20U) == whole);
    // With blocked and split lines p differs from line to line: 1000 of them are within some 3 %.
    // With the others the fills are exact, and 1000 lines sample the overlap to half a percent.
    const bool lines = c.layout == Layout::kBlocked || c.layout == Layout::kSplit;
    CHECK(fpr_from_bits(ring.generations(), 1000) == Approx(whole).epsilon(lines ? 0.12 : 0.005));
    // Shares of the first line alone.
    const double first = shares_set_in_all(ring.generations(), 1)[3];
    std::uint64_t both = 0;
    for (std::uint64_t i = 0; i < kLineBits; ++i) {
      both += ring[0].bit(i) && ring[1].bit(i) ? 1U : 0U;
    }
    CHECK(first == static_cast<double>(both) / kLineBits);
  }
}

TEST_CASE("dirty lines count as empty in what generations share", "[filter]") {
  for (const Case& c : kCases) {
    CAPTURE(to_string(c.layout), c.hashes);
    JointRing ring(parameters_of(c, 20'000), 2);
    ring.fill(1000, 500);
    ring[0].clear();
    const GenerationBits* const other = &ring[1];
    CHECK(fpr_from_bits(ring.generations()) == Approx(fpr_from_bits({&other, 1})).epsilon(1e-12));
    CHECK(shares_set_in_all(ring.generations(), UINT64_MAX)[3] == 0);
  }
}

}  // namespace encore::filter
