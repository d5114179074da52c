#include <set>
#include <tuple>

#include "cache/admission.h"
#include "cache/saved_admission.h"
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

TEST_CASE("A hint stores the first request, and is remembered as if enough had come",
          "[cache][admission]") {
  struct Row {
    AdmissionPolicy policy;
    AdmissionRule rule;
    AdmitReason next;  // for the same key without a hint
  };
  static constexpr AdmissionRule kThird{.kind = AdmissionRule::Kind::kNthHit, .parameter = 3};
  const Row row =
      GENERATE(values<Row>({{AdmissionPolicy::kSecondHit, {}, AdmitReason::kSecondRequest},
                            {AdmissionPolicy::kExactSecondHit, {}, AdmitReason::kSecondRequest},
                            {AdmissionPolicy::kNthHit, {}, AdmitReason::kEnoughRequests},
                            {AdmissionPolicy::kProbation, {}, AdmitReason::kSecondRequest},
                            {AdmissionPolicy::kSecondHit, kThird, AdmitReason::kEnoughRequests}}));
  KernelOptions options = second_hit_options(row.policy);
  options.admission.min_requests = 4;
  const auto kernel = make_kernel(options);
  const auto admit = [&](std::uint64_t id, bool hinted) {
    return kernel->admit(key(id), {.hinted = hinted, .rule = row.rule}, at(0));
  };
  CHECK_FALSE(is_stored(admit(1, false)));
  CHECK(is_stored(admit(2, true)));
  CHECK(admit(3, true) == AdmitReason::kParentHint);
  CHECK(admit(3, false) == row.next);
  // A key that needs no hint is not said to owe it its place.
  CHECK(admit(3, true) == row.next);
  CHECK_FALSE(is_stored(admit(4, false)));
}

TEST_CASE("A hint says nothing to policies that count no requests", "[cache][admission]") {
  KernelOptions options =
      second_hit_options(GENERATE(AdmissionPolicy::kNever, AdmissionPolicy::kSizeThreshold));
  options.admission.size_threshold_bytes = 10;
  const auto kernel = make_kernel(options);
  const AdmitRequest large{.size_bytes = 11, .hinted = true};
  CHECK_FALSE(is_stored(kernel->admit(key(1), large, at(0))));
  KernelOptions chance = second_hit_options(AdmissionPolicy::kProbability);
  chance.admission.probability = 0.25;
  const auto drawn = make_kernel(chance);
  int stored = 0;
  for (std::uint64_t id = 0; id < 1000; ++id) {
    stored += is_stored(drawn->admit(key(id), {.hinted = true}, at(0))) ? 1 : 0;
  }
  // 4.5 sigma of a binomial around 250.
  CHECK(stored > 188);
  CHECK(stored < 312);
  CHECK(make_kernel(second_hit_options(AdmissionPolicy::kSecondHit))
            ->admit(key(1), {.size_bytes = 1U << 30U, .hinted = true}, at(0)) ==
        AdmitReason::kTooLarge);
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

TEST_CASE("A threshold of sizes keeps out what replaces or completes a smaller one",
          "[cache][admission]") {
  KernelOptions options = second_hit_options(AdmissionPolicy::kSizeThreshold);
  options.admission.size_threshold_bytes = 300;
  const AdmissionRule by_rule{.kind = AdmissionRule::Kind::kSizeThreshold, .parameter = 300};
  const auto check = [](Kernel& kernel, const AdmissionRule& rule) {
    REQUIRE(store(kernel, key(1), {.charge_bytes = 10}, at(0)) == CommitOutcome::kStored);
    CHECK(kernel.admit(key(1), {.size_bytes = 300, .rule = rule}, at(0)) == AdmitReason::kResident);
    CHECK(kernel.admit(key(1), {.size_bytes = 301, .rule = rule}, at(0)) ==
          AdmitReason::kPolicyRefuses);
    CHECK(kernel.admit(key(1), {.size_bytes = 0, .rule = rule}, at(0)) ==
          AdmitReason::kPolicyRefuses);
    CHECK(kernel.would_admit(key(1), at(0), 300, rule));
    CHECK_FALSE(kernel.would_admit(key(1), at(0), 301, rule));
  };
  check(*make_kernel(options), {});
  check(*make_kernel(second_hit_options(AdmissionPolicy::kSecondHit)), by_rule);
}

TEST_CASE("What nothing is admitted by keeps out another variant of a resident key, too",
          "[cache][admission]") {
  const auto check = [](Kernel& kernel, const AdmissionRule& rule) {
    REQUIRE(store(kernel, key(1), {.charge_bytes = 10}, at(0)) == CommitOutcome::kStored);
    CHECK_FALSE(is_stored(kernel.admit(key(1), {.variant = 77, .rule = rule}, at(0))));
    CHECK_FALSE(kernel.would_admit(key(1), at(0), 10, rule));
  };
  check(*make_kernel(second_hit_options(AdmissionPolicy::kNever)), {});
  check(*make_kernel(second_hit_options(AdmissionPolicy::kSecondHit)),
        {.kind = AdmissionRule::Kind::kNever});
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
  CHECK(statistics.shadow_bytes != 0);
  CHECK(statistics.measured.asked != 0);
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

TEST_CASE("The rate is measured where the filter is asked for each request, not with probation",
          "[cache][admission]") {
  const auto policy = GENERATE(AdmissionPolicy::kSecondHit, AdmissionPolicy::kProbation);
  const auto kernel = make_kernel(second_hit_options(policy));
  for (std::uint64_t id = 0; id < 8000; ++id) ask(*kernel, id);
  const AdmissionStatistics statistics = kernel->admission_statistics();
  const bool is_asked = policy == AdmissionPolicy::kSecondHit;
  CHECK((statistics.shadow_bytes != 0) == is_asked);
  CHECK((statistics.measured.asked != 0) == is_asked);
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

namespace {

Adoptable adoptable_of(const Kernel& kernel) {
  auto adoptable = read_adoptable(kernel.save_admission(at(5)));
  REQUIRE(adoptable);
  return std::move(*adoptable);
}

// As the key of a cache with this seed.
Key key_under(const filter::Seed& seed, std::uint64_t id) {
  return filter::identify(seed, key(id).bytes);
}

}  // namespace

TEST_CASE("A cache that starts cold admits at once what its neighbour saw once",
          "[cache][admission]") {
  const filter::Seed seed{77, 78};
  const auto shards = GENERATE(1U, 8U, 64U);
  const auto policy = GENERATE(AdmissionPolicy::kSecondHit, AdmissionPolicy::kNthHit);
  KernelOptions theirs = second_hit_options(policy);
  theirs.admission.min_requests = 3;
  theirs.shards = shards;
  theirs.identity_seed = seed;
  theirs.admission.filter.seed = seed;
  const auto neighbour = make_kernel(theirs);
  const std::uint32_t before = policy == AdmissionPolicy::kNthHit ? 2 : 1;
  for (std::uint32_t request = 0; request < before; ++request) {
    for (std::uint64_t id = 0; id < 300; ++id) {
      REQUIRE_FALSE(is_stored(neighbour->admit(key_under(seed, id), {}, at(1))));
    }
  }
  KernelOptions ours = second_hit_options(policy);
  ours.admission.min_requests = 3;
  ours.shards = 4;
  const auto kernel = make_kernel(ours);
  ask(*kernel, 1000);
  const auto adoption = kernel->adopt(adoptable_of(*neighbour), UINT64_MAX, at(6));
  REQUIRE(adoption);
  CHECK(adoption->shards == 4);
  CHECK(adoption->generations == 2);
  for (std::uint64_t id = 0; id < 300; ++id) {
    REQUIRE(kernel->would_admit(key(id), at(6)));
    REQUIRE(is_stored(ask(*kernel, id)));
  }
  CHECK_FALSE(is_stored(ask(*kernel, 999)));
  // Its own keys are still there.
  CHECK(is_stored(ask(*kernel, 1000)) == (policy == AdmissionPolicy::kSecondHit));
  const AdmissionStatistics statistics = kernel->admission_statistics();
  CHECK(statistics.adoptions == 1);
  CHECK(statistics.adopted.answers >= 300);
  CHECK(statistics.adopted_memory_bytes > 0);
}

TEST_CASE("Adopted memories are bounded, and leave as the rings rotate", "[cache][admission]") {
  const KernelOptions options = second_hit_options(AdmissionPolicy::kSecondHit);
  const auto neighbour = make_kernel(options);
  ask(*neighbour, 1);
  const Adoptable adoptable = adoptable_of(*neighbour);
  const std::uint64_t bytes = adoptable.memory->memory_bytes();
  const auto kernel = make_kernel(options);
  CHECK_FALSE(kernel->adopt(adoptable, bytes - 1, at(6)));
  CHECK(kernel->admission_statistics().adoptions == 0);
  REQUIRE(kernel->adopt(adoptable, bytes, at(6)));
  CHECK_FALSE(kernel->adopt(adoptable_of(*neighbour), 2 * bytes - 1, at(6)));
  for (std::uint32_t i = 1; i < filter::kAdoptedMax; ++i) {
    REQUIRE(kernel->adopt(adoptable_of(*neighbour), UINT64_MAX, at(6)));
  }
  CHECK_FALSE(kernel->adopt(adoptable, UINT64_MAX, at(6)));
  CHECK(kernel->admission_statistics().adopted.memories == filter::kAdoptedMax);
  CHECK(kernel->admission_statistics().adopted_memory_bytes == filter::kAdoptedMax * bytes);
  for (std::uint64_t id = 10'000; kernel->admission_statistics().rotations == 0; ++id) {
    ask(*kernel, id);
  }
  kernel->release_adopted();
  const AdmissionStatistics statistics = kernel->admission_statistics();
  CHECK(statistics.adopted.memories == 0);
  // The first of them is still held here.
  CHECK(statistics.adopted_memory_bytes == bytes);
  REQUIRE(kernel->adopt(adoptable, UINT64_MAX, at(7)));
}

TEST_CASE("A memory is adopted by policies that have one, and only whole", "[cache][admission]") {
  KernelOptions options = second_hit_options(AdmissionPolicy::kSecondHit);
  options.shards = 2;
  options.admission.filter.bits = 512;
  const auto neighbour = make_kernel(options);
  ask(*neighbour, 1);
  const std::string good = neighbour->save_admission(at(5));
  REQUIRE(read_adoptable(good));
  SECTION("not by a policy that remembers nothing") {
    options.admission.policy = AdmissionPolicy::kAlways;
    const auto kernel = make_kernel(options);
    const auto refused = kernel->adopt(adoptable_of(*neighbour), UINT64_MAX, at(6));
    REQUIRE_FALSE(refused);
    CHECK(refused.error().message.find("policy is always") != std::string::npos);
    CHECK_FALSE(read_adoptable(kernel->save_admission(at(6))));
  }
  SECTION("not cut off anywhere, and not with a bit flipped") {
    for (std::size_t size = 0; size < good.size(); ++size) {
      REQUIRE_FALSE(read_adoptable(std::string_view(good).substr(0, size)));
    }
    for (std::size_t at = 0; at < good.size(); ++at) {
      std::string flipped = good;
      flipped[at] = static_cast<char>(flipped[at] ^ (1 << (at % 8)));
      REQUIRE_FALSE(read_adoptable(flipped));
    }
  }
  SECTION("not with lengths or counts of shards that are not there") {
    constexpr std::size_t kShardsAt = 12;
    constexpr std::size_t kFirstSizeAt = 32;
    for (const auto& [at, bytes, value] : {std::tuple{kShardsAt, 4, std::uint64_t{UINT32_MAX}},
                                           {kShardsAt, 4, std::uint64_t{1}},
                                           {kShardsAt, 4, std::uint64_t{3}},
                                           {kShardsAt, 4, std::uint64_t{0}},
                                           {kFirstSizeAt, 8, std::uint64_t{1} << 63U},
                                           {kFirstSizeAt, 8, UINT64_MAX},
                                           {kFirstSizeAt, 8, std::uint64_t{0}}}) {
      std::string hostile = good.substr(0, good.size() - 8);
      for (int i = 0; i < bytes; ++i) {
        hostile[at + static_cast<std::size_t>(i)] = static_cast<char>(value >> (8 * i));
      }
      const std::uint64_t checksum = state_checksum(hostile);
      hostile.append(reinterpret_cast<const char*>(&checksum), sizeof checksum);
      CAPTURE(at, value);
      CHECK_FALSE(read_adoptable(hostile));
    }
  }
}

TEST_CASE("The saved memory in pieces is the saved memory", "[cache]") {
  KernelOptions options = second_hit_options(AdmissionPolicy::kSecondHit);
  options.shards = 4;
  const auto kernel = make_kernel(options);
  for (std::uint64_t id = 0; id < 300; ++id) {
    ask(*kernel, id);
  }
  AdmissionWriter writer;
  std::string pieces = writer.begin(options.identity_seed, kernel->shards());
  for (std::uint32_t shard = 0; shard < kernel->shards(); ++shard) {
    pieces += writer.shard(kernel->save_admission_of(shard, at(5)));
  }
  pieces += writer.end();
  CHECK(pieces == kernel->save_admission(at(5)));
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

TEST_CASE("A rule is asked in the policy's stead, and shares its filter", "[cache][admission]") {
  using Kind = AdmissionRule::Kind;
  const auto kernel = make_kernel(second_hit_options(AdmissionPolicy::kSecondHit));
  const auto by_rule = [&](std::uint64_t id, AdmissionRule rule, std::uint64_t bytes = 0) {
    const bool would = kernel->would_admit(key(id), at(0), bytes, rule);
    const AdmitReason reason = kernel->admit(key(id), {.size_bytes = bytes, .rule = rule}, at(0));
    CHECK(would == is_stored(reason));
    return reason;
  };
  CHECK(by_rule(1, {Kind::kAlways}) == AdmitReason::kPolicyAlways);
  CHECK(by_rule(1, {Kind::kNever}) == AdmitReason::kPolicyNever);
  CHECK(ask(*kernel, 1) == AdmitReason::kFirstRequest);  // neither has learnt anything
  CHECK(by_rule(1, {Kind::kNthHit, 2}) == AdmitReason::kSecondRequest);
  CHECK(by_rule(2, {Kind::kNthHit, 3}) == AdmitReason::kFewRequests);
  CHECK(by_rule(2, {Kind::kNthHit, 3}) == AdmitReason::kFewRequests);
  CHECK(by_rule(2, {Kind::kNthHit, 3}) == AdmitReason::kEnoughRequests);
  CHECK(by_rule(3, {Kind::kSizeThreshold, 10}, 10) == AdmitReason::kPolicyAdmits);
  CHECK(by_rule(3, {Kind::kSizeThreshold, 10}, 11) == AdmitReason::kPolicyRefuses);
  int admitted = 0;
  for (std::uint64_t id = 100; id < 1100; ++id) {
    admitted += is_stored(by_rule(id, {Kind::kProbability, 1U << 30U})) ? 1 : 0;
  }
  CHECK(std::abs(admitted - 250) < 62);  // a quarter; 4.5 sigma
  // Without a filter there is nothing to remember by.
  const auto always = make_kernel(second_hit_options(AdmissionPolicy::kAlways));
  for (int turn = 0; turn < 3; ++turn) {
    CHECK(always->admit(key(1), {.rule = {Kind::kNthHit, 2}}, at(0)) == AdmitReason::kFirstRequest);
  }
  CHECK(AdmissionRule::decoded(AdmissionRule{Kind::kNthHit, 3}.encoded()) ==
        AdmissionRule{Kind::kNthHit, 3});
  CHECK(AdmissionRule::decoded(255) == AdmissionRule{});
}

}  // namespace encore::cache::test
