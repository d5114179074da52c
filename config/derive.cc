#include "config/derive.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <limits>
#include <string>

#include "cache/disk_parts.h"
#include "cache/probation.h"

namespace encore::config {
namespace {

constexpr std::uint32_t kGenerations = 2;
constexpr std::uint64_t kObjectShare = 8;  // no object is more than 1/8 of the memory, or the disks

std::uint64_t share(std::uint64_t whole, std::uint32_t shards) {
  return (whole + shards - 1) / shards;
}

std::string shown(double value) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%g", value);
  return text.data();
}

// bits and what else was given.
filter::FilterParameters from_bits(const Admission& admission, std::uint32_t shards) {
  filter::FilterParameters shard;
  shard.layout = admission.layout;
  shard.bits = share(admission.bits, shards);
  shard.hashes = admission.hashes;
  shard.capacity = admission.capacity == 0 ? 0 : share(admission.capacity, shards);
  if (shard.hashes == 0) {
    shard.hashes =
        shard.layout == filter::Layout::kSplit
            ? filter::kSplitHashes
            : std::min(kConfiguredHashesMax,
                       filter::best_hashes(shard.shape(), static_cast<double>(shard.capacity)));
  }
  if (shard.capacity == 0) {
    shard.capacity = std::max<std::uint64_t>(1, filter::half_full_capacity(shard.shape()));
  }
  return shard;
}

Result<filter::FilterParameters> from_goal(const Admission& admission, std::uint64_t capacity,
                                           std::uint32_t shards) {
  filter::FilterParameters shard;
  shard.layout = admission.layout;
  shard.capacity = share(capacity, shards);
  filter::RingGoal goal{.layout = admission.layout,
                        .capacity = static_cast<double>(shard.capacity),
                        .fpr_worst = admission.fpr,
                        .generations = kGenerations,
                        .hashes = admission.hashes,
                        .refresh = admission.refresh};
  filter::Sizing sizing = filter::size_ring(goal);
  if (goal.hashes == 0 && sizing.hashes > kConfiguredHashesMax) {
    goal.hashes = kConfiguredHashesMax;
    sizing = filter::size_ring(goal);
  }
  if (!sizing.reached) {
    return fail("a false-positive rate of " + shown(admission.fpr) + " for " +
                std::to_string(capacity) + " keys: no filter of layout " +
                std::string(to_string(admission.layout)) + " with " +
                std::to_string(sizing.hashes) + " hashes reaches it; accepted: a higher rate, or " +
                "another layout");
  }
  shard.bits = sizing.bits;
  shard.hashes = sizing.hashes;
  return shard;
}

bool remembers_keys(Policy policy) {
  return cache::has_filter(policy) || policy == Policy::kExactSecondHit;
}

}  // namespace

Window window_of(const Config& config) noexcept {
  constexpr std::uint64_t kUsual = 1'000'000;
  constexpr std::uint64_t kTooLong = 10;
  const Admission& admission = config.admission;
  Window window{.derived = kUsual, .recommended = kUsual};
  if (!remembers_keys(admission.policy)) return window;
  const std::uint64_t each =
      admission.policy == Policy::kNthHit ? admission.min_requests - std::uint64_t{1} : 1;
  window.least = std::max<std::uint64_t>(1, estimate_objects(config).held()) * each;
  // Behind disks 3.5 keys an object have the hits of a million keys: docs/decisions/0120.
  const std::uint64_t enough = (window.least * 7 + 1) / 2;
  if (config.disk.empty()) {
    // Memory costs no writes, and the longer a key is known, the better.
    window.recommended = std::max(kUsual, enough);
    return window;
  }
  window.follows = true;
  if (admission.policy == Policy::kProbation) {
    // A bound of what the pair may ever need; how much of it is taken follows from the traffic.
    std::uint64_t on_disk = 0;
    for (const Disk& disk : config.disk) on_disk += disk.size_bytes;
    window = {.derived = cache::planned_keys(on_disk), .follows = true, .recommended = 0};
    window.recommended = window.derived;
    return window;
  }
  window.derived = enough;
  window.recommended = enough;
  window.most = kTooLong * window.least;
  return window;
}

Result<FilterPlan> derive_filter(const Config& config) {
  const Admission& admission = config.admission;
  const std::uint32_t shards = config.cache.shards;
  FilterPlan plan;
  plan.shards = shards;
  auto made = admission.bits != 0 ? Result<filter::FilterParameters>(from_bits(admission, shards))
                                  : from_goal(admission,
                                              admission.capacity != 0 ? admission.capacity
                                                                      : window_of(config).derived,
                                              shards);
  if (!made) return std::unexpected(made.error());
  filter::FilterParameters& wanted = *made;
  wanted.hash = admission.hash;
  if (*admission.seed) wanted.seed = **admission.seed;
  auto shard = filter::checked(wanted);
  if (!shard) return std::unexpected(shard.error());
  plan.shard = *shard;
  plan.bits = plan.shard.bits * shards;
  if (plan.bits > filter::kBitsMax) {
    return fail("a filter of " + std::to_string(plan.bits) + " bits; accepted: up to " +
                std::to_string(filter::kBitsMax));
  }
  plan.capacity = plan.shard.capacity * shards;
  plan.memory_bytes = kGenerations * plan.bits / 8;
  plan.fpr = filter::ring_cycle({.shape = plan.shard.shape(),
                                 .capacity = static_cast<double>(plan.shard.capacity),
                                 .generations = kGenerations,
                                 .counting = filter::Counting::kEffective,
                                 .refresh = admission.refresh});
  return plan;
}

bool publishes(const Filters& filters, std::string_view what) noexcept {
  return std::ranges::find(filters.publish, what) != filters.publish.end();
}

namespace {

Result<filter::FilterParameters> published_filter(const Filters& filters, std::uint64_t capacity) {
  const filter::SizingGoal goal{static_cast<double>(capacity), filters.fpr};
  const bool fields = filters.hash == PublishedHash::kSha1Fields20;
  filter::Sizing sizing = filter::size_for(filter::Layout::kClassic, goal);
  if (fields && sizing.hashes > filter::kFields20Max) {
    sizing = filter::size_with_hashes(filter::Layout::kClassic, goal, filter::kFields20Max);
  }
  filter::FilterParameters parameters;
  parameters.hash = fields ? filter::HashFamily::kSha1Fields20 : filter::HashFamily::kXxh3;
  parameters.layout = filter::Layout::kClassic;
  parameters.bits = sizing.bits;
  parameters.hashes = sizing.hashes;
  parameters.capacity = capacity;
  return filter::checked(parameters);
}

}  // namespace

Result<filter::FilterParameters> derive_changed_filter(const Filters& filters) {
  return published_filter(filters, filters.capacity);
}

Result<filter::FilterParameters> derive_resident_filter(const Config& config) {
  const std::uint64_t wanted = config.filters.resident_capacity;
  return published_filter(config.filters,
                          wanted == 0 ? resident_capacity_of(config.cache) : wanted);
}

std::uint64_t resident_capacity_of(const Cache& cache) noexcept {
  constexpr std::uint64_t kBytesEach = 16 * kKiB;
  return std::max<std::uint64_t>(1, cache.memory_bytes / kBytesEach);
}

std::uint64_t resident_capacity_max(const Filters& filters) {
  // More keys take more bits: what is refused at one capacity is so at every larger one.
  std::uint64_t fits = 0;
  std::uint64_t refused = filter::kBitsMax;
  while (refused - fits > 1) {
    const std::uint64_t middle = fits + (refused - fits) / 2;
    (published_filter(filters, middle) ? fits : refused) = middle;
  }
  return fits;
}

std::uint32_t hours_kept(const Filters& filters) noexcept {
  return static_cast<std::uint32_t>(std::chrono::ceil<std::chrono::hours>(filters.keep).count());
}

std::uint64_t segment_bound(const Disk& disk) noexcept {
  const std::uint64_t segment = segment_bytes_of(disk);
  // The page of a segment, its footer, and what stands before a body. Why parts are not made
  // smaller instead: docs/decisions/0371.
  constexpr std::uint64_t kBesideMin = 16 * kKiB;
  if (segment >= cache::kPartBytes + kBesideMin) return std::numeric_limits<std::uint64_t>::max();
  return segment - std::max(kBesideMin, segment / 16);
}

std::uint64_t bounded_max_object(const Config& config, std::uint64_t bytes) noexcept {
  std::uint64_t on_disk = 0;
  for (const Disk& disk : config.disk) on_disk += disk.size_bytes;
  on_disk /= kObjectShare;
  // The key of an object decides which disk it is for: all of them have to take it.
  for (const Disk& disk : config.disk) on_disk = std::min(on_disk, segment_bound(disk));
  return std::min(bytes, std::max(config.cache.memory_bytes / kObjectShare, on_disk));
}

std::uint64_t effective_max_object(const Config& config) noexcept {
  return bounded_max_object(config, config.cache.max_object_bytes);
}

std::uint64_t max_object_in_memory(const Config& config) noexcept {
  std::uint64_t largest = config.cache.max_object_bytes;
  for (const Rule& rule : config.rule) {
    largest = std::max(largest, rule.max_object_bytes.value_or(0));
  }
  return std::min(largest, config.cache.memory_bytes / kObjectShare);
}

Result<cache::KernelOptions> kernel_options(const Config& config) {
  const auto plan = derive_filter(config);
  if (!plan) return std::unexpected(plan.error());
  cache::KernelOptions options;
  options.capacity_bytes = config.cache.memory_bytes;
  options.max_object_bytes = max_object_in_memory(config);
  options.shards = config.cache.shards;
  options.variants_max = config.cache.variants_max;
  options.eviction = config.cache.eviction;
  options.admission = {.policy = config.admission.policy,
                       .filter = plan->shard,
                       .refresh = config.admission.refresh,
                       .rotate_after = config.admission.rotate_after,
                       .shadow_one_in = config.admission.shadow_sample,
                       .min_requests = config.admission.min_requests,
                       .probability = config.admission.probability,
                       .size_threshold_bytes = config.admission.size_threshold_bytes,
                       .fill = config.admission.fill,
                       .wait_max = kProbationWaitMax};
  options.identity_seed = plan->shard.seed;
  options.disk_rules = {
      .life_seconds_min = static_cast<std::uint32_t>(
          std::chrono::ceil<std::chrono::seconds>(config.cache.disk_life_min).count()),
      .write_rate_max = config.cache.disk_write_rate,
      .reinsert_percent = config.cache.disk_reinsert};
  return options;
}

std::uint32_t effective_workers(const Workers& workers, std::uint32_t cores) noexcept {
  return workers.count != 0 ? workers.count : std::max<std::uint32_t>(1, cores);
}

std::vector<Endpoint> admin_endpoints(const Admin& admin) {
  std::vector<Endpoint> endpoints;
  for (const OptionalEndpointText& each : admin.address) {
    if (*each) endpoints.push_back(**each);
  }
  return endpoints;
}

std::string admin_text(const Admin& admin) {
  std::string text;
  for (const OptionalEndpointText& each : admin.address) {
    if (*each) text += (text.empty() ? "" : ", ") + each.text();
  }
  return text.empty() ? "none" : text;
}

std::string admin_socket_in(const std::string& directory) {
  return directory + (directory.ends_with('/') ? "" : "/") + "admin.sock";
}

bool is_local(const Endpoint& endpoint) noexcept {
  if (!endpoint.socket.empty()) return true;
  return endpoint.address.starts_with("127.") || endpoint.address == "::1";
}

std::vector<std::string> admin_warnings(const Admin& admin) {
  std::vector<std::string> warnings;
  for (const OptionalEndpointText& each : admin.address) {
    if (!*each || is_local(**each)) continue;
    const std::string where = "admin.address " + each.text() + " is not on loopback";
    warnings.push_back(where + ": requests of admin.allow_clients pass the network without TLS");
    if (admin.token_file.empty()) {
      warnings.push_back(where + " and admin.token_file is empty: purges by it are refused");
    }
  }
  return warnings;
}

bool depend_on_who_asks(std::span<const Rule> rules) {
  return std::ranges::any_of(rules, [](const Rule& rule) {
    const bool answers = rule.deny || !rule.redirect.empty() || rule.static_status;
    const bool is_uncached = rule.cache == false && rule.content_type.empty();
    return !answers && !is_uncached && !(rule.clients.empty() && rule.listener.empty());
  });
}

}  // namespace encore::config
