#include "cache/probation_admission.h"

#include <algorithm>
#include <cmath>

namespace encore::cache {
namespace {

// As Probation's.
constexpr double kSizesMeanOver = 4096;

}  // namespace

AdmitReason ProbationAdmission::fetched(const Fetched& object, const ProbationView& view) {
  const filter::Hash128& key = object.key.hash;
  const MonotonicTime now = object.arrival.since;
  ++fetched_;
  if (object.size_bytes != 0) {
    learn_size(object.size_bytes);
  }
  if (queue_.has(key)) {
    return AdmitReason::kKeyWaits;
  }
  if (knows(object, view.rule)) {
    remember(key, view, now);
    return object.size_bytes <= view.disks.size_bytes / Probation::kLargestShare
               ? AdmitReason::kSecondRequest
               : AdmitReason::kTooLarge;
  }
  if (object.hinted && object.size_bytes <= view.disks.size_bytes / Probation::kLargestShare) {
    remember(key, view, now);
    return AdmitReason::kParentHint;
  }
  if (object.may_wait) {
    const bool fills = fill_ && !view.disks.full_once;
    return fills           ? AdmitReason::kFill
           : view.rule.all ? AdmitReason::kWritesAll
                           : AdmitReason::kWaits;
  }
  // If nothing else waits there is no burst to be seen: a key that has to wait for the next ones
  // of its kind alone would wait for thousands of them.
  if (object.alone && queue_.empty()) {
    remember(key, view, now);
    return AdmitReason::kKeyWaits;
  }
  queue_.push({.key = key, .only_key = true, .payload = object.arrival.number, .since = now});
  while (queue_.bytes() > std::max(view.keys_max, WaitingQueue::kKeyBytes)) {
    let_key_leave(view, now);
  }
  return AdmitReason::kKeyWaits;
}

void ProbationAdmission::remember(const filter::Hash128& key, const ProbationView& view,
                                  MonotonicTime now) {
  keys_.test_and_set_within(filter::HashedKey{key, {}}, generation_capacity(view), now);
}

std::optional<Arrival> ProbationAdmission::oldest_key() const {
  const Waiting* const oldest = queue_.oldest();
  return oldest == nullptr ? std::nullopt : std::optional(Arrival{oldest->payload, oldest->since});
}

void ProbationAdmission::let_key_leave(const ProbationView& view, MonotonicTime now) {
  remember(queue_.pop().key, view, now);
}

void ProbationAdmission::learn_size(std::uint64_t size_bytes) {
  ++sizes_;
  mean_bytes_ += (static_cast<double>(size_bytes) - mean_bytes_) /
                 std::min(kSizesMeanOver, static_cast<double>(sizes_));
}

// The newer generation's keys were last heard of within one window, the older one's within two: a
// large object takes the place of several others and has to prove as much sooner.
bool ProbationAdmission::knows(const Fetched& object, const ProbationRule& rule) const {
  const filter::Seen seen = keys_.find(object.key);
  const bool is_known =
      seen == filter::Seen::kCurrent ||
      (seen == filter::Seen::kOlder && static_cast<double>(object.size_bytes) <= mean_bytes_);
  return is_known && is_drawn(object.key.hash, rule);
}

// Another draw at each request: no key is kept out for good.
bool ProbationAdmission::is_drawn(const filter::Hash128& key, const ProbationRule& rule) const {
  return rule.chance >= 1 || draw(key, fetched_) < rule.chance;
}

std::uint64_t ProbationAdmission::generation_capacity(const ProbationView& view) const {
  const DiskLoad& disks = view.disks;
  if (disks.size_bytes == 0) {
    return keys_.options().parameters.capacity;
  }
  const double each = disks.objects != 0
                          ? static_cast<double>(disks.bytes) / static_cast<double>(disks.objects)
                          : mean_bytes_;
  const double when_full = each > 0 ? static_cast<double>(disks.size_bytes) / each : 0;
  const auto planned = static_cast<double>(keys_.options().parameters.capacity);
  return static_cast<std::uint64_t>(
      std::clamp(std::ceil(view.rule.window * when_full / view.shards), 1.0, planned));
}

}  // namespace encore::cache
