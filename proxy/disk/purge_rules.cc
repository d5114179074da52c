#include "proxy/disk/purge_rules.h"

#include <algorithm>
#include <mutex>

namespace encore::disk {

void PurgeRules::add(const Purge& purge) {
  const std::unique_lock lock(mutex_);
  if (purge.kind == PurgeKind::kKey) {
    PurgedKey& buried = keys_[purge.key];
    buried.version = std::max(buried.version, purge.version);
    buried.sequence = std::max(buried.sequence, purge.sequence);
  } else {
    // An expression that is banned again counts once, as the later ban (docs/decisions/0221).
    if (purge.kind == PurgeKind::kBan) {
      std::erase_if(rules_, [&](const Purge& rule) {
        return rule.kind == PurgeKind::kBan && rule.version <= purge.version &&
               rule.pattern == purge.pattern;
      });
    }
    rules_.insert(std::ranges::upper_bound(rules_, purge.version, {}, &Purge::version), purge);
  }
  count();
}

void PurgeRules::count() {
  size_.store(rules_.size() + keys_.size());
  all_below_ = 0;
  for (const Purge& rule : rules_) {
    if (rule.kind == PurgeKind::kPrefix && rule.pattern.empty()) all_below_ = rule.version;
  }
  bans_.store(static_cast<std::size_t>(
      std::ranges::count(rules_, PurgeKind::kBan, [](const Purge& rule) { return rule.kind; })));
}

bool PurgeRules::has_tombstone(const filter::Hash128& key, cache::DiskVersion version) const {
  if (version < all_below_) return true;
  const auto found = keys_.find(key);
  return found != keys_.end() && version < found->second.version;
}

bool PurgeRules::is_dead(const filter::Hash128& key, cache::DiskVersion version) const {
  if (size_.load() == 0) return false;
  const std::shared_lock lock(mutex_);
  return has_tombstone(key, version);
}

bool PurgeRules::is_dead(const RecordFront& front) const {
  // A part is nobody's whose head is gone, and has nothing that a pattern could be of.
  if (size_.load() == 0 || front.fields.kind == RecordKind::kPart) return false;
  const std::shared_lock lock(mutex_);
  const cache::DiskVersion version = front.fields.version;
  if (has_tombstone(front.fields.key, version)) return true;
  // Only those that came after it.
  const auto first = std::ranges::upper_bound(rules_, version, {}, &Purge::version);
  return std::any_of(first, rules_.end(), [&](const Purge& rule) { return matches_(rule, front); });
}

void PurgeRules::forget_below(std::uint64_t sequence_min) {
  const std::unique_lock lock(mutex_);
  std::erase_if(rules_, [&](const Purge& rule) { return rule.sequence < sequence_min; });
  std::erase_if(keys_, [&](const auto& key) { return key.second.sequence < sequence_min; });
  count();
}

}  // namespace encore::disk
