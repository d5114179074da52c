#include "cache/admission.h"

#include <algorithm>

namespace encore::cache {
namespace {

// Calls the policy once for each request until one is admitted. Two are enough for a rule that
// admits the second.
template <typename Policy>
AdmitReason ask(Policy& policy, const Key& key, const AdmitRequest& request, MonotonicTime now) {
  for (std::uint32_t i = 0; i < std::min(request.requests, 2U); ++i) {
    if (policy.admit(key, now)) {
      return AdmitReason::kSecondRequest;
    }
  }
  return AdmitReason::kFirstRequest;
}

filter::RotatingOptions rotating_options(const Admission::Settings& settings) {
  const AdmissionOptions& options = settings.options;
  return {.parameters = options.filter,
          .generations = options.generations,
          .refresh = options.refresh,
          .rotate_after = options.rotate_after,
          .identity_seed = settings.identity_seed,
          .shadow_one_in = options.shadow_one_in};
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
    case AdmissionPolicy::kSecondHit: {
      auto filter = filter::RotatingBloomFilter::create(rotating_options(settings), now);
      if (!filter) {
        return std::unexpected(filter.error());
      }
      return Policy(SecondHit(std::move(*filter)));
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

bool Admission::would_admit(const Key& key, MonotonicTime now) const {
  if (const auto* second_hit = std::get_if<SecondHit>(&policy_)) {
    return second_hit->would_admit(key, now);
  }
  if (const auto* exact = std::get_if<ExactSecondHit>(&policy_)) {
    return exact->would_admit(key, now);
  }
  return std::holds_alternative<Always>(policy_);
}

AdmitReason Admission::admit(const Key& key, const AdmitRequest& request, MonotonicTime now) {
  if (auto* second_hit = std::get_if<SecondHit>(&policy_)) {
    return ask(*second_hit, key, request, now);
  }
  if (auto* exact = std::get_if<ExactSecondHit>(&policy_)) {
    return ask(*exact, key, request, now);
  }
  return std::holds_alternative<Always>(policy_) ? AdmitReason::kPolicyAlways
                                                 : AdmitReason::kPolicyNever;
}

Result<void> Admission::reconfigure(const AdmissionOptions& options, MonotonicTime now) {
  const AdmissionOptions& before = settings_.options;
  auto* const second_hit = std::get_if<SecondHit>(&policy_);
  auto* const exact = std::get_if<ExactSecondHit>(&policy_);
  // A ring of another length, or another sample, is another filter; all else it can change itself.
  const bool same_filter =
      options.generations == before.generations && options.shadow_one_in == before.shadow_one_in;
  if (options.policy == AdmissionPolicy::kSecondHit && second_hit != nullptr && same_filter) {
    if (auto changed = second_hit->filter().reconfigure(options.filter, now); !changed) {
      return changed;
    }
    second_hit->filter().set_refresh(options.refresh);
    second_hit->filter().set_rotate_after(options.rotate_after);
  } else if (options.policy == AdmissionPolicy::kExactSecondHit && exact != nullptr) {
    if (auto changed = exact->reconfigure(options, now); !changed) {
      return changed;
    }
  } else if (options.policy == AdmissionPolicy::kSecondHit || options.policy != before.policy) {
    auto policy = make({options, settings_.identity_seed}, now);
    if (!policy) {
      return std::unexpected(policy.error());
    }
    policy_ = std::move(*policy);
  }
  settings_.options = options;
  return {};
}

std::string Admission::save(MonotonicTime now) const {
  const auto* second_hit = std::get_if<SecondHit>(&policy_);
  return second_hit == nullptr ? std::string() : second_hit->filter().save(now);
}

Result<void> Admission::restore(std::string_view bytes, MonotonicTime now) {
  auto* const second_hit = std::get_if<SecondHit>(&policy_);
  if (second_hit == nullptr) {
    return fail("only the memory of second-hit can be restored, the policy is " +
                std::string(to_string(settings_.options.policy)));
  }
  const AdmissionOptions& options = settings_.options;
  auto loaded = filter::RotatingBloomFilter::load(bytes,
                                                  {.refresh = options.refresh,
                                                   .rotate_after = options.rotate_after,
                                                   .shadow_one_in = options.shadow_one_in},
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
  second_hit->filter() = std::move(*loaded);
  return {};
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
  const auto* second_hit = std::get_if<SecondHit>(&policy_);
  if (second_hit == nullptr) {
    return;
  }
  const filter::RotatingStatistics from = second_hit->filter().statistics(lines_max);
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
  statistics.measured.asked += from.measured.asked;
  statistics.measured.false_positives += from.measured.false_positives;
  statistics.measured.false_negatives += from.measured.false_negatives;
  statistics.measured.expected += from.measured.expected;
  statistics.memory_bytes += from.memory_bytes;
  statistics.shadow_bytes += from.shadow_bytes;
}

}  // namespace encore::cache
