#include <set>

#include "sim/workload/random_words.h"
#include "tests/catch.h"

namespace encore::sim {

TEST_CASE("Mother-of-All repeats itself for a seed and not for another", "[sim][random]") {
  MotherOfAllRng a(1);
  MotherOfAllRng b(1);
  MotherOfAllRng c(2);
  std::set<std::uint32_t> words;
  bool differs = false;
  for (int i = 0; i < 1000; ++i) {
    const std::uint32_t word = a.next();
    REQUIRE(word == b.next());
    differs = differs || word != c.next();
    words.insert(word);
  }
  CHECK(differs);
  CHECK(words.size() >= 999);
}

TEST_CASE("xoshiro gives reals in the unit interval with the right mean", "[sim][random]") {
  Xoshiro random(7);
  constexpr int kDraws = 100000;
  double sum = 0;
  for (int i = 0; i < kDraws; ++i) {
    const double real = random.next_real();
    REQUIRE((real >= 0 && real < 1));
    sum += real;
  }
  // sd of the mean is sqrt(1/12 / n); the bound is 4.5 of them.
  CHECK(std::abs(sum / kDraws - 0.5) < 4.5 * std::sqrt(1.0 / 12 / kDraws));
}

TEST_CASE("An unknown generator is refused by name", "[sim][random]") {
  const auto generator = parse_generator("rand");
  REQUIRE(!generator);
  CHECK(generator.error().message.find("\"rand\"") != std::string::npos);
}

}  // namespace encore::sim
