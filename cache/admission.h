// Admission: one of the admission policies, chosen at run time, with its memory. The set is closed.
// A new policy: its class (see cache/candidate.h), a row of the table in cache/options.h, a case in
// make(), and what it needs in check_options() and the journal. Thread-compatible.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <variant>

#include "base/error.h"
#include "cache/adapt_size.h"
#include "cache/exact_second_hit.h"
#include "cache/nth_hit.h"
#include "cache/options.h"
#include "cache/probation_admission.h"
#include "cache/request_history.h"
#include "cache/second_hit.h"
#include "cache/simple_admission.h"
#include "cache/statistics.h"
#include "cache/tiny_lfu.h"
#include "cache/types.h"

namespace encore::cache {

class Admission {
 public:
  struct Settings {
    AdmissionOptions options;
    filter::Seed identity_seed;
    std::uint64_t cache_bytes = 0;  // this shard's share
  };
  // `kernel` as created, `options` as they are now.
  static Settings settings_of(const KernelOptions& kernel, const ReloadOptions& options) {
    return {.options = options.admission,
            .identity_seed = kernel.identity_seed,
            .cache_bytes = options.capacity_bytes / kernel.shards};
  }
  // Errors: what the filter refuses, memory that cannot be had.
  static Result<Admission> create(const Settings& settings, MonotonicTime now);

  // Pure.
  bool would_admit(const Candidate& candidate, const AdmissionRule& rule = {}) const;
  // Pure. False: by its size alone, or since nothing is admitted, it stays out, whether an earlier
  // response, another variant or a part is there or not.
  bool may_replace(std::uint64_t size_bytes, const AdmissionRule& rule) const;
  // Pure.
  RequestHistory recall(const Key& key, const AdmissionRule& rule) const;
  // See AdmitRequest.
  struct Requests {
    std::uint32_t requests = 1;
    bool hinted = false;
  };
  // `rule`: see AdmitRequest. A rule that needs a filter where there is none admits nothing.
  AdmitReason admit(const Candidate& candidate, const Requests& answered,
                    const AdmissionRule& rule = {});

  // Null where the policy is another one.
  ProbationAdmission* probation() { return std::get_if<ProbationAdmission>(&policy_); }
  const ProbationAdmission* probation() const { return std::get_if<ProbationAdmission>(&policy_); }

  // True if admit() wants to know what would be evicted.
  bool compares() const { return std::holds_alternative<TinyLfu>(policy_); }
  // A resident entry of the key was used.
  void used(const Key& key) {
    if (learns_from_hits_) [[unlikely]] {
      learn_hit(key);
    }
  }

  // The identity seed stays. Errors: as create(); nothing has changed then.
  Result<void> reconfigure(const Settings& settings, MonotonicTime now);

  // Empty for policies that have nothing to save.
  std::string save(MonotonicTime now) const;
  // Errors: a policy without a filter, or damaged, or of another seed.
  Result<void> restore(std::string_view bytes, MonotonicTime now);

  // Errors: a policy without a filter.
  Result<void> can_adopt() const;
  // Takes another cache's memory in addition to its own. Returns the number of its generations.
  // Errors: those of can_adopt() and RotatingBloomFilter::adopt().
  Result<std::uint32_t> adopt(std::shared_ptr<const filter::AdoptedMemory> memory);

  // Adds this shard's figures. `lines_max`: see RotatingBloomFilter::statistics.
  void add_to(AdmissionStatistics& statistics, std::uint64_t lines_max) const;

 private:
  using Policy = std::variant<Always, Never, SecondHit, ExactSecondHit, NthHit, Probability,
                              SizeThreshold, TinyLfu, AdaptSize, ProbationAdmission>;

  Admission(const Settings& settings, Policy policy)
      : settings_(settings), policy_(std::move(policy)) {
    note_policy();
  }
  static Result<Policy> make(const Settings& settings, MonotonicTime now);
  void note_policy() {
    learns_from_hits_ =
        std::holds_alternative<TinyLfu>(policy_) || std::holds_alternative<AdaptSize>(policy_);
  }
  void learn_hit(const Key& key);
  bool would_admit_by(const AdmissionRule& rule, const Candidate& candidate) const;
  bool admit_by(const AdmissionRule& rule, const Candidate& candidate);
  // Null for policies without one.
  filter::RotatingBloomFilter* filter();
  const filter::RotatingBloomFilter* filter() const;
  // True: the policy has taken the new options itself; false: it must be made anew.
  Result<bool> take(const Settings& settings, MonotonicTime now);

  Settings settings_;
  Policy policy_;
  bool learns_from_hits_ = false;
  std::uint64_t rule_draws_ = 0;  // drawn by rules with a probability
};

}  // namespace encore::cache
