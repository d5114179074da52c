// Workloads that are hard for one policy or another, through probation: 256 MiB, of which 16 are
// memory, as the study has them from which the design comes. The bounds are its figures.
#include <functional>

#include "sim/workload/request_generator.h"
#include "tests/sim/kernel.h"

namespace encore::sim {
namespace {

constexpr std::uint64_t kKiB = 1024;
constexpr std::uint64_t kMebibyte = 1024 * kKiB;

struct ProbationOutcome {
  double hits = 0;     // percent
  double written = 0;  // to disk, percent of the bytes requested
  cache::ProbationSample followed = cache::ProbationSample::kOne;
};

// Feeds a run request by request. REQUIRES: the object's number is below 2^32.
class Run {
 public:
  explicit Run(std::optional<double> write_cost) {
    ReplayOptions options;
    options.kernel =
        kernel(16 * kMebibyte, cache::EvictionPolicy::kFifo, cache::AdmissionPolicy::kAlways);
    options.probation = {.settings = {.disk_bytes = 240 * kMebibyte,
                                      .keys = {.bits = 61'440 * 16,
                                               .hashes = filter::kSplitHashes,
                                               .capacity = 61'440,
                                               .seed = {}},
                                      .rule = {}},
                         .write_cost = write_cost};
    auto made = ReplayRun::create(options);
    REQUIRE(made);
    run_ = std::move(*made);
  }
  void ask(std::uint64_t object, std::uint64_t size_bytes) {
    requests_.push_back({.key = {object * 0x9e3779b97f4a7c15U + 1, filter::scrambled(object + 1)},
                         .size_bytes = size_bytes,
                         .object = static_cast<std::uint32_t>(object)});
    if (requests_.size() == 4096) feed();
  }
  void ask_all(const GeneratorOptions& options) {
    auto generator = make_generator(options);
    REQUIRE(generator);
    for (GeneratedRequest request; (*generator)->next(request);) ask(request.id, 32 * kKiB);
  }
  ProbationOutcome outcome() {
    feed();
    const ReplayCounts& c = run_->counts();
    const auto percent = [](std::uint64_t part, std::uint64_t whole) {
      return 100 * static_cast<double>(part) / static_cast<double>(whole);
    };
    const cache::ProbationSamples* const samples = run_->probation()->samples();
    return {.hits = percent(c.hits, c.requests),
            .written = percent(c.disk_bytes_admitted + c.disk_bytes_moved, c.bytes_requested),
            .followed = samples == nullptr ? cache::ProbationSample::kOne : samples->followed()};
  }

 private:
  void feed() {
    run_->feed(requests_);
    requests_.clear();
  }
  std::unique_ptr<ReplayRun> run_;
  std::vector<ReplayRequest> requests_;
};

ProbationOutcome ask_all(std::optional<double> write_cost, const GeneratorOptions& options) {
  Run run(write_cost);
  run.ask_all(options);
  return run.outcome();
}

constexpr std::optional<double> kFixed;  // w = 1
constexpr std::optional<double> kSampled = 0.3;

}  // namespace

TEST_CASE("what is requested once is written to fill the disk, and then no more",
          "[sim][probation][hard]") {
  const GeneratorOptions scan{.pattern = Pattern::kScan, .requests = 60'000, .mixture = {}};
  const ProbationOutcome outcome = ask_all(kSampled, scan);
  CHECK(outcome.hits == 0);
  CHECK(outcome.written * 60'000 / 100 * 32 * kKiB == Approx(240 * kMebibyte).epsilon(.01));
}

TEST_CASE("a loop that is larger than the cache keeps a part of itself there",
          "[sim][probation][hard]") {
  const GeneratorOptions loop{
      .pattern = Pattern::kLoop, .requests = 400'000, .objects = 12'288, .mixture = {}};
  const ProbationOutcome fixed = ask_all(kFixed, loop);
  CHECK(fixed.hits == Approx(35.7).margin(.3));
  CHECK(fixed.written == Approx(50.0).margin(1));
  const ProbationOutcome sampled = ask_all(kSampled, loop);
  CHECK(sampled.hits > 53);
  CHECK(sampled.written < 25);
}

TEST_CASE("where each object comes twice, half a cache apart, samples write all",
          "[sim][probation][hard]") {
  const GeneratorOptions twice{
      .pattern = Pattern::kTwice, .requests = 200'000, .objects = 2048, .mixture = {}};
  CHECK(ask_all(kFixed, twice).hits < 5);
  const ProbationOutcome sampled = ask_all(kSampled, twice);
  CHECK(sampled.hits > 46);
  CHECK(sampled.followed == cache::ProbationSample::kAll);
}

TEST_CASE("bursts of huge objects do not flush the disk, for their keys wait",
          "[sim][probation][hard]") {
  for (const auto& cost : {kFixed, kSampled}) {
    Run run(cost);
    auto generator =
        make_generator({.requests = 300'000, .objects = 100'000, .alpha = .9, .mixture = {}});
    REQUIRE(generator);
    std::uint64_t n = 0;
    for (GeneratedRequest request; (*generator)->next(request); ++n) {
      run.ask(request.id, 16 * kKiB);
      // 200 of them, each twice in a row.
      for (int k = 0; k < (n % 60'000 >= 59'800 ? 2 : 0); ++k) {
        run.ask(100'000 + n / 60'000 * 200 + n % 200, 12 * kMebibyte);
      }
    }
    const ProbationOutcome outcome = run.outcome();
    CHECK(outcome.hits > 67);
    // Admitted at their second request, they would be 41 % of it.
    CHECK(outcome.written < 5);
  }
}

}  // namespace encore::sim
