#include "cache/probation.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "base/check.h"

namespace encore::cache {
namespace {

constexpr double kMeanOver = 4096;

double ratio(std::uint64_t a, std::uint64_t b) {
  return static_cast<double>(a) / static_cast<double>(b);
}

filter::HashedKey hashed(const filter::Hash128& key) { return {key, {}}; }

}  // namespace

Result<void> check_rule(const ProbationRule& rule) {
  if (!(rule.window > 0 && rule.window <= ProbationRule::kWindowMax)) {
    return fail("a window of " + std::to_string(rule.window) +
                " disks, accepted: above 0, up to 2");
  }
  if (!(rule.chance > 0 && rule.chance <= 1)) {
    return fail("a chance of " + std::to_string(rule.chance) + ", accepted: above 0, up to 1");
  }
  return {};
}

std::uint64_t planned_keys(std::uint64_t disk_bytes) {
  const double objects = ratio(disk_bytes, kPlannedObjectBytes);
  return std::max<std::uint64_t>(
      64, static_cast<std::uint64_t>(std::ceil(ProbationRule::kWindowMax * objects)));
}

Result<Probation> Probation::create(const Settings& settings, MonotonicTime now) {
  if (settings.memory_bytes == 0) {
    return fail("a probation in a memory of 0 bytes, accepted: 1 or more");
  }
  if (auto accepted = check_rule(settings.rule); !accepted) {
    return std::unexpected(accepted.error());
  }
  if (settings.keys.hash != filter::HashFamily::kXxh3) {
    return fail("a probation whose pair has the hash " +
                std::string(to_string(settings.keys.hash)) + ", accepted: xxh3");
  }
  // No shadow: it would learn of a key when the key leaves, which is not when the pair is asked.
  auto keys = filter::RotatingBloomFilter::create(
      {.parameters = settings.keys, .identity_seed = settings.keys.seed, .shadow_one_in = 0}, now);
  if (!keys) {
    return std::unexpected(keys.error());
  }
  return Probation(settings, std::move(*keys));
}

Waiting* Probation::find(const filter::Hash128& key) {
  Waiting* const entry = queue_.find(key);
  return entry == nullptr || entry->only_key ? nullptr : entry;
}

ProbationVerdict Probation::fetched(const Waiting& object, const DiskLoad& disks,
                                    MonotonicTime now) {
  const std::uint64_t size_bytes = std::max<std::uint64_t>(1, object.size_bytes);
  ++fetched_;
  mean_bytes_ += (static_cast<double>(size_bytes) - mean_bytes_) /
                 std::min(kMeanOver, static_cast<double>(fetched_));
  if (const Waiting* const entry = queue_.find(object.key); entry != nullptr) {
    ENCORE_CHECK(entry->only_key, "an object that waits is not fetched");
    return ProbationVerdict::kKeyStillWaits;
  }
  if (knows(object.key, size_bytes)) {
    remember(object.key, disks, now);
    return size_bytes <= disks.size_bytes / kLargestShare ? ProbationVerdict::kAdmitted
                                                          : ProbationVerdict::kKnownTooLarge;
  }
  Waiting entry = object;
  entry.size_bytes = size_bytes;
  entry.since = now;
  entry.only_key = size_bytes > settings_.memory_bytes / kLargestShare;
  // An empty queue shows no burst: a large object's key would wait for thousands of other such
  // keys.
  if (entry.only_key && queue_.empty()) {
    remember(object.key, disks, now);
    return ProbationVerdict::kKeyWaits;
  }
  queue_.push(entry);
  return entry.only_key ? ProbationVerdict::kKeyWaits : ProbationVerdict::kWaits;
}

std::optional<Probation::Leaving> Probation::leave(const DiskLoad& disks, MonotonicTime now) {
  const Waiting* const oldest = queue_.oldest();
  if (oldest == nullptr) {
    return std::nullopt;
  }
  const bool too_old = settings_.wait_max.count() != 0 && now - oldest->since >= settings_.wait_max;
  if (queue_.bytes() <= settings_.memory_bytes && !too_old) {
    return std::nullopt;
  }
  Leaving leaving{.entry = queue_.pop()};
  const Waiting& entry = leaving.entry;
  if (!entry.only_key && entry.size_bytes <= disks.size_bytes / kLargestShare) {
    const bool fills = settings_.fill && !disks.full_once;
    leaving.fate = fills ? Fate::kFills : settings_.rule.all ? Fate::kWritten : Fate::kRemembered;
  }
  if (leaving.fate == Fate::kRemembered) {
    remember(entry.key, disks, now);
  }
  return leaving;
}

// The newer generation's keys were last heard of within one window, the older one's within two: a
// large object takes the place of several others and has to prove as much sooner.
bool Probation::knows(const filter::Hash128& key, std::uint64_t size_bytes) const {
  const filter::Seen seen = keys_.find(hashed(key));
  const bool is_known =
      seen == filter::Seen::kCurrent ||
      (seen == filter::Seen::kOlder && static_cast<double>(size_bytes) <= mean_bytes_);
  return is_known && is_drawn(key);
}

// Another draw at each request: no key is kept out for good.
bool Probation::is_drawn(const filter::Hash128& key) const {
  if (settings_.rule.chance >= 1) {
    return true;
  }
  const std::uint64_t draw = filter::scrambled(key.hi + fetched_ * 0x9e3779b97f4a7c15U);
  return static_cast<double>(draw) * 0x1p-64 < settings_.rule.chance;
}

void Probation::remember(const filter::Hash128& key, const DiskLoad& disks, MonotonicTime now) {
  keys_.test_and_set_within(hashed(key), generation_capacity(disks), now);
}

double Probation::objects_when_full(const DiskLoad& disks) const {
  if (disks.objects != 0) {
    return static_cast<double>(disks.objects) * ratio(disks.size_bytes, disks.bytes);
  }
  if (queue_.objects() != 0) {
    return static_cast<double>(queue_.objects()) * ratio(disks.size_bytes, queue_.object_bytes());
  }
  return 0;
}

std::uint64_t Probation::generation_capacity(const DiskLoad& disks) const {
  const auto planned = static_cast<double>(keys_.options().parameters.capacity);
  return static_cast<std::uint64_t>(
      std::clamp(std::ceil(settings_.rule.window * objects_when_full(disks)), 1.0, planned));
}

}  // namespace encore::cache
