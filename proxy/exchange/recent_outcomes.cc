#include "proxy/exchange/recent_outcomes.h"

#include <algorithm>

namespace encore::server {

void RecentOutcomes::note(const filter::Hash128& key, const Seen& seen, WallTime now) {
  Set& set = (*sets_)[set_of(key)];
  const MutexLock lock(set.mutex);
  Entry* latest = nullptr;
  Entry* oldest = set.entries.data();
  for (Entry& entry : set.entries) {
    if (entry.number < oldest->number) oldest = &entry;
    const bool is_ours = entry.number != 0 && entry.key == key;
    if (is_ours && (latest == nullptr || entry.number > latest->number)) latest = &entry;
  }
  if (latest == nullptr || latest->outcomes.seen != seen) {
    // In its own set, so that a flood of keys takes the places of few others (docs/decisions/0271).
    *oldest = {.key = key, .outcomes = {.seen = seen, .first = now}};
    latest = oldest;
  }
  latest->number = ++set.notes;
  ++latest->outcomes.times;
  latest->outcomes.last = now;
}

std::vector<RecentOutcomes::Outcomes> RecentOutcomes::of(const filter::Hash128& key) const {
  const Set& set = (*sets_)[set_of(key)];
  std::vector<Entry> found;
  {
    const MutexLock lock(set.mutex);
    std::ranges::copy_if(set.entries, std::back_inserter(found),
                         [&](const Entry& entry) { return entry.number != 0 && entry.key == key; });
  }
  std::ranges::sort(found, std::greater<>(), &Entry::number);
  std::vector<Outcomes> outcomes;
  for (const Entry& entry : found) outcomes.push_back(entry.outcomes);
  return outcomes;
}

}  // namespace encore::server
