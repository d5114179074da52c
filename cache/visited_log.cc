#include "cache/visited_log.h"

#include <algorithm>

#include "base/check.h"

namespace encore::cache {

LoggedObject* VisitedLog::find(const filter::Hash128& key) {
  const auto found = places_.find(key);
  return found == places_.end() ? nullptr : &records_[found->second - first_].object;
}

void VisitedLog::visit(LoggedObject& object) {
  object.visits = std::min<std::uint8_t>(kVisitsMax, object.visits + 1);
  object.was_visited = true;
}

void VisitedLog::write(const LoggedObject& object, WrittenFor why) {
  ENCORE_CHECK(takes(object.size_bytes), "no object takes most of a disk");
  while (used_bytes_ + object.size_bytes > settings_.size_bytes) {
    reclaim();
  }
  (why == WrittenFor::kFill ? counts_.fill_bytes : counts_.first_bytes) += object.size_bytes;
  ++counts_.objects_written;
  LoggedObject written = object;
  written.visits = 0;
  written.was_visited = false;
  written.filled = why == WrittenFor::kFill;
  append(written);
}

void VisitedLog::append(const LoggedObject& object) {
  const bool is_new = places_.emplace(object.key, first_ + records_.size()).second;
  ENCORE_CHECK(is_new, "a key lies in one place");
  records_.push_back({.object = object});
  used_bytes_ += object.size_bytes;
  live_bytes_ += object.size_bytes;
}

bool VisitedLog::erase(const filter::Hash128& key) {
  const auto found = places_.find(key);
  if (found == places_.end()) {
    return false;
  }
  Record& record = records_[found->second - first_];
  record.erased = true;
  live_bytes_ -= record.object.size_bytes;
  places_.erase(found);
  return true;
}

std::uint64_t VisitedLog::oldest_segment_bytes() const {
  const std::uint64_t several =
      places_.empty() ? 0 : kSegmentObjects * live_bytes_ / places_.size();
  return std::max(settings_.segment_bytes, several);
}

void VisitedLog::reclaim() {
  ++counts_.reclaims;
  const std::uint64_t segment_bytes = oldest_segment_bytes();
  std::vector<LoggedObject> live;
  for (std::uint64_t bytes = 0; !records_.empty() && bytes < segment_bytes;) {
    const Record& oldest = records_.front();
    bytes += oldest.object.size_bytes;
    ENCORE_CHECK(used_bytes_ >= live_bytes_ && used_bytes_ >= oldest.object.size_bytes,
                 "the log is as long as its records");
    used_bytes_ -= oldest.object.size_bytes;
    if (!oldest.erased) {
      live.push_back(oldest.object);
      live_bytes_ -= oldest.object.size_bytes;
      places_.erase(oldest.object.key);
    }
    records_.pop_front();
    ++first_;
  }
  // Stable: with the same visits the one that was written first moves first.
  std::ranges::stable_sort(live, std::ranges::greater{}, &LoggedObject::visits);
  auto room = static_cast<std::uint64_t>(settings_.move_share * static_cast<double>(segment_bytes));
  for (LoggedObject& object : live) {
    if (object.visits >= kMoveVisits && object.size_bytes <= room) {
      room -= object.size_bytes;
      counts_.moved_bytes += object.size_bytes;
      object.visits /= 2;
      append(object);
    } else {
      ++counts_.objects_dropped;
      counts_.admitted_dropped += object.filled ? 0 : 1;
      counts_.admitted_visited += !object.filled && object.was_visited ? 1 : 0;
    }
  }
}

std::uint64_t VisitedLog::memory_bytes() const {
  // A node has a key, a number and a link, and a bucket points to it.
  constexpr std::uint64_t kNodeBytes = sizeof(filter::Hash128) + 3 * sizeof(std::uint64_t);
  return records_.size() * sizeof(Record) + places_.size() * kNodeBytes;
}

}  // namespace encore::cache
