// Attacks on the admission memory by someone who chooses URLs and sees each response, but does not
// know the seed (Naor and Yogev 2015; Clayton, Patton and Shrimpton 2019). They are to raise the
// rate of false positives, to foresee them, to have objects pass that were never requested, and to
// push out remembered keys. Blind attackers must stay at theory's rate for random keys. The planted
// defect is a known seed: the same checks must find what it allows an attacker to do.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <functional>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "base/sanitizers.h"
#include "filter/positions.h"
#include "filter/rotating_bloom_filter.h"
#include "filter/theory.h"
#include "tests/catch.h"
#include "tests/filter/judge.h"

namespace encore::filter {
namespace {

using testing::kSigmas;
using testing::mean;

constexpr std::uint64_t kCapacity = 4096;
constexpr std::uint64_t kWorstPoint = 2 * kCapacity - 1;  // insertions: both generations are full
#if defined(ENCORE_ADDRESS_SANITIZER)
constexpr std::uint32_t kSeeds = 4;  // it is looked for other things, several times as slowly
#else
constexpr std::uint32_t kSeeds = 20;
#endif
constexpr std::uint32_t kProbes = 50'000;

struct Defence {
  Layout layout;
  std::uint32_t hashes;
  std::uint64_t bits_per_key;
  HashFamily hash;
  FilterShape shape() const { return {layout, kCapacity * bits_per_key, hashes}; }
  Ring ring() const {
    return {.shape = shape(), .capacity = kCapacity, .counting = Counting::kEffective};
  }
};
constexpr Defence kClassic{Layout::kClassic, 7, 10, HashFamily::kXxh3};
constexpr Defence kSplit{Layout::kSplit, 8, 16, HashFamily::kXxh3};
constexpr std::array kDefences{kClassic, Defence{Layout::kClassic, 7, 10, HashFamily::kSiphash},
                               kSplit, Defence{Layout::kSplit, 8, 16, HashFamily::kSiphash}};

// URLs of different writers are never the same, nor are their adjacent ones: the number is long.
enum class Writer : std::uint8_t { kAttacker, kVictims, kQuestions };
std::string url(Writer writer, std::uint32_t number) {
  return "http://site.example/" + std::to_string(static_cast<int>(writer)) + "/" +
         std::to_string(1'000'000'000U + number);
}

// The admission memory as its clients see it: ask() is a request that is answered with
// first-request or second-request. knows() is a question that leaves no trace: a Range of an
// origin of the attacker's own, which answers no-store.
class Memory {
 public:
  struct Options {
    std::uint32_t generations = 2;
    bool refresh = true;
  };
  Memory(const Defence& defence, std::uint64_t secret, const Options& options)
      : filter_(RotatingBloomFilter::create(
                    {.parameters = {.layout = defence.layout,
                                    .hash = defence.hash,
                                    .bits = kCapacity * defence.bits_per_key,
                                    .hashes = defence.hashes,
                                    .capacity = kCapacity,
                                    .seed = {scrambled(secret + 1), scrambled(~secret)}},
                     .generations = options.generations,
                     .refresh = options.refresh,
                     .identity_seed = {scrambled(secret + 1), scrambled(~secret)},
                     .shadow_one_in = 0},
                    {})
                    .value()) {}
  Memory(const Defence& defence, std::uint64_t secret) : Memory(defence, secret, Options{}) {}

  Seen ask(const std::string& name) {
    return filter_.test_and_set(identify(filter_.options().identity_seed, name), {});
  }
  bool knows(const std::string& name) const {
    return filter_.test(identify(filter_.options().identity_seed, name));
  }
  std::uint64_t insertions() const {
    return filter_.rotations() * kCapacity + filter_.current_insertions();
  }
  // The secret parameters.
  const FilterParameters& parameters() const { return filter_.options().parameters; }

 private:
  RotatingBloomFilter filter_;
};

// Unique URLs one after the other, until so many were counted; the number of the next one.
std::uint32_t scan(Memory& memory, std::uint64_t insertions, std::uint32_t from = 0) {
  for (; memory.insertions() < insertions; ++from) memory.ask(url(Writer::kAttacker, from));
  return from;
}

// Only URLs that are answered as new: each sets a bit at least, in either generation.
void scan_greedily(Memory& memory, std::uint64_t insertions) {
  for (std::uint32_t i = 0; memory.insertions() < insertions; ++i) {
    const std::string name = url(Writer::kAttacker, i);
    if (!memory.knows(name)) memory.ask(name);
  }
}

// The share of URLs that nobody ever asked for and that would pass at their first request.
double victims_rate(const Memory& memory) {
  std::uint32_t passed = 0;
  for (std::uint32_t i = 0; i < kProbes; ++i) {
    passed += memory.knows(url(Writer::kVictims, i)) ? 1U : 0U;
  }
  return static_cast<double>(passed) / kProbes;
}

// URLs that differ from this one in one character of the last five, or go on where it ends.
std::vector<std::string> neighbours(const std::string& name) {
  std::vector<std::string> all;
  for (std::size_t at = name.size() - 5; at < name.size(); ++at) {
    for (const char c : {'~', '!', 'a', 'z', 'A'}) {
      all.push_back(name);
      all.back()[at] = c;
    }
  }
  for (const char* suffix : {"?", "/", "0", "%00", "aaaaaaaaaaaaaaaa"})
    all.push_back(name + suffix);
  return all;
}

// --- attackers who know the seed -----------------------------------------------------------------

Hash128 hash_by(const FilterParameters& known, const std::string& name) {
  return hash_key(known.hash, known.seed, name);
}

// Only URLs all of whose positions are free and differ.
void insert_disjoint(Memory& memory, std::uint64_t insertions) {
  const FilterParameters& known = memory.parameters();
  const KeyPositions positions(known);
  std::vector<bool> taken(known.bits);
  std::set<std::uint64_t> own;
  for (std::uint32_t i = 0; memory.insertions() < insertions; ++i) {
    const std::string name = url(Writer::kAttacker, i);
    own.clear();
    positions.for_each(hash_by(known, name), [&](std::uint64_t position) {
      return !taken[position] && own.insert(position).second;
    });
    if (own.size() < known.hashes) continue;
    for (const std::uint64_t position : own) taken[position] = true;
    memory.ask(name);
    // The insertion that fills the generation has begun another one.
    if (memory.insertions() == kCapacity) taken.assign(known.bits, false);
  }
}

// Only URLs of every fourth line.
// (A line takes 64 (1 + 1/2 + ... + 1/8) = 174 random keys that are new to it, and is full then:
// an eighth of the lines would not take a generation.)
constexpr std::uint64_t kCrowdedOneIn = 4;
void insert_crowded(Memory& memory, std::uint64_t insertions) {
  const FilterParameters& known = memory.parameters();
  const KeyPositions positions(known);
  for (std::uint32_t i = 0; memory.insertions() < insertions; ++i) {
    const std::string name = url(Writer::kAttacker, i);
    if (positions.line_of(hash_by(known, name)) % kCrowdedOneIn == 0) memory.ask(name);
  }
}

// URLs that have a position of the targets' which none had before; how many.
std::uint32_t cover(Memory& memory, const std::vector<std::string>& targets) {
  const FilterParameters& known = memory.parameters();
  const KeyPositions positions(known);
  std::set<std::uint64_t> wanted;
  for (const std::string& target : targets) {
    positions.for_each(hash_by(known, target), [&](std::uint64_t position) {
      wanted.insert(position);
      return true;
    });
  }
  std::uint32_t asked = 0;
  for (std::uint32_t i = 0; !wanted.empty(); ++i) {
    const std::string name = url(Writer::kAttacker, i);
    std::size_t found = 0;
    positions.for_each(hash_by(known, name), [&](std::uint64_t position) {
      found += wanted.erase(position);
      return true;
    });
    if (found == 0) continue;
    memory.ask(name);
    ++asked;
  }
  return asked;
}

}  // namespace

TEST_CASE("without the seed no choice of insertions raises the rate above that of random keys",
          "[filter][theory][adversary]") {
  for (const Defence& defence : kDefences) {
    CAPTURE(to_string(defence.layout), to_string(defence.hash));
    std::vector<double> by_random;
    std::vector<double> by_greed;
    for (std::uint32_t secret = 0; secret < kSeeds; ++secret) {
      Memory random(defence, secret);
      scan(random, kWorstPoint);
      by_random.push_back(victims_rate(random));
      Memory greedy(defence, secret);
      scan_greedily(greedy, kWorstPoint);
      by_greed.push_back(victims_rate(greedy));
    }
    Ring ring = defence.ring();
    const double theory = ring_fpr(ring, kCapacity - 1);
    CAPTURE(theory, mean(by_random), mean(by_greed));
    CHECK(std::abs(testing::mean_deviation(by_random, theory)) < kSigmas);
    // An attacker who has only new keys inserted makes generations that avoid each other, as
    // without refresh.
    ring.refresh = false;
    CHECK(std::abs(testing::mean_deviation(by_greed, ring_fpr(ring, kCapacity - 1))) < kSigmas);
  }
}

TEST_CASE("a known seed lets chosen insertions raise the rate, and the check finds it",
          "[filter][theory][adversary][plain]") {
  struct Row {
    Defence defence;
    std::function<void(Memory&, std::uint64_t)> attack;
    double generation;  // its rate in theory
  };
  const double filled =
      7 * static_cast<double>(kCapacity) / static_cast<double>(kClassic.shape().bits);
  const FilterShape crowded_lines{Layout::kSplit, kSplit.shape().bits / kCrowdedOneIn,
                                  kSplitHashes};
  const double crowded = fpr(crowded_lines, effective_insertions(crowded_lines, kCapacity));
  for (const Row& row : {Row{kClassic, insert_disjoint, std::pow(filled, 7)},
                         Row{kSplit, insert_crowded, crowded}}) {
    std::vector<double> rates;
    for (std::uint32_t secret = 0; secret < 4; ++secret) {
      Memory memory(row.defence, secret);
      row.attack(memory, kWorstPoint);
      rates.push_back(victims_rate(memory));
    }
    const double honest = ring_fpr(row.defence.ring(), kCapacity - 1);
    CAPTURE(to_string(row.defence.layout), honest, mean(rates));
    CHECK(testing::mean_deviation(rates, honest) > 10 * kSigmas);
    const double both = 1 - (1 - row.generation) * (1 - row.generation);
    const double reach = row.defence.layout == Layout::kSplit ? 1.0 / kCrowdedOneIn : 1.0;
    CHECK(mean(rates) == Approx(reach * both).epsilon(.03));
  }
}

TEST_CASE("what was learnt in earlier cycles raises the rate by less than the keys that it took",
          "[filter][theory][adversary]") {
  constexpr int kRounds = 8;
  for (const Defence& defence : kDefences) {
    std::vector<double> rates;
    std::vector<double> above;  // the bound
    double offered = 0;
    for (std::uint32_t secret = 0; secret < kSeeds; ++secret) {
      std::mt19937_64 random(secret);
      std::vector<std::uint32_t> kept;
      std::uint32_t fresh = 0;
      for (int round = 1;; ++round) {
        // Keys that were answered as seen in some order are left out, others take their place. An
        // empty memory each time is more than an attacker gets.
        Memory memory(defence, secret);
        std::shuffle(kept.begin(), kept.end(), random);
        std::erase_if(kept, [&](std::uint32_t i) {
          return memory.ask(url(Writer::kAttacker, i)) != Seen::kNew;
        });
        for (; memory.insertions() < kCapacity - 1; ++fresh) {
          if (memory.ask(url(Writer::kAttacker, fresh)) == Seen::kNew) kept.push_back(fresh);
        }
        if (round < kRounds) continue;
        rates.push_back(victims_rate(memory));
        break;
      }
      // The chosen keys are a part of all that were ever requested.
      above.push_back(rates.back() - fpr(defence.shape(), fresh));
      offered += static_cast<double>(fresh) / kSeeds;
    }
    const double random_keys =
        fpr(defence.shape(), effective_insertions(defence.shape(), kCapacity - 1));
    CAPTURE(to_string(defence.layout), to_string(defence.hash), offered, random_keys, mean(rates));
    CHECK(testing::mean_deviation(above, 0) < kSigmas);
    CHECK(testing::mean_deviation(rates, random_keys) > -kSigmas);
  }
}

TEST_CASE("known false positives and neighbours foretell no others",
          "[filter][theory][adversary]") {
  for (const Defence& defence : kDefences) {
    const double theory = ring_fpr(defence.ring(), kCapacity - 1);
    std::vector<double> near_positives;
    std::vector<double> targets;
    for (std::uint32_t secret = 0; secret < kSeeds; ++secret) {
      Memory memory(defence, secret);
      // Half of what is inserted lies around the targets, which nobody asks for.
      constexpr std::uint32_t kTargets = 4000;
      for (std::uint32_t i = 0; memory.insertions() < kCapacity; ++i) {
        const std::string target = url(Writer::kVictims, i % kTargets);
        memory.ask(neighbours(target)[i / kTargets]);
      }
      scan(memory, kWorstPoint);
      std::uint32_t passed = 0;
      for (std::uint32_t i = 0; i < kTargets; ++i) {
        passed += memory.knows(url(Writer::kVictims, i)) ? 1U : 0U;
      }
      targets.push_back(static_cast<double>(passed) / kTargets);
      std::uint32_t tried = 0;
      std::uint32_t hits = 0;
      for (std::uint32_t i = 0; i < kProbes; ++i) {
        const std::string name = url(Writer::kQuestions, i);
        if (!memory.knows(name)) continue;
        for (const std::string& neighbour : neighbours(name)) {
          ++tried;
          hits += memory.knows(neighbour) ? 1U : 0U;
        }
      }
      near_positives.push_back(static_cast<double>(hits) / tried);
    }
    CAPTURE(to_string(defence.layout), to_string(defence.hash), theory, mean(near_positives),
            mean(targets));
    CHECK(std::abs(testing::mean_deviation(near_positives, theory)) < kSigmas);
    CHECK(std::abs(testing::mean_deviation(targets, theory)) < kSigmas);
  }
}

TEST_CASE("a known seed lets chosen objects pass that nobody asked for",
          "[filter][theory][adversary]") {
  for (const Defence& defence : {kClassic, kSplit}) {
    Memory memory(defence, 1);
    std::vector<std::string> targets;
    for (std::uint32_t i = 0; i < 40; ++i) targets.push_back(url(Writer::kVictims, i));
    const std::uint32_t asked = cover(memory, targets);
    const auto passed = static_cast<std::uint64_t>(
        std::ranges::count_if(targets, [&](const std::string& t) { return memory.knows(t); }));
    CAPTURE(to_string(defence.layout), asked, passed);
    CHECK(passed == targets.size());
    CHECK(asked <= defence.hashes * targets.size());
    CHECK(testing::deviation(passed, targets.size(), ring_fpr(defence.ring(), kCapacity - 1)) >
          10 * kSigmas);
  }
}

TEST_CASE("remembered false positives come back with the same insertions, until the seed changes",
          "[filter][theory][adversary]") {
  for (const Defence& defence : kDefences) {
    std::uint64_t asked = 0;
    std::uint64_t under_another = 0;
    for (std::uint32_t secret = 0; secret < kSeeds; ++secret) {
      Memory memory(defence, secret);
      const std::uint32_t end = scan(memory, kWorstPoint);
      std::vector<std::string> positives;
      for (std::uint32_t i = 0; i < kProbes; ++i) {
        const std::string name = url(Writer::kQuestions, i);
        if (memory.knows(name)) positives.push_back(name);
      }
      const auto passing = [&](const Memory& now) {
        return static_cast<std::size_t>(
            std::ranges::count_if(positives, [&](const std::string& p) { return now.knows(p); }));
      };
      // Pushed out by a scan, to the start of a cycle, then the same again.
      scan(memory, 4 * kCapacity, end);
      scan(memory, 4 * kCapacity + kWorstPoint);
      CHECK(passing(memory) == positives.size());
      Memory other(defence, secret + kSeeds);
      scan(other, kWorstPoint);
      asked += positives.size();
      under_another += passing(other);
    }
    const double theory = ring_fpr(defence.ring(), kCapacity - 1);
    CAPTURE(to_string(defence.layout), to_string(defence.hash), theory, asked, under_another);
    CHECK(std::abs(testing::deviation(under_another, asked, theory)) < kSigmas);
  }
}

}  // namespace encore::filter
