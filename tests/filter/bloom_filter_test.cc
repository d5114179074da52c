#include "filter/bloom_filter.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <memory>
#include <vector>

#include "filter/counting_filter.h"
#include "filter/theory.h"
#include "tests/catch.h"
#include "tests/filter/judge.h"

namespace encore::filter {
namespace {

using testing::Key;
using testing::kLayouts;
using testing::kSeed;
using testing::kSigmas;

constexpr std::array kHashFamilies{HashFamily::kXxh3, HashFamily::kMurmur3, HashFamily::kSiphash,
                                   HashFamily::kMd5,  HashFamily::kSha1,    HashFamily::kSha512};

FilterParameters parameters_of(Layout layout, HashFamily family, std::uint64_t bits,
                               Seed seed = kSeed) {
  return {.layout = layout,
          .hash = family,
          .bits = bits,
          .hashes = layout == Layout::kSplit ? 8U : 7U,
          .capacity = std::max<std::uint64_t>(1, bits / 10),
          .seed = seed};
}

BloomFilter make_bloom(const FilterParameters& parameters) {
  auto filter = BloomFilter::create(parameters);
  REQUIRE(filter);
  return std::move(*filter);
}

void insert(BloomFilter& filter, std::uint32_t first, std::uint32_t last) {
  const FilterParameters& parameters = filter.parameters();
  for (std::uint32_t i = first; i < last; ++i) {
    filter.test_and_set(hash_key(parameters.hash, parameters.seed, Key(0, i).bytes()));
  }
}

bool holds_all(const BloomFilter& filter, std::uint32_t keys) {
  const FilterParameters& parameters = filter.parameters();
  for (std::uint32_t i = 0; i < keys; ++i) {
    if (!filter.test(hash_key(parameters.hash, parameters.seed, Key(0, i).bytes()))) {
      return false;
    }
  }
  return true;
}

double deviation_from_bits(const BloomFilter& filter, std::uint32_t probes) {
  const FilterParameters& parameters = filter.parameters();
  return testing::false_positive_deviation(
      probes, filter.fpr_from_bits(), [&](std::string_view bytes) {
        return filter.test(hash_key(parameters.hash, parameters.seed, bytes));
      });
}

}  // namespace

TEST_CASE("every layout with every hash meets theory at half, full and double load",
          "[filter][theory]") {
  constexpr std::uint32_t kKeys = 20'000;
  for (const Layout layout : kLayouts) {
    for (const HashFamily family : kHashFamilies) {
      BloomFilter filter = make_bloom(parameters_of(layout, family, 204'800));
      std::uint32_t inserted = 0;
      for (const std::uint32_t keys : {kKeys / 2, kKeys, 2 * kKeys}) {
        CAPTURE(to_string(layout), to_string(family), keys);
        insert(filter, inserted, keys);
        inserted = keys;
        CHECK(holds_all(filter, keys));
        CHECK(std::abs(deviation_from_bits(filter, 60'000)) < kSigmas);
        if (layout == Layout::kClassic) {
          const FilterShape shape = filter.parameters().shape();
          const double expected = expected_set_bits(shape, keys);
          const double sd = std::sqrt(set_bits_variance(shape, keys));
          CHECK(std::abs(static_cast<double>(filter.set_bits()) - expected) < kSigmas * sd);
        }
      }
    }
  }
}

TEST_CASE("the bits of every layout meet their expectation over 32 seeds", "[filter][theory]") {
  for (const Layout layout : kLayouts) {
    for (const std::uint32_t keys : {1000U, 2000U, 4000U}) {
      CAPTURE(to_string(layout), keys);
      std::vector<double> set_bits;
      std::vector<double> rates;
      FilterShape shape;
      for (std::uint64_t seed = 0; seed < 32; ++seed) {
        BloomFilter filter =
            make_bloom(parameters_of(layout, HashFamily::kXxh3, 20'480, {seed, ~seed}));
        insert(filter, 0, keys);
        set_bits.push_back(static_cast<double>(filter.set_bits()));
        rates.push_back(filter.fpr_from_bits());
        shape = filter.parameters().shape();
      }
      CHECK(std::abs(testing::mean_deviation(set_bits, expected_set_bits(shape, keys))) < kSigmas);
      CHECK(std::abs(testing::mean_deviation(rates, fpr(shape, keys))) < kSigmas);
    }
  }
}

// The rate of a blocked filter with N lines, without the approximations of fpr(): a line has its
// keys by the binomial distribution, and is a classic filter for them.
double fpr_of_lines(const FilterShape& shape, std::uint32_t keys) {
  const double lines = std::ceil(static_cast<double>(shape.bits) / 512);
  double weight = std::pow(1 - 1 / lines, keys);  // weight of a line with j keys
  double sum = 0;
  for (std::uint32_t j = 0; j <= keys && (weight > 1e-12 || j < keys / lines); ++j) {
    sum += weight * fpr_exact({Layout::kClassic, 512, shape.hashes}, j).value();
    weight *= (keys - j) / ((j + 1) * (lines - 1));
  }
  return sum;
}

// The one word that the line's choice leaves holds seven indices of nine bits; each seven more are
// made of it.
TEST_CASE("a blocked filter of many hashes meets theory", "[filter][theory]") {
  constexpr std::uint32_t kProbes = 4000;
  for (const std::uint32_t hashes : {7U, 8U, 14U, 15U, 21U, 22U, 29U, 36U}) {
    for (const std::uint32_t keys : {600U, 1200U}) {
      CAPTURE(hashes, keys);
      std::vector<double> set_bits;
      std::vector<double> rates;
      FilterShape shape;
      std::uint64_t positives = 0;
      double expected = 0;
      for (std::uint64_t seed = 0; seed < 32; ++seed) {
        FilterParameters parameters =
            parameters_of(Layout::kBlocked, HashFamily::kXxh3, 20'480, {seed, ~seed});
        parameters.hashes = hashes;
        BloomFilter filter = make_bloom(parameters);
        insert(filter, 0, keys);
        CHECK(holds_all(filter, keys));
        set_bits.push_back(static_cast<double>(filter.set_bits()));
        rates.push_back(filter.fpr_from_bits());
        expected += rates.back() * kProbes;
        for (std::uint32_t i = 0; i < kProbes; ++i) {
          positives += filter.test(hash_key(parameters.hash, parameters.seed, Key(1, i).bytes()));
        }
        shape = filter.parameters().shape();
      }
      CHECK(std::abs(testing::mean_deviation(set_bits, expected_set_bits(shape, keys))) < kSigmas);
      CHECK(std::abs(testing::mean_deviation(rates, fpr_of_lines(shape, keys))) < kSigmas);
      if (expected < 25) continue;  // too few to tell anything by
      const std::uint64_t probes = kProbes * rates.size();
      CHECK(std::abs(testing::deviation(positives, probes,
                                        expected / static_cast<double>(probes))) < kSigmas);
    }
  }
}

TEST_CASE("md5 and sha lists of indices meet theory in a classic filter", "[filter][theory]") {
  for (const HashFamily family : {HashFamily::kMd5, HashFamily::kSha1, HashFamily::kSha512}) {
    CAPTURE(to_string(family));
    BloomFilter filter = make_bloom(parameters_of(Layout::kClassic, family, 100'000));
    for (std::uint32_t i = 0; i < 10'000; ++i) {
      const Key key(0, i);
      filter.test_and_set_from(DigestIndices{family, key.bytes()});
      CHECK(filter.test_and_set_from(DigestIndices{family, key.bytes()}));
    }
    const auto test = [&](std::string_view bytes) {
      std::array<std::uint64_t, 7> indices{};
      digest_indices(family, bytes, 100'000, indices);
      return filter.test_indices(indices);
    };
    CHECK(std::abs(testing::false_positive_deviation(60'000, filter.fpr_from_bits(), test)) <
          kSigmas);
  }
}

// Fills a filter with lists of indices, and judges each fill by its deviation.
template <typename IndicesOf>
bool meets_theory(const FilterParameters& parameters, IndicesOf indices_of) {
  BloomFilter filter = make_bloom(parameters);
  const FilterShape shape = filter.parameters().shape();
  const auto list = [&](std::string_view key, std::span<std::uint64_t> out) {
    indices_of(key, parameters.bits, out);
    return out;
  };
  std::array<std::uint64_t, 8> room{};
  const std::span<std::uint64_t> out = std::span(room).first(parameters.hashes);
  bool met = true;
  std::uint32_t inserted = 0;
  for (const std::uint32_t keys : {5000U, 10'000U, 20'000U}) {
    for (; inserted < keys; ++inserted) {
      filter.test_and_set_indices(list(Key(0, inserted).bytes(), out));
    }
    const double rate = testing::false_positive_deviation(
        60'000, filter.fpr_from_bits(),
        [&](std::string_view key) { return filter.test_indices(list(key, out)); });
    const double bits = (static_cast<double>(filter.set_bits()) - expected_set_bits(shape, keys)) /
                        std::sqrt(set_bits_variance(shape, keys));
    met = met && std::abs(rate) < kSigmas && std::abs(bits) < kSigmas;
  }
  return met;
}

TEST_CASE("hashes that list indices meet theory, by a key's bytes and in batches",
          "[filter][theory]") {
  for (const HashFamily family :
       {HashFamily::kChained, HashFamily::kSha1Fields20, HashFamily::kMd5Fields,
        HashFamily::kSha1Fields, HashFamily::kSha256Fields, HashFamily::kSha256Fields32,
        HashFamily::kMd5Numbered, HashFamily::kSha1Numbered, HashFamily::kSha256Numbered}) {
    CAPTURE(to_string(family));
    const Seed seed = family == HashFamily::kChained ? kSeed : Seed{};
    // A power of two, which fields reach evenly.
    const FilterParameters parameters =
        parameters_of(Layout::kClassic, family, std::uint64_t{1} << 17U, seed);
    CHECK(meets_theory(parameters, [&](std::string_view key, std::uint64_t bits, auto out) {
      key_indices(family, seed, key, bits, out);
    }));
    BloomFilter filter = make_bloom(parameters);
    std::vector<Key> storage;
    for (std::uint32_t i = 0; i < 13'000; ++i) {
      storage.emplace_back(0, i);
      filter.add(storage.back().bytes());
    }
    std::vector<std::string_view> keys;
    for (const Key& key : storage) {
      REQUIRE(filter.test(key.bytes()));
      keys.push_back(key.bytes());
    }
    const auto answers = std::make_unique<bool[]>(keys.size());
    filter.test(keys, {answers.get(), keys.size()});
    CHECK(
        std::all_of(answers.get(), answers.get() + keys.size(), [](bool there) { return there; }));
    const double rate = testing::false_positive_deviation(
        60'000, filter.fpr_from_bits(), [&](std::string_view key) { return filter.test(key); });
    CHECK(std::abs(rate) < kSigmas);
    const auto loaded = BloomFilter::load(filter.save());
    REQUIRE(loaded);
    CHECK(loaded->save() == filter.save());
  }
}

TEST_CASE("planted defect: a chain that forgets its value, fields that overlap, fail",
          "[filter][theory]") {
  const FilterParameters parameters =
      parameters_of(Layout::kClassic, HashFamily::kChained, std::uint64_t{1} << 17U);
  // Each value from the first seed: all are one.
  CHECK_FALSE(meets_theory(parameters, [](std::string_view key, std::uint64_t bits, auto out) {
    for (std::uint64_t& index : out) {
      key_indices(HashFamily::kChained, kSeed, key, bits, {&index, 1});
    }
  }));
  // Every field counted twice: half as many hashes as it is said.
  CHECK_FALSE(meets_theory(parameters, [](std::string_view key, std::uint64_t bits, auto out) {
    std::array<std::uint64_t, kFields20Max> fields{};
    key_indices(HashFamily::kSha1Fields20, {}, key, bits, fields);
    for (std::size_t i = 0; i < out.size(); ++i) {
      out[i] = fields[i / 2];
    }
  }));
}

TEST_CASE("the keys of one shard out of 16 fill their filter as theory says", "[filter][theory]") {
  for (const Layout layout : kLayouts) {
    CAPTURE(to_string(layout));
    BloomFilter filter = make_bloom(parameters_of(layout, HashFamily::kXxh3, 102'400));
    const auto in_shard = [](const Hash128& hash) { return shard_of(hash, 16) == 5; };
    std::uint64_t inserted = 0;
    for (std::uint32_t i = 0; inserted < 10'000; ++i) {
      const Hash128 hash = identify(kSeed, Key(0, i).bytes()).hash;
      if (in_shard(hash)) {
        filter.test_and_set(hash);
        ++inserted;
      }
    }
    const double expected = expected_set_bits(filter.parameters().shape(), 10'000);
    CHECK(static_cast<double>(filter.set_bits()) == Approx(expected).epsilon(0.01));
    std::uint64_t asked = 0;
    std::uint64_t positives = 0;
    for (std::uint32_t i = 0; asked < 40'000; ++i) {
      const Hash128 hash = identify(kSeed, Key(1, i).bytes()).hash;
      if (in_shard(hash)) {
        ++asked;
        positives += filter.test(hash) ? 1U : 0U;
      }
    }
    CHECK(std::abs(testing::deviation(positives, asked, filter.fpr_from_bits())) < kSigmas);
  }
}

TEST_CASE("planted defect: a hash cut to 32 bits fails the check that the whole one passes",
          "[filter][theory]") {
  // 2,000,000 keys among 2^32 hashes: one probe in 2147 hits another key's whole hash, which at
  // 24 bits a key is several times what the filter itself gets wrong.
  constexpr std::uint32_t kKeys = 2'000'000;
  constexpr std::uint32_t kProbes = 200'000;
  for (const bool cut : {false, true}) {
    BloomFilter filter = make_bloom(parameters_of(Layout::kSplit, HashFamily::kXxh3, 48'000'000));
    const auto hash_of = [&](std::string_view bytes) {
      Hash128 hash = identify(kSeed, bytes).hash;
      if (cut) {
        const std::uint64_t kept = hash.lo & 0xffffffffU;
        hash = {kept << 32U, kept * 0x9e3779b97f4a7c15U};
      }
      return hash;
    };
    for (std::uint32_t i = 0; i < kKeys; ++i) {
      filter.test_and_set(hash_of(Key(0, i).bytes()));
    }
    const double deviation = testing::false_positive_deviation(
        kProbes, filter.fpr_from_bits(),
        [&](std::string_view bytes) { return filter.test(hash_of(bytes)); });
    CAPTURE(cut, deviation);
    CHECK((std::abs(deviation) > kSigmas) == cut);
  }
}

TEST_CASE("planted defect: a stride of zero fails the check that an odd one passes",
          "[filter][theory]") {
  constexpr std::uint64_t kBits = 204'800;
  for (const bool zero_stride : {false, true}) {
    BloomFilter filter = make_bloom(parameters_of(Layout::kClassic, HashFamily::kMurmur3, kBits));
    const auto indices_of = [&](std::string_view bytes) {
      const Hash128 hash = hash_key(HashFamily::kMurmur3, kSeed, bytes);
      const std::uint64_t stride = zero_stride ? 0 : hash.hi | 1U;
      std::array<std::uint64_t, 7> indices{};
      for (std::size_t i = 0; i < indices.size(); ++i) {
        indices[i] = (hash.lo + i * stride) % kBits;
      }
      return indices;
    };
    for (std::uint32_t i = 0; i < 20'000; ++i) {
      filter.test_and_set_indices(indices_of(Key(0, i).bytes()));
    }
    const double deviation = testing::false_positive_deviation(
        60'000, filter.fpr_from_bits(),
        [&](std::string_view bytes) { return filter.test_indices(indices_of(bytes)); });
    const FilterShape shape = filter.parameters().shape();
    const double bits_deviation =
        (static_cast<double>(filter.set_bits()) - expected_set_bits(shape, 20'000)) /
        std::sqrt(set_bits_variance(shape, 20'000));
    CAPTURE(zero_stride, deviation, bits_deviation);
    CHECK((std::abs(deviation) > kSigmas) == zero_stride);
    CHECK((std::abs(bits_deviation) > kSigmas) == zero_stride);
  }
}

TEST_CASE("a batch in the cache is answered alike, whatever its length, the hashes and the fill",
          "[filter]") {
  for (const Layout layout : {Layout::kClassic, Layout::kPartitioned}) {
    for (const HashFamily hash : {HashFamily::kXxh3, HashFamily::kMurmur3}) {
      for (const std::uint32_t k : {1U, 2U, 3U, 4U, 11U}) {
        FilterParameters parameters = parameters_of(layout, hash, 5'500);
        parameters.hashes = k;
        BloomFilter filter = make_bloom(parameters);
        const std::array<std::size_t, 6> lengths{0, 1, 127, 128, 129, 1000};
        for (std::uint32_t added = 0; added < 3000; ++added) {
          if (added % 500 == 0) {
            const std::size_t length = lengths[added / 500];
            CAPTURE(to_string(layout), to_string(hash), k, added, length);
            std::vector<Hash128> hashes;
            for (std::uint32_t i = 0; i < length; ++i) {
              // None of these are there, then half of them, then all.
              hashes.push_back(hash_key(hash, kSeed, Key(i * 2 < added ? 0 : 1, i).bytes()));
            }
            const auto answers = std::make_unique<bool[]>(length + 1);
            filter.test(hashes, {answers.get(), length});
            for (std::size_t i = 0; i < length; ++i) {
              REQUIRE(answers[i] == filter.test(hashes[i]));
            }
            CHECK_FALSE(answers[length]);
          }
          filter.test_and_set(hash_key(hash, kSeed, Key(0, added).bytes()));
        }
      }
    }
  }
}

TEST_CASE("a batch gives the answers that single calls give", "[filter]") {
  // In a core's cache, and larger than that.
  const auto agree = [](Layout layout, std::uint64_t bits) {
    CAPTURE(to_string(layout), bits);
    BloomFilter one = make_bloom(parameters_of(layout, HashFamily::kXxh3, bits));
    BloomFilter batched = make_bloom(one.parameters());
    std::vector<Hash128> hashes;
    for (std::uint32_t i = 0; i < 3000; ++i) {
      hashes.push_back(identify(kSeed, Key(0, i % 2500).bytes()).hash);
    }
    const auto answers = std::make_unique<bool[]>(hashes.size());
    const std::span<bool> out(answers.get(), hashes.size());
    batched.test_and_set(hashes, out);
    for (std::size_t i = 0; i < hashes.size(); ++i) {
      REQUIRE(one.test_and_set(hashes[i]) == out[i]);
    }
    CHECK(one.set_bits() == batched.set_bits());
    CHECK(one.insertions() == batched.insertions());
    batched.test(hashes, out);
    CHECK(std::ranges::all_of(out, [](bool there) { return there; }));
    for (std::uint32_t i = 0; i < hashes.size(); ++i) {
      hashes[i] = identify(kSeed, Key(i % 2, i).bytes()).hash;
    }
    batched.test(hashes, out);
    for (std::size_t i = 0; i < hashes.size(); ++i) {
      REQUIRE(one.test(hashes[i]) == out[i]);
    }
  };
  for (const Layout layout : kLayouts) {
    agree(layout, 20'480);
    agree(layout, 16 * kInCacheBytes);
  }
}

TEST_CASE("every kernel of the split layout that this machine runs agrees with the plain one",
          "[filter]") {
  // A line of the current generation and one of the older.
  struct Pair {
    alignas(64) std::array<std::uint64_t, 16> words{};
    std::uint64_t set_bits = 0;
    PairLines lines{.current = words.data(), .older = 8, .lines = 1, .set_bits = &set_bits};
  };
  const SplitKernel& plain = *split_kernels().front();
  for (const SplitKernel* kernel : split_kernels()) {
    Pair expected;
    Pair pair;
    for (std::uint32_t i = 0; i < 400; ++i) {
      const Hash128 hash = identify(kSeed, Key(0, i % 300).bytes()).hash;
      REQUIRE(kernel->test(pair.words.data(), hash.hi) ==
              plain.test(expected.words.data(), hash.hi));
      if (i % 5 == 0) {
        REQUIRE(kernel->insert(pair.words.data(), hash.hi) ==
                plain.insert(expected.words.data(), hash.hi));
      } else {
        pair.lines.refresh = expected.lines.refresh = i % 2 == 0;
        REQUIRE(kernel->pair(pair.lines, hash) == plain.pair(expected.lines, hash));
      }
      REQUIRE(pair.words == expected.words);
      REQUIRE(pair.set_bits == expected.set_bits);
      if (i % 40 == 0) {
        for (Pair* each : {&pair, &expected}) {
          std::ranges::copy_n(each->words.begin(), 8, each->words.begin() + 8);
          std::ranges::fill_n(each->words.begin(), 8, 0);
        }
      }
    }
  }
}

TEST_CASE("a run of decisions is what the same decisions are one by one", "[filter]") {
  constexpr std::size_t kLines = 7;
  struct Pair {
    std::vector<std::uint64_t> room = std::vector<std::uint64_t>(kLines * 16 + 8);
    std::uint64_t set_bits = 0;
    PairLines lines;
    Pair() {
      void* start = room.data();
      std::size_t bytes = room.size() * sizeof(std::uint64_t);
      lines = {.current = static_cast<std::uint64_t*>(std::align(64, kLines * 128, start, bytes)),
               .older = 8,
               .lines = kLines,
               .set_bits = &set_bits};
    }
  };
  for (const SplitKernel* kernel : split_kernels()) {
    for (const std::size_t count : {1U, 11U, 12U, 13U, 200U}) {
      Pair one;
      Pair run;
      std::vector<HashedKey> keys(200);
      for (std::uint32_t round = 0; round < 3; ++round) {
        one.lines.refresh = run.lines.refresh = round != 1;
        for (std::uint32_t i = 0; i < keys.size(); ++i) {
          keys[i].hash = identify(kSeed, Key(0, (i * i + round * 90) % 150).bytes()).hash;
        }
        std::vector<Seen> seen(keys.size());
        const PairCounts counts = kernel->pairs(run.lines, keys, count, seen.data());
        PairCounts expected;
        for (std::size_t i = 0; i < count; ++i) {
          const Seen answer = kernel->pair(one.lines, keys[i].hash);
          REQUIRE(seen[i] == answer);
          expected.fresh += answer == Seen::kNew ? 1 : 0;
          expected.older += answer == Seen::kOlder ? 1 : 0;
        }
        CHECK(counts.fresh == expected.fresh);
        CHECK(counts.older == expected.older);
        CHECK(run.set_bits == one.set_bits);
        // The next round's older generation.
        for (Pair* each : {&one, &run}) {
          for (std::size_t i = 0; i < kLines; ++i) {
            std::uint64_t* line = each->lines.current + 16 * i;
            std::copy_n(line, 8, line + 8);
            std::fill_n(line, 8, 0);
          }
        }
      }
    }
  }
}

TEST_CASE("the union of two filters holds the keys of both and nothing else", "[filter]") {
  for (const Layout layout : kLayouts) {
    CAPTURE(to_string(layout));
    const FilterParameters parameters = parameters_of(layout, HashFamily::kXxh3, 20'480);
    BloomFilter a = make_bloom(parameters);
    BloomFilter b = make_bloom(parameters);
    BloomFilter both = make_bloom(parameters);
    insert(a, 0, 1000);
    insert(b, 500, 1500);
    insert(both, 0, 1500);
    REQUIRE(a.merge(b));
    CHECK(holds_all(a, 1500));
    CHECK(a.set_bits() == both.set_bits());
    CHECK(a.fpr_from_bits() == both.fpr_from_bits());
  }
}

TEST_CASE("filters of another make or seed are not merged", "[filter]") {
  const FilterParameters parameters = parameters_of(Layout::kClassic, HashFamily::kXxh3, 20'480);
  BloomFilter filter = make_bloom(parameters);
  FilterParameters other = parameters;
  other.bits = 10'240;
  CHECK_FALSE(filter.merge(make_bloom(other)));
  other = parameters;
  other.hash = HashFamily::kSiphash;
  CHECK_FALSE(filter.merge(make_bloom(other)));
  other = parameters;
  other.seed = {1, 1};
  const auto refused = filter.merge(make_bloom(other));
  REQUIRE_FALSE(refused);
  CHECK(refused.error().message.find(fingerprint(kSeed)) != std::string::npos);
  CHECK(refused.error().message.find(to_hex(kSeed)) == std::string::npos);
}

TEST_CASE("a filter of one bit works", "[filter]") {
  BloomFilter filter =
      make_bloom({.layout = Layout::kClassic, .bits = 1, .hashes = 3, .capacity = 1, .seed = {}});
  CHECK_FALSE(filter.test_and_set({1, 2}));
  CHECK(filter.test_and_set({3, 4}));
  CHECK(filter.fpr_from_bits() == 1);
}

TEST_CASE("parameters outside their limits are refused, at the limit taken", "[filter]") {
  const FilterParameters good = parameters_of(Layout::kClassic, HashFamily::kXxh3, 1000);
  const auto with = [&](auto change) {
    FilterParameters changed = good;
    change(changed);
    return checked(changed);
  };
  CHECK(with([](auto&) {}));
  CHECK_FALSE(with([](auto& p) { p.bits = 0; }));
  CHECK(with([](auto& p) { p.bits = kBitsMax; }));
  CHECK_FALSE(with([](auto& p) { p.bits = kBitsMax + 1; }));
  CHECK_FALSE(with([](auto& p) { p.hashes = 0; }));
  CHECK(with([](auto& p) { p.hashes = kHashesMax; }));
  CHECK_FALSE(with([](auto& p) { p.hashes = kHashesMax + 1; }));
  CHECK_FALSE(with([](auto& p) { p.capacity = 0; }));
  CHECK_FALSE(with([](auto& p) { p.layout = Layout::kSplit; }));
  CHECK(with([](auto& p) { p.layout = Layout::kPartitioned; })->bits == 1001);
  CHECK(with([](auto& p) { p.layout = Layout::kBlocked; })->bits == 1024);
  CHECK_FALSE(with([](auto& p) {
    p.layout = Layout::kPartitioned;
    p.bits = 6;
  }));
  CHECK(parse_layout("split") == Layout::kSplit);
  CHECK(parse_layout("spilt").error().message ==
        "unknown filter layout \"spilt\", accepted: classic, partitioned, blocked, split");
}

}  // namespace encore::filter
