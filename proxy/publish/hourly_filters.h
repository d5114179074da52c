// HourlyFilters: of each of the last hours, the keys that something happened to, as a Bloom filter
// of its own (Gregorio, "Bloom Filter Resources", 2008). Pure: the clock is an argument.
// Thread-compatible.
//
// A published past hour is final: an hour that is over gets no more keys. An event counts for the
// hour in which it is reported here, and that hour never goes back: if the clock does, by up to
// kStepBackMax, events go into the latest hour. If it goes back further, the undone hours are
// dropped, and the hour of the new time continues, and is not complete.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "base/error.h"
#include "base/time.h"
#include "filter/any_filter.h"
#include "filter/parameters.h"
#include "proxy/publish/hour.h"

namespace encore::publish {

// A clock that is set right: an hour, for those who keep theirs by local time.
inline constexpr std::chrono::hours kStepBackMax(1);

// One hour. `filter` is absent where nothing happened: it is as if it were there, and empty.
struct HourRecord {
  std::optional<filter::AnyFilter> filter;
  // The same keys as a Squid's digest has them, in as much room as one for Options' capacity;
  // absent as well where the hour was saved without one.
  std::optional<filter::AnyFilter> digest;
  std::uint64_t events = 0;   // keys told of, also those that were there already
  bool complete = false;      // watched from its start to its end (or to now)
  std::uint64_t changes = 0;  // another number whenever anything of this record has changed
};

class HourlyFilters {
 public:
  struct Options {
    std::uint32_t keep = 48;          // hours that are over
    filter::FilterParameters filter;  // parameters of one hour; its seed is zero: it is published
  };
  // Watches from `now` on. Errors: those of filter::checked(); a seed, for the readers of a filter
  // have to know it; more keys than a digest can hold.
  static Result<HourlyFilters> create(const Options& options, WallTime now);

  // Restores saved hours, and continues at `now`; the hour in which they were saved is not
  // complete, and those without a running proxy are not known. Hours keep the parameters that they
  // were made with. Errors: those of create(); damaged, foreign, or seeded bytes, which allocate no
  // more than they justify.
  static Result<HourlyFilters> restore(std::string_view bytes, const Options& options,
                                       WallTime now);
  // Versioned and checksummed.
  std::string save() const;

  // Something happened to the key. False where it could not be remembered, for want of memory: the
  // hour is then not complete.
  bool add(std::string_view key, WallTime now);
  // Time has passed; whether another hour has begun. The functions that take `now` begin with it.
  bool advance(WallTime now);

  // Null where the hour is not known: too long ago, not watched, or not begun.
  const HourRecord* find(Hour hour, WallTime now);
  Hour current(WallTime now);
  // All that are known, the oldest first.
  const std::map<Hour, HourRecord>& hours() const { return hours_; }
  std::uint32_t keep() const { return options_.keep; }
  // Those of a filter that is absent, and of the next one.
  const filter::FilterParameters& parameters() const { return options_.filter; }
  filter::FilterParameters digest_parameters() const;

 private:
  explicit HourlyFilters(const Options& options) : options_(options) {}
  HourRecord& begin_hour(Hour hour, bool complete);
  void step_back(Hour hour);
  void forget_old();
  Result<void> take_records(std::string_view body);

  Options options_;
  std::map<Hour, HourRecord> hours_;  // the last one is the current; never empty
  std::uint64_t changes_ = 0;
};

}  // namespace encore::publish
