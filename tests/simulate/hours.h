// HoursModel: which keys the published filter of an hour must hold and may hold, as docs/FILTERS.md
// promises it: what is known to have changed in the hour, and what may have. A naive model, in keys
// instead of bits; it shares no code with proxy/publish. Thread-compatible; a copy is a saved
// state.
#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

namespace encore::simulate {

class HoursModel {
 public:
  struct Hour {
    bool complete = false;
    // Known to be in it since when, in this order.
    std::vector<std::pair<double, std::string>> must;
    std::unordered_set<std::string> may;
    // The published form of it once it was over, by the form's suffix: its bytes never change.
    std::map<std::string, std::string, std::less<>> final_tags;
  };
  // A response that may tell of a change as long as the proxy has not read it.
  struct Open {
    std::uint64_t serial = 0;
    std::string key;
  };

  // Watches from `wall` (seconds) on, and knows `keep` hours that are over.
  HoursModel(std::int64_t keep, std::int64_t wall, double now);
  // As it was when it was saved, gone on with: nobody watched in between.
  void restore(std::int64_t wall, double now);
  // Time has passed. `is_heard` says of a response whether the proxy had read it by now. Whether
  // another hour has begun.
  template <typename IsHeard>
  bool advance(std::int64_t wall, double now, IsHeard is_heard);

  // The proxy may have noticed it from now on, until it has read the response `serial`; 0: now.
  void note_possible(std::uint64_t serial, const std::string& key);
  // It has noticed it, between `since` and `now`. Nothing, where that may have been in two hours.
  void note_certain(const std::string& key, double since, double now);

  std::int64_t current() const { return hours_.rbegin()->first; }
  // Since when the current one is.
  double current_since() const { return since_; }
  // Since when it is known what is known.
  Hour* find(std::int64_t hour);

 private:
  void begin(std::int64_t hour, bool complete) { hours_[hour].complete = complete; }
  void forget_old();
  bool begin_next(std::int64_t wall, double now);

  std::int64_t keep_;
  std::map<std::int64_t, Hour> hours_;  // the last is the current
  std::vector<Open> open_;
  double since_;
};

template <typename IsHeard>
bool HoursModel::advance(std::int64_t wall, double now, IsHeard is_heard) {
  if (!begin_next(wall, now)) return false;
  std::erase_if(open_, [&](const Open& open) { return is_heard(open.serial); });
  for (const Open& open : open_) hours_.rbegin()->second.may.insert(open.key);
  return true;
}

}  // namespace encore::simulate
