// The cost of a decision of the rotating filter, in units of one dependent random load measured in
// the same run over the same amount of memory.
//
//   filter_bench [--bits M] [--rounds N]
//
// Pair of two split generations of M bits (800,000,000) at 10 bits a key. Keys are new, so every
// decision reads both generations and writes one; they lie ready. Load and decisions are measured
// in turn, N rounds (9); a ratio is the median of the rounds' ratios.
//   streamed     one call after the other, as fast as they come
//   batches      32 keys a call
//   alone        nothing else in flight: the processor waits for each answer before it goes on
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "base/time.h"
#include "filter/bloom_filter.h"
#include "filter/rotating_bloom_filter.h"

namespace {

using encore::filter::FilterParameters;
using encore::filter::Hash128;
using encore::filter::HashedKey;
using encore::filter::kLineWords;
using encore::filter::Layout;
using encore::filter::LineMemory;
using encore::filter::RotatingBloomFilter;
using encore::filter::Seen;

constexpr std::size_t kReadyKeys = 4096;                 // keys that lie ready, in the second cache
constexpr std::uint64_t kOperations = 488 * kReadyKeys;  // a round: two millions
constexpr std::size_t kBatch = 32;

std::uint64_t next_random(std::uint64_t& state) {
  state += 0x9e3779b97f4a7c15U;
  std::uint64_t x = state;
  x = (x ^ (x >> 30U)) * 0xbf58476d1ce4e5b9U;
  x = (x ^ (x >> 27U)) * 0x94d049bb133111ebU;
  return x ^ (x >> 31U);
}

HashedKey key_from(std::uint64_t random) {
  return {{random, random * 0xd6e8feb86659fd93U ^ random >> 32U}, {}};
}

// Holds the processor until every load before has its value. (A dependency through the answer is
// not enough: the branch predictor knows that keys are new, and runs ahead.)
void finish_everything() {
#if defined(__x86_64__)
  __builtin_ia32_lfence();
#elif defined(__aarch64__)
  __asm__ volatile("dsb sy\n isb" ::: "memory");
#endif
}

[[noreturn]] void die(std::string_view what) {
  std::fprintf(stderr, "filter_bench: %.*s\n", static_cast<int>(what.size()), what.data());
  std::exit(1);
}

// Nanoseconds an operation, of kOperations of them: run() does kReadyKeys, after prepare().
template <typename Prepare, typename Run>
double time_ns(Prepare prepare, Run run) {
  encore::Nanoseconds elapsed{0};
  for (std::uint64_t done = 0; done < kOperations; done += kReadyKeys) {
    prepare();
    const auto start = encore::monotonic_now();
    run();
    elapsed += encore::monotonic_now() - start;
  }
  return static_cast<double>(elapsed.count()) / static_cast<double>(kOperations);
}

double median(std::vector<double> figures) {
  const auto middle = figures.begin() + static_cast<std::ptrdiff_t>(figures.size() / 2);
  std::ranges::nth_element(figures, middle);
  return *middle;
}

RotatingBloomFilter make_pair(std::uint64_t bits) {
  FilterParameters parameters;
  parameters.bits = bits;
  parameters.capacity = bits / 10;
  auto filter = RotatingBloomFilter::create({.parameters = parameters, .identity_seed = {}}, {});
  if (!filter) {
    die(filter.error().message);
  }
  // A full older generation, a half-full current one, nothing left to sweep.
  std::uint64_t state = 1;
  std::vector<HashedKey> keys(4096);
  std::vector<Seen> seen(keys.size());
  for (std::uint64_t done = 0; done < bits / 10 * 3 / 2; done += keys.size()) {
    for (HashedKey& key : keys) {
      key = key_from(next_random(state));
    }
    filter->test_and_set(keys, {}, seen);
  }
  return std::move(*filter);
}

// One 64-byte line after the other, each address from the line before.
class LoadChain {
 public:
  explicit LoadChain(std::uint64_t bytes) : lines_(bytes / encore::filter::kLineBytes) {
    auto memory = LineMemory::create(lines_);
    if (!memory) {
      die(memory.error().message);
    }
    memory_ = std::move(*memory);
    std::uint64_t state = 7;
    for (std::uint64_t i = 0; i < lines_; ++i) {
      memory_.words()[i * kLineWords] = next_random(state);
    }
  }
  void walk() {
    for (std::uint64_t i = 0; i < kReadyKeys; ++i) {
      const std::uint64_t line = encore::filter::scaled(at_, lines_);
      at_ = (memory_.words()[line * kLineWords] + i + at_) * 0x9fb21c651e98df25U;
    }
  }

 private:
  std::uint64_t lines_;
  std::uint64_t at_ = 1;
  LineMemory memory_;
};

class Decisions {
 public:
  explicit Decisions(std::uint64_t bits)
      : filter_(make_pair(bits)), keys_(kReadyKeys), seen_(kReadyKeys) {}

  // New keys, whose making is not timed.
  void make_keys() {
    for (HashedKey& key : keys_) {
      key = key_from(next_random(state_));
    }
  }

  void streamed() {
    for (const HashedKey& key : keys_) {
      decide(key);
    }
  }
  void batched() {
    const std::span<const HashedKey> keys = keys_;
    const std::span<Seen> seen = seen_;
    for (std::size_t i = 0; i < keys.size(); i += kBatch) {
      filter_.test_and_set(keys.subspan(i, kBatch), {}, seen.subspan(i, kBatch));
      for (const Seen answer : seen.subspan(i, kBatch)) {
        found_ += answer != Seen::kNew ? 1U : 0U;
      }
    }
  }
  void alone() {
    for (const HashedKey& key : keys_) {
      decide(key);
      finish_everything();
    }
  }
  std::uint64_t found() const { return found_; }

 private:
  void decide(const HashedKey& key) {
    found_ += filter_.test_and_set(key, {}) != Seen::kNew ? 1U : 0U;
  }

  RotatingBloomFilter filter_;
  std::vector<HashedKey> keys_;
  std::vector<Seen> seen_;
  std::uint64_t state_ = 99;
  std::uint64_t found_ = 0;
};

struct Row {
  const char* name;
  void (Decisions::*run)();
  double ratio_max;
  std::vector<double> ns;
  std::vector<double> ratios;
};

}  // namespace

int main(int argc, char** argv) {
  std::uint64_t bits = 800'000'000;
  int rounds = 9;
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string_view option = argv[i];
    if (option == "--bits") {
      bits = std::strtoull(argv[i + 1], nullptr, 10);
    } else if (option == "--rounds") {
      rounds = std::max(1, std::atoi(argv[i + 1]));
    } else {
      die("usage: filter_bench [--bits M] [--rounds N]");
    }
  }

  LoadChain chain(2 * bits / 8);
  Decisions decisions(bits);
  std::vector<Row> rows{{"streamed", &Decisions::streamed, 0.25, {}, {}},
                        {"batches of 32", &Decisions::batched, 0.16, {}, {}},
                        {"alone", &Decisions::alone, 1.25, {}, {}}};
  std::vector<double> loads;
  for (int round = 0; round < rounds; ++round) {
    loads.push_back(time_ns([] {}, [&] { chain.walk(); }));
    for (Row& row : rows) {
      row.ns.push_back(time_ns([&] { decisions.make_keys(); }, [&] { (decisions.*row.run)(); }));
      row.ratios.push_back(row.ns.back() / loads.back());
    }
  }

  std::printf("pair of 2 x %llu bits, split, 10 bits a key, %llu decisions a round, %d rounds\n",
              static_cast<unsigned long long>(bits), static_cast<unsigned long long>(kOperations),
              rounds);
  std::printf("%-16s %8.1f ns\n", "dependent load", median(loads));
  bool met = true;
  for (const Row& row : rows) {
    const double ratio = median(row.ratios);
    met = met && ratio <= row.ratio_max;
    std::printf("%-16s %8.1f ns  %6.3f loads, at most %.2f: %s\n", row.name, median(row.ns), ratio,
                row.ratio_max, ratio <= row.ratio_max ? "met" : "missed");
  }
  std::printf("%-16s %8.4f %%\n", "called seen",
              100 * static_cast<double>(decisions.found()) / static_cast<double>(kOperations) /
                  (3 * rounds));
  return met ? 0 : 1;
}
