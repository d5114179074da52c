#include "proxy/disk/relocations.h"

#include <algorithm>

#include "base/check.h"

namespace encore::disk {

void Readings::begin(const cache::DiskPlace& place) {
  const MutexLock lock(mutex_);
  const auto [first, last] = readings_.equal_range(place.segment);
  const auto found =
      std::find_if(first, last, [&](const auto& each) { return each.second.place == place; });
  if (found != last) {
    ++found->second.count;
  } else {
    readings_.emplace(place.segment, Reading{place, 1});
  }
}

void Readings::end(const cache::DiskPlace& place) {
  const MutexLock lock(mutex_);
  const auto [first, last] = readings_.equal_range(place.segment);
  const auto found =
      std::find_if(first, last, [&](const auto& each) { return each.second.place == place; });
  ENCORE_CHECK(found != last, "what is read no more was read");
  if (--found->second.count == 0) readings_.erase(found);
}

std::vector<cache::DiskPlace> Readings::places() const {
  const MutexLock lock(mutex_);
  std::vector<cache::DiskPlace> places;
  places.reserve(readings_.size());
  for (const auto& [segment, reading] : readings_) places.push_back(reading.place);
  return places;
}

bool Readings::has(std::uint32_t segment) const {
  const MutexLock lock(mutex_);
  return readings_.contains(segment);
}

cache::DiskPlace Relocations::begin_reading(const cache::DiskPlace& place) {
  const MutexLock lock(mutex_);
  const auto moved = from_.find(key_of(place));
  const cache::DiskPlace& where = moved == from_.end() ? place : moved->second;
  readings_.begin(where);
  return where;
}

void Relocations::end(const cache::DiskPlace& to) {
  const MutexLock lock(mutex_);
  const std::size_t erased = from_.erase(key_of(to));
  ENCORE_CHECK(erased == 1, "a move ends once");
}

bool Relocations::empty() const {
  const MutexLock lock(mutex_);
  return from_.empty();
}

}  // namespace encore::disk
