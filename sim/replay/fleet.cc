#include "sim/replay/fleet.h"

#include <algorithm>
#include <chrono>
#include <limits>
#include <utility>

namespace encore::sim {
namespace {

using cache::AdmissionPolicy;

// Memories of keys: others learn from hits too, or compare with what the node has.
bool can_be_shared(AdmissionPolicy policy) {
  return policy != AdmissionPolicy::kTinyLfu && policy != AdmissionPolicy::kAdaptSize;
}

void add(const cache::KernelStatistics& from, cache::KernelStatistics& to) {
#define ENCORE_ADD(id, meaning) to.counters.id += from.counters.id;
  ENCORE_KERNEL_COUNTERS(ENCORE_ADD)
#undef ENCORE_ADD
  for (std::size_t i = 0; i < to.counters.admissions.size(); ++i) {
    to.counters.admissions[i] += from.counters.admissions[i];
  }
  to.objects += from.objects;
  to.used_bytes += from.used_bytes;
  to.reserved_bytes += from.reserved_bytes;
  to.capacity_bytes += from.capacity_bytes;
  to.index_bytes += from.index_bytes;
  to.max_object_bytes = from.max_object_bytes;
}

// Rates and fills become sums.
void add(const cache::AdmissionStatistics& from, cache::AdmissionStatistics& to) {
  to.has_filter = to.has_filter || from.has_filter;
  to.generations.resize(std::max(to.generations.size(), from.generations.size()));
  for (std::size_t i = 0; i < from.generations.size(); ++i) {
    to.generations[i].parameters = from.generations[i].parameters;
    to.generations[i].insertions += from.generations[i].insertions;
    to.generations[i].set_bits += from.generations[i].set_bits;
    to.generations[i].fill += from.generations[i].fill;
    to.generations[i].fpr_theory += from.generations[i].fpr_theory;
  }
  to.capacity += from.capacity;
  to.insertions += from.insertions;
  to.refreshes += from.refreshes;
  to.rotations += from.rotations;
  to.fpr_theory += from.fpr_theory;
  to.fpr_bits += from.fpr_bits;
  to.size_parameter += from.size_parameter;
  to.measured.asked += from.measured.asked;
  to.measured.false_positives += from.measured.false_positives;
  to.measured.false_negatives += from.measured.false_negatives;
  to.measured.expected += from.measured.expected;
  to.memory_bytes += from.memory_bytes;
  to.shadow_bytes += from.shadow_bytes;
}

FleetReport::Tier tier_of(const std::vector<std::unique_ptr<ReplayRun>>& runs) {
  FleetReport::Tier tier;
  if (runs.empty()) {
    return tier;
  }
  tier.requests_min = tier.hits_min = std::numeric_limits<std::uint64_t>::max();
  for (const auto& run : runs) {
    const ReplayCounts& counts = run->counts();
    tier.counts += counts;
    tier.requests_min = std::min(tier.requests_min, counts.requests);
    tier.requests_max = std::max(tier.requests_max, counts.requests);
    tier.hits_min = std::min(tier.hits_min, counts.hits);
    tier.hits_max = std::max(tier.hits_max, counts.hits);
  }
  return tier;
}

// In these cases the proxy's Cache-Status tells of an earlier request for the key.
bool is_hint(ReplayOutcome outcome) {
  return outcome == ReplayOutcome::kHit || outcome == ReplayOutcome::kRevalidated ||
         outcome == ReplayOutcome::kSecondRequest;
}

}  // namespace

class Fleet::Parents final : public Upstream {
 public:
  Parents(Runs runs, FleetMemory memory)
      : runs_(std::move(runs)),
        memory_(memory),
        balancer_({.nodes = static_cast<std::uint32_t>(runs_.size()), .balance = NodeChoice::kHash},
                  "parent") {}

  Fetched fetch(const ReplayRequest& request) override {
    ReplayRun& parent = *runs_[balancer_.next(request)];
    const ReplayOutcome outcome = parent.ask(request);
    Fetched fetched{.is_hint = memory_ == FleetMemory::kHint && is_hint(outcome),
                    .ttl_seconds = request.ttl_seconds};
    if (outcome == ReplayOutcome::kHit) {
      fetched.ttl_seconds = left_of(parent.fresh_until(), request);
    }
    return fetched;
  }
  const Runs& runs() const { return runs_; }

 private:
  // Whole seconds, as a response's age is.
  static std::uint32_t left_of(MonotonicTime fresh_until, const ReplayRequest& request) {
    if (fresh_until == MonotonicTime::max()) {
      return kNoTtl;
    }
    const auto left = fresh_until - MonotonicTime(Nanoseconds(request.time_ns));
    return static_cast<std::uint32_t>(
        std::chrono::floor<std::chrono::seconds>(std::max(left, Nanoseconds(0))).count());
  }

  Runs runs_;
  FleetMemory memory_;
  Balancer balancer_;
};

Fleet::Fleet(const ReplayOptions& options)
    : options_(*options.fleet), balancer_(options_.front, "node") {}
Fleet::~Fleet() = default;

Result<void> Fleet::check(const ReplayOptions& options) {
  const FleetOptions& fleet = *options.fleet;
  if (options.kernel.eviction == cache::EvictionPolicy::kBelady) {
    return fail(
        "--eviction belady with several caches, accepted: any other, because a node does "
        "not know which of the next requests it gets");
  }
  if (options.own) {
    return fail("a policy of your own with several caches, accepted: one cache");
  }
  if (options.has_disk() || options.probation) {
    return fail("--disk-size with several caches, accepted: caches in memory");
  }
  if (fleet.memory == FleetMemory::kHint && !fleet.has_parents()) {
    return fail("--memory hint without --tier two: the hint is the response of a parent");
  }
  if (fleet.memory == FleetMemory::kShared && !can_be_shared(options.kernel.admission.policy)) {
    return fail("--memory shared with --admission " +
                std::string(to_string(options.kernel.admission.policy)) +
                ", accepted: local, because that policy remembers hits too");
  }
  return {};
}

Result<std::unique_ptr<Fleet>> Fleet::create(const ReplayOptions& options) {
  if (auto fine = check(options); !fine) {
    return std::unexpected(fine.error());
  }
  auto fleet = std::unique_ptr<Fleet>(new Fleet(options));
  if (auto made = fleet->make_caches(options); !made) {
    return std::unexpected(made.error());
  }
  return fleet;
}

Result<void> Fleet::make_caches(const ReplayOptions& options) {
  ReplayOptions one = options;
  one.fleet.reset();
  one.outcomes = nullptr;
  one.interval_requests = 0;
  one.warmup_requests = options.warmup_requests == 0 ? 0 : UINT64_MAX;
  one.asks_kernel = true;
  const auto add_run = [](const ReplayOptions& of, Runs& runs) -> Result<void> {
    auto run = ReplayRun::create(of);
    if (!run) {
      return std::unexpected(run.error());
    }
    runs.push_back(std::move(*run));
    return {};
  };
  Result<void> made;
  if (options_.has_parents()) {
    ReplayOptions parent = one;
    if (options_.parent_cache_bytes != 0) {
      parent.kernel.capacity_bytes = options_.parent_cache_bytes;
    }
    Runs parents;
    for (std::uint32_t i = 0; made && i < options_.parents; ++i) {
      made = add_run(parent, parents);
    }
    parents_ = std::make_unique<Parents>(std::move(parents), options_.memory);
    one.upstream = parents_.get();
  }
  if (made && options_.memory == FleetMemory::kShared) {
    Runs memory;
    made = add_run(one, memory);
    if (made) {
      memory_ = std::move(memory.front());
      one.memory = memory_.get();
      one.kernel.admission.policy = AdmissionPolicy::kAlways;  // not asked
    }
  }
  for (std::uint32_t i = 0; made && i < options_.front.nodes; ++i) {
    made = add_run(one, nodes_);
  }
  return made;
}

ReplayOutcome Fleet::ask(const ReplayRequest& request) {
  if (seen_ == options_.front.lost_at) {
    at_loss_ = counts();
  }
  ++seen_;
  // Logs are not always in order; one time is for all caches.
  now_ = std::max(now_, Nanoseconds(request.time_ns));
  ReplayRequest at_now = request;
  at_now.time_ns = now_.count();
  return nodes_[balancer_.next(request)]->ask(at_now);
}

void Fleet::end_warmup() {
  each_cache([](ReplayRun& run) { run.end_warmup(); });
}

ReplayCounts Fleet::counts() const {
  ReplayCounts all = tier_of(nodes_).counts;
  if (parents_ == nullptr) {
    return all;
  }
  const ReplayCounts parents = tier_of(parents_->runs()).counts;
  all.validations = parents.validations;
  all.bytes_from_origin = parents.bytes_from_origin;
  all.hits += parents.hits;
  all.bytes_hit += parents.bytes_hit;
  all.heaviest_hits += parents.heaviest_hits;
  all.heaviest_bytes_hit += parents.heaviest_bytes_hit;
  all.objects_written += parents.objects_written;
  all.bytes_written += parents.bytes_written;
  all.bytes_rewritten += parents.bytes_rewritten;
  all.not_stored_full += parents.not_stored_full;
  return all;
}

FleetReport Fleet::report() const {
  FleetReport report;
  report.nodes = tier_of(nodes_);
  if (parents_ != nullptr) {
    report.parents = tier_of(parents_->runs());
  }
  const ReplayCounts all = counts();
  report.origin_requests = all.requests - all.hits;
  report.passed_on = balancer_.passed_on();
  const bool is_lost = seen_ > options_.front.lost_at;
  report.before_loss = is_lost ? at_loss_ : all;
  report.after_loss = is_lost ? all - at_loss_ : ReplayCounts{};
  return report;
}

cache::KernelStatistics Fleet::statistics() const {
  cache::KernelStatistics all;
  each_cache([&](const ReplayRun& run) { add(run.kernel(), all); });
  return all;
}

cache::AdmissionStatistics Fleet::admission() const {
  cache::AdmissionStatistics all;
  double filters = 0;
  each_cache([&](const ReplayRun& run) {
    const cache::AdmissionStatistics one = run.admission();
    filters += one.memory_bytes != 0 ? 1 : 0;
    add(one, all);
  });
  filters = std::max(filters, 1.0);
  for (filter::GenerationStatistics& generation : all.generations) {
    generation.fill /= filters;
    generation.fpr_theory /= filters;
  }
  all.fpr_theory /= filters;
  all.fpr_bits /= filters;
  all.size_parameter /= filters;
  return all;
}

bool Fleet::ever_stored(std::uint32_t object) const {
  bool is_stored = false;
  each_cache([&](const ReplayRun& run) { is_stored = is_stored || run.ever_stored(object); });
  return is_stored;
}

template <typename Act>
void Fleet::each_cache(Act act) const {
  for (const auto& run : nodes_) {
    act(*run);
  }
  if (parents_ != nullptr) {
    for (const auto& run : parents_->runs()) {
      act(*run);
    }
  }
  if (memory_ != nullptr) {
    act(*memory_);
  }
}

Result<std::unique_ptr<ReplayRun>> create_replay(const ReplayOptions& options) {
  if (!options.fleet) {
    return ReplayRun::create(options);
  }
  auto fleet = Fleet::create(options);
  if (!fleet) {
    return std::unexpected(fleet.error());
  }
  return ReplayRun::create(options, std::move(*fleet));
}

}  // namespace encore::sim
