// Requests that ended in an error, by outcome and detail. Which details there are is known to the
// code and the rules of a configuration; after many reloads those may be any number, so that only
// the first kMax have a count of their own.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/mutex.h"
#include "proxy/observe/counter.h"
#include "proxy/observe/outcome.h"

namespace encore::server {

// The places that details have, of all workers. Thread-safe.
class ErrorNames {
 public:
  static constexpr std::size_t kMax = 256;
  // The place of all that have none.
  static constexpr std::size_t kOther = kMax;
  static constexpr std::size_t kDetailBytes = 64;  // longer ones are cut
  // The number of different texts without a place that are distinguished, to count them.
  static constexpr std::size_t kClippedMax = 1024;

  struct Name {
    Outcome outcome = Outcome::kInternal;
    std::string detail;
    friend bool operator==(const Name&, const Name&) = default;
    friend auto operator<=>(const Name&, const Name&) = default;
  };

  // The place of a detail from now on, or kOther.
  std::size_t place(Outcome outcome, std::string_view detail);
  // In the order of their places.
  std::vector<Name> names() const;
  // Details that have no place, at most kClippedMax.
  std::size_t clipped() const;

 private:
  mutable Mutex mutex_;
  std::vector<Name> names_ ENCORE_GUARDED_BY(mutex_);
  std::set<Name> clipped_ ENCORE_GUARDED_BY(mutex_);
};

// Counters of one worker; other threads may read them.
class ErrorCounts {
 public:
  // Counts one. An empty detail is the outcome's own name: it says it all. The writer's thread.
  void count(ErrorNames& names, Outcome outcome, std::string_view detail);
  std::uint64_t at(std::size_t place) const { return counts_.at(place).get(); }

 private:
  struct Known {
    ErrorNames::Name name;
    std::size_t place = 0;
  };
  std::vector<Known> known_;  // those with a place that this worker has met
  std::array<Counter, ErrorNames::kMax + 1> counts_;
};

}  // namespace encore::server
