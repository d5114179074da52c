// Names that have series of their own in /metrics: a bounded number, whatever a configuration has.
// Names beyond the bound are counted together, under the name "other". A series and its counts
// survive a reload as long as its name is there. Why the rest has one name: docs/decisions/0292.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <string_view>

#include "proxy/observe/per_worker.h"

namespace encore::server {

inline constexpr std::string_view kOtherSeries = "other";

// How many names there may be, and how many workers count.
struct SeriesBounds {
  std::size_t most = 200;
  std::size_t workers = 1;
};

// Which of some names have series. Immutable, thread-safe.
class SeriesNames {
 public:
  SeriesNames() = default;
  // The first `most` of the names, those first that `before` has; null: there is none before. A
  // name that is itself "other" is counted under that.
  SeriesNames(std::span<const std::string> names, std::size_t most, const SeriesNames* before);

  bool has(std::string_view name) const { return own_.contains(name); }
  const std::set<std::string, std::less<>>& own() const { return own_; }
  // Names that have none.
  std::size_t clipped() const { return clipped_; }
  // True if anything is counted under "other".
  bool has_others() const { return has_others_; }

 private:
  std::set<std::string, std::less<>> own_;
  std::size_t clipped_ = 0;
  bool has_others_ = false;
};

// The same with what is counted of each. Immutable but for that, thread-safe as T is.
template <typename T>
class SeriesTable {
 public:
  using Parts = std::shared_ptr<PerWorker<T>>;

  SeriesTable() : SeriesTable({}, {}, nullptr) {}
  SeriesTable(std::span<const std::string> names, const SeriesBounds& bounds,
              const SeriesTable* before)
      : names_(names, bounds.most, before == nullptr ? nullptr : &before->names_),
        others_(before == nullptr ? make(bounds) : before->others_) {
    for (const std::string& name : names_.own()) {
      const auto known = before == nullptr ? own_.end() : before->own_.find(name);
      const bool stays = before != nullptr && known != before->own_.end();
      own_.emplace(name, stays ? known->second : make(bounds));
    }
  }

  // Returns the counters of the name.
  const Parts& of(std::string_view name) const {
    const auto found = own_.find(name);
    return found == own_.end() ? others_ : found->second;
  }
  // Each name with what all workers have counted, "other" last, where there is any.
  template <typename F>
  void each(F&& look) const {
    for (const auto& [name, parts] : own_) look(std::string_view(name), *parts);
    if (names_.has_others()) look(kOtherSeries, *others_);
  }
  std::size_t clipped() const { return names_.clipped(); }

 private:
  static Parts make(const SeriesBounds& bounds) {
    return std::make_shared<PerWorker<T>>(bounds.workers);
  }

  SeriesNames names_;
  std::map<std::string, Parts, std::less<>> own_;
  Parts others_;
};

}  // namespace encore::server
