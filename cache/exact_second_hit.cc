#include "cache/exact_second_hit.h"

#include <algorithm>

#include "base/check.h"

namespace encore::cache {
namespace {

Result<void> check(const AdmissionOptions& options) {
  if (options.filter.capacity == 0 || options.generations < 2) {
    return fail("exact-second-hit with capacity " + std::to_string(options.filter.capacity) +
                " and " + std::to_string(options.generations) +
                " generations, accepted: at least 1 and 2");
  }
  return {};
}

}  // namespace

Result<ExactSecondHit> ExactSecondHit::create(const AdmissionOptions& options, MonotonicTime now) {
  if (auto accepted = check(options); !accepted) {
    return std::unexpected(accepted.error());
  }
  ExactSecondHit made;
  made.options_ = options;
  made.started_ = now;
  auto first = filter::ExactGeneration::create(options.filter.capacity);
  if (!first) {
    return std::unexpected(first.error());
  }
  made.generations_.push_back(std::move(*first));
  return made;
}

bool ExactSecondHit::would_admit(const Candidate& candidate) const {
  return std::ranges::any_of(generations_,
                             [&](const auto& set) { return set.contains(candidate.key.hash); });
}

bool ExactSecondHit::admit(const Candidate& candidate) {
  const Key& key = candidate.key;
  const MonotonicTime now = candidate.now;
  if (options_.rotate_after.count() != 0 && now - started_ >= options_.rotate_after) {
    ENCORE_CHECK(rotate(now), "memory for a generation of exact-second-hit");
  }
  if (generations_.front().contains(key.hash)) {
    return true;
  }
  const bool older = would_admit(candidate);
  if (older && !options_.refresh) {
    return true;
  }
  generations_.front().insert(key.hash);
  ++statistics_.insertions;
  statistics_.refreshes += older ? 1 : 0;
  if (++statistics_.current_insertions >= options_.filter.capacity) {
    ENCORE_CHECK(rotate(now), "memory for a generation of exact-second-hit");
  }
  return older;
}

Result<void> ExactSecondHit::rotate(MonotonicTime now) {
  auto next = filter::ExactGeneration::create(options_.filter.capacity);
  if (!next) {
    return std::unexpected(next.error());
  }
  generations_.push_front(std::move(*next));
  while (generations_.size() > options_.generations) {
    generations_.pop_back();
  }
  started_ = now;
  ++statistics_.rotations;
  statistics_.current_insertions = 0;
  return {};
}

Result<void> ExactSecondHit::reconfigure(const AdmissionOptions& options, MonotonicTime now) {
  if (auto accepted = check(options); !accepted) {
    return accepted;
  }
  const AdmissionOptions before = options_;
  options_ = options;
  if (options.filter.capacity != before.filter.capacity) {
    if (auto rotated = rotate(now); !rotated) {
      options_ = before;
      return rotated;
    }
  }
  return {};
}

ExactSecondHit::Statistics ExactSecondHit::statistics() const {
  Statistics statistics = statistics_;
  for (const auto& set : generations_) {
    statistics.memory_bytes += set.memory_bytes();
  }
  return statistics;
}

}  // namespace encore::cache
