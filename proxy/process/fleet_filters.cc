#include "proxy/process/fleet_filters.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <utility>
#include <vector>

#include "config/derive.h"
#include "filter/hash.h"

namespace encore::server {
namespace {

std::uint64_t insertions_of(const cache::AdmissionStatistics& own) {
  std::uint64_t sum = 0;
  for (const auto& each : own.generations) sum += each.insertions;
  return sum;
}

// Settings that keys follow from: docs/PEERS.md.
std::string hash_of_keys(const config::Config& config) {
  std::vector<std::string> parts;
  for (const config::Listen& each : config.listen) {
    parts.emplace_back(each.mode == config::Mode::kForward ? "forward" : "reverse");
  }
  for (const config::Origin& each : config.origin) {
    parts.push_back("origin " + each.host + " " + each.path);
  }
  for (const std::string& each : config.cache.query_drop) parts.push_back("drop " + each);
  if (config.cache.query_sort) parts.emplace_back("sort");
  std::ranges::sort(parts);
  const auto repeated = std::ranges::unique(parts);
  parts.erase(repeated.begin(), repeated.end());
  std::string text;
  for (const std::string& each : parts) text += each + "\n";
  const auto hash = filter::hash_key(filter::HashFamily::kXxh3, {}, text);
  return fmt::format("{:016x}", hash.lo).substr(0, 12);
}

}  // namespace

std::optional<fleet::FilterFacts> filter_facts(const config::Config& config) {
  const config::Policy policy = config.admission.policy;
  const bool is_adoptable =
      policy == config::Policy::kSecondHit || policy == config::Policy::kNthHit;
  if (!is_adoptable || !config.fleet.adopt) return std::nullopt;
  const auto plan = config::derive_filter(config);
  if (!plan) return std::nullopt;
  return fleet::FilterFacts{
      .form = fmt::format("{} {} m={} k={}", filter::to_string(plan->shard.layout),
                          filter::to_string(plan->shard.hash), plan->bits, plan->shard.hashes),
      .keys = hash_of_keys(config)};
}

void FleetFilters::use(const config::Config& config) {
  auto facts = filter_facts(config);
  const MutexLock lock(gate_->mutex);
  facts_ = std::move(facts);
}

FleetFilter::State FleetFilters::state_at_start(const cache::AdmissionStatistics& own,
                                                const config::Config& config,
                                                bool has_filter) const {
  const MutexLock lock(gate_->mutex);
  if (!facts_ || config.admission.adopted_memory_bytes == 0) return FleetFilter::State::kOff;
  return has_filter || insertions_of(own) != 0 ? FleetFilter::State::kOwn
                                               : FleetFilter::State::kWanted;
}

std::optional<fleet::FilterFacts> FleetFilters::facts(const cache::AdmissionStatistics& own) const {
  const MutexLock lock(gate_->mutex);
  auto facts = facts_;
  if (facts) facts->known = insertions_of(own);
  return facts;
}

// Nothing: the process is about to exit.
template <typename T, typename Begin>
std::optional<T> FleetFilters::wait_for(Begin begin) {
  auto result = std::make_shared<std::optional<T>>();
  const auto done = [gate = gate_, result](T value) {
    const MutexLock lock(gate->mutex);
    *result = std::move(value);
    gate->changed.notify_all();
  };
  loop_.post([begin = std::move(begin), done]() mutable { begin(done); });
  const MutexLock lock(gate_->mutex);
  while (!*result && !gate_->is_stopped) gate_->changed.wait(gate_->mutex);
  return std::exchange(*result, std::nullopt);
}

std::shared_ptr<const std::string> FleetFilters::save() {
  using Saved = MemoryHandover::Saved;
  {
    const MutexLock lock(gate_->mutex);
    if (!facts_) return nullptr;
  }
  const auto saved = wait_for<Saved>([&memory = memory_](const auto& done) {
    if (!memory.save([done](const Saved& bytes) { done(bytes); })) done(nullptr);
  });
  return saved.value_or(nullptr);
}

Result<std::uint64_t> FleetFilters::adopt(std::string bytes) {
  using Insertions = Result<std::uint64_t>;
  const auto adopted =
      wait_for<Insertions>([&memory = memory_, bytes = std::move(bytes)](const auto& done) mutable {
        const bool begun = memory.adopt(std::move(bytes), [done](const Adopted& result) {
          done(result ? Insertions(result->insertions) : Insertions(fail(result.error().message)));
        });
        if (!begun) done(fail("another import is in progress, or this process is exiting"));
      });
  return adopted ? *adopted : fail("this process is exiting");
}

void FleetFilters::stop() {
  const MutexLock lock(gate_->mutex);
  gate_->is_stopped = true;
  gate_->changed.notify_all();
}

}  // namespace encore::server
