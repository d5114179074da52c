#include "cache/admission.h"

#include <algorithm>

namespace encore::cache {
namespace {

// The names of a policy's answers, and the number of requests answered together about which it is
// asked: as many as its rule can tell apart.
struct Answers {
  AdmitReason no;
  AdmitReason yes;
  std::uint32_t requests_max;
  bool counts = false;  // requests: as many as that are always enough
};

constexpr std::uint32_t kDrawsMax = 64;

Answers answers_of(const AdmissionOptions& options) {
  switch (options.policy) {
    case AdmissionPolicy::kSecondHit:
    case AdmissionPolicy::kExactSecondHit:
    case AdmissionPolicy::kProbation:
      return {AdmitReason::kFirstRequest, AdmitReason::kSecondRequest, 2, true};
    case AdmissionPolicy::kNthHit:
      return {AdmitReason::kFewRequests, AdmitReason::kEnoughRequests, options.min_requests, true};
    case AdmissionPolicy::kAlways:
    case AdmissionPolicy::kNever:
      return {AdmitReason::kPolicyNever, AdmitReason::kPolicyAlways, 1};
    case AdmissionPolicy::kSizeThreshold:
      return {AdmitReason::kPolicyRefuses, AdmitReason::kPolicyAdmits, 1};
    case AdmissionPolicy::kProbability:
    case AdmissionPolicy::kTinyLfu:
    case AdmissionPolicy::kAdaptSize:
      break;
  }
  return {AdmitReason::kPolicyRefuses, AdmitReason::kPolicyAdmits, kDrawsMax};
}

// With probation a shadow would learn of a key when it leaves, which is not when the pair is asked.
std::uint32_t shadow_of(const AdmissionOptions& options) {
  return options.policy == AdmissionPolicy::kProbation ? 0 : options.shadow_one_in;
}

filter::RotatingOptions rotating_options(const Admission::Settings& settings) {
  const AdmissionOptions& options = settings.options;
  return {.parameters = options.filter,
          .generations = options.generations,
          .refresh = options.refresh,
          .rotate_after = options.rotate_after,
          .identity_seed = settings.identity_seed,
          .shadow_one_in = shadow_of(options)};
}

AdaptSize::Settings adapt_settings(const Admission::Settings& settings) {
  return {.cache_bytes = settings.cache_bytes, .interval = settings.options.filter.capacity};
}

void add(const filter::GenerationStatistics& from, filter::GenerationStatistics& to) {
  to.parameters = from.parameters;
  to.insertions += from.insertions;
  to.set_bits += from.set_bits;
  // Sums here; Kernel::admission_statistics() divides by the number of shards.
  to.fill += from.fill;
  to.fpr_theory += from.fpr_theory;
}

}  // namespace

Result<Admission::Policy> Admission::make(const Settings& settings, MonotonicTime now) {
  switch (settings.options.policy) {
    case AdmissionPolicy::kAlways:
      return Policy(Always{});
    case AdmissionPolicy::kNever:
      return Policy(Never{});
    case AdmissionPolicy::kProbation:
    case AdmissionPolicy::kSecondHit:
    case AdmissionPolicy::kNthHit: {
      auto filter = filter::RotatingBloomFilter::create(rotating_options(settings), now);
      if (!filter) {
        return std::unexpected(filter.error());
      }
      if (settings.options.policy == AdmissionPolicy::kProbation) {
        return Policy(ProbationAdmission(std::move(*filter), settings.options.fill));
      }
      return settings.options.policy == AdmissionPolicy::kSecondHit
                 ? Policy(SecondHit(std::move(*filter)))
                 : Policy(NthHit(std::move(*filter), settings.options.min_requests));
    }
    case AdmissionPolicy::kProbability:
      return Policy(Probability(settings.options.probability));
    case AdmissionPolicy::kSizeThreshold:
      return Policy(SizeThreshold(settings.options.size_threshold_bytes));
    case AdmissionPolicy::kAdaptSize:
      return Policy(AdaptSize(adapt_settings(settings)));
    case AdmissionPolicy::kTinyLfu: {
      auto tiny = TinyLfu::create(settings.options.filter);
      if (!tiny) {
        return std::unexpected(tiny.error());
      }
      return Policy(std::move(*tiny));
    }
    case AdmissionPolicy::kExactSecondHit: {
      auto exact = ExactSecondHit::create(settings.options, now);
      if (!exact) {
        return std::unexpected(exact.error());
      }
      return Policy(std::move(*exact));
    }
  }
  return fail("an unknown admission policy");
}

Result<Admission> Admission::create(const Settings& settings, MonotonicTime now) {
  auto policy = make(settings, now);
  if (!policy) {
    return std::unexpected(policy.error());
  }
  return Admission(settings, std::move(*policy));
}

namespace {

Answers answers_of(const AdmissionRule& rule) {
  using Kind = AdmissionRule::Kind;
  switch (rule.kind) {
    case Kind::kAlways:
    case Kind::kNever:
      return {AdmitReason::kPolicyNever, AdmitReason::kPolicyAlways, 1};
    case Kind::kNthHit:
      if (rule.parameter == 2) {
        return {AdmitReason::kFirstRequest, AdmitReason::kSecondRequest, 2, true};
      }
      return {AdmitReason::kFewRequests, AdmitReason::kEnoughRequests,
              static_cast<std::uint32_t>(rule.parameter), true};
    case Kind::kSizeThreshold:
      return {AdmitReason::kPolicyRefuses, AdmitReason::kPolicyAdmits, 1};
    case Kind::kPolicy:
    case Kind::kProbability:
      break;
  }
  return {AdmitReason::kPolicyRefuses, AdmitReason::kPolicyAdmits, kDrawsMax};
}

}  // namespace

bool Admission::would_admit_by(const AdmissionRule& rule, const Candidate& candidate) const {
  using Kind = AdmissionRule::Kind;
  constexpr double kTwoTo32 = 4294967296.0;
  const auto* const own = filter();
  switch (rule.kind) {
    case Kind::kPolicy:
    case Kind::kNever:
      return false;
    case Kind::kAlways:
      return true;
    case Kind::kNthHit:
      return own != nullptr &&
             NthHit::would_admit(*own, candidate, static_cast<std::uint32_t>(rule.parameter));
    case Kind::kProbability:
      return draw(candidate.key.hash, rule_draws_) < static_cast<double>(rule.parameter) / kTwoTo32;
    case Kind::kSizeThreshold:
      return candidate.size_bytes <= rule.parameter;
  }
  return false;
}

bool Admission::admit_by(const AdmissionRule& rule, const Candidate& candidate) {
  if (rule.kind == AdmissionRule::Kind::kNthHit) {
    auto* const own = filter();
    return own != nullptr &&
           NthHit::admit(*own, candidate, static_cast<std::uint32_t>(rule.parameter));
  }
  const bool yes = would_admit_by(rule, candidate);
  if (rule.kind == AdmissionRule::Kind::kProbability) ++rule_draws_;
  return yes;
}

bool Admission::would_admit(const Candidate& candidate, const AdmissionRule& rule) const {
  if (rule.kind != AdmissionRule::Kind::kPolicy) [[unlikely]] {
    return would_admit_by(rule, candidate);
  }
  return std::visit([&](const auto& policy) { return policy.would_admit(candidate); }, policy_);
}

bool Admission::may_replace(std::uint64_t size_bytes, const AdmissionRule& rule) const {
  using Kind = AdmissionRule::Kind;
  if (rule.kind != Kind::kPolicy) [[unlikely]] {
    if (rule.kind == Kind::kNever) return false;
    return rule.kind != Kind::kSizeThreshold || size_bytes <= rule.parameter;
  }
  if (std::holds_alternative<Never>(policy_)) [[unlikely]] {
    return false;
  }
  const auto* const threshold = std::get_if<SizeThreshold>(&policy_);
  return threshold == nullptr || threshold->takes(size_bytes);
}

RequestHistory Admission::recall(const Key& key, const AdmissionRule& rule) const {
  if (const auto* const own = filter()) {
    const AdmissionOptions& options = settings_.options;
    const bool by_rule = rule.kind == AdmissionRule::Kind::kNthHit;
    const std::uint32_t stored_at = by_rule ? static_cast<std::uint32_t>(rule.parameter)
                                    : options.policy == AdmissionPolicy::kNthHit
                                        ? options.min_requests
                                        : 2;
    return NthHit::recall(*own, key, stored_at);
  }
  if (const auto* const exact = std::get_if<ExactSecondHit>(&policy_)) {
    const bool known = exact->would_admit({.key = key});
    return {.by = RequestHistory::By::kSet, .requests = known ? 1U : 0U, .stored_at = 2};
  }
  if (const auto* const tiny = std::get_if<TinyLfu>(&policy_)) {
    return {.by = RequestHistory::By::kFrequency, .requests = tiny->frequency(key.hash)};
  }
  return {};
}

namespace {

// Asks `admit` once for each request. With a hint it is asked on until it says yes, so that the key
// is remembered as one that is stored.
template <typename Admit>
AdmitReason ask(const Answers& answers, const Admission::Requests& answered, const Admit& admit) {
  const std::uint32_t own = std::min(answered.requests, answers.requests_max);
  const std::uint32_t all = answered.hinted && answers.counts ? answers.requests_max : own;
  for (std::uint32_t i = 0; i < all; ++i) {
    if (admit()) return i < own ? answers.yes : AdmitReason::kParentHint;
  }
  return answers.no;
}

}  // namespace

AdmitReason Admission::admit(const Candidate& candidate, const Requests& answered,
                             const AdmissionRule& rule) {
  if (rule.kind != AdmissionRule::Kind::kPolicy) [[unlikely]] {
    return ask(answers_of(rule), answered, [&] { return admit_by(rule, candidate); });
  }
  const Answers answers = answers_of(settings_.options);
  return std::visit(
      [&](auto& policy) { return ask(answers, answered, [&] { return policy.admit(candidate); }); },
      policy_);
}

void Admission::learn_hit(const Key& key) {
  if (auto* tiny = std::get_if<TinyLfu>(&policy_)) {
    tiny->used(key);
  } else if (auto* adapt = std::get_if<AdaptSize>(&policy_)) {
    adapt->used(key);
  }
}

filter::RotatingBloomFilter* Admission::filter() {
  if (auto* second_hit = std::get_if<SecondHit>(&policy_)) {
    return &second_hit->filter();
  }
  if (auto* on_probation = probation()) {
    return &on_probation->filter();
  }
  auto* const nth_hit = std::get_if<NthHit>(&policy_);
  return nth_hit == nullptr ? nullptr : &nth_hit->filter();
}

const filter::RotatingBloomFilter* Admission::filter() const {
  if (const auto* second_hit = std::get_if<SecondHit>(&policy_)) {
    return &second_hit->filter();
  }
  if (const auto* on_probation = probation()) {
    return &on_probation->filter();
  }
  const auto* const nth_hit = std::get_if<NthHit>(&policy_);
  return nth_hit == nullptr ? nullptr : &nth_hit->filter();
}

Result<bool> Admission::take(const Settings& settings, MonotonicTime now) {
  const AdmissionOptions& options = settings.options;
  const AdmissionOptions& before = settings_.options;
  if (options.policy != before.policy) {
    return false;
  }
  if (auto* const own = filter()) {
    // A ring of another length, or another sample, is another filter; all else it can change
    // itself.
    if (options.generations != before.generations ||
        options.shadow_one_in != before.shadow_one_in) {
      return false;
    }
    if (auto changed = own->reconfigure(options.filter, now); !changed) {
      return std::unexpected(changed.error());
    }
    own->set_refresh(options.refresh);
    own->set_rotate_after(options.rotate_after);
    if (auto* nth_hit = std::get_if<NthHit>(&policy_)) {
      nth_hit->set_min_requests(options.min_requests);
    } else if (auto* on_probation = probation()) {
      on_probation->set_fill(options.fill);
    }
  } else if (auto* exact = std::get_if<ExactSecondHit>(&policy_)) {
    if (auto changed = exact->reconfigure(options, now); !changed) {
      return std::unexpected(changed.error());
    }
  } else if (auto* probability = std::get_if<Probability>(&policy_)) {
    probability->reconfigure(options.probability);
  } else if (auto* threshold = std::get_if<SizeThreshold>(&policy_)) {
    threshold->reconfigure(options.size_threshold_bytes);
  } else if (auto* adapt = std::get_if<AdaptSize>(&policy_)) {
    adapt->reconfigure(adapt_settings(settings));
  } else if (std::holds_alternative<TinyLfu>(policy_)) {
    return options.filter == before.filter;
  }
  return true;
}

Result<void> Admission::reconfigure(const Settings& settings, MonotonicTime now) {
  const auto taken = take(settings, now);
  if (!taken) {
    return std::unexpected(taken.error());
  }
  if (!*taken) {
    auto policy = make(settings, now);
    if (!policy) {
      return std::unexpected(policy.error());
    }
    policy_ = std::move(*policy);
    note_policy();
  }
  settings_ = settings;
  return {};
}

std::string Admission::save(MonotonicTime now) const {
  const filter::RotatingBloomFilter* own = filter();
  return own == nullptr ? std::string() : own->save(now);
}

Result<void> Admission::restore(std::string_view bytes, MonotonicTime now) {
  filter::RotatingBloomFilter* const own = filter();
  if (own == nullptr) {
    return fail(
        "only the memory of second-hit, nth-hit and probation can be restored, the policy is " +
        std::string(to_string(settings_.options.policy)));
  }
  const AdmissionOptions& options = settings_.options;
  auto loaded = filter::RotatingBloomFilter::load(bytes,
                                                  {.refresh = options.refresh,
                                                   .rotate_after = options.rotate_after,
                                                   .shadow_one_in = shadow_of(options)},
                                                  now);
  if (!loaded) {
    return std::unexpected(loaded.error());
  }
  if (loaded->options().identity_seed != settings_.identity_seed) {
    return fail("the saved filter was filled under another seed (" +
                filter::fingerprint(loaded->options().identity_seed) + ", here " +
                filter::fingerprint(settings_.identity_seed) + ")");
  }
  if (loaded->options().generations != options.generations) {
    return fail("the saved filter has " + std::to_string(loaded->options().generations) +
                " generations, here " + std::to_string(options.generations));
  }
  if (auto changed = loaded->reconfigure(options.filter, now); !changed) {
    return changed;
  }
  *own = std::move(*loaded);
  return {};
}

// An entry that waits is remembered without its text, which the filters of others may want
// (docs/decisions/0100).
Result<void> Admission::can_adopt() const {
  if (filter() != nullptr && probation() == nullptr) {
    return {};
  }
  return fail("only second-hit and nth-hit can adopt a memory, the policy is " +
              std::string(to_string(settings_.options.policy)));
}

Result<std::uint32_t> Admission::adopt(std::shared_ptr<const filter::AdoptedMemory> memory) {
  if (const auto able = can_adopt(); !able) {
    return std::unexpected(able.error());
  }
  return filter()->adopt(std::move(memory));
}

void Admission::add_to(AdmissionStatistics& statistics, std::uint64_t lines_max) const {
  if (const auto* exact = std::get_if<ExactSecondHit>(&policy_)) {
    const ExactSecondHit::Statistics from = exact->statistics();
    statistics.insertions += from.insertions;
    statistics.refreshes += from.refreshes;
    statistics.rotations += from.rotations;
    statistics.capacity += settings_.options.filter.capacity;
    statistics.memory_bytes += from.memory_bytes;
    return;
  }
  if (const auto* tiny = std::get_if<TinyLfu>(&policy_)) {
    statistics.rotations += tiny->resets();
    statistics.capacity += settings_.options.filter.capacity;
    statistics.memory_bytes += tiny->memory_bytes();
    return;
  }
  if (const auto* adapt = std::get_if<AdaptSize>(&policy_)) {
    statistics.capacity += settings_.options.filter.capacity;
    statistics.memory_bytes += adapt->memory_bytes();
    statistics.size_parameter += adapt->c();
    return;
  }
  const filter::RotatingBloomFilter* const own = filter();
  if (own == nullptr) {
    return;
  }
  const filter::RotatingStatistics from = own->statistics(lines_max);
  statistics.has_filter = true;
  statistics.generations.resize(std::max(statistics.generations.size(), from.generations.size()));
  for (std::size_t i = 0; i < from.generations.size(); ++i) {
    add(from.generations[i], statistics.generations[i]);
  }
  statistics.capacity += from.generations.front().parameters.capacity;
  statistics.insertions += from.insertions;
  statistics.refreshes += from.refreshes;
  statistics.rotations += from.rotations;
  statistics.fpr_theory += from.fpr_theory;
  statistics.fpr_bits += from.fpr_bits;
  statistics.adopted.memories = std::max(statistics.adopted.memories, from.adopted.memories);
  statistics.adopted.generations =
      std::max(statistics.adopted.generations, from.adopted.generations);
  statistics.adopted.answers += from.adopted.answers;
  statistics.adopted.fpr_theory += from.adopted.fpr_theory;
  statistics.adopted.fpr_bits += from.adopted.fpr_bits;
  statistics.measured.asked += from.measured.asked;
  statistics.measured.false_positives += from.measured.false_positives;
  statistics.measured.false_negatives += from.measured.false_negatives;
  statistics.measured.expected += from.measured.expected;
  statistics.memory_bytes += from.memory_bytes;
  statistics.shadow_bytes += from.shadow_bytes;
  if (const auto* on_probation = probation()) {
    statistics.keys_waiting += on_probation->keys_waiting();
    statistics.memory_bytes += on_probation->memory_bytes();
    statistics.mean_bytes += on_probation->mean_bytes();
  }
}

}  // namespace encore::cache
