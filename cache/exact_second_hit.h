// Second-hit admission on exact sets, with the rotation rule of the rotating filter: `capacity`
// insertions (refreshes included) or `rotate_after` a generation, a hit in an older generation is a
// refresh. For comparison with the filter; 32 bytes or more a key and generation, not saved.
#pragma once

#include <deque>

#include "base/error.h"
#include "base/time.h"
#include "cache/candidate.h"
#include "cache/options.h"
#include "filter/shadow.h"

namespace encore::cache {

class ExactSecondHit {
 public:
  // Errors: capacity 0, generations below 2, memory that cannot be had.
  static Result<ExactSecondHit> create(const AdmissionOptions& options, MonotonicTime now);

  bool would_admit(const Candidate& candidate) const;
  bool admit(const Candidate& candidate);

  // From now on; the generations keep what they have.
  Result<void> reconfigure(const AdmissionOptions& options, MonotonicTime now);

  struct Statistics {
    std::uint64_t insertions = 0;  // over all time, refreshes included
    std::uint64_t refreshes = 0;
    std::uint64_t rotations = 0;
    std::uint64_t current_insertions = 0;
    std::uint64_t memory_bytes = 0;
  };
  Statistics statistics() const;

 private:
  ExactSecondHit() = default;
  Result<void> rotate(MonotonicTime now);

  AdmissionOptions options_;
  std::deque<filter::ExactGeneration> generations_;  // current first
  MonotonicTime started_{};
  Statistics statistics_;
};

}  // namespace encore::cache
