// The data that workers give to the simulated caches, and the results of these.
#include "proxy/observe/shadow_caches.h"

#include <nlohmann/json.hpp>
#include <thread>
#include <vector>

#include "proxy/observe/shadow_pages.h"
#include "tests/catch.h"

namespace encore::server {
namespace {

using Json = nlohmann::json;

cache::KernelOptions kernel_of(cache::AdmissionPolicy policy) {
  cache::KernelOptions options;
  options.capacity_bytes = 1 << 20;
  options.max_object_share = 1;
  options.shards = 1;
  options.admission.policy = policy;
  options.admission.filter.capacity = 1000;
  options.admission.filter.bits = 1U << 16U;
  options.admission.shadow_one_in = 0;
  options.concurrent = false;
  return options;
}

ShadowCaches::Wanted wanted(std::uint32_t sample) {
  return {.policies = {{"always", kernel_of(cache::AdmissionPolicy::kAlways)},
                       {"second-hit", kernel_of(cache::AdmissionPolicy::kSecondHit)}},
          .sample = sample};
}

void use(ShadowCaches& caches, const ShadowCaches::Wanted& wanted) {
  auto prepared = caches.prepare(wanted, {});
  REQUIRE(prepared);
  caches.adopt(std::move(*prepared), {});
}

filter::Hash128 key(std::uint64_t i) {
  return {i * 0x9e3779b97f4a7c15U + 1, i * 0xc2b2ae3d27d4eb4fU};
}

void ask(ShadowTap& tap, std::uint64_t i) {
  if (tap.count(key(i), {ShadowTap::Served::kMissed, 100})) {
    tap.add({.key = key(i),
             .sent_bytes = 100,
             .object_bytes = 100,
             .charge_bytes = 300,
             .fresh_seconds = 1000});
  }
}

// Once all that was handed over is simulated.
ShadowReports report_of(const ShadowCaches& caches, std::uint64_t requests) {
  ShadowReports reports = caches.report({});
  while (reports.policies.empty() || reports.policies.front().in_force.requests < requests) {
    std::this_thread::yield();
    reports = caches.report({});
  }
  return reports;
}

}  // namespace

TEST_CASE("A tap without caches, or with none wanted, is off", "[observe][shadow]") {
  const WorkerStats stats;
  ShadowTap none(nullptr, stats);
  none.follow();
  CHECK_FALSE(none.is_on());
  none.hand_over();
  ShadowCaches caches;
  ShadowTap tap(&caches, stats);
  tap.follow();
  CHECK_FALSE(tap.is_on());
  use(caches, wanted(1));
  CHECK_FALSE(tap.is_on());
  tap.follow();
  CHECK(tap.is_on());
  use(caches, {.policies = {}, .sample = 1});
  tap.follow();
  CHECK_FALSE(tap.is_on());
  CHECK(caches.report({}).sample == 0);
}

TEST_CASE("What workers see comes to each policy, and the whole is counted beside the sample",
          "[observe][shadow]") {
  ShadowCaches caches;
  use(caches, wanted(4));
  WorkerStats stats;
  ShadowTap tap(&caches, stats);
  tap.follow();
  for (int turn = 0; turn < 3; ++turn) {
    for (std::uint64_t i = 0; i < 1000; ++i) ask(tap, i);
  }
  stats.stored.add(7);
  stats.stored_bytes.add(700);
  tap.hand_over();
  const ShadowReports reports = report_of(caches, 3000);
  REQUIRE(reports.policies.size() == 2);
  const ShadowReport& always = reports.policies[0];
  const ShadowReport& second = reports.policies[1];
  CHECK(always.in_force.bytes_requested == 300'000);
  CHECK(always.in_force.objects_written == 7);
  CHECK(always.in_force.bytes_written == 700);
  const std::uint64_t sampled = always.sampled.requests;
  CHECK(sampled > 600);
  CHECK(sampled < 900);
  CHECK(sampled % 3 == 0);
  CHECK(always.sampled.hits == sampled / 3 * 2);
  CHECK(second.sampled.hits == sampled / 3);
  CHECK(always.sampled.objects_written == sampled / 3);
  CHECK(always.estimated.requests == 3000);
  CHECK(always.estimated.bytes_written == sampled / 3 * 300 * 4);
  CHECK(always.object_hit_ratio.low <= always.object_hit_ratio.value);
  CHECK(always.memory_bytes > 0);
  // The other policy's words are not this one's.
  CHECK(second.object_hit_ratio.value < always.object_hit_ratio.value);
}

TEST_CASE("At a reload what stays goes on, what is new begins, what is changed begins anew",
          "[observe][shadow]") {
  ShadowCaches caches;
  use(caches, wanted(1));
  const WorkerStats stats;
  ShadowTap tap(&caches, stats);
  tap.follow();
  for (std::uint64_t i = 0; i < 100; ++i) ask(tap, i);
  tap.hand_over();
  (void)report_of(caches, 100);
  ShadowCaches::Wanted next = wanted(1);
  next.policies[1].whole.capacity_bytes /= 2;
  next.policies.push_back({"never", kernel_of(cache::AdmissionPolicy::kNever)});
  use(caches, next);
  tap.follow();
  for (std::uint64_t i = 0; i < 100; ++i) ask(tap, i);
  tap.hand_over();
  ShadowReports reports = report_of(caches, 200);
  REQUIRE(reports.policies.size() == 3);
  CHECK(reports.policies[0].sampled.hits == 100);
  CHECK(reports.policies[1].in_force.requests == 100);
  CHECK(reports.policies[1].sampled.requests == 100);
  CHECK(reports.policies[1].sampled.hits == 0);
  CHECK(reports.policies[2].in_force.requests == 100);
  // Another sample is another simulation; what was gathered for the one before is not for it.
  for (std::uint64_t i = 0; i < 100; ++i) ask(tap, i);
  use(caches, wanted(2));
  tap.follow();
  for (std::uint64_t i = 0; i < 50; ++i) ask(tap, i);
  tap.hand_over();
  reports = report_of(caches, 50);
  CHECK(reports.policies[0].in_force.requests == 50);
  CHECK(reports.policies[0].sampled.requests <= 50);
  CHECK(reports.dropped == 0);
}

TEST_CASE("A kernel that cannot be made leaves all as it is", "[observe][shadow]") {
  ShadowCaches caches;
  use(caches, wanted(1));
  ShadowCaches::Wanted next = wanted(1);
  next.policies.push_back({"odd", kernel_of(cache::AdmissionPolicy::kAlways)});
  next.policies.back().whole.shards = 3;
  const auto prepared = caches.prepare(next, {});
  REQUIRE_FALSE(prepared);
  CHECK(prepared.error().message.find("\"odd\"") != std::string::npos);
  CHECK(caches.report({}).policies.size() == 2);
}

TEST_CASE("Workers hand over while policies come and go, and none of it is counted twice",
          "[observe][shadow][threads]") {
  ShadowCaches caches;
  use(caches, wanted(2));
  constexpr std::uint64_t kEach = 40'000;
  std::vector<std::thread> workers;
  for (std::uint64_t w = 0; w < 3; ++w) {
    workers.emplace_back([&caches, w] {
      const WorkerStats stats;
      ShadowTap tap(&caches, stats);
      tap.follow();
      for (std::uint64_t i = 0; i < kEach; ++i) {
        ask(tap, (i * 7 + w) % 3000);
        if (i % 5000 == 0) tap.follow();
        if (i % 50 == 0) tap.hand_over();
      }
      tap.hand_over();
    });
  }
  ShadowCaches::Wanted other = wanted(2);
  for (int turn = 0; turn < 20; ++turn) {
    other.policies[1].whole.capacity_bytes = (1U << 20U) + static_cast<unsigned>(turn % 2);
    use(caches, other);
    (void)shadow_json(caches.report({}));
  }
  for (std::thread& worker : workers) worker.join();
  // All of the one that stayed, but for what was dropped because too much waited.
  ShadowReports reports = caches.report({});
  while (reports.policies[0].in_force.requests + reports.dropped < 3 * kEach) {
    std::this_thread::yield();
    reports = caches.report({});
  }
  CHECK(reports.policies[0].in_force.requests + reports.dropped == 3 * kEach);
  CHECK(reports.policies[1].in_force.requests <= reports.policies[0].in_force.requests);
}

TEST_CASE("The pages name each policy, and say nothing where none is simulated",
          "[observe][shadow][pages]") {
  ShadowCaches caches;
  const Json off = Json::parse(shadow_json(caches.report({})));
  CHECK(off["sample"] == 0);
  CHECK(off["policies"].empty());
  MetricsWriter nothing;
  write_shadow_metrics(nothing, caches.report({}));
  CHECK(nothing.take().empty());
  use(caches, wanted(64));
  const Json on = Json::parse(shadow_json(caches.report({})));
  CHECK(on["rate"] == 1.0 / 64);
  CHECK(on["policies"][1]["policy"] == "second-hit");
  CHECK(on["policies"][1]["object_hit_ratio"]["value"] == 0);
  MetricsWriter metrics;
  write_shadow_metrics(metrics, caches.report({}));
  const std::string text = metrics.take();
  CHECK(text.find("encore_shadow_object_hit_ratio{policy=\"always\",bound=\"low\"} 0") !=
        std::string::npos);
  CHECK(shadow_html(caches.report({})).find("<td>always</td>") != std::string::npos);
}

}  // namespace encore::server
