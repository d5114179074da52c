#include "tests/simulate/hours.h"

#include <algorithm>

namespace encore::simulate {
namespace {

constexpr std::int64_t kSeconds = 3600;
constexpr std::int64_t kStepBackMax = 3600;

}  // namespace

HoursModel::HoursModel(std::int64_t keep, std::int64_t wall, double now)
    : keep_(keep), since_(now) {
  begin(wall / kSeconds, false);
}

// From the last time that it was saved to this moment nobody watched.
void HoursModel::restore(std::int64_t wall, double now) {
  open_.clear();
  hours_.rbegin()->second.complete = false;
  since_ = now;
  if (wall / kSeconds > current()) {
    begin(wall / kSeconds, false);
    forget_old();
  } else {
    begin_next(wall, now);
  }
}

// An hour that was not watched is not there; the clock may go back a little without a consequence,
// and further as if the hours behind it had not been.
bool HoursModel::begin_next(std::int64_t wall, double now) {
  const std::int64_t hour = wall / kSeconds;
  const std::int64_t latest = current();
  if (hour == latest || (hour < latest && wall + kStepBackMax >= latest * kSeconds)) return false;
  since_ = now;
  if (hour < latest) {
    hours_.erase(hours_.upper_bound(hour), hours_.end());
    begin(hour, false);
    // An hour that was published as over goes on after all.
    hours_[hour].final_tags.clear();
    return true;
  }
  for (std::int64_t next = std::max(latest + 1, hour - keep_); next <= hour; ++next) {
    begin(next, true);
  }
  forget_old();
  return true;
}

void HoursModel::forget_old() {
  hours_.erase(hours_.begin(), hours_.lower_bound(current() - keep_));
}

void HoursModel::note_possible(std::uint64_t serial, const std::string& key) {
  hours_.rbegin()->second.may.insert(key);
  if (serial != 0) open_.push_back({serial, key});
}

void HoursModel::note_certain(const std::string& key, double since, double now) {
  if (since < since_) return;
  hours_.rbegin()->second.must.emplace_back(now, key);
}

HoursModel::Hour* HoursModel::find(std::int64_t hour) {
  const auto at = hours_.find(hour);
  return at == hours_.end() ? nullptr : &at->second;
}

}  // namespace encore::simulate
