#include <cmath>
#include <filesystem>
#include <fstream>
#include <map>
#include <vector>

#include "sim/workload/request_generator.h"
#include "sim/workload/zipf.h"
#include "tests/catch.h"
#include "tests/sim/run.h"

namespace encore::sim {

namespace {

std::map<std::uint64_t, std::uint64_t> counts_of(const GeneratorOptions& options) {
  auto generator = make_generator(options);
  REQUIRE(generator);
  std::map<std::uint64_t, std::uint64_t> counts;
  GeneratedRequest request;
  while ((*generator)->next(request)) {
    ++counts[request.id];
  }
  return counts;
}

}  // namespace

TEST_CASE("Zipf draws ranks with the right frequencies", "[sim][generate]") {
  for (const double alpha : {0.0, 0.7, 1.0, 1.3}) {
    constexpr std::uint64_t kObjects = 100;
    constexpr int kDraws = 200000;
    const Zipf zipf(kObjects, alpha);
    Xoshiro random(3);
    std::vector<double> seen(kObjects);
    for (int i = 0; i < kDraws; ++i) {
      seen.at(zipf.draw(random)) += 1;
    }
    double sum = 0;
    for (std::size_t rank = 1; rank <= kObjects; ++rank) {
      sum += std::pow(static_cast<double>(rank), -alpha);
    }
    for (std::size_t rank = 1; rank <= kObjects; ++rank) {
      const double p = std::pow(static_cast<double>(rank), -alpha) / sum;
      INFO("alpha " << alpha << " rank " << rank);
      CHECK(std::abs(seen[rank - 1] - kDraws * p) < 4.5 * std::sqrt(kDraws * p * (1 - p)));
    }
  }
}

TEST_CASE("Akamai's share of one-hit objects is exact", "[sim][generate]") {
  for (const double share : {0.0, 0.75, 0.9375, 1.0}) {
    const auto counts = counts_of({.pattern = Pattern::kAkamai,
                                   .requests = 40000,
                                   .objects = 16000,
                                   .one_hit_share = share,
                                   .mixture = {}});
    if (share == 1.0) {
      continue;  // more requests than one-hit objects: the rest has nowhere to go, see below
    }
    CHECK(counts.size() == 16000);
    std::uint64_t once = 0;
    for (const auto& [id, count] : counts) {
      once += count == 1 ? 1U : 0U;
    }
    CHECK(once == static_cast<std::uint64_t>(std::llround(share * 16000)));
  }
}

TEST_CASE("A loop repeats, a scan never does, a shift moves the popular objects",
          "[sim][generate]") {
  const auto loop =
      counts_of({.pattern = Pattern::kLoop, .requests = 1000, .objects = 100, .mixture = {}});
  CHECK(loop.size() == 100);
  CHECK(loop.at(7) == 10);
  CHECK(counts_of({.pattern = Pattern::kScan, .requests = 1000, .mixture = {}}).size() == 1000);
  const auto shift = counts_of({.pattern = Pattern::kShift,
                                .requests = 20000,
                                .objects = 1000,
                                .shift_every = 10000,
                                .shift_share = 0.5,
                                .mixture = {}});
  CHECK(shift.at(0) > 500);
  CHECK(shift.at(500) > 500);
  const auto mixture = counts_of({.pattern = Pattern::kMixture,
                                  .requests = 10000,
                                  .objects = 10,
                                  .mixture = {{Pattern::kZipf, 0.5}, {Pattern::kScan, 0.5}}});
  CHECK(mixture.size() > 4500);
  CHECK(mixture.size() < 5500);
}

TEST_CASE("Waves have objects of their own", "[sim][generate]") {
  const auto waves = counts_of({.pattern = Pattern::kWaves,
                                .requests = 30000,
                                .objects = 100,
                                .shift_every = 10000,
                                .mixture = {}});
  CHECK(waves.size() == 300);
  for (const std::uint64_t first : {0U, 100U, 200U}) {
    std::uint64_t requests = 0;
    for (std::uint64_t i = 0; i < 100; ++i) requests += waves.at(first + i);
    CHECK(requests == 10000);
    CHECK(waves.at(first) > waves.at(first + 50));
  }
}

TEST_CASE("Each object comes twice, with so many new ones between", "[sim][generate]") {
  auto generator =
      make_generator({.pattern = Pattern::kTwice, .requests = 13, .objects = 3, .mixture = {}});
  REQUIRE(generator);
  std::vector<std::uint64_t> ids;
  for (GeneratedRequest request; (*generator)->next(request);) ids.push_back(request.id);
  CHECK(ids == std::vector<std::uint64_t>{0, 1, 2, 3, 0, 4, 1, 5, 2, 6, 3, 7, 4});
}

TEST_CASE("Sizes belong to objects and follow their distribution", "[sim][generate]") {
  const auto size = parse_distribution("lognormal:16KiB:1.5");
  REQUIRE(size);
  auto generator = make_generator(
      {.requests = 20000, .objects = 5000, .alpha = 0, .mixture = {}, .size = *size});
  REQUIRE(generator);
  std::map<std::uint64_t, std::uint64_t> sizes;
  GeneratedRequest request;
  std::int64_t last = -1;
  while ((*generator)->next(request)) {
    const auto [at, is_new] = sizes.emplace(request.id, request.size_bytes);
    REQUIRE(at->second == request.size_bytes);
    REQUIRE(request.time_ns >= last);
    last = request.time_ns;
  }
  // The median: half of the objects are below, within 4.5 sigma of a binomial.
  double below = 0;
  for (const auto& [id, bytes] : sizes) {
    below += bytes < 16384 ? 1 : 0;
  }
  const auto n = static_cast<double>(sizes.size());
  CHECK(std::abs(below - n / 2) < 4.5 * std::sqrt(n / 4));
  // 1000 requests a second, exponential gaps: the sum of n has sd sqrt(n) ms.
  CHECK(std::abs(static_cast<double>(last) * 1e-9 - 20) < 4.5 * std::sqrt(20000) / 1000);
}

TEST_CASE("Impossible generators are refused", "[sim][generate]") {
  CHECK(!make_generator({.requests = 0, .mixture = {}}));
  CHECK(!make_generator({.alpha = -1, .mixture = {}}));
  CHECK(!make_generator({.pattern = Pattern::kMixture, .mixture = {}}));
  CHECK(!make_generator(
      {.pattern = Pattern::kAkamai, .requests = 100, .objects = 99, .mixture = {}}));
  for (const char* bad : {"", "x", "lognormal:1", "lognormal:0:1", "pareto:1:2:3:4", "-5"}) {
    INFO(bad);
    CHECK(!parse_distribution(bad));
  }
  CHECK(run("generate zipf").exit_code == 2);
  CHECK(run("generate zipf -o /nonexistent/x").exit_code == 2);
  CHECK(run("generate mixture -o /tmp/x --mix zipf=a").exit_code == 2);
}

TEST_CASE("The same seed writes the same bytes, and what is written is read back",
          "[sim][generate]") {
  const std::string directory =
      (std::filesystem::temp_directory_path() / ("encore_generate_" + std::to_string(::getpid())))
          .string();
  std::filesystem::create_directory(directory);
  const auto bytes_of = [](const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    return std::string(std::istreambuf_iterator<char>(file), {});
  };
  for (const std::string name : {"a.csv", "a.csv.zst", "a.bin", "a.bin.zst"}) {
    INFO(name);
    const std::string one = directory + "/1" + name;
    const std::string two = directory + "/2" + name;
    const std::string line = " --requests 30000 --size pareto:100:1.2:1MiB --ttl 60 --seed 5";
    REQUIRE(run("generate akamai -o " + one + line).exit_code == 0);
    REQUIRE(run("generate akamai -o " + two + line).exit_code == 0);
    CHECK(bytes_of(one) == bytes_of(two));
    CHECK(!bytes_of(one).empty());
    const Ran stats = run("stats " + one + " --json --no-timing");
    CHECK(stats.exit_code == 0);
    CHECK(stats.out.find("\"requests\": 30000,") != std::string::npos);
    CHECK(stats.out.find("\"objects\": 12000,") != std::string::npos);
    CHECK(stats.out.find("\"one_hit_objects_share\": 0.75,") != std::string::npos);
    CHECK(stats.out.find("\"with_ttl\": 30000,") != std::string::npos);
  }
  std::filesystem::remove_all(directory);
}

}  // namespace encore::sim
