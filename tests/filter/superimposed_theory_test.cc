#include "filter/superimposed_theory.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <vector>

#include "filter/theory.h"
#include "tests/catch.h"

namespace encore::filter {
namespace {

// All codes of `weight` bits out of `bits`.
std::vector<std::uint32_t> all_codes(std::uint32_t bits, int weight) {
  std::vector<std::uint32_t> codes;
  for (std::uint32_t code = 0; code < 1U << bits; ++code) {
    if (std::popcount(code) == weight) codes.push_back(code);
  }
  return codes;
}

struct Counted {
  double fpr = 0;
  double set_bits = 0;
};

// The mean over every choice of codes for the keys, one by one.
Counted counted(const std::vector<std::uint32_t>& codes, std::uint32_t keys,
                std::uint32_t set = 0) {
  Counted sum;
  const auto count = static_cast<double>(codes.size());
  if (keys == 0) {
    const auto covered =
        std::ranges::count_if(codes, [&](std::uint32_t code) { return (code & ~set) == 0; });
    return {static_cast<double>(covered) / count, static_cast<double>(std::popcount(set))};
  }
  for (const std::uint32_t code : codes) {
    const Counted one = counted(codes, keys - 1, set | code);
    sum.fpr += one.fpr / count;
    sum.set_bits += one.set_bits / count;
  }
  return sum;
}

// Inclusion and exclusion over the positions of a key that no code has hit.
double by_inclusion(std::uint64_t bits, std::uint32_t weight, std::uint64_t keys) {
  long double sum = 0;
  long double choose = 1;  // C(k, j)
  long double avoids = 1;  // C(m - j, k) / C(m, k)
  for (std::uint32_t j = 0; j <= weight; ++j) {
    sum += (j % 2 == 0 ? 1 : -1) * choose * std::pow(avoids, static_cast<long double>(keys));
    choose = choose * (weight - j) / (j + 1);
    avoids =
        avoids * static_cast<long double>(bits - weight - j) / static_cast<long double>(bits - j);
  }
  return static_cast<double>(sum);
}

}  // namespace

TEST_CASE("the rate of a superimposed code is that of every choice of codes", "[filter][theory]") {
  struct Small {
    std::uint32_t bits;
    std::uint32_t weight;
    std::uint32_t keys;
  };
  for (const Small& small : {Small{6, 2, 2}, Small{6, 2, 4}, Small{7, 3, 3}, Small{5, 1, 5},
                             Small{5, 4, 3}, Small{4, 4, 1}, Small{9, 3, 2}, Small{6, 3, 0}}) {
    CAPTURE(small.bits, small.weight, small.keys);
    const Counted all = counted(all_codes(small.bits, static_cast<int>(small.weight)), small.keys);
    CHECK(superimposed_fpr({small.bits, small.weight}, small.keys) ==
          Approx(all.fpr).epsilon(1e-12).margin(1e-15));
    CHECK(superimposed_set_bits({small.bits, small.weight}, small.keys) ==
          Approx(all.set_bits).epsilon(1e-12).margin(1e-15));
  }
}

TEST_CASE("the rate of a superimposed code agrees with inclusion and exclusion",
          "[filter][theory]") {
  for (const std::uint32_t weight : {1U, 2U, 4U, 7U}) {
    for (const std::uint64_t keys : {1U, 100U, 1000U, 5000U}) {
      CAPTURE(weight, keys);
      CHECK(superimposed_fpr({10'000, weight}, keys) ==
            Approx(by_inclusion(10'000, weight, keys)).epsilon(1e-9).margin(1e-15));
    }
  }
}

TEST_CASE("a superimposed code and a Bloom filter are one with one hash, and nearly one when large",
          "[filter][theory]") {
  const FilterShape one{Layout::kClassic, 500, 1};
  CHECK(superimposed_fpr({500, 1}, 200) == Approx(fpr(one, 200)).epsilon(1e-12));
  CHECK(superimposed_set_bits({500, 1}, 200) == Approx(expected_set_bits(one, 200)).epsilon(1e-12));
  // Different positions set more bits, and a key's own positions are not counted twice.
  const double code = superimposed_fpr({100, 7}, 10);
  const double exact = fpr_exact({Layout::kClassic, 100, 7}, 10).value();
  CHECK(exact == Approx(0.008936312).epsilon(1e-7));
  CHECK(std::abs(code / exact - 1) > 0.05);
  CHECK(superimposed_fpr({800'000, 7}, 80'000) ==
        Approx(fpr({Layout::kClassic, 800'000, 7}, 80'000)).epsilon(1e-4));
  CHECK(superimposed_fpr({kBitsMax, kCodeWeightMax}, 1'000'000'000) >= 0);
  CHECK(superimposed_fpr({128, kCodeWeightMax}, 1) == 1);
}

TEST_CASE("a bit vector of the size for a rate has it", "[filter][theory]") {
  for (const double rate : {0.5, 0.01, 1e-9}) {
    const double bits = bit_vector_size(1000, rate);
    CHECK(-std::expm1(1000 * std::log1p(-1 / bits)) == Approx(rate).epsilon(1e-9));
  }
}

}  // namespace encore::filter
