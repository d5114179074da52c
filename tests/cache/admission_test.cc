#include <set>

#include "cache/admission.h"
#include "tests/cache/support.h"

namespace encore::cache::test {
namespace {

KernelOptions second_hit_options(AdmissionPolicy policy) {
  KernelOptions options = plain_options(1000);
  options.admission.policy = policy;
  return options;
}

AdmitReason ask(Kernel& kernel, std::uint64_t id) { return kernel.admit(key(id), {}, at(0)); }

}  // namespace

TEST_CASE("Second-hit remembers the first request and admits the second", "[cache][admission]") {
  const auto policy = GENERATE(AdmissionPolicy::kSecondHit, AdmissionPolicy::kExactSecondHit);
  const auto kernel = make_kernel(second_hit_options(policy));
  CHECK_FALSE(kernel->would_admit(key(1), at(0)));
  CHECK_FALSE(kernel->would_admit(key(1), at(0)));  // pure: asking teaches nothing
  CHECK(ask(*kernel, 1) == AdmitReason::kFirstRequest);
  CHECK(kernel->would_admit(key(1), at(0)));
  CHECK(ask(*kernel, 1) == AdmitReason::kSecondRequest);
  const KernelStatistics statistics = kernel->statistics();
  CHECK(statistics.counters.admissions[static_cast<std::size_t>(AdmitReason::kFirstRequest)] == 1);
  CHECK(statistics.counters.admissions[static_cast<std::size_t>(AdmitReason::kSecondRequest)] == 1);
}

TEST_CASE("A waiter that joined makes the response a second request", "[cache][admission]") {
  const auto policy = GENERATE(AdmissionPolicy::kSecondHit, AdmissionPolicy::kExactSecondHit);
  const auto kernel = make_kernel(second_hit_options(policy));
  CHECK(kernel->admit(key(1), {.requests = 2}, at(0)) == AdmitReason::kSecondRequest);
  CHECK(kernel->admit(key(2), {.requests = 1000}, at(0)) == AdmitReason::kSecondRequest);
  CHECK(kernel->admit(key(3), {.requests = 1}, at(0)) == AdmitReason::kFirstRequest);
}

TEST_CASE("A resident key does not consult the filter, an evicted one is still remembered",
          "[cache][admission]") {
  const auto kernel = make_kernel(second_hit_options(AdmissionPolicy::kSecondHit));
  ask(*kernel, 1);
  ask(*kernel, 1);
  REQUIRE(store(*kernel, key(1), {.charge_bytes = 10}, at(0)) == CommitOutcome::kStored);
  const std::uint64_t asked = kernel->admission_statistics().insertions;
  CHECK(ask(*kernel, 1) == AdmitReason::kResident);
  CHECK(kernel->admit(key(1), {.variant = 77}, at(0)) == AdmitReason::kResident);
  CHECK(kernel->would_admit(key(1), at(0)));
  CHECK(kernel->admission_statistics().insertions == asked);
  CHECK(kernel->invalidate(key(1), at(0)) == 1);
  CHECK(ask(*kernel, 1) == AdmitReason::kSecondRequest);
}

TEST_CASE("Always, never and too large say so", "[cache][admission]") {
  const auto always = make_kernel(second_hit_options(AdmissionPolicy::kAlways));
  CHECK(ask(*always, 1) == AdmitReason::kPolicyAlways);
  CHECK(always->would_admit(key(2), at(0)));
  const auto never = make_kernel(second_hit_options(AdmissionPolicy::kNever));
  CHECK(ask(*never, 1) == AdmitReason::kPolicyNever);
  CHECK_FALSE(never->would_admit(key(1), at(0)));
  const auto second = make_kernel(second_hit_options(AdmissionPolicy::kSecondHit));
  CHECK(second->admit(key(1), {.size_bytes = 1000}, at(0)) == AdmitReason::kFirstRequest);
  CHECK(second->admit(key(2), {.size_bytes = 1001}, at(0)) == AdmitReason::kTooLarge);
  CHECK_FALSE(second->would_admit(key(2), at(0)));  // it was not learnt
  CHECK_FALSE(is_stored(AdmitReason::kTooLarge));
  CHECK(is_stored(AdmitReason::kResident));
}

TEST_CASE("The filter and the exact sets forget after the same number of insertions",
          "[cache][admission]") {
  // So many bits that no false positive is expected (1e-7 in all).
  KernelOptions options = second_hit_options(AdmissionPolicy::kSecondHit);
  options.admission.filter.bits = 1 << 20;
  options.admission.filter.capacity = 100;
  options.admission.refresh = GENERATE(true, false);
  const auto filter = make_kernel(options);
  options.admission.policy = AdmissionPolicy::kExactSecondHit;
  const auto exact = make_kernel(options);
  std::mt19937_64 random(3);
  std::uint64_t differences = 0;
  for (int i = 0; i < 20'000; ++i) {
    const std::uint64_t id = random() % 400;
    differences += ask(*filter, id) != ask(*exact, id) ? 1U : 0U;
  }
  CHECK(differences == 0);
  const AdmissionStatistics ours = filter->admission_statistics();
  const AdmissionStatistics theirs = exact->admission_statistics();
  CHECK(ours.rotations > 20);
  CHECK(ours.rotations == theirs.rotations);
  CHECK(ours.insertions == theirs.insertions);
  CHECK(ours.refreshes == theirs.refreshes);
  CHECK(ours.measured.false_negatives == 0);
}

TEST_CASE("Rotation by time forgets what was asked for two periods ago", "[cache][admission]") {
  const auto policy = GENERATE(AdmissionPolicy::kSecondHit, AdmissionPolicy::kExactSecondHit);
  KernelOptions options = second_hit_options(policy);
  options.admission.rotate_after = std::chrono::seconds(10);
  const auto kernel = make_kernel(options);
  CHECK(kernel->admit(key(1), {}, at(1)) == AdmitReason::kFirstRequest);
  CHECK(kernel->admit(key(2), {}, at(11)) == AdmitReason::kFirstRequest);
  CHECK(kernel->would_admit(key(1), at(11)));
  CHECK(kernel->admit(key(3), {}, at(22)) == AdmitReason::kFirstRequest);
  CHECK_FALSE(kernel->would_admit(key(1), at(22)));
  CHECK(kernel->would_admit(key(2), at(22)));
  CHECK(kernel->admission_statistics().rotations == 2);
}

TEST_CASE("The keys are spread over the shards' filters, and the figures are sums",
          "[cache][admission]") {
  KernelOptions options = second_hit_options(AdmissionPolicy::kSecondHit);
  options.shards = 8;
  options.admission.filter.capacity = 2000;
  const auto kernel = make_kernel(options);
  constexpr std::uint64_t kKeys = 8000;
  for (std::uint64_t id = 0; id < kKeys; ++id) {
    ask(*kernel, id);
  }
  const AdmissionStatistics statistics = kernel->admission_statistics();
  REQUIRE(statistics.generations.size() == 2);
  const double expected_false = statistics.measured.expected;
  const double falsely_seen = static_cast<double>(statistics.measured.false_positives);
  // 4.5 standard deviations of a sum of rare events.
  CHECK(std::abs(falsely_seen - expected_false) <= 4.5 * std::sqrt(expected_false) + 1);
  CHECK(statistics.generations[0].insertions == statistics.insertions);
  CHECK(statistics.capacity == 16'000);
  CHECK(statistics.generations[0].fill > 0.05);
  CHECK(statistics.generations[0].fill < 0.3);
  CHECK(statistics.measured.false_negatives == 0);
}

TEST_CASE("New filter parameters at run time forget nothing", "[cache][admission]") {
  KernelOptions options = second_hit_options(AdmissionPolicy::kSecondHit);
  options.shards = 4;
  const auto kernel = make_kernel(options);
  for (std::uint64_t id = 0; id < 200; ++id) {
    ask(*kernel, id);
  }
  ReloadOptions reload = reload_options(options);
  reload.admission.filter.bits *= 4;
  reload.admission.filter.capacity *= 4;
  REQUIRE(kernel->reconfigure(reload, at(1)));
  CHECK(kernel->admission_statistics().capacity == 16'000);
  for (std::uint64_t id = 0; id < 200; ++id) {
    REQUIRE(kernel->would_admit(key(id), at(1)));
  }
  SECTION("options that a filter refuses change nothing") {
    reload.capacity_bytes = 5;
    reload.admission.filter.bits = 0;
    CHECK_FALSE(kernel->reconfigure(reload, at(2)));
    CHECK(kernel->statistics().capacity_bytes == 1000);
    CHECK(kernel->admission_statistics().capacity == 16'000);
  }
  SECTION("another policy starts empty") {
    reload.admission.policy = AdmissionPolicy::kAlways;
    REQUIRE(kernel->reconfigure(reload, at(2)));
    CHECK(ask(*kernel, 999) == AdmitReason::kPolicyAlways);
    CHECK_FALSE(kernel->admission_statistics().has_filter);
  }
}

TEST_CASE("The saved memory of admission is restored, and nothing damaged is", "[cache]") {
  KernelOptions options = second_hit_options(AdmissionPolicy::kSecondHit);
  options.shards = 4;
  const auto kernel = make_kernel(options);
  for (std::uint64_t id = 0; id < 300; ++id) {
    ask(*kernel, id);
  }
  const std::string saved = kernel->save_admission(at(5));
  const auto fresh = make_kernel(options);
  SECTION("as it was") {
    REQUIRE(fresh->restore_admission(saved, at(6)));
    for (std::uint64_t id = 0; id < 300; ++id) {
      REQUIRE(fresh->would_admit(key(id), at(6)));
    }
    CHECK(fresh->admission_statistics().insertions == kernel->admission_statistics().insertions);
  }
  SECTION("into a cache with other parameters: nothing is forgotten") {
    options.admission.filter.bits *= 2;
    const auto other = make_kernel(options);
    REQUIRE(other->restore_admission(saved, at(6)));
    for (std::uint64_t id = 0; id < 300; ++id) {
      REQUIRE(other->would_admit(key(id), at(6)));
    }
  }
  SECTION("not from another seed, number of shards, or for another policy") {
    options.identity_seed = {9, 9};
    options.admission.filter.seed = {9, 9};
    CHECK_FALSE(make_kernel(options)->restore_admission(saved, at(6)));
    options = second_hit_options(AdmissionPolicy::kSecondHit);
    CHECK_FALSE(make_kernel(options)->restore_admission(saved, at(6)));
    options.shards = 4;
    options.admission.policy = AdmissionPolicy::kAlways;
    CHECK_FALSE(make_kernel(options)->restore_admission(saved, at(6)));
  }
  SECTION("not cut off, not with one bit changed") {
    for (const std::size_t size :
         {std::size_t{0}, std::size_t{7}, std::size_t{20}, saved.size() / 2, saved.size() - 1}) {
      CHECK_FALSE(fresh->restore_admission(saved.substr(0, size), at(6)));
    }
    std::mt19937_64 random(1);
    for (int i = 0; i < 50; ++i) {
      std::string damaged = saved;
      damaged[random() % damaged.size()] ^= static_cast<char>(1U << (random() % 8));
      REQUIRE_FALSE(fresh->restore_admission(damaged, at(6)));
    }
    CHECK_FALSE(fresh->would_admit(key(1), at(6)));
  }
}

}  // namespace encore::cache::test
