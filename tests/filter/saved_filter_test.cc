#include "filter/saved_filter.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "filter/bloom_filter.h"
#include "filter/rotating_bloom_filter.h"
#include "tests/catch.h"
#include "tests/filter/judge.h"
#include "tests/filter/saved_bytes.h"

namespace encore::filter {
namespace {

using namespace std::chrono_literals;
using testing::Key;
using testing::kSeed;
using testing::resealed;

constexpr MonotonicTime kSaveTime{1h};

RotatingBloomFilter filled_ring() {
  RotatingOptions options;
  options.parameters = {.layout = Layout::kSplit, .bits = 10'240, .capacity = 900, .seed = kSeed};
  options.identity_seed = kSeed;
  options.rotate_after = 100s;
  auto filter = RotatingBloomFilter::create(options, kSaveTime);
  REQUIRE(filter);
  for (std::uint32_t i = 0; i < 1300; ++i) {
    filter->test_and_set(identify(kSeed, Key(0, i).bytes()), kSaveTime);
  }
  return std::move(*filter);
}

bool loads(std::string_view bytes) {
  return RotatingBloomFilter::load(bytes, {}, kSaveTime).has_value();
}

}  // namespace

TEST_CASE("more insertions than set bits are no filter's", "[filter]") {
  const RotatingBloomFilter filter = filled_ring();
  const auto current = filter.statistics().generations.front();
  std::string bytes = filter.save(kSaveTime);
  std::array<std::uint64_t, 2> counts = {current.insertions, current.set_bits};
  const std::string_view as_saved(reinterpret_cast<const char*>(counts.data()), sizeof counts);
  const std::size_t at = bytes.find(as_saved);
  REQUIRE(at != std::string::npos);
  for (const std::uint64_t more : {0U, 1U}) {
    counts[0] = current.set_bits + more;
    std::memcpy(bytes.data() + at, counts.data(), sizeof counts);
    CHECK(loads(resealed(bytes)) == (more == 0));
  }
}

TEST_CASE("what many filters make together is saved, and loads", "[filter]") {
  // Each brings the same keys, so that there are no more of them: they are estimated from the bits.
  auto filter = BloomFilter::create(
      {.layout = Layout::kClassic, .bits = 1024, .hashes = 1, .capacity = 100, .seed = kSeed});
  REQUIRE(filter);
  for (std::uint32_t i = 0; i < 100; ++i) {
    filter->test_and_set(identify(kSeed, Key(0, i).bytes()).hash);
  }
  auto sum = BloomFilter::load(filter->save());
  REQUIRE(sum);
  for (int i = 0; i < 3; ++i) REQUIRE(sum->merge(*filter));
  CHECK(sum->insertions() == filter->insertions());
  const auto loaded = BloomFilter::load(sum->save());
  REQUIRE(loaded);
  CHECK(loaded->set_bits() == filter->set_bits());
}

TEST_CASE("a rotating filter comes back with every key, count and age", "[filter]") {
  RotatingBloomFilter filter = filled_ring();
  const std::string bytes = filter.save(kSaveTime + 30s);
  auto loaded =
      RotatingBloomFilter::load(bytes, {.refresh = false, .rotate_after = 100s}, kSaveTime + 500s);
  REQUIRE(loaded);
  CHECK(loaded->save(kSaveTime + 500s) == bytes);
  const RotatingStatistics before = filter.statistics();
  const RotatingStatistics after = loaded->statistics();
  REQUIRE(after.generations.size() == before.generations.size());
  for (std::size_t i = 0; i < before.generations.size(); ++i) {
    CHECK(after.generations[i].parameters == before.generations[i].parameters);
    CHECK(after.generations[i].insertions == before.generations[i].insertions);
    CHECK(after.generations[i].set_bits == before.generations[i].set_bits);
  }
  CHECK(after.insertions == before.insertions);
  CHECK(after.rotations == before.rotations);
  CHECK(after.fpr_theory == before.fpr_theory);
  CHECK(after.memory_bytes == before.memory_bytes);
  CHECK(loaded->options().identity_seed == kSeed);
  for (std::uint32_t i = 0; i < 1300; ++i) {
    const Key name(0, i);
    const HashedKey key = identify(kSeed, name.bytes());
    REQUIRE(loaded->find(key) == filter.find(key));
  }
  // 30 of its 100 seconds had passed.
  loaded->rotate_if_due(kSaveTime + 569s);
  CHECK(loaded->statistics().rotations == before.rotations);
  loaded->rotate_if_due(kSaveTime + 570s);
  CHECK(loaded->statistics().rotations == before.rotations + 1);
}

TEST_CASE("what was refreshed is saved, and read from the bits where it was not", "[filter]") {
  constexpr std::size_t kVersionAt = 8;
  for (const std::uint32_t generations : {2U, 3U, 12U}) {
    CAPTURE(generations);
    RotatingOptions options;
    options.parameters = {
        .layout = Layout::kClassic, .bits = 20'000, .hashes = 2, .capacity = 3000, .seed = kSeed};
    options.identity_seed = kSeed;
    options.generations = generations;
    auto filter = RotatingBloomFilter::create(options, kSaveTime);
    REQUIRE(filter);
    for (const std::uint32_t round : {0U, 1U}) {
      for (std::uint32_t i = 0; i < 2000 + 1000 * round; ++i) {
        filter->test_and_set(identify(kSeed, Key(0, i).bytes()), kSaveTime);
      }
      if (round == 0) filter->rotate(kSaveTime);
    }
    // Generations that were independent would answer a fifth more often.
    CHECK(filter->fpr_theory() == Approx(filter->fpr_from_bits()).epsilon(0.03));
    std::string bytes = filter->save(kSaveTime);
    const auto loaded = RotatingBloomFilter::load(bytes, {}, kSaveTime);
    REQUIRE(loaded);
    CHECK(loaded->fpr_theory() == filter->fpr_theory());

    const std::size_t positions = sizeof(double) << std::min(generations, 8U);
    std::string with_nan = bytes;
    with_nan.replace(bytes.size() - 8 - positions, 8, 8, '\xff');
    CHECK_FALSE(loads(resealed(with_nan)));
    std::string too_much = bytes;
    too_much.replace(bytes.size() - 16, 8, std::string("\0\0\0\0\0\0\xf0\x3f", 8));
    CHECK_FALSE(loads(resealed(too_much)));

    // As the first version saved it.
    bytes.erase(bytes.size() - 8 - positions, positions);
    CHECK_FALSE(loads(resealed(bytes)));
    bytes[kVersionAt] = 1;
    const auto older = RotatingBloomFilter::load(resealed(bytes), {}, kSaveTime);
    REQUIRE(older);
    CHECK(older->fpr_theory() == Approx(filter->fpr_from_bits()).epsilon(1e-6));
    bytes[kVersionAt] = 3;
    CHECK_FALSE(loads(resealed(bytes)));
  }
}

TEST_CASE("generations of different makes come back, and rotate on", "[filter]") {
  RotatingBloomFilter filter = filled_ring();
  REQUIRE(filter.reconfigure({.layout = Layout::kClassic,
                              .hash = HashFamily::kSiphash,
                              .bits = 9001,
                              .hashes = 5,
                              .capacity = 900,
                              .seed = {1, 2}},
                             kSaveTime));
  for (std::uint32_t i = 2000; i < 2200; ++i) {
    filter.test_and_set(identify(kSeed, Key(0, i).bytes()), kSaveTime);
  }
  auto loaded = RotatingBloomFilter::load(filter.save(kSaveTime), {}, kSaveTime);
  REQUIRE(loaded);
  for (int rotation = 0; rotation < 4; ++rotation) {
    for (std::uint32_t i = 0; i < 2200; ++i) {
      const Key name(0, i);
      const HashedKey key = identify(kSeed, name.bytes());
      REQUIRE(loaded->find(key) == filter.find(key));
    }
    loaded->rotate(kSaveTime);
    filter.rotate(kSaveTime);
  }
}

TEST_CASE("a single filter comes back", "[filter]") {
  for (const Layout layout :
       {Layout::kClassic, Layout::kPartitioned, Layout::kBlocked, Layout::kSplit}) {
    auto filter = BloomFilter::create(
        {.layout = layout, .bits = 5000, .hashes = 8, .capacity = 500, .seed = kSeed});
    REQUIRE(filter);
    for (std::uint32_t i = 0; i < 500; ++i) {
      filter->test_and_set(identify(kSeed, Key(0, i).bytes()).hash);
    }
    const auto loaded = BloomFilter::load(filter->save());
    REQUIRE(loaded);
    CHECK(loaded->parameters() == filter->parameters());
    CHECK(loaded->insertions() == filter->insertions());
    CHECK(loaded->set_bits() == filter->set_bits());
    CHECK(loaded->save() == filter->save());
    CHECK_FALSE(loads(filter->save()));
    CHECK_FALSE(BloomFilter::load(filled_ring().save(kSaveTime)));
  }
}

TEST_CASE("a saved filter that is cut short anywhere is refused", "[filter]") {
  const std::string bytes = filled_ring().save(kSaveTime);
  for (std::size_t size = 0; size < bytes.size(); size += size < 300 ? 1 : 97) {
    REQUIRE_FALSE(loads(std::string_view(bytes).substr(0, size)));
    if (size >= 8) {
      REQUIRE_FALSE(loads(resealed(bytes.substr(0, size))));
    }
  }
  REQUIRE_FALSE(loads(resealed(bytes + std::string(64, '\0'))));
}

TEST_CASE("a flipped bit anywhere is refused with a reason", "[filter]") {
  const std::string bytes = filled_ring().save(kSaveTime);
  for (std::size_t at = 0; at < bytes.size(); at += at < 300 ? 1 : 31) {
    for (const unsigned bit : {0U, 3U, 7U}) {
      std::string damaged = bytes;
      damaged[at] = static_cast<char>(static_cast<unsigned char>(damaged[at]) ^ (1U << bit));
      const auto refused = RotatingBloomFilter::load(damaged, {}, kSaveTime);
      REQUIRE_FALSE(refused);
      REQUIRE(refused.error().message.starts_with("saved filter refused: "));
    }
  }
}

TEST_CASE("a ring by a hash that lists indices is refused, a single filter is not", "[filter]") {
  auto filter = RotatingBloomFilter::create(
      {.parameters =
           {.layout = Layout::kClassic, .bits = 1000, .hashes = 3, .capacity = 9, .seed = {}},
       .identity_seed = {}},
      kSaveTime);
  REQUIRE(filter);
  std::string bytes = filter->save(kSaveTime);
  REQUIRE(loads(bytes));
  constexpr std::size_t kHashAt = 72 + 1;
  for (const std::size_t generation : {0U, 1U}) {
    std::string other = bytes;
    other[kHashAt + 56 * generation] = static_cast<char>(HashFamily::kChained);
    CHECK_FALSE(loads(resealed(other)));
    other[kHashAt + 56 * generation] = static_cast<char>(kLastFamily) + 1;
    CHECK_FALSE(loads(resealed(other)));
  }
}

TEST_CASE("a well-sealed header that asks for too much memory is refused", "[filter]") {
  std::string bytes = filled_ring().save(kSaveTime);
  // The number of bits of the first generation: behind the header of 72 bytes, and eight more.
  constexpr std::size_t kBitsAt = 72 + 8;
  for (const std::uint64_t bits :
       {kBitsMax, kBitsMax + 512, std::uint64_t{1} << 63U, std::uint64_t{10'752}, std::uint64_t{0},
        std::uint64_t{10'000}}) {
    std::memcpy(bytes.data() + kBitsAt, &bits, 8);
    CAPTURE(bits);
    CHECK_FALSE(loads(resealed(bytes)));
  }
  const std::string good = filled_ring().save(kSaveTime);
  CHECK(RotatingBloomFilter::load(good, {.bits_max = 10'240}, kSaveTime));
  CHECK_FALSE(RotatingBloomFilter::load(good, {.bits_max = 10'239}, kSaveTime));
}

}  // namespace encore::filter
