// [[disk]], what follows from it, and the report of it.
#include <string>
#include <vector>

#include "config/derive.h"
#include "config/dump.h"
#include "config/load.h"
#include "config/schema.h"
#include "tests/catch.h"
#include "tests/config/loaded.h"

using namespace encore;
using namespace encore::config;
using Catch::Matchers::Contains;

TEST_CASE("Disks are read in their order, and what is said of all of them", "[config][disk]") {
  const auto config = parse_config(R"(
[cache]
disk_write_rate = "20MiB"
disk_reinsert = 0
disk_life_min = "1500ms"
mean_object = "48KiB"
[[disk]]
path = "/var/cache/encore/disk"
size = "100GiB"
[[disk]]
path = "second.disk"
size = 1073741824
segment = "1MiB"
)",
                                   "encore.toml");
  INFO((config ? std::string() : config.error().message));
  REQUIRE(config.has_value());
  CHECK(config->disk ==
        std::vector<Disk>{{"/var/cache/encore/disk", 100 * kGiB, 0}, {"second.disk", kGiB, kMiB}});
  CHECK(config->cache.mean_object_bytes == 48 * kKiB);
  const auto options = kernel_options(*config);
  REQUIRE(options.has_value());
  CHECK(options->disks.empty());
  CHECK(options->disk_rules == cache::DiskRules{.life_seconds_min = 2,
                                                .write_rate_max = 20 * kMiB,
                                                .reinsert_percent = 0});
  CHECK(kernel_options(with({}))->disk_rules == cache::DiskRules{.reinsert_percent = 65});
  CHECK(parse_config(dump_config(*config), "dump") == *config);
}

TEST_CASE("A disk needs a path and a size that holds segments", "[config][disk]") {
  CHECK(faults("[cache]\nshards = 1\n[[disk]]\n") ==
        "encore.toml:3:1: disk.0.path: is missing; accepted: a file or directory name\n"
        "encore.toml:3:1: disk.0.size: is missing; accepted: 512KiB .. 256TiB");
  CHECK(faults("", {"disk.0.size=1GiB"}) ==
        "--set disk.0.size: disk.0.path: is missing; accepted: a file or directory name");
  CHECK(
      faults("[[disk]]\npath = \"\"\nsize = \"1KiB\"\nsegment = \"3MiB\"\n") ==
      "encore.toml:2:8: disk.0.path: \"\" is not a file name; accepted: a file or directory name\n"
      "encore.toml:4:11: disk.0.segment: \"3MiB\" is not a power of two; accepted: a power of "
      "two, 64KiB .. 256MiB, or 0B\n"
      "encore.toml:3:8: disk.0.size: \"1KiB\" is too small; accepted: 512KiB .. 256TiB");
  CHECK(faults("[[disk]]\npath = \"a\"\nsize = \"64MiB\"\nsegment = \"16MiB\"\n") ==
        "encore.toml:3:8: disk.0.size: a disk of 64MiB is too small: accepted are 65MiB and more "
        "with segments of 16MiB");
  CHECK(faults("[[disk]]\npath = \"a\"\nsize = \"512KiB\"\n").empty());
  CHECK(faults("[[disk]]\npath = \"a\"\nsize = \"1TiB\"\nsegment = \"64KiB\"\n")
            .find("is too large: accepted are ") != std::string::npos);
  CHECK(faults("[[disk]]\npath = \"a\"\nsize = \"512KiB\"\nsegment = \"64KiB\"\n").empty());
}

TEST_CASE("Disks of one path are refused by both names", "[config][disk]") {
  const std::vector<std::string> first = {"disk.0.path=/a/b", "disk.0.size=1GiB",
                                          "disk.1.size=1GiB"};
  for (const std::string same : {"/a/b", "/a//b", "/a/./b", "/a/c/../b"}) {
    std::vector<std::string> sets = first;
    sets.push_back("disk.1.path=" + same);
    CHECK(faults("", sets) == "--set disk.1.path: \"" + same +
                                  "\" is used by disk.0.path; accepted: a file or device of its "
                                  "own");
  }
  std::vector<std::string> other = first;
  other.emplace_back("disk.1.path=/a/bb");
  CHECK(faults("", other).empty());
  other.emplace_back("log.access=/a/bb");
  CHECK(faults("", other) ==
        "--set disk.1.path: \"/a/bb\" is used by log.access; accepted: a file or device of its "
        "own");
}

TEST_CASE("There are no more disks than a kernel takes", "[config][disk]") {
  std::string toml;
  for (std::uint32_t i = 0; i < cache::kDisksMax; ++i) {
    toml += "[[disk]]\npath = \"" + std::to_string(i) + "\"\nsize = \"1GiB\"\n";
  }
  CHECK(faults(toml).empty());
  CHECK(faults(toml + "[[disk]]\npath = \"x\"\nsize = \"1GiB\"\n") ==
        "encore.toml:1:1: disk: 17 disks; accepted: up to 16");
}

TEST_CASE("A disk that is changed, added or left out needs a restart", "[config][disk]") {
  const Config one = with({"disk.0.path=a", "disk.0.size=1GiB"});
  const auto paths = [&one](const std::vector<std::string>& sets) {
    std::vector<std::string> changed;
    for (const ReloadBlocker& blocker : reload_blockers(one, with(sets))) {
      changed.push_back(blocker.path);
    }
    return changed;
  };
  CHECK(paths({"disk.0.path=a", "disk.0.size=1GiB"}).empty());
  CHECK(paths({"disk.0.path=a", "disk.0.size=2GiB"}) == std::vector<std::string>{"disk.0.size"});
  CHECK(paths({"cache.disk_reinsert=10"}) ==
        std::vector<std::string>{"cache.disk_reinsert", "disk.0.path", "disk.0.size"});
}

TEST_CASE("What the cache can hold follows from memory, disks and the mean size",
          "[config][disk]") {
  const auto empty = estimate_objects(with({}));
  CHECK(empty.on_disk == 0);
  CHECK(empty.in_memory == 256 * kMiB / (16 * kKiB));
  // Room for the index of all of it.
  const auto small = estimate_objects(with({"disk.0.path=a", "disk.0.size=1GiB"}));
  const std::uint64_t segments = (kGiB - 3 * kMiB) / (16 * kMiB);
  CHECK(small.on_disk == segments * 1024);
  CHECK(small.indexed == small.on_disk);
  CHECK(small.index_bytes == small.on_disk * 46);
  CHECK(small.in_memory == (256 * kMiB - small.index_bytes) / (16 * kKiB));
  // And not.
  const auto large = estimate_objects(with({"disk.0.path=a", "disk.0.size=1TiB", "disk.1.path=b",
                                            "disk.1.size=1TiB", "cache.mean_object=4KiB"}));
  CHECK(large.on_disk > 536'000'000);
  CHECK(large.on_disk <= 536'870'912);
  CHECK(large.indexed == 128 * kMiB / 46);
  CHECK(large.index_bytes_max == 128 * kMiB);
  CHECK(large.in_memory == (256 * kMiB - large.indexed * 46) / (4 * kKiB));
}

TEST_CASE("The report shows each disk, its index, and warns where the memory has no room for it",
          "[config][disk][report]") {
  const std::vector<std::string> sets = {"disk.0.path=/d",      "disk.0.size=10GiB",
                                         "disk.1.path=e",       "disk.1.size=64MiB",
                                         "disk.1.segment=1MiB", "cache.disk_write_rate=5MiB"};
  const std::string report = check_report(with(sets), 1);
  for (const char* line :
       {"disk                  /d: 10GiB in 159 segments of 64MiB\n",
        "disk                  e: 64MiB in 63 segments of 1MiB\n",
        "written to disk       what lives 1m or longer, up to 5MiB a second; of a reclaimed "
        "segment up to 65 % again\n",
        "index of the disks    28.7MiB for 655296 objects of 16KiB, at most 128MiB, half of the "
        "memory\n"}) {
    CHECK_THAT(report, Contains(line));
  }
  CHECK_THAT(report, !Contains("has no room"));
  std::vector<std::string> little = sets;
  little.emplace_back("cache.memory=16MiB");
  CHECK_THAT(check_report(with(little), 1),
             Contains("note: cache.memory is too small for the index of the disks: at a mean of "
                      "16KiB an object (cache.mean_object) 27.83 % of them are "
                      "used. Recommended: a cache.memory of 57.5MiB or more.\n"));
  CHECK_THAT(check_report(with({}), 1), !Contains("disk"));
}

TEST_CASE("With disks admission is probation, unless something else was chosen",
          "[config][admission][disk]") {
  const auto policy_of = [](const std::vector<std::string>& more) {
    std::vector<std::string> sets = {"disk.0.path=a", "disk.0.size=10GiB"};
    sets.insert(sets.end(), more.begin(), more.end());
    const auto config = load_config({.path = "", .sets = sets});
    REQUIRE(config.has_value());
    return config->admission.policy;
  };
  CHECK(policy_of({}) == Policy::kProbation);
  CHECK(policy_of({"admission.policy=second-hit"}) == Policy::kSecondHit);
  CHECK(policy_of({"admission.hash=siphash"}) == Policy::kSecondHit);
  CHECK(policy_of({"admission.refresh=false"}) == Policy::kSecondHit);
  CHECK(load_config({.path = "", .sets = {}})->admission.policy == Policy::kSecondHit);
}
