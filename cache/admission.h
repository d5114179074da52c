// Admission: one of the admission policies, chosen at run time, with its memory. The set is closed.
// A new policy: its class with would_admit() and admit(), an enumerator of AdmissionPolicy, a case
// here; policies that look at sizes or counts find them in AdmitRequest. Thread-compatible.
#pragma once

#include <string>
#include <string_view>
#include <variant>

#include "base/error.h"
#include "cache/exact_second_hit.h"
#include "cache/options.h"
#include "cache/second_hit.h"
#include "cache/statistics.h"
#include "cache/types.h"

namespace encore::cache {

class Admission {
 public:
  struct Settings {
    AdmissionOptions options;
    filter::Seed identity_seed;
  };
  // Errors: what the filter refuses, memory that cannot be had.
  static Result<Admission> create(const Settings& settings, MonotonicTime now);

  // Pure.
  bool would_admit(const Key& key, MonotonicTime now) const;
  AdmitReason admit(const Key& key, const AdmitRequest& request, MonotonicTime now);

  // Errors: as create(); nothing has changed then.
  Result<void> reconfigure(const AdmissionOptions& options, MonotonicTime now);

  // Empty for policies that have nothing to save.
  std::string save(MonotonicTime now) const;
  // Errors: not second-hit, or damaged, or of another seed.
  Result<void> restore(std::string_view bytes, MonotonicTime now);

  // Adds this shard's figures. `lines_max`: see RotatingBloomFilter::statistics.
  void add_to(AdmissionStatistics& statistics, std::uint64_t lines_max) const;

 private:
  struct Always {};
  struct Never {};
  using Policy = std::variant<Always, Never, SecondHit, ExactSecondHit>;

  Admission(const Settings& settings, Policy policy)
      : settings_(settings), policy_(std::move(policy)) {}
  static Result<Policy> make(const Settings& settings, MonotonicTime now);

  Settings settings_;
  Policy policy_;
};

}  // namespace encore::cache
