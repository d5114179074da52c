#include "proxy/transfer/latest_responses.h"

namespace encore::server {
namespace {

bool is_newer(const LatestResponses::Answer& one, const LatestResponses::Answer& other) {
  // Parts of one representation come in any order: none of them is newer (docs/decisions/0360).
  if (one.etag != 0 && one.etag == other.etag) return false;
  const bool has_dates = one.date != http::kNoDate && other.date != http::kNoDate;
  if (has_dates && one.date != other.date) return one.date > other.date;
  // RFC 9111 4: without dates that differ the later request counts. It says nothing of a part.
  return !other.is_part && one.requested > other.requested;
}

}  // namespace

std::uint64_t LatestResponses::tag_of(const Variant& variant) {
  // Variants of a key lie in slots of their own.
  const std::uint64_t tag = variant.key.lo ^ (variant.key.hi + variant.number * 0x9E3779B97F4A7C15);
  // 0 is the tag of an empty slot.
  return tag == 0 ? 1 : tag;
}

std::optional<LatestResponses::Newer> LatestResponses::Slot::newer_than(const Answer& other,
                                                                        MonotonicTime now) const {
  if (!is_newer(answer, other)) return std::nullopt;
  const bool came_meanwhile = other.requested < noted;
  if (!came_meanwhile && now >= answer.fresh_until) return std::nullopt;
  return Newer{came_meanwhile, answer.invalidations, noted};
}

void LatestResponses::note(const Variant& variant, const Answer& answer, MonotonicTime now,
                           const std::optional<Newer>& gone) {
  const std::uint64_t tag = tag_of(variant);
  Shard& shard = shards_[tag % kShards];
  const MutexLock lock(shard.mutex);
  Slot& slot = shard.slots[tag / kShards % shard.slots.size()];
  const bool is_gone = gone && gone->noted == slot.noted;
  if (slot.tag == tag && !is_gone && slot.newer_than(answer, now)) return;
  slot = {.tag = tag, .answer = answer, .noted = now};
}

std::optional<LatestResponses::Newer> LatestResponses::newer_than(const Variant& variant,
                                                                  const Answer& answer,
                                                                  MonotonicTime now) const {
  const std::uint64_t tag = tag_of(variant);
  const Shard& shard = shards_[tag % kShards];
  const MutexLock lock(shard.mutex);
  const Slot& slot = shard.slots[tag / kShards % shard.slots.size()];
  return slot.tag == tag ? slot.newer_than(answer, now) : std::nullopt;
}

bool LatestResponses::has_since(const Variant& variant, MonotonicTime then) const {
  const std::uint64_t tag = tag_of(variant);
  const Shard& shard = shards_[tag % kShards];
  const MutexLock lock(shard.mutex);
  const Slot& slot = shard.slots[tag / kShards % shard.slots.size()];
  return slot.tag == tag && slot.noted > then;
}

}  // namespace encore::server
