// Records of one disk that are being read or moved: for the index a moved record is at its new
// place before it is written there, and is read at its old one until then. Thread-safe.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "base/mutex.h"
#include "cache/disk_types.h"

namespace encore::disk {

// Places that somebody reads at. No segment is written again that has one.
class Readings {
 public:
  void begin(const cache::DiskPlace& place) ENCORE_EXCLUDES(mutex_);
  void end(const cache::DiskPlace& place) ENCORE_EXCLUDES(mutex_);
  std::vector<cache::DiskPlace> places() const ENCORE_EXCLUDES(mutex_);
  bool has(std::uint32_t segment) const ENCORE_EXCLUDES(mutex_);

 private:
  struct Reading {
    cache::DiskPlace place;
    std::uint32_t count = 0;
  };
  mutable Mutex mutex_;
  std::multimap<std::uint32_t, Reading> readings_ ENCORE_GUARDED_BY(mutex_);  // by segment
};

class Relocations {
 public:
  explicit Relocations(Readings& readings) : readings_(readings) {}

  // Has the kernel decide a step: nobody can ask for a new place before it is known here.
  template <typename Step>
  cache::DiskReclaim decide(Step&& step) ENCORE_EXCLUDES(mutex_) {
    const MutexLock lock(mutex_);
    cache::DiskReclaim done = step();
    for (const cache::DiskRelocation& move : done.moves) from_[key_of(move.to)] = move.from;
    return done;
  }
  // Returns the place of the record's bytes, which is being read then: end() of that place is due.
  cache::DiskPlace begin_reading(const cache::DiskPlace& place) ENCORE_EXCLUDES(mutex_);
  // It is written, or dropped.
  void end(const cache::DiskPlace& to) ENCORE_EXCLUDES(mutex_);
  bool empty() const ENCORE_EXCLUDES(mutex_);

 private:
  using PlaceKey = std::pair<std::uint32_t, std::uint32_t>;
  static PlaceKey key_of(const cache::DiskPlace& place) { return {place.segment, place.unit}; }

  Readings& readings_;
  mutable Mutex mutex_;
  std::map<PlaceKey, cache::DiskPlace> from_ ENCORE_GUARDED_BY(mutex_);  // by where it goes
};

}  // namespace encore::disk
