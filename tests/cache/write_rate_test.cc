// The most that is written to disks in a second: no more over any time, and no less where more is
// offered.
#include <random>
#include <utility>
#include <vector>

#include "cache/disk_parts.h"
#include "tests/cache/support.h"

namespace encore::cache::test {
namespace {

constexpr std::uint64_t kRecord = 64 * 1024;

// A segment has room for all that a case writes.
KernelOptions limited_to(std::uint64_t rate) {
  KernelOptions options = plain_options(50'000'000);
  options.disks = {{.segments = 8, .segment_bytes = 64U << 20U}};
  options.disk_rules.write_rate_max = rate;
  return options;
}

// Offers records one after the other; each has a key of its own.
struct Offering {
  explicit Offering(std::uint64_t rate) : kernel(make_kernel(limited_to(rate))) {}
  DiskOutcome offer(MonotonicTime now, std::uint64_t bytes = kRecord) {
    const Key part = part_key(key(1).hash, 77, count++);
    const DiskDecision decision = kernel->place_part(part, {.bytes = bytes}, now);
    if (decision.outcome == DiskOutcome::kPlaced) {
      placed.emplace_back(now, bytes);
      CHECK_FALSE(kernel->written(part, decision.place, Kernel::Write::kDone, now));
    }
    return decision.outcome;
  }
  std::uint64_t sum() const {
    std::uint64_t bytes = 0;
    for (const auto& each : placed) bytes += each.second;
    return bytes;
  }

  std::unique_ptr<Kernel> kernel;
  std::uint64_t count = 0;
  std::vector<std::pair<MonotonicTime, std::uint64_t>> placed;
};

}  // namespace

TEST_CASE("Over any time the disks get what the rate brings, and a second's more",
          "[cache][disk]") {
  constexpr std::uint64_t kRate = 4'000'000;
  std::mt19937_64 random(GENERATE(1U, 2U, 3U));
  Offering offering(kRate);
  MonotonicTime now = at(100);
  while (now < at(108)) {
    for (auto rest = random() % 60; rest != 0; --rest) {
      const DiskOutcome outcome = offering.offer(now);
      CHECK((outcome == DiskOutcome::kPlaced || outcome == DiskOutcome::kWriteRate));
    }
    now += std::chrono::microseconds(random() % 300'000);
  }
  const auto& placed = offering.placed;
  std::uint64_t worst = 0;
  for (std::size_t from = 0; from < placed.size(); ++from) {
    std::uint64_t bytes = 0;
    for (std::size_t to = from; to < placed.size(); ++to) {
      bytes += placed[to].second;
      const auto elapsed = std::chrono::duration_cast<std::chrono::microseconds>(placed[to].first -
                                                                                 placed[from].first)
                               .count();
      const std::uint64_t due = kRate * static_cast<std::uint64_t>(elapsed) / 1'000'000;
      worst = std::max(worst, bytes - std::min(bytes, due));
    }
  }
  // A record may overdraw by all but a byte of itself.
  CHECK(worst <= kRate + kRecord);
  CHECK(worst > kRate / 2);
}

TEST_CASE("Where more is offered than may be written all of the rate is used", "[cache][disk]") {
  constexpr std::uint64_t kRate = 4'000'000;
  Offering offering(kRate);
  for (int tick = 0; tick < 400; ++tick) {
    const MonotonicTime now = at(100) + std::chrono::milliseconds(20 * tick);
    while (offering.offer(now) == DiskOutcome::kPlaced) {
    }
  }
  CHECK(offering.sum() >= 8 * kRate - kRecord);
  CHECK(offering.sum() <= 9 * kRate + kRecord);
}

TEST_CASE("A record that is larger than what a second brings is written, and then none for as long",
          "[cache][disk]") {
  Offering offering(100'000);
  CHECK(offering.offer(at(100), 500'000) == DiskOutcome::kPlaced);
  CHECK(offering.offer(at(100)) == DiskOutcome::kWriteRate);
  // A second's worth at a time comes back.
  for (int second = 101; second < 104; ++second) {
    CHECK(offering.offer(at(second)) == DiskOutcome::kWriteRate);
  }
  int second = 104;
  while (second < 120 && offering.offer(at(second)) == DiskOutcome::kWriteRate) ++second;
  CHECK(second == 105);
}

TEST_CASE("Without a rate all that fits is written", "[cache][disk]") {
  Offering offering(0);
  for (int i = 0; i < 500; ++i) CHECK(offering.offer(at(100)) == DiskOutcome::kPlaced);
}

}  // namespace encore::cache::test
