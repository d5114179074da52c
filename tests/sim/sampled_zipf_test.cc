// Streams of which only a sample is drawn: that their law is the whole stream's, and that a replay
// of one tells of the whole what a replay of the whole does.
#include "sim/workload/sampled_zipf.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <string>

#include "sim/workload/request_generator.h"
#include "tests/catch.h"
#include "tests/sim/directory.h"
#include "tests/sim/run.h"

namespace encore::sim {
namespace {

using SampledJson = nlohmann::json;

double naive_zipf_sum(std::uint64_t objects, double alpha) {
  double sum = 0;
  for (std::uint64_t rank = objects; rank != 0; --rank) {
    sum += std::pow(static_cast<double>(rank), -alpha);
  }
  return sum;
}

SampledJson json_of(const std::string& command_line) {
  const Ran ran = run(command_line + " --no-timing --json");
  INFO(command_line << ran.err);
  REQUIRE(ran.exit_code == 0);
  return SampledJson::parse(ran.out);
}

}  // namespace

TEST_CASE("The sum of Zipf's weights is that of all ranks", "[sim][sampled][theory]") {
  for (const double alpha : {0.0, 0.5, 0.9, 1.0, 1.2, 3.0}) {
    for (const std::uint64_t objects : {1ULL, 9'999ULL, 10'000ULL, 10'001ULL, 1'000'000ULL}) {
      INFO("alpha " << alpha << ", " << objects << " objects");
      CHECK(zipf_sum(objects, alpha) ==
            Approx(naive_zipf_sum(objects, alpha)).epsilon(1e-12).margin(0));
    }
  }
}

TEST_CASE("Time until the n-th request of many has its mean and variance",
          "[sim][sampled][theory]") {
  constexpr int kDraws = 100'000;
  for (const std::uint64_t count : {1ULL, 2ULL, 50ULL, 100'000ULL}) {
    Xoshiro random(7);
    const auto n = static_cast<double>(count);
    double sum = 0;
    double squares = 0;
    for (int i = 0; i < kDraws; ++i) {
      const double off = draw_gamma(count, random) - n;
      sum += off;
      squares += off * off;
    }
    INFO(count);
    CHECK(std::abs(sum / kDraws) < 4.5 * std::sqrt(n / kDraws));
    // The variance of a square: the fourth moment 3 n^2 + 6 n, less n^2.
    CHECK(std::abs(squares / kDraws - n) < 4.5 * std::sqrt((2 * n * n + 6 * n) / kDraws));
  }
}

TEST_CASE("A sampled stream has the requests of the whole one for its objects",
          "[sim][sampled][theory]") {
  constexpr std::uint64_t kRequests = 2'000'000;
  constexpr std::uint64_t kObjects = 1000;
  constexpr double kAlpha = 0.9;
  constexpr double kRate = 0.1;
  auto generator = make_generator({.seed = 5,
                                   .requests = kRequests,
                                   .objects = kObjects,
                                   .alpha = kAlpha,
                                   .mixture = {},
                                   .sample = kRate,
                                   .sample_seed = 3});
  REQUIRE(generator);
  std::map<std::uint64_t, double> counts;
  std::uint64_t last = 0;
  double neighbours = 0;  // requests behind which the whole stream has another one of the sample
  double made = 0;
  double seconds = 0;
  GeneratedRequest request;
  while ((*generator)->next(request)) {
    CHECK_FALSE(request.number <= last);
    neighbours += request.number == last + 1 ? 1 : 0;
    last = request.number;
    seconds = static_cast<double>(request.time_ns) / 1e9;
    ++counts[request.id];
    ++made;
  }
  CHECK(last <= kRequests);
  const SampledZipf zipf(kObjects, kAlpha, kRate, 3);
  const double all = naive_zipf_sum(kObjects, kAlpha);
  double share = 0;
  for (const std::uint64_t id : zipf.sampled()) {
    const double p = std::pow(static_cast<double>(id + 1), -kAlpha) / all;
    share += p;
    INFO("object " << id);
    CHECK(std::abs(counts[id] - kRequests * p) < 4.5 * std::sqrt(kRequests * p * (1 - p)));
  }
  CHECK(counts.size() == zipf.sampled().size());
  CHECK(zipf.share() == Approx(share).epsilon(1e-12));
  CHECK(std::abs(made - kRequests * share) < 4.5 * std::sqrt(kRequests * share * (1 - share)));
  CHECK(std::abs(neighbours - made * share) < 4.5 * std::sqrt(made * share * (1 - share)));
  // 1,000 requests a second, as in the whole stream.
  const auto requests = static_cast<double>(last);
  CHECK(std::abs(seconds - requests / 1000) < 4.5 * std::sqrt(requests) / 1000);
}

TEST_CASE("Each object is in the sample with the same probability", "[sim][sampled][theory]") {
  constexpr std::uint64_t kObjects = 200;
  constexpr double kRate = 0.3;
  constexpr int kSeeds = 5000;
  std::vector<double> times(kObjects);
  for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
    const SampledZipf zipf(kObjects, 1, kRate, seed);
    for (const std::uint64_t id : zipf.sampled()) ++times[id];
  }
  for (const double count : times) {
    CHECK(std::abs(count - kSeeds * kRate) < 4.5 * std::sqrt(kSeeds * kRate * (1 - kRate)));
  }
}

TEST_CASE("A replay of a sampled stream bounds the whole one's hit ratio",
          "[sim][sampled][theory]") {
  const Directory directory;
  const std::string whole = directory.at("whole.trace");
  const std::string stream = "generate zipf --requests 2000000 --objects 400000 --alpha 0.8 ";
  REQUIRE(run(stream + "-o " + whole).exit_code == 0);
  const std::string caches = " --cache-size 4MiB,32MiB --eviction lru,sieve --admission always";
  const SampledJson exact = json_of("replay " + whole + caches);
  int contained = 0;
  for (int seed = 1; seed <= 10; ++seed) {
    const std::string sample = directory.at("sample.trace");
    const std::string seeds =
        " --seed " + std::to_string(100 + seed) + " --sample-seed " + std::to_string(seed) + " -o ";
    const SampledJson made = json_of(stream + "--sample 0.05" + seeds + sample);
    CHECK(made["notes"].dump().find("--trace-sample 0.05 --trace-requests 2000000") !=
          std::string::npos);
    const SampledJson found =
        json_of("replay " + sample + caches + " --trace-sample 0.05 --trace-requests 2000000");
    for (std::size_t i = 0; i < 4; ++i) {
      const SampledJson& row = found["rows"][i];
      const double hits = exact["rows"][i]["object_hit_ratio"];
      CHECK(row["requests"] == 2'000'000);
      CHECK(row["sample_rate"].get<double>() == Approx(0.05));
      // All objects have one size.
      CHECK(row["byte_hit_ratio"].get<double>() ==
            Approx(row["object_hit_ratio"].get<double>()).margin(1e-6));
      contained += row["object_hit_ratio_low"] <= hits && hits <= row["object_hit_ratio_high"];
    }
  }
  // 95 % of 40 are 38; fewer than 30 are 5.8 standard errors below.
  CHECK(contained >= 30);
}

TEST_CASE("A sampled stream is refused where it cannot be", "[sim][sampled]") {
  const Directory directory;
  const std::string path = directory.at("s.trace");
  check_refused(run("generate zipf --sample 0 -o " + path), "--sample");
  check_refused(run("generate zipf --objects 10000000000 --sample 0.5 -o " + path),
                "accepted: up to 100 million; lower --sample");
  CHECK(!make_generator({.pattern = Pattern::kScan, .mixture = {}, .sample = 0.5}));
  REQUIRE(run("generate zipf --requests 100000 --sample 0.5 -o " + path).exit_code == 0);
  check_refused(run("replay " + path + " --trace-sample 0.5"), "belong together");
  check_refused(run("replay " + path + " --trace-requests 100000"), "belong together");
  check_refused(run("replay " + path + " --trace-sample 0.5 --trace-requests 100"),
                "--trace-requests 100; accepted: at least as many");
  // A warm-up counts in requests of the whole.
  const auto report = json_of("replay " + path +
                              " --trace-sample 0.5 --trace-requests 100000 --warmup 50000 "
                              "--admission always");
  CHECK(report["rows"][0]["requests"].get<double>() == Approx(50'000).margin(3000));
}

}  // namespace encore::sim
