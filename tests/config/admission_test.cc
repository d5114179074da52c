// From [admission] to a filter, and the report of it.
#include <cmath>
#include <string>
#include <vector>

#include "config/derive.h"
#include "config/load.h"
#include "tests/catch.h"
#include "tests/config/loaded.h"

using namespace encore;
using namespace encore::config;
using Catch::Matchers::Contains;

TEST_CASE("The default filter keeps to its false-positive rate at the end of a cycle",
          "[config][admission]") {
  const FilterPlan plan = plan_of({});
  CHECK(plan.shard.layout == filter::Layout::kSplit);
  CHECK(plan.shard.hashes == 8);
  CHECK(plan.shards == 16);
  CHECK(plan.shard.capacity == 62500);
  CHECK(plan.capacity == 1'000'000);
  CHECK(plan.bits == plan.shard.bits * 16);
  CHECK(plan.memory_bytes == plan.bits / 4);
  CHECK(plan.fpr.low < plan.fpr.mean);
  CHECK(plan.fpr.mean < plan.fpr.high);
  // By theory's plain count the worst case is the goal; it is met with the smallest filter.
  const double worst = filter::ring_fpr(
      {.shape = plan.shard.shape(), .capacity = 62500, .generations = 2, .counting = {}}, 62500);
  CHECK(worst <= 0.01);
  CHECK(worst > 0.0099);
}

TEST_CASE("Every layout meets the goal", "[config][admission]") {
  const std::string layout = GENERATE("classic", "partitioned", "blocked", "split");
  const FilterPlan plan = plan_of({"admission.layout=" + layout, "admission.fpr=0.001",
                                   "admission.capacity=160000", "cache.shards=1"});
  const double worst = filter::ring_fpr(
      {.shape = plan.shard.shape(), .capacity = 160000, .generations = 2, .counting = {}}, 160000);
  CHECK(worst <= 0.001);
  CHECK(worst > 0.0009);
}

TEST_CASE("With bits and hashes the capacity is the half-full point", "[config][admission]") {
  const std::vector<std::string> sets = {"admission.bits=800000", "admission.hashes=7",
                                         "admission.layout=classic", "cache.shards=1"};
  const FilterPlan plan = plan_of(sets);
  CHECK(plan.bits == 800000);
  CHECK(plan.shard.hashes == 7);
  CHECK(std::abs(static_cast<double>(plan.capacity) - 800000 * std::log(2.0) / 7) <= 1);
  CHECK(with(sets).admission.fpr == 0);
}

TEST_CASE("bits, hashes and capacity together give the rates of the textbook",
          "[config][admission]") {
  const FilterPlan plan =
      plan_of({"admission.bits=800000", "admission.hashes=7", "admission.capacity=80000",
               "admission.layout=classic", "cache.shards=1"});
  const auto plain = filter::ring_cycle({.shape = plan.shard.shape(),
                                         .capacity = 80000,
                                         .generations = 2,
                                         .counting = filter::Counting::kPlain});
  CHECK(plain.low == Approx(.008194).margin(5e-7));
  CHECK(plain.mean == Approx(.009526).margin(5e-7));
  CHECK(plain.high == Approx(.016320).margin(5e-7));
}

TEST_CASE("Another k than 8 without a layout means the classic one", "[config][admission]") {
  CHECK(with({"admission.bits=800000", "admission.hashes=7"}).admission.layout ==
        filter::Layout::kClassic);
  CHECK(with({"admission.bits=800000", "admission.hashes=8"}).admission.layout ==
        filter::Layout::kSplit);
  CHECK(with({"admission.hashes=5"}).admission.layout == filter::Layout::kClassic);
  CHECK(faults_of_sets({"admission.hashes=7", "admission.layout=split"}) ==
        "--set admission.hashes: 7 with layout \"split\"; accepted: 8, or "
        "another layout");
}

TEST_CASE("bits without hashes take the best k for the capacity", "[config][admission]") {
  const FilterPlan plan = plan_of({"admission.bits=800000", "admission.capacity=80000",
                                   "admission.layout=classic", "cache.shards=1"});
  CHECK(plan.shard.hashes == 7);
}

TEST_CASE("An admission that says too much or too little is refused", "[config][admission]") {
  CHECK(faults_of_sets({"admission.bits=800000", "admission.fpr=0.01"}) ==
        "--set admission.fpr: together with admission.bits, from which it follows; "
        "accepted: one of the two");
  CHECK(faults_of_sets({"admission.bits=800000", "admission.layout=blocked"}) ==
        "--set admission.bits: without hashes and capacity; accepted: bits with "
        "hashes, capacity or both");
  CHECK(faults_of_sets({"admission.capacity=0", "admission.fpr=0"}) ==
        "--set admission.fpr: 0 without bits; accepted: 1e-09 .. 0.5");
  CHECK_THAT(faults_of_sets({"admission.capacity=1000000000000", "admission.fpr=1e-9"}),
             Contains("--set admission.capacity: "));
}

TEST_CASE("A filter smaller than its shards is rounded up to whole lines", "[config][admission]") {
  const FilterPlan plan = plan_of({"admission.bits=512", "cache.shards=256"});
  CHECK(plan.shard.bits == 512);
  CHECK(plan.bits == std::uint64_t{512} * 256);
}

TEST_CASE("No object is more than an eighth of the memory", "[config]") {
  CHECK(effective_max_object(with({})) == 32 * kMiB);
  CHECK(effective_max_object(with({"cache.memory=8MiB"})) == kMiB);
  CHECK(effective_max_object(with({"cache.max_object=1MiB"})) == kMiB);
}

TEST_CASE("No object is larger than a segment that is too small for parts", "[config]") {
  const auto largest = [](std::vector<std::uint64_t> segments, std::uint64_t memory = 8 * kMiB) {
    Config config;
    config.cache.memory_bytes = memory;
    for (const std::uint64_t segment : segments) {
      config.disk.push_back({.path = "x", .size_bytes = 96 * kMiB, .segment_bytes = segment});
    }
    return effective_max_object(config);
  };
  CHECK(largest({4 * kMiB}) == 12 * kMiB);
  CHECK(largest({2 * kMiB}) == 2 * kMiB - 128 * kKiB);
  CHECK(largest({kMiB}, 4 * kMiB) == kMiB - 64 * kKiB);
  CHECK(largest({kMiB}) == kMiB);  // memory takes it
  CHECK(largest({64 * kKiB}, 256 * kKiB) == 48 * kKiB);
  CHECK(largest({4 * kMiB, kMiB}, 4 * kMiB) == kMiB - 64 * kKiB);
  CHECK(largest({4 * kMiB, 4 * kMiB}) == 24 * kMiB);
}

TEST_CASE("Workers are one a core unless configured", "[config]") {
  CHECK(effective_workers({.count = 0}, 4) == 4);
  CHECK(effective_workers({.count = 0}, 0) == 1);
  CHECK(effective_workers({.count = 3}, 4) == 3);
}

TEST_CASE("The report shows what follows from the config", "[config][report]") {
  const std::string report =
      check_report(with({"cache.memory=64MiB", "admission.rotate_after=1h",
                         "admission.layout=classic", "admission.bits=800000", "admission.hashes=7",
                         "admission.capacity=80000", "cache.shards=1"}),
                   2);
  for (const char* line :
       {"listen                127.0.0.1:3128 forward\n",
        "workers               2 (one per core)\n",
        "memory                64MiB in 1 shard, eviction sieve\n",
        "max_object            8MiB (8388608 bytes), an eighth of the memory; configured: 32MiB\n",
        "admission             second-hit\n", "layout                classic, hash xxh3\n",
        "m                     800000 bits a generation (800000 a shard), 10.00 a key\n",
        "k                     7\n", "bytes                 200000 (195.3KiB) for both",
        "fpr over a cycle      low 0.8",
        "remembered            a key for at least 80000 and at most 160000 later insertions, or 1h "
        "to 2h if that is sooner\n",
        "seed                  random, new at every start (no state.directory)\n",
        "but not cryptographically"}) {
    CHECK_THAT(report, Contains(line));
  }
}

TEST_CASE("A stated size far from that for the window is reported with the size to take",
          "[config][admission][report]") {
  const auto report = [](const std::string& bits, const std::string& hashes,
                         const std::string& capacity) {
    return check_report(
        with({"admission.layout=classic", "admission.bits=" + bits, "admission.hashes=" + hashes,
              "admission.capacity=" + capacity, "cache.shards=1"}),
        1);
  };
  CHECK_THAT(report("800000", "7", "80000"), !Contains("Recommended: admission.bits"));
  // Two bits a key.
  CHECK_THAT(report("800000", "7", "400000"),
             Contains("note: admission.bits of 800000 are few for a window of 400000 insertions: "
                      "up to ") &&
                 Contains(" of all first requests are admitted. Recommended: admission.bits of "
                          "4411839 and admission.hashes of 8.\n"));
  CHECK_THAT(report("8000000", "7", "10000"),
             Contains("note: admission.bits of 8000000 are 72.5 times what a rate of 1 % takes for "
                      "a window of 10000 insertions. Recommended: admission.bits of 110297 and "
                      "admission.hashes of 8.\n") &&
                 !Contains("the best number"));
  CHECK_THAT(report("100000", "1", "10000"),
             Contains("note: admission.hashes of 1 take 100000 bits for a rate of ") &&
                 Contains(" for a window of 10000 insertions, the best number 4"));
  // The advised size gets no advice, and a saturated filter is reported as well.
  CHECK_THAT(report("4411839", "8", "400000"), !Contains("Recommended: admission.bits"));
  CHECK_THAT(report("512", "64", "1000000"), Contains("are few"));
  CHECK_THAT(check_report(with({}), 1), !Contains("Recommended: admission.bits"));
}

TEST_CASE("The report shows a seed by its fingerprint only", "[config][report]") {
  const std::string seed = "00112233445566778899aabbccddeeff";
  const std::string report =
      check_report(with({"admission.seed=" + seed, "admission.hash=siphash"}), 1);
  CHECK_THAT(report, Contains("seed                  configured, fingerprint "));
  CHECK_THAT(report, !Contains(seed) && !Contains("but not cryptographically"));
}

TEST_CASE("Without a filter the report shows none", "[config][report]") {
  const std::string policy = GENERATE("always", "never", "exact-second-hit");
  const std::string report = check_report(with({"admission.policy=" + policy}), 1);
  CHECK_THAT(report, Contains("admission             " + policy + "\n"));
  CHECK_THAT(report, !Contains("layout"));
}

TEST_CASE("The kernel is made as the config says", "[config][admission]") {
  const auto options = kernel_options(
      with({"cache.memory=8MiB", "cache.shards=4", "cache.eviction=lru", "cache.variants_max=7",
            "admission.policy=exact-second-hit", "admission.seed=0123", "admission.refresh=false",
            "admission.rotate_after=5s", "admission.shadow_sample=16"}));
  REQUIRE(options.has_value());
  CHECK(options->capacity_bytes == 8 * kMiB);
  CHECK(options->max_object_bytes == kMiB);  // an eighth, less than the 32 MiB of the default
  CHECK(options->shards == 4);
  CHECK(options->variants_max == 7);
  CHECK(options->eviction == cache::EvictionPolicy::kLru);
  CHECK(options->admission.policy == cache::AdmissionPolicy::kExactSecondHit);
  CHECK(options->admission.filter.capacity == 250'000);
  CHECK_FALSE(options->admission.refresh);
  CHECK(options->admission.rotate_after == std::chrono::seconds(5));
  CHECK(options->admission.shadow_one_in == 16);
  CHECK(filter::to_hex(options->identity_seed).ends_with("0123"));
  CHECK(options->admission.filter.seed == options->identity_seed);
}

TEST_CASE("The proxy has no more hashes than its config takes, the simulator may",
          "[config][admission]") {
  const FilterPlan rich = plan_of({"admission.layout=classic", "admission.bits=100000000",
                                   "admission.capacity=500000", "cache.shards=1"});
  CHECK(filter::best_hashes(rich.shard.shape(), 500000) == 139);
  CHECK(rich.shard.hashes == 64);
  CHECK_THAT(faults_of_sets({"admission.layout=classic", "admission.hashes=65"}),
             Contains("1 .. 64"));
  Config config = with({"admission.layout=classic", "admission.bits=100000000",
                        "admission.capacity=500000", "cache.shards=1"});
  config.admission.hashes = 1024;
  REQUIRE(derive_filter(config));
  CHECK(derive_filter(config)->shard.hashes == 1024);
}

TEST_CASE("A rate that no filter of the layout reaches is refused", "[config][admission]") {
  Config config = with({});
  config.admission.fpr = 1e-300;
  REQUIRE_FALSE(derive_filter(config));
  CHECK_THAT(derive_filter(config).error().message, Contains("layout split"));
}
