// The options of every command that runs kernels: what of [admission] and [cache] can be given, and
// how lists of them multiply.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "cache/eviction_name.h"
#include "config/config.h"
#include "filter/theory.h"
#include "sim/cli/command.h"
#include "sim/replay/replay_run.h"

namespace encore::sim {

// "64MiB", "10%".
struct CacheSize {
  std::uint64_t bytes = 0;
  double footprint_share = 0;  // not 0: so much of the footprint
  std::string text;
};
Result<std::vector<CacheSize>> parse_cache_sizes(const std::string& text);

// --admission's name for what no kernel runs (cache/probation.h).
inline constexpr std::string_view kProbationName = "probation";
// And for probation as the proxy's kernel runs it.
inline constexpr std::string_view kProxyProbationName = "proxy-probation";

struct PlannedKernel {
  cache::KernelOptions options;
  CacheSize size;
  double fpr_goal = 0;  // 0: by bits
  // Not the kernel but probation, whose pair has the options' filter. ProbationArguments says more.
  std::optional<ReplayProbation> probation = {};
  // How the kernel's own probation is tuned: a write cost, or a rule.
  std::optional<ReplayProbation> tuning = {};
};

// "lru", "s3-fifo(small=0.2)": see cache/eviction_name.h. Errors: those, and a policy whose library
// is missing.
// Without the time of a fetch a policy that weighs it is an error.
Result<cache::NamedEviction> parse_policy(const std::string& text,
                                          const std::optional<cache::FetchTime>& fetch = {});
void set_policy(const cache::NamedEviction& named, cache::KernelOptions& options);

// Returns an admission policy's parameter, other than a filter: "3 requests", "p = 0.5", "64KiB";
// empty: none.
std::string admission_parameter(const cache::AdmissionOptions& options);

class KernelArguments {
 public:
  // Which names --admission takes: those of the kernel, or probation as well.
  enum class Admissions : std::uint8_t { kOfKernel, kProbationToo };
  explicit KernelArguments(Admissions offered = Admissions::kOfKernel) : offered_(offered) {}

  void declare(Arguments& arguments);
  // The disk that probation writes to; without one plan() refuses it.
  void set_disk_bytes(std::uint64_t bytes) { disk_bytes_ = bytes; }
  // For policies that weigh it; without one plan() refuses them.
  void set_fetch(const std::optional<cache::FetchTime>& fetch) { fetch_ = fetch; }
  // Instead of --cache-size.
  void set_cache_sizes(std::string sizes) { sizes_ = std::move(sizes); }
  // Every combination, in the order of the lists. Errors: an unknown name, what the filter refuses.
  Result<std::vector<PlannedKernel>> plan(const Arguments& arguments) const;
  filter::Seed identity_seed() const { return {seed_, seed_}; }
  std::uint64_t seed() const { return seed_; }
  Row parameters() const;

 private:
  // One element of each list that an admission policy knows.
  struct Admission {
    cache::AdmissionPolicy policy = cache::AdmissionPolicy::kSecondHit;
    std::uint64_t capacity = 0;
    double fpr = 0;
    config::Admission parameters{};  // its min_requests, probability, size_threshold
    bool on_probation = false;
  };
  Result<std::vector<Admission>> admissions(const Arguments& arguments) const;
  enum class Probation : std::uint8_t { kModel, kProxys };
  // Errors: an option is given that probation without a kernel does not have.
  Result<void> check_model(const Arguments& arguments) const;
  Result<std::vector<Admission>> probations(Probation kind, const Arguments& arguments,
                                            const std::vector<std::uint64_t>& capacities,
                                            const std::vector<double>& fprs) const;
  PlannedKernel planned_with(const CacheSize& size, const cache::NamedEviction& eviction,
                             const Admission& admission) const;
  Result<cache::AdmissionOptions> options_of(const Admission& admission) const;

  Admissions offered_;
  std::uint64_t disk_bytes_ = 0;
  std::optional<cache::FetchTime> fetch_;
  std::string sizes_ = "10%";
  std::string evictions_ = "sieve";
  std::string admissions_ = "always,second-hit";
  std::string capacities_ = "1000000";
  std::string fprs_ = "0.01";
  std::string min_requests_ = "3";
  std::string probabilities_ = "0.5";
  std::string size_thresholds_ = "64KiB";
  std::uint64_t bits_ = 0;
  std::uint64_t hashes_ = 0;
  std::string layout_ = "split";
  std::string hash_ = "xxh3";
  std::string rotate_after_ = "0s";
  bool no_refresh_ = false;
  std::uint64_t shards_ = 1;
  std::uint64_t seed_ = 1;
  std::uint64_t shadow_ = 1;
  std::uint64_t overhead_ = 0;
  std::string max_object_;
};

}  // namespace encore::sim
