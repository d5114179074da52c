#include "proxy/disk/runs.h"

#include <algorithm>

#include "base/check.h"

namespace encore::disk {

std::optional<RunHistory> RunHistory::restore(std::uint64_t number, std::size_t valid_from,
                                              std::span<const RunId> runs) {
  RunHistory history;
  if (runs.empty()) {
    return number == 0 && valid_from == 0 ? std::optional(history) : std::nullopt;
  }
  // The oldest may be that of disks which remember none; it has the number 0 then.
  if (runs.size() > kRunsMax || valid_from >= runs.size() || number + 1 < runs.size() ||
      runs.back() == 0) {
    return std::nullopt;
  }
  history.number_ = number;
  history.count_ = static_cast<std::uint32_t>(runs.size());
  history.valid_from_ = static_cast<std::uint32_t>(valid_from);
  std::ranges::copy(runs, history.runs_.begin());
  return history;
}

bool RunHistory::is_valid(RunId run) const {
  const auto valid = runs().subspan(valid_from_);
  return std::ranges::find(valid, run) != valid.end();
}

bool RunHistory::has(RunId run) const {
  const auto all = runs();
  return std::ranges::find(all, run) != all.end();
}

void RunHistory::begin(RunId run) {
  ENCORE_CHECK(run != 0, "a run has a number of its own");
  // Nothing is known of the time before: what remembers no run is of it.
  if (count_ == 0) count_ = 1;
  if (count_ == kRunsMax) {
    std::shift_left(runs_.begin(), runs_.end(), 1);
    --count_;
    valid_from_ = std::max(valid_from_, 1U) - 1;
  }
  runs_[count_++] = run;
  ++number_;
}

bool RunHistory::note_purge() {
  if (count_ == 0 || valid_from_ == count_ - 1) return false;
  valid_from_ = count_ - 1;
  return true;
}

void RunHistory::merge_purges(const RunHistory& other) {
  if (other.empty()) return;
  const auto found = std::ranges::find(runs(), other.runs_[other.valid_from_]);
  const auto at = static_cast<std::uint32_t>(found - runs().begin());
  if (at < count_) valid_from_ = std::max(valid_from_, at);
}

KnownRuns known_runs(const RunHistory& witness, std::span<const RunHistory> disks) {
  KnownRuns known{.history = witness};
  RunHistory& newest = known.history;
  for (const RunHistory& disk : disks) {
    if (disk.empty()) continue;
    if (newest.empty()) {
      newest = disk;
    } else if (disk.has(newest.newest())) {
      RunHistory later = disk;
      later.merge_purges(newest);
      newest = later;
    } else if (newest.has(disk.newest())) {
      newest.merge_purges(disk);
    } else if (witness.empty()) {
      const RunHistory& later = disk.number() > newest.number() ? disk : newest;
      const RunHistory& earlier = disk.number() > newest.number() ? newest : disk;
      known.is_forked = known.is_forked || earlier.number() >= later.oldest_number();
      newest = RunHistory(later);
    }
  }
  return known;
}

}  // namespace encore::disk
