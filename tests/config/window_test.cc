// The window of admission: how long a key is remembered, by what the cache can hold.
#include <algorithm>
#include <string>
#include <vector>

#include "config/derive.h"
#include "config/load.h"
#include "tests/catch.h"
#include "tests/config/loaded.h"

using namespace encore;
using namespace encore::config;
using Catch::Matchers::Contains;

TEST_CASE("Without disks the window is a million keys", "[config][admission]") {
  const std::string memory = GENERATE("1MiB", "256MiB", "64GiB");
  CHECK(window_of(with({"cache.memory=" + memory})).derived == 1'000'000);
  CHECK(plan_of({"cache.memory=" + memory}).capacity == 1'000'000);
  CHECK(plan_of({"cache.memory=" + memory, "admission.capacity=0"}).capacity == 1'000'000);
}

TEST_CASE("Behind disks the window is three and a half times what memory and disks can hold",
          "[config][admission][disk]") {
  std::vector<std::string> sets = {"cache.memory=256MiB", "cache.shards=1", "disk.0.path=a",
                                   "disk.0.size=10GiB",   "disk.1.path=b",  "disk.1.size=10GiB"};
  const std::uint64_t mean = GENERATE(as<std::uint64_t>{}, 4096, 16384, 100'000);
  sets.push_back("cache.mean_object=" + std::to_string(mean));
  // 159 segments of 64 MiB each; at 4 KiB there is room for the index of half of the objects.
  const std::uint64_t on_disk =
      std::min<std::uint64_t>(2 * (159 * 64 * kMiB / mean), 128 * kMiB / 46);
  const std::uint64_t held = on_disk + (256 * kMiB - on_disk * 46) / mean;
  const auto also = [&](const std::string& more) {
    auto all = sets;
    all.push_back(more);
    return all;
  };
  CHECK(plan_of(also("admission.policy=second-hit")).capacity == (held * 7 + 1) / 2);
  CHECK(plan_of(also("admission.policy=exact-second-hit")).capacity == (held * 7 + 1) / 2);
  // A bound alone: how much of it is taken follows from the traffic.
  CHECK(plan_of(sets).capacity == 2 * 2 * (10 * kGiB / 8192));
  // Each request below the fourth is an insertion.
  auto fourth = also("admission.policy=nth-hit");
  fourth.emplace_back("admission.min_requests=4");
  CHECK(plan_of(fourth).capacity == (3 * held * 7 + 1) / 2);
  // These count requests, not keys.
  CHECK(plan_of(also("admission.policy=tinylfu")).capacity == 1'000'000);
  CHECK(plan_of(also("admission.policy=adaptsize")).capacity == 1'000'000);
  // Configured values stay unchanged.
  CHECK(plan_of(also("admission.capacity=4321")).capacity == 4321);
  const auto bits = also("admission.bits=800000");
  CHECK(plan_of(bits).capacity == plan_of({"admission.bits=800000", "cache.shards=1"}).capacity);
}

TEST_CASE("A window that is too short or too long for what is held is warned of",
          "[config][admission][disk][report]") {
  const std::vector<std::string> disk = {"disk.0.path=a", "disk.0.size=10GiB", "cache.shards=1",
                                         "admission.policy=second-hit"};
  const std::uint64_t held = estimate_objects(with(disk)).held();
  const std::uint64_t recommended = plan_of(disk).capacity;
  const auto report = [&](std::uint64_t capacity, bool with_disk) {
    std::vector<std::string> sets = {"cache.shards=1"};
    if (with_disk) sets = disk;
    sets.push_back("admission.capacity=" + std::to_string(capacity));
    return check_report(with(sets), 1);
  };
  const std::string figure =
      "Recommended: an admission.capacity of " + std::to_string(recommended) + ".\n";
  CHECK_THAT(check_report(with(disk), 1),
             !Contains("Recommended") &&
                 Contains(", for " + std::to_string(held) + " objects in memory and on disk\n"));
  CHECK_THAT(report(held - 1, true),
             Contains("note: the window of " + std::to_string(held - 1) + " insertions is short") &&
                 Contains(figure));
  CHECK_THAT(report(held, true), !Contains("note: the window") && !Contains("in memory and on"));
  CHECK_THAT(report(10 * held, true), !Contains("note: the window"));
  CHECK_THAT(report(10 * held + 1, true),
             Contains("insertions is long for the " + std::to_string(held) +
                      " objects that the cache can hold at a mean of 16KiB (cache.mean_object)") &&
                 Contains(figure));
  // Without a disk nothing is written: only a window that forgets too soon is reported.
  CHECK_THAT(report(100'000'000, false), !Contains("note: the window"));
  CHECK_THAT(report(16383, false),
             Contains("is short for the 16384 objects") &&
                 Contains("Recommended: an admission.capacity of 1000000.\n"));
  CHECK_THAT(check_report(with({"cache.memory=64GiB"}), 1),
             Contains("the window of 1000000 insertions is short for the 4194304 objects") &&
                 Contains("Recommended: an admission.capacity of 14680064.\n"));
  CHECK_THAT(check_report(with({"admission.policy=tinylfu", "admission.capacity=10"}), 1),
             !Contains("note: the window"));
}

TEST_CASE("A window that no filter is large enough for says what it follows from",
          "[config][admission][disk]") {
  CHECK_THAT(faults_of_sets({"disk.0.path=a", "disk.0.size=256TiB", "cache.memory=64TiB",
                             "cache.mean_object=64B", "admission.fpr=1e-9"}),
             Contains("admission.capacity: ") &&
                 Contains("(a capacity for what memory and disks can hold at a mean of 64B an "
                          "object, cache.mean_object)"));
}
