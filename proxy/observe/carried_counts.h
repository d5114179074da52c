// CarriedCounts: counters that a process goes on with which takes the place of another one, so that
// monitors see no counter fall. They are known by name: two versions of the program have most of
// them in common, and what only one of them has is left out.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/mutex.h"
#include "proxy/observe/snapshot.h"

namespace encore::server {

// Counters, histograms as several numbers each. A value.
using CountTable = std::map<std::string, std::vector<std::uint64_t>, std::less<>>;

// Those of a snapshot that only grow.
CountTable counts_of(const Snapshot& snapshot);
// `later` without `earlier`.
CountTable difference(const CountTable& later, const CountTable& earlier);
std::string to_text(const CountTable& counts);
inline constexpr std::size_t kCountsBytesMax = 4UL << 20U;
// Errors: not written by to_text(), or by a version that has more than any.
Result<CountTable> parse_counts(std::string_view text);

// Thread-safe.
class CarriedCounts {
 public:
  void add(const CountTable& counts) ENCORE_EXCLUDES(mutex_);
  void add_to(Snapshot& snapshot) const ENCORE_EXCLUDES(mutex_);

 private:
  mutable Mutex mutex_;
  CountTable counts_ ENCORE_GUARDED_BY(mutex_);
};

}  // namespace encore::server
