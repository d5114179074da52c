// Generations that a ring adopts from another cache: found whatever that cache's parameters were,
// expired in time, stated in the rates, and never taken from incomplete bytes.
#include <array>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "filter/adopted_memory.h"
#include "filter/alias.h"
#include "filter/rotating_bloom_filter.h"
#include "tests/catch.h"
#include "tests/filter/judge.h"
#include "tests/filter/saved_bytes.h"

namespace encore::filter {
namespace {

using namespace std::chrono_literals;
using testing::Key;
using testing::kSeed;
using testing::kSigmas;

constexpr Seed kOtherSeed{0xabad, 0x1dea};
constexpr MonotonicTime kAdoptionTime{1h};

// So many bits a key that false positives do not occur in a test.
FilterParameters wide(std::uint64_t capacity, const Seed& seed) {
  return {.layout = Layout::kClassic,
          .bits = capacity * 64,
          .hashes = 20,
          .capacity = capacity,
          .seed = seed};
}

RotatingBloomFilter make_adopted(const RotatingOptions& options) {
  auto filter = RotatingBloomFilter::create(options, kAdoptionTime);
  REQUIRE(filter);
  return std::move(*filter);
}

struct Cache {
  std::uint32_t shards = 1;
  Seed identity_seed = kOtherSeed;
  FilterParameters filter;  // parameters of one shard
  std::uint32_t generations = 2;
};

// Another cache: shards of its own, keys divided over them by its own seed.
class Elsewhere {
 public:
  explicit Elsewhere(const Cache& cache) : cache_(cache) {
    for (std::uint32_t i = 0; i < cache.shards; ++i) {
      rings_.push_back(make_adopted({.parameters = cache.filter,
                                     .generations = cache.generations,
                                     .identity_seed = cache.identity_seed,
                                     .shadow_one_in = 0}));
    }
  }
  Seen ask(std::string_view bytes) {
    const HashedKey key = identify(cache_.identity_seed, bytes);
    return rings_[shard_of(key.hash, cache_.shards)].test_and_set(key, kAdoptionTime);
  }
  void rotate() {
    for (RotatingBloomFilter& ring : rings_) ring.rotate(kAdoptionTime);
  }
  std::vector<std::string> save() const {
    std::vector<std::string> saved;
    for (const RotatingBloomFilter& ring : rings_) saved.push_back(ring.save(kAdoptionTime));
    return saved;
  }
  Result<std::shared_ptr<const AdoptedMemory>> hand_over() const { return load(save()); }
  Result<std::shared_ptr<const AdoptedMemory>> load(const std::vector<std::string>& saved) const {
    const std::vector<std::string_view> views(saved.begin(), saved.end());
    return AdoptedMemory::load({.identity_seed = cache_.identity_seed, .shards = views});
  }

 private:
  Cache cache_;
  std::vector<RotatingBloomFilter> rings_;
};

RotatingOptions own_options(std::uint64_t capacity, std::uint32_t generations = 2) {
  return {.parameters = {.bits = capacity * 40, .capacity = capacity, .seed = kSeed},
          .generations = generations,
          .identity_seed = kSeed,
          .shadow_one_in = 1};
}

Seen ask(RotatingBloomFilter& ring, std::string_view bytes) {
  return ring.test_and_set(identify(kSeed, bytes), kAdoptionTime);
}

bool ring_holds(const RotatingBloomFilter& ring, std::string_view bytes) {
  return ring.test(identify(kSeed, bytes));
}

}  // namespace

TEST_CASE("what another cache saw once is known here, whatever that cache is made of", "[filter]") {
  const auto layout =
      GENERATE(Layout::kClassic, Layout::kPartitioned, Layout::kBlocked, Layout::kSplit);
  const auto family = GENERATE(HashFamily::kXxh3, HashFamily::kSiphash, HashFamily::kMd5);
  // Under one seed for the cluster, under seeds of their own, and a filter with another yet.
  const auto seeds = GENERATE(0U, 1U, 2U);
  const Seed identity = seeds == 0 ? kSeed : kOtherSeed;
  const Seed filter_seed = seeds == 2 ? Seed{7, 7} : identity;
  // Many shards take long, so their number goes around with the rest.
  constexpr std::array kShards = {1U, 2U, 16U, 256U};
  const std::uint32_t shards =
      kShards[(static_cast<std::uint32_t>(layout) + static_cast<std::uint32_t>(family) + seeds) %
              kShards.size()];
  CAPTURE(to_string(layout), to_string(family), shards, identity.lo, filter_seed.lo);
  const FilterParameters parameters{.layout = layout,
                                    .hash = family,
                                    .bits = 40'000,
                                    .hashes = layout == Layout::kSplit ? 8U : 7U,
                                    .capacity = 1000,
                                    .seed = filter_seed};
  Elsewhere neighbour(
      {.shards = shards, .identity_seed = identity, .filter = parameters, .generations = 3});
  for (std::uint32_t i = 0; i < 300; ++i) {
    if (i == 100) neighbour.rotate();
    neighbour.ask(Key(1, i).bytes());
  }
  const auto memory = neighbour.hand_over();
  REQUIRE(memory);
  RotatingBloomFilter ring = make_adopted(own_options(1000));
  CHECK(ring.adopt(*memory) == 2U);
  std::uint32_t known = 0;
  std::uint32_t strangers = 0;
  for (std::uint32_t i = 0; i < 300; ++i) {
    known += ring_holds(ring, Key(1, i).bytes()) ? 1U : 0U;
    strangers += ring_holds(ring, Key(2, i).bytes()) ? 1U : 0U;
  }
  CHECK(known == 300);
  CHECK(strangers <= 3);
}

TEST_CASE("an adopted key is an older one: it is refreshed, or stays where it is", "[filter]") {
  Elsewhere neighbour({.filter = wide(1000, kOtherSeed)});
  neighbour.ask("a");
  const auto memory = neighbour.hand_over();
  REQUIRE(memory);
  const bool refresh = GENERATE(true, false);
  RotatingOptions options = own_options(1000);
  options.refresh = refresh;
  RotatingBloomFilter ring = make_adopted(options);
  REQUIRE(ring.adopt(*memory));
  CHECK(ring.find(identify(kSeed, "a")) == Seen::kOlder);
  CHECK(ask(ring, "a") == Seen::kOlder);
  CHECK(ask(ring, "a") == (refresh ? Seen::kCurrent : Seen::kOlder));
  const RotatingStatistics statistics = ring.statistics();
  CHECK(statistics.adopted.answers == (refresh ? 1 : 2));
  CHECK(statistics.insertions == (refresh ? 1 : 0));
  CHECK(statistics.refreshes == 0);  // those of our own
  ring.rotate(kAdoptionTime);
  CHECK(ring_holds(ring, "a") == refresh);
  CHECK(ring.statistics().adopted.memories == 0);
}

TEST_CASE("an adopted generation leaves as an older one of its age does", "[filter]") {
  // Rotations after which generation 0, 1, ... of the peer's ring has expired here.
  struct Row {
    std::uint32_t theirs;
    std::uint32_t ours;
    std::vector<std::uint32_t> rotations;
  };
  const auto row = GENERATE(Row{2, 2, {1, 1}}, Row{2, 4, {2, 1}}, Row{3, 3, {2, 2, 1}},
                            Row{4, 2, {1, 1, 0, 0}}, Row{4, 8, {4, 3, 2, 1}});
  CAPTURE(row.theirs, row.ours);
  Elsewhere neighbour({.filter = wide(1000, kOtherSeed), .generations = row.theirs});
  for (std::uint32_t i = 0; i < row.theirs; ++i) {
    if (i != 0) neighbour.rotate();
    neighbour.ask(Key(1, row.theirs - 1 - i).bytes());  // ends up in the generation of its number
  }
  const auto memory = neighbour.hand_over();
  REQUIRE(memory);
  RotatingBloomFilter ring = make_adopted(own_options(1000, row.ours));
  REQUIRE(ring.adopt(*memory));
  for (std::uint32_t rotations = 0; rotations <= row.ours; ++rotations) {
    for (std::uint32_t i = 0; i < row.theirs; ++i) {
      CAPTURE(rotations, i);
      CHECK(ring_holds(ring, Key(1, i).bytes()) == (rotations < row.rotations[i]));
    }
    ring.rotate(kAdoptionTime);
  }
  CHECK((*memory).use_count() == 1);
}

namespace {

// The required behaviour of a ring with adopted generations, by exact sets.
class NaiveRing {
 public:
  NaiveRing(std::uint32_t generations, bool refresh, std::uint64_t capacity)
      : own_(generations), refresh_(refresh), capacity_(capacity) {}

  Seen ask(std::uint32_t key) {
    if (own_[0].contains(key)) return Seen::kCurrent;
    const bool known = holds(key);
    if (!known || refresh_) {
      own_[0].insert(key);
      if (own_[0].size() == capacity_) rotate();
    }
    return known ? Seen::kOlder : Seen::kNew;
  }
  bool holds(std::uint32_t key) const {
    const auto has = [&](const auto& set) { return set.contains(key); };
    return std::ranges::any_of(own_, has) ||
           std::ranges::any_of(adopted_, [&](const Set& set) { return has(set.keys); });
  }
  void rotate() {
    std::ranges::rotate(own_, own_.end() - 1);
    own_[0].clear();
    for (Set& set : adopted_) --set.rotations_left;
    std::erase_if(adopted_, [](const Set& set) { return set.rotations_left == 0; });
  }
  void adopt(const std::vector<std::set<std::uint32_t>>& theirs) {
    for (std::size_t i = 0; i < theirs.size(); ++i) {
      const std::size_t place = std::max<std::size_t>(1, i);
      if (place < own_.size()) {
        adopted_.push_back({theirs[i], std::min(own_.size() - place, theirs.size() - i)});
      }
    }
  }

 private:
  struct Set {
    std::set<std::uint32_t> keys;
    std::size_t rotations_left;
  };
  std::vector<std::set<std::uint32_t>> own_;
  std::vector<Set> adopted_;
  bool refresh_;
  std::uint64_t capacity_;
};

// A peer with some keys at random in each generation, and the same as sets.
std::pair<Elsewhere, std::vector<std::set<std::uint32_t>>> random_neighbour(
    std::mt19937_64& random) {
  const auto generations = static_cast<std::uint32_t>(2 + random() % 4);
  Elsewhere neighbour({.shards = 1U << (random() % 5),
                       .identity_seed = {random(), random()},
                       .filter = wide(500, {random(), random()}),
                       .generations = generations});
  std::vector<std::set<std::uint32_t>> sets;
  for (std::uint32_t i = 0; i < generations; ++i) {
    if (i != 0) neighbour.rotate();
    sets.emplace(sets.begin());
    for (int n = 0; n < 60; ++n) {
      const auto key = static_cast<std::uint32_t>(random() % 600);
      neighbour.ask(Key(0, key).bytes());
      sets.front().insert(key);
    }
  }
  return {std::move(neighbour), std::move(sets)};
}

}  // namespace

TEST_CASE("random histories of a ring that adopts are those of exact sets", "[filter]") {
  const auto generations = GENERATE(2U, 3U, 6U);
  const auto refresh = GENERATE(true, false);
  const auto seed = GENERATE(range(1, 6));
  CAPTURE(generations, refresh, seed);
  std::mt19937_64 random(static_cast<std::uint64_t>(seed));
  constexpr std::uint64_t kCapacity = 150;
  RotatingOptions options = own_options(kCapacity, generations);
  options.parameters = wide(kCapacity, kSeed);
  options.refresh = refresh;
  RotatingBloomFilter ring = make_adopted(options);
  NaiveRing naive(generations, refresh, kCapacity);
  bool equal = true;
  int adoptions = 0;
  for (int step = 0; step < 20'000; ++step) {
    const std::uint64_t dice = random() % 2000;
    if (dice == 0) {
      const auto [neighbour, sets] = random_neighbour(random);
      const auto memory = neighbour.hand_over();
      REQUIRE(memory);
      if (ring.statistics().adopted.memories == kAdoptedMax) {
        CHECK_FALSE(ring.adopt(*memory));
      } else {
        REQUIRE(ring.adopt(*memory));
        naive.adopt(sets);
        ++adoptions;
      }
    } else if (dice == 1) {
      ring.rotate(kAdoptionTime);
      naive.rotate();
    } else if (dice == 2) {
      // New parameters begin a new generation.
      options.parameters.bits += 64;
      REQUIRE(ring.reconfigure(options.parameters, kAdoptionTime));
      naive.rotate();
    } else {
      const auto key = static_cast<std::uint32_t>(random() % 700);
      equal = equal && ring_holds(ring, Key(0, key).bytes()) == naive.holds(key);
      equal = equal && ask(ring, Key(0, key).bytes()) == naive.ask(key);
    }
    REQUIRE(equal);
  }
  CHECK(adoptions > 2);
}

TEST_CASE("a batch that meets adopted keys decides as single calls do", "[filter]") {
  Elsewhere neighbour({.shards = 4, .filter = wide(1000, kOtherSeed)});
  for (std::uint32_t i = 0; i < 400; ++i) neighbour.ask(Key(1, i).bytes());
  const auto memory = neighbour.hand_over();
  REQUIRE(memory);
  RotatingOptions options = own_options(300);
  options.shadow_one_in = 0;  // the batch's own path, before the adoption and after it
  RotatingBloomFilter batched = make_adopted(options);
  RotatingBloomFilter single = make_adopted(options);
  std::mt19937_64 random(5);
  bool equal = true;
  for (int round = 0; round < 40; ++round) {
    if (round == 10) {
      REQUIRE(batched.adopt(*memory));
      REQUIRE(single.adopt(*memory));
    }
    std::vector<Key> texts;
    std::vector<HashedKey> keys;
    for (int i = 0; i < 50; ++i) texts.emplace_back(1, static_cast<std::uint32_t>(random() % 800));
    for (const Key& text : texts) keys.push_back(identify(kSeed, text.bytes()));
    std::vector<Seen> out(keys.size());
    batched.test_and_set(keys, kAdoptionTime, out);
    for (std::size_t i = 0; i < keys.size(); ++i) {
      equal = equal && single.test_and_set(keys[i], kAdoptionTime) == out[i];
    }
  }
  CHECK(equal);
  CHECK(batched.statistics().adopted.answers > 0);
  CHECK(batched.statistics().adopted.answers == single.statistics().adopted.answers);
}

TEST_CASE("the stated rate is that of own and adopted generations together", "[filter][theory]") {
  Elsewhere neighbour({.shards = 8,
                       .filter = {.layout = Layout::kBlocked,
                                  .bits = 8192,
                                  .hashes = 4,
                                  .capacity = 1000,
                                  .seed = kOtherSeed}});
  for (std::uint32_t i = 0; i < 11'000; ++i) neighbour.ask(Key(1, i).bytes());
  const auto memory = neighbour.hand_over();
  REQUIRE(memory);
  RotatingOptions options = own_options(5000);
  options.parameters.bits = 5000 * 8;
  RotatingBloomFilter ring = make_adopted(options);
  for (std::uint32_t i = 0; i < 7000; ++i) ask(ring, Key(2, i).bytes());
  const double alone = ring.fpr_from_bits(UINT64_MAX);
  REQUIRE(ring.adopt(*memory));
  const auto test = [&](std::string_view bytes) { return ring_holds(ring, bytes); };
  constexpr std::uint32_t kProbes = 200'000;
  const double by_bits = ring.fpr_from_bits(UINT64_MAX);
  CHECK(std::abs(testing::false_positive_deviation(kProbes, by_bits, test)) < kSigmas);
  // Without the adopted ones it would be a lie, and is found out.
  CHECK(std::abs(testing::false_positive_deviation(kProbes, alone, test)) > 10 * kSigmas);
  // By theory they count as independent of each other: an upper bound, and no far one.
  const double by_theory = ring.fpr_theory();
  CHECK(by_theory > by_bits * 0.95);
  CHECK(by_theory < by_bits * 1.1);
  const auto reading = ring.read_bits(UINT64_MAX);
  const double current = ring.current_fpr_from_bits();
  CHECK(reading.older + (1 - reading.shared) * current == Approx(by_bits));
  const AdoptedStatistics adopted = ring.statistics(UINT64_MAX).adopted;
  CHECK(1 - (1 - alone) * (1 - adopted.fpr_bits) == Approx(by_bits));
  ring.rotate(kAdoptionTime);
  CHECK(ring.statistics().adopted.fpr_bits == 0);
}

TEST_CASE("the shadow calls no adopted key a false positive", "[filter]") {
  Elsewhere neighbour({.filter = wide(5000, kOtherSeed)});
  for (std::uint32_t i = 0; i < 5000; ++i) neighbour.ask(Key(1, i).bytes());
  const auto memory = neighbour.hand_over();
  REQUIRE(memory);
  RotatingOptions options = own_options(400);
  options.parameters = wide(400, kSeed);
  options.refresh = GENERATE(true, false);
  RotatingBloomFilter ring = make_adopted(options);
  for (std::uint32_t i = 0; i < 600; ++i) ask(ring, Key(2, i).bytes());
  REQUIRE(ring.adopt(*memory));
  const std::uint64_t before = ring.statistics().measured.asked;
  for (std::uint32_t i = 0; i < 3000; ++i) {
    ask(ring, Key(1, i % 4 == 0 ? i / 4 : i + 10'000).bytes());
  }
  const MeasuredFpr measured = ring.statistics().measured;
  CHECK(measured.asked > before);
  CHECK(measured.false_positives == 0);
  CHECK(measured.false_negatives == 0);
}

TEST_CASE("a key under another name is looked for where the key is", "[filter]") {
  const auto family = GENERATE(HashFamily::kXxh3, HashFamily::kSiphash);
  constexpr std::uint32_t kShards = 64;
  FilterParameters parameters = wide(500, kOtherSeed);
  parameters.hash = family;
  std::vector<RotatingBloomFilter> rings;
  for (std::uint32_t i = 0; i < kShards; ++i) {
    rings.push_back(
        make_adopted({.parameters = parameters, .identity_seed = kOtherSeed, .shadow_one_in = 0}));
  }
  constexpr std::uint32_t kName = 3;
  const auto named = [](const std::string& text) {
    return text + kAliasMark + static_cast<char>(kName);
  };
  for (std::uint32_t i = 0; i < 500; ++i) {
    const std::string text = "http://a.test/" + std::to_string(i);
    const HashedKey key = identify(kOtherSeed, text);
    const std::string name = named(text);
    rings[shard_of(key.hash, kShards)].test_and_set({alias_hash(key.hash, kName), name},
                                                    kAdoptionTime);
  }
  std::vector<std::string> saved;
  for (const RotatingBloomFilter& ring : rings) saved.push_back(ring.save(kAdoptionTime));
  const std::vector<std::string_view> views(saved.begin(), saved.end());
  const auto memory = AdoptedMemory::load({.identity_seed = kOtherSeed, .shards = views});
  REQUIRE(memory);
  for (std::uint32_t i = 0; i < 500; ++i) {
    const std::string text = "http://a.test/" + std::to_string(i);
    const std::string name = named(text);
    REQUIRE((*memory)->test({{}, name}, 2));
    REQUIRE_FALSE((*memory)->test({{}, text}, 2));
  }
}

TEST_CASE("bytes that are not a whole memory are not adopted", "[filter]") {
  const Cache cache{.shards = 2, .filter = wide(20, kOtherSeed)};
  Elsewhere neighbour(cache);
  for (std::uint32_t i = 0; i < 20; ++i) neighbour.ask(Key(1, i).bytes());
  const std::vector<std::string> good = neighbour.save();
  REQUIRE(neighbour.load(good));
  SECTION("each of its shards is looked at as closely as a state of our own") {
    testing::refuses_hostile_bytes(good[1], [&](const std::string& bytes) {
      auto loaded = neighbour.load({good[0], bytes});
      constexpr std::string_view kShard = "shard 1: ";
      if (!loaded && loaded.error().message.starts_with(kShard)) {
        loaded = fail(loaded.error().message.substr(kShard.size()));
      }
      return loaded;
    });
  }
  SECTION("nor as many shards as no cache has") {
    CHECK_FALSE(neighbour.load({}));
    CHECK_FALSE(neighbour.load({good[0], good[1], good[0]}));
    CHECK_FALSE(neighbour.load(std::vector<std::string>(512, good[0])));
    CHECK(neighbour.load(std::vector<std::string>(256, good[0])));
  }
  SECTION("nor shards that do not belong together") {
    Elsewhere strange({.identity_seed = {1, 1}, .filter = wide(20, kOtherSeed)});
    Elsewhere longer({.filter = wide(20, kOtherSeed), .generations = 3});
    CHECK_FALSE(neighbour.load({good[0], strange.save()[0]}));
    CHECK_FALSE(neighbour.load({good[0], longer.save()[0]}));
  }
  SECTION("nor one that says yes to everything") {
    Cache narrow = cache;
    narrow.filter = {
        .layout = Layout::kClassic, .bits = 64, .hashes = 1, .capacity = 1000, .seed = kOtherSeed};
    Elsewhere full(narrow);
    for (std::uint32_t i = 0; i < 60; ++i) full.ask(Key(1, i).bytes());
    CHECK(full.hand_over());
    for (std::uint32_t i = 0; i < 1000; ++i) full.ask(Key(1, i).bytes());
    CHECK_FALSE(full.hand_over());
  }
}

}  // namespace encore::filter
