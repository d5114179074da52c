#include "proxy/publish/hourly_filters.h"

#include <algorithm>
#include <string>
#include <utility>

#include "filter/published/squid_digest.h"

namespace encore::publish {

Result<HourlyFilters> HourlyFilters::create(const Options& options, WallTime now) {
  const auto accepted = filter::checked(options.filter);
  if (!accepted) return std::unexpected(accepted.error());
  if (options.filter.seed != filter::Seed{}) {
    return fail("a filter that is published has no secret seed");
  }
  if (accepted->capacity > filter::kSquidCapacityMax) {
    return fail("a digest of " + std::to_string(accepted->capacity) + " keys; accepted: up to " +
                std::to_string(filter::kSquidCapacityMax));
  }
  HourlyFilters hours({.keep = options.keep, .filter = *accepted});
  // It may have begun long before.
  hours.begin_hour(hour_of(now), false);
  return hours;
}

filter::FilterParameters HourlyFilters::digest_parameters() const {
  return filter::squid_digest_parameters(options_.filter.capacity);
}

HourRecord& HourlyFilters::begin_hour(Hour hour, bool complete) {
  HourRecord& record = hours_[hour];
  record.complete = complete;
  record.changes = ++changes_;
  return record;
}

// Those in which nothing happened are there, too: this was watching.
bool HourlyFilters::advance(WallTime now) {
  const Hour latest = hours_.rbegin()->first;
  const Hour hour = hour_of(now);
  if (hour == latest) return false;
  if (hour < latest) {
    if (now + kStepBackMax >= start_of(latest)) return false;
    step_back(hour);
    return true;
  }
  // No longer the current one.
  hours_.rbegin()->second.changes = ++changes_;
  const std::int64_t kept = options_.keep;
  for (Hour next = std::max(after(latest), after(hour, -kept)); next <= hour; next = after(next)) {
    begin_hour(next, true);
  }
  forget_old();
  return true;
}

void HourlyFilters::step_back(Hour hour) {
  hours_.erase(hours_.upper_bound(hour), hours_.end());
  begin_hour(hour, false);
}

void HourlyFilters::forget_old() {
  const std::int64_t kept = options_.keep;
  hours_.erase(hours_.begin(), hours_.lower_bound(after(hours_.rbegin()->first, -kept)));
}

bool HourlyFilters::add(std::string_view key, WallTime now) {
  advance(now);
  HourRecord& record = hours_.rbegin()->second;
  record.changes = ++changes_;
  ++record.events;
  if (!record.filter) {
    auto made = filter::AnyFilter::create({.parameters = options_.filter});
    auto digest = filter::AnyFilter::create({.parameters = digest_parameters()});
    if (!made || !digest) {
      record.complete = false;
      return false;
    }
    record.filter = std::move(*made);
    record.digest = std::move(*digest);
  }
  record.filter->add(key);
  if (record.digest) record.digest->add(key);
  return true;
}

const HourRecord* HourlyFilters::find(Hour hour, WallTime now) {
  advance(now);
  const auto at = hours_.find(hour);
  return at == hours_.end() ? nullptr : &at->second;
}

Hour HourlyFilters::current(WallTime now) {
  advance(now);
  return hours_.rbegin()->first;
}

}  // namespace encore::publish
