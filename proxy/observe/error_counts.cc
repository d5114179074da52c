#include "proxy/observe/error_counts.h"

#include <algorithm>

#include "proxy/observe/series.h"

namespace encore::server {
namespace {

bool is(const ErrorNames::Name& name, Outcome outcome, std::string_view detail) {
  return name.outcome == outcome && name.detail == detail;
}

}  // namespace

std::size_t ErrorNames::place(Outcome outcome, std::string_view detail) {
  if (detail == kOtherSeries) return kOther;
  const MutexLock lock(mutex_);
  const auto found =
      std::ranges::find_if(names_, [&](const Name& each) { return is(each, outcome, detail); });
  const auto place = static_cast<std::size_t>(found - names_.begin());
  if (found != names_.end()) return place;
  Name name{outcome, std::string(detail)};
  if (place < kMax) {
    names_.push_back(std::move(name));
    return place;
  }
  if (clipped_.size() < kClippedMax) clipped_.insert(std::move(name));
  return kOther;
}

std::vector<ErrorNames::Name> ErrorNames::names() const {
  const MutexLock lock(mutex_);
  return names_;
}

std::size_t ErrorNames::clipped() const {
  const MutexLock lock(mutex_);
  return clipped_.size();
}

void ErrorCounts::count(ErrorNames& names, Outcome outcome, std::string_view detail) {
  if (detail.empty()) detail = to_string(outcome);
  detail = detail.substr(0, ErrorNames::kDetailBytes);
  for (const Known& each : known_) {
    if (is(each.name, outcome, detail)) return counts_[each.place].add();
  }
  const std::size_t place = names.place(outcome, detail);
  counts_[place].add();
  if (place != ErrorNames::kOther) known_.push_back({{outcome, std::string(detail)}, place});
}

}  // namespace encore::server
