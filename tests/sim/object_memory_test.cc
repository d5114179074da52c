// A streamed replay forgets objects that no cache holds: its decisions stay the same, its memory
// follows the caches, and what it says of objects is within the stated error.
#include "sim/replay/object_memory.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <vector>

#include "tests/catch.h"
#include "tests/sim/directory.h"
#include "tests/sim/run.h"

namespace encore::sim {
namespace {

using ReplayJson = nlohmann::json;

// All policies but the one that knows the future.
std::string online_policies() {
  std::string names;
#define ENCORE_NAME(id, name, policy)                                                            \
  if (cache::EvictionPolicy::id != cache::EvictionPolicy::kBelady && std::string(name) != "lrb") \
    names += (names.empty() ? "" : ",") + std::string(name);
  ENCORE_EVICTION_POLICIES(ENCORE_NAME)
#undef ENCORE_NAME
  return names;
}

std::string mixed_trace(const Directory& directory, std::uint64_t seed, const std::string& sizes) {
  const std::string path = directory.at("mixed.trace");
  REQUIRE(
      run("generate mixture --mix zipf=0.5,scan=0.5 --requests 300000 --objects 20000 --ttl 200 "
          "--size " +
          sizes + " --seed " + std::to_string(seed) + " -o " + path)
          .exit_code == 0);
  return path;
}

ReplayJson replayed(const std::string& command_line) {
  const Ran ran = run("replay " + command_line + " --no-timing --json");
  INFO(command_line << ran.err);
  REQUIRE(ran.exit_code == 0);
  return ReplayJson::parse(ran.out);
}

// Figures that an estimate stands for where objects were forgotten.
constexpr std::array kEstimated = {"one_hit_kept_out", "one_hit_let_in",    "footprint_bytes",
                                   "bytes_rewritten",  "footprint_objects", "objects_rate"};

// The rows with all objects remembered, and with as few as possible; `shared` are for both.
void check_same_but_estimated(const std::string& shared, const std::string& remembered = "1024") {
  const ReplayJson all = replayed(shared + " --remember-objects 0");
  const ReplayJson few = replayed(shared + " --remember-objects " + remembered);
  REQUIRE(all["rows"].size() == few["rows"].size());
  for (std::size_t i = 0; i < all["rows"].size(); ++i) {
    ReplayJson expected = all["rows"][i];
    ReplayJson found = few["rows"][i];
    CHECK(expected["objects_rate"].is_null());
    REQUIRE(found["objects_rate"].is_number());
    CHECK(found["objects_rate"] < 0.1);
    CHECK(found["bytes_rewritten"].is_null());
    // Counts of a sample, each of which stands for 1 / rate: 4.5 standard errors.
    const double weight = 1 / found["objects_rate"].get<double>();
    for (const char* key : {"one_hit_kept_out", "one_hit_let_in", "footprint_objects"}) {
      const auto count = expected[key].get<double>();
      CAPTURE(key, weight);
      CHECK(std::abs(found[key].get<double>() - count) <
            4.5 * std::sqrt((count + weight) * weight));
    }
    for (const char* key : kEstimated) {
      expected.erase(key);
      found.erase(key);
    }
    CHECK(expected == found);
  }
  if (all.contains("disk")) {
    CHECK(all["disk"] == few["disk"]);
  }
}

}  // namespace

TEST_CASE("A replay that forgets objects decides as one that remembers all", "[sim][memory]") {
  const Directory directory;
  SECTION("every online policy, sizes, times to live, several caches at a time") {
    check_same_but_estimated(mixed_trace(directory, 1, "lognormal:100:1") +
                             " --cache-size 100KiB,300KiB --eviction " + online_policies() +
                             " --admission always");
  }
  SECTION("with admission, after a warm-up") {
    check_same_but_estimated(mixed_trace(directory, 2, "lognormal:100:1") +
                                 " --cache-size 200KiB --eviction lru,s3-fifo --warmup 70000 "
                                 "--admission always,second-hit,nth-hit,tinylfu,adaptsize",
                             "16384");
  }
  SECTION("with a disk, bodies in parts") {
    check_same_but_estimated(
        mixed_trace(directory, 3, "pareto:1000:0.9:40000000") +
        " --cache-size 4MiB --disk-size 500MiB --eviction lru --admission always,second-hit");
  }
  SECTION("sizes that vary, by the rule of the latest response") {
    std::string lines = "timestamp,object_id,size\n";
    std::uint64_t random = 1;
    for (int i = 0; i < 400000; ++i) {
      random = random * 6364136223846793005U + 1442695040888963407U;
      const std::uint64_t draw = random >> 33U;
      const std::uint64_t id = draw % 2 == 0 ? draw / 2 % 40000 : 40000 + draw / 2;
      lines += std::to_string(i) + "," + std::to_string(id) + "," +
               std::to_string(1 + (draw >> 20U) % 50) + "\n";
    }
    const std::string caches = directory.write("sizes.csv", lines) +
                               " --cache-size 20KiB,500KiB --eviction lru,gdsf,sieve "
                               "--object-size latest --admission ";
    check_same_but_estimated(caches + "always");
    check_same_but_estimated(caches + "second-hit");
  }
}

TEST_CASE("Objects are forgotten only where the rule for sizes allows it", "[sim][memory]") {
  const Directory directory;
  std::string lines = "timestamp,object_id,size\n0,1,10\n1,1,20\n";
  for (int i = 2; i < 1200000; ++i) {
    lines += std::to_string(i) + "," + std::to_string(i) + ",10\n";
  }
  const std::string path = directory.write("varies.csv", lines);
  const std::string caches = path + " --cache-size 1KiB --eviction lru --admission always";
  const ReplayJson usual = replayed(caches);
  CHECK(usual["rows"][0]["objects_rate"].is_null());
  CHECK(usual["rows"][0]["footprint_objects"] == 1199999);
  CHECK(usual["notes"].dump().find("All objects were remembered") != std::string::npos);
  const ReplayJson latest = replayed(caches + " --object-size latest");
  CHECK(latest["rows"][0]["objects_rate"].is_number());
  const ReplayJson asked = replayed(caches + " --remember-objects 2000");
  CHECK(asked["rows"][0]["objects_rate"].is_number());
  CHECK(asked["notes"].dump().find("1 responses had another size") != std::string::npos);
  check_refused(run("replay " + caches + " --remember-objects 1023"),
                "--remember-objects 1023, accepted: 1024 or more, or 0 for all");
}

TEST_CASE("Memory of objects stays within its bound, and its counts within their error",
          "[sim][memory][theory]") {
  constexpr std::uint64_t kObjects = 2'000'000;
  constexpr std::uint64_t kRemembered = 16 * 1024;
  constexpr std::uint64_t kHeld = 1000;
  ObjectTable table;
  ObjectMemory memory(kRemembered);
  std::vector<ReplayRequest> held;  // the latest: those of a first-in, first-out cache
  double bytes = 0;
  std::uint64_t known_max = 0;
  std::uint64_t kept = 0;
  std::uint64_t expected = 0;
  for (std::uint64_t i = 0; i < kObjects; ++i) {
    const std::uint64_t size = 1 + i % 1000;
    bytes += static_cast<double>(size);
    held.push_back(
        table.number({.key = filter::identify({}, std::to_string(i)).hash, .size_bytes = size}));
    known_max = std::max<std::uint64_t>(known_max, table.known_objects());
    if (memory.is_full(table)) {
      const auto latest = std::span(held).last(kHeld);
      held = {latest.begin(), latest.end()};
      memory.forget(table, held, [](std::uint32_t) { return false; }, [](std::uint32_t) {});
      kept += static_cast<std::uint64_t>(std::ranges::count_if(held, [&](const auto& request) {
        return table.key_of(request.object) == request.key &&
               table.requests_of(request.object) == 1;
      }));
      expected += kHeld;
    }
  }
  CHECK(kept == expected);
  CHECK(expected >= 100 * kHeld);
  CHECK(known_max == kRemembered + 1);
  CHECK(table.memory_bytes() <= 2 * 47 * kRemembered);
  // 4.5 standard errors; an error is 1.96 of them.
  const EstimatedCount objects = memory.objects(table);
  CHECK(std::abs(objects.value - kObjects) < 4.5 / 1.96 * objects.error);
  CHECK(objects.error < 0.1 * kObjects);
  const EstimatedCount footprint = memory.footprint_bytes(table);
  CHECK(std::abs(footprint.value - bytes) < 4.5 / 1.96 * footprint.error);
  CHECK(footprint.error > objects.error * 500);
}

}  // namespace encore::sim
