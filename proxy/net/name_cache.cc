#include "proxy/net/name_cache.h"

namespace encore::net {

const NameCache::Entry* NameCache::find(std::string_view name, MonotonicTime now) {
  const auto found = by_name_.find(name);
  if (found == by_name_.end()) return nullptr;
  const auto entry = found->second;
  if (entry->expires <= now) {
    by_name_.erase(found);
    entries_.erase(entry);
    return nullptr;
  }
  entries_.splice(entries_.begin(), entries_, entry);
  return &*entry;
}

void NameCache::put(Entry entry) {
  if (entries_max_ == 0) return;
  if (const auto found = by_name_.find(entry.name); found != by_name_.end()) {
    const auto old = found->second;
    by_name_.erase(found);
    entries_.erase(old);
  }
  entries_.push_front(std::move(entry));
  by_name_.emplace(entries_.front().name, entries_.begin());
  if (entries_.size() > entries_max_) {
    by_name_.erase(entries_.back().name);
    entries_.pop_back();
  }
}

}  // namespace encore::net
