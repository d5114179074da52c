#include "sim/cli/kernel_options.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <span>
#include <utility>

#include "base/cli/lists.h"
#include "base/units.h"
#include "cache/eviction_name.h"
#include "cache/probation.h"
#include "config/derive.h"
#include "sim/learn/xgboost.h"

namespace encore::sim {
namespace {

Result<std::vector<std::uint64_t>> parse_thresholds(const std::string& text) {
  const auto words = parse_words("--size-threshold", text);
  if (!words) {
    return std::unexpected(words.error());
  }
  std::vector<std::uint64_t> thresholds;
  for (const std::string& word : *words) {
    const auto bytes = parse_size("--size-threshold", word, {.min = 1});
    if (!bytes) {
      return std::unexpected(bytes.error());
    }
    thresholds.push_back(*bytes);
  }
  return thresholds;
}

std::string listed(std::span<const std::string_view> names) {
  std::string text = "a list of: ";
  for (const std::string_view name : names) {
    text += (name == names.front() ? "" : ", ") + std::string(name);
  }
  return text;
}

// Worst false-positive rate of probation's pair: .1 % would bring a tenth of a point more of hits,
// 1 % takes as much.
constexpr double kProbationFpr = 0.003;

// One section for each value of the list that the policy knows.
std::vector<config::Admission> parameters_of(cache::AdmissionPolicy policy,
                                             const std::vector<std::uint64_t>& counts,
                                             const std::vector<double>& probabilities,
                                             const std::vector<std::uint64_t>& thresholds) {
  std::vector<config::Admission> parameters(1);
  if (policy == cache::AdmissionPolicy::kNthHit) {
    parameters.clear();
    for (const std::uint64_t count : counts) {
      parameters.emplace_back().min_requests = static_cast<std::uint32_t>(count);
    }
  } else if (policy == cache::AdmissionPolicy::kProbability) {
    parameters.clear();
    for (const double probability : probabilities) {
      parameters.emplace_back().probability = probability;
    }
  } else if (policy == cache::AdmissionPolicy::kSizeThreshold) {
    parameters.clear();
    for (const std::uint64_t threshold : thresholds) {
      parameters.emplace_back().size_threshold_bytes = threshold;
    }
  }
  return parameters;
}

}  // namespace

Result<std::vector<CacheSize>> parse_cache_sizes(const std::string& text) {
  const auto words = parse_words("--cache-size", text);
  if (!words) {
    return std::unexpected(words.error());
  }
  std::vector<CacheSize> sizes;
  for (const std::string& word : *words) {
    CacheSize size{.text = word};
    if (word.ends_with('%')) {
      const auto percent =
          parse_real("--cache-size", std::string_view(word).substr(0, word.size() - 1),
                     {.min = 0, .max = 1000, .without_min = true});
      if (!percent) {
        return fail("--cache-size \"" + word + "\", accepted: above 0 % and up to 1000 %");
      }
      size.footprint_share = *percent / 100;
    } else {
      const auto bytes = parse_size("--cache-size", word, {.min = 1});
      if (!bytes) {
        return std::unexpected(bytes.error());
      }
      size.bytes = *bytes;
    }
    sizes.push_back(std::move(size));
  }
  return sizes;
}

Result<cache::NamedEviction> parse_policy(const std::string& text,
                                          const std::optional<cache::FetchTime>& fetch) {
  auto named = cache::parse_eviction_name(text);
  if (!named) {
    return fail("--eviction: " + named.error().message);
  }
  if (named->policy == cache::EvictionPolicy::kLrb) {
    if (auto learns = load_xgboost(); !learns) {
      return fail("--eviction lrb: " + learns.error().message);
    }
  }
  if (cache::weighs_latency(*named) && !fetch) {
    return fail("--eviction \"" + text +
                "\" without the time of a fetch: replay with --miss-latency or --bandwidth");
  }
  return named;
}

void set_policy(const cache::NamedEviction& named, cache::KernelOptions& options) {
  options.eviction = named.policy;
  options.eviction_settings.values = named.values;
  if (named.policy == cache::EvictionPolicy::kLrb) {
    options.eviction_settings.make_regressor = load_xgboost().value_or(nullptr);
  }
}

std::string admission_parameter(const cache::AdmissionOptions& options) {
  switch (options.policy) {
    case cache::AdmissionPolicy::kNthHit:
      return std::to_string(options.min_requests) + " requests";
    case cache::AdmissionPolicy::kProbability: {
      std::array<char, 32> text{};
      const auto [end, error] =
          std::to_chars(text.data(), text.data() + text.size(), options.probability);
      return "p = " + std::string(text.data(), end);
    }
    case cache::AdmissionPolicy::kSizeThreshold:
      return format_bytes(options.size_threshold_bytes);
    default:
      return {};
  }
}

void KernelArguments::declare(Arguments& a) {
  a.text("--cache-size", sizes_, "cache sizes: 64MiB, or 10% of the trace's footprint; a list");
  a.text("--eviction", evictions_,
         listed(cache::kEvictionNames) +
             "; parameters in parentheses, as \"s3-fifo(small=0.2)\": encore-sim policies");
  a.text("--admission", admissions_,
         listed(cache::kMemoryAdmissionNames) +
             (offered_ == Admissions::kProbationToo
                  ? ", " + std::string(kProbationName) + ", " + std::string(kProxyProbationName)
                  : std::string()));
  a.text("--capacity", capacities_,
         "filter: insertions per generation, over all shards; tinylfu, adaptsize: window in "
         "requests; a list");
  a.text("--fpr", fprs_, "filter: worst false-positive rate of a cycle; a list");
  a.number("--bits", bits_, "filter: bits of a generation over all shards, instead of --fpr",
           {.max = filter::kBitsMax});
  a.number("--hashes", hashes_, "filter: hashes per key (0: the best)",
           {.max = filter::kHashesMax});
  a.text("--min-requests", min_requests_, "nth-hit: the request that stores, 2 to 16; a list");
  a.text("--probability", probabilities_,
         "probability: probability of storing per request; a list");
  a.text("--size-threshold", size_thresholds_, "size-threshold: largest stored object; a list");
  a.text("--layout", layout_, "filter: classic, partitioned, blocked, split");
  a.text("--hash", hash_, "filter: xxh3, murmur3, siphash, md5, sha1, sha512");
  a.text("--rotate-after", rotate_after_, "filter: rotate also after this time (0s: never)");
  a.flag("--no-refresh", no_refresh_, "filter: do not refresh keys of the older generation");
  a.number("--shards", shards_, "number of shards, a power of two",
           {.min = 1, .max = cache::kShardsMax});
  a.number("--seed", seed_, "seed of the key hashes");
  a.number("--shadow", shadow_, "filter: measure false positives on one key in N (0: none)",
           {.max = 65536});
  a.number("--overhead", overhead_, "bytes charged per entry in addition to its size",
           {.max = kGiB});
  a.text("--max-object", max_object_, "largest stored object (default: the cache size)");
}

Result<cache::AdmissionOptions> KernelArguments::options_of(const Admission& admission) const {
  const auto layout = filter::parse_layout(layout_);
  const auto hash = filter::parse_hash_family(hash_);
  const auto rotate_after = parse_time_span("--rotate-after", rotate_after_);
  if (!layout || !hash || !rotate_after) {
    return std::unexpected(!layout ? layout.error() : !hash ? hash.error() : rotate_after.error());
  }
  config::Config config;
  config.cache.shards = static_cast<std::uint32_t>(shards_);
  config.admission = admission.parameters;
  config.admission.capacity = admission.capacity;
  config.admission.fpr = admission.fpr;
  config.admission.bits = bits_;
  config.admission.hashes = static_cast<std::uint32_t>(hashes_);
  config.admission.layout = *layout;
  config.admission.hash = *hash;
  config.admission.refresh = !no_refresh_;
  const auto plan = config::derive_filter(config);
  if (!plan) {
    return std::unexpected(plan.error());
  }
  cache::AdmissionOptions options{
      .policy = admission.policy,
      .filter = plan->shard,
      .refresh = !no_refresh_,
      .rotate_after = *rotate_after,
      .shadow_one_in = static_cast<std::uint32_t>(shadow_),
      .min_requests = admission.parameters.min_requests,
      .probability = admission.parameters.probability,
      .size_threshold_bytes = admission.parameters.size_threshold_bytes};
  options.filter.seed = identity_seed();
  return options;
}

Result<std::vector<KernelArguments::Admission>> KernelArguments::admissions(
    const Arguments& arguments) const {
  const auto names = parse_words("--admission", admissions_);
  // With bits and no capacity given, the filter's half-full point is the capacity.
  const bool by_bits = bits_ != 0 && !arguments.given("--capacity");
  const auto capacities = by_bits ? Result<std::vector<std::uint64_t>>(std::in_place, 1, 0)
                                  : parse_numbers("--capacity", capacities_);
  const auto fprs = parse_reals("--fpr", bits_ != 0 ? "0.01" : fprs_,
                                {.min = 0, .max = 1, .without_min = true, .without_max = true});
  const auto counts = parse_numbers("--min-requests", min_requests_, {.min = 2, .max = 16});
  const auto probabilities =
      parse_reals("--probability", probabilities_, {.min = 0, .max = 1, .without_min = true});
  const auto thresholds = parse_thresholds(size_thresholds_);
  for (const Error* error :
       {names ? nullptr : &names.error(), capacities ? nullptr : &capacities.error(),
        fprs ? nullptr : &fprs.error(), counts ? nullptr : &counts.error(),
        probabilities ? nullptr : &probabilities.error(),
        thresholds ? nullptr : &thresholds.error()}) {
    if (error != nullptr) {
      return std::unexpected(*error);
    }
  }
  if (bits_ == 0 && std::ranges::find(*capacities, 0U) != capacities->end()) {
    return fail("--capacity 0, accepted: 1 or more insertions, or 0 with --bits (half full)");
  }
  std::vector<Admission> all;
  for (const std::string& name : *names) {
    const bool is_proxys = name == kProxyProbationName;
    if ((is_proxys || name == kProbationName) && offered_ == Admissions::kProbationToo) {
      const auto wanted = probations(is_proxys ? Probation::kProxys : Probation::kModel, arguments,
                                     *capacities, *fprs);
      if (!wanted) {
        return std::unexpected(wanted.error());
      }
      all.insert(all.end(), wanted->begin(), wanted->end());
      continue;
    }
    const auto policy = cache::parse_admission(name);
    if (!policy) {
      return std::unexpected(policy.error());
    }
    if (*policy == cache::AdmissionPolicy::kProbation) {
      return fail("--admission probation, accepted: " + listed(cache::kMemoryAdmissionNames));
    }
    const auto parameters = parameters_of(*policy, *counts, *probabilities, *thresholds);
    for (const config::Admission& parameter : parameters) {
      for (std::size_t c = 0; c < (has_window(*policy) ? capacities->size() : 1); ++c) {
        for (std::size_t f = 0; f < (has_filter(*policy) ? fprs->size() : 1); ++f) {
          all.push_back({.policy = *policy,
                         .capacity = (*capacities)[c],
                         .fpr = (*fprs)[f],
                         .parameters = parameter});
        }
      }
    }
  }
  return all;
}

Result<void> KernelArguments::check_model(const Arguments& arguments) const {
  for (const char* option : {"--rotate-after", "--no-refresh", "--overhead", "--max-object"}) {
    if (arguments.given(option)) {
      return fail(std::string(option) + " cannot be combined with --admission probation");
    }
  }
  if (shards_ != 1) {
    return fail("--shards " + std::to_string(shards_) +
                " with --admission probation, accepted: 1, because all shards share its memory");
  }
  return {};
}

Result<std::vector<KernelArguments::Admission>> KernelArguments::probations(
    Probation kind, const Arguments& arguments, const std::vector<std::uint64_t>& capacities,
    const std::vector<double>& fprs) const {
  const bool is_model = kind == Probation::kModel;
  if (disk_bytes_ == 0) {
    return fail(
        "--admission " + std::string(is_model ? kProbationName : kProxyProbationName) +
        " without --disk-size: add one, because this policy chooses what is written to disk");
  }
  if (auto fine = is_model ? check_model(arguments) : Result<void>(); !fine) {
    return std::unexpected(fine.error());
  }
  Admission each{.on_probation = is_model};
  if (!is_model) {
    each.policy = cache::AdmissionPolicy::kProbation;
  }
  const bool sized = bits_ != 0 || arguments.given("--capacity");
  const bool goal = bits_ != 0 || arguments.given("--fpr");
  std::vector<Admission> all;
  for (const std::uint64_t capacity :
       sized ? capacities : std::vector<std::uint64_t>{cache::planned_keys(disk_bytes_)}) {
    for (const double fpr : goal ? fprs : std::vector<double>{kProbationFpr}) {
      each.capacity = capacity;
      each.fpr = fpr;
      all.push_back(each);
    }
  }
  return all;
}

Result<std::vector<PlannedKernel>> KernelArguments::plan(const Arguments& arguments) const {
  const auto sizes = parse_cache_sizes(sizes_);
  const auto evictions = parse_words("--eviction", evictions_);
  const auto wanted = admissions(arguments);
  const auto max_object = arguments.given("--max-object")
                              ? parse_size("--max-object", max_object_, {.min = 1})
                              : Result<std::uint64_t>(0);
  for (const Error* error :
       {sizes ? nullptr : &sizes.error(), evictions ? nullptr : &evictions.error(),
        wanted ? nullptr : &wanted.error(), max_object ? nullptr : &max_object.error()}) {
    if (error != nullptr) {
      return std::unexpected(*error);
    }
  }
  std::vector<PlannedKernel> all;
  for (const CacheSize& size : *sizes) {
    for (const std::string& name : *evictions) {
      const auto eviction = parse_policy(name, fetch_);
      if (!eviction) {
        return std::unexpected(eviction.error());
      }
      for (const Admission& admission : *wanted) {
        if (admission.on_probation && name != evictions->front()) {
          continue;  // its memory and its disk have orders of their own
        }
        const auto options = options_of(admission);
        if (!options) {
          return std::unexpected(options.error());
        }
        PlannedKernel planned = planned_with(size, *eviction, admission);
        planned.options.max_object_bytes = *max_object;
        planned.options.admission = *options;
        if (admission.on_probation) {
          planned.options.admission.policy = cache::AdmissionPolicy::kAlways;  // has no effect
          planned.options.admission.shadow_one_in = 0;
        }
        if (auto fine = check_options(planned.options); !fine) {
          return std::unexpected(fine.error());
        }
        all.push_back(std::move(planned));
      }
    }
  }
  return all;
}

PlannedKernel KernelArguments::planned_with(const CacheSize& size,
                                            const cache::NamedEviction& eviction,
                                            const Admission& admission) const {
  PlannedKernel planned{
      .options = {},
      .size = size,
      .fpr_goal = (admission.on_probation || has_filter(admission.policy)) && bits_ == 0
                      ? admission.fpr
                      : 0};
  if (admission.on_probation) {
    planned.probation.emplace();
  }
  cache::KernelOptions& options = planned.options;
  options.capacity_bytes = std::max<std::uint64_t>(size.bytes, 1);
  options.max_object_share = 1;
  options.shards = static_cast<std::uint32_t>(shards_);
  options.entry_overhead_bytes = static_cast<std::uint32_t>(overhead_);
  if (admission.on_probation) {
    options.eviction = cache::EvictionPolicy::kFifo;
  } else {
    set_policy(eviction, options);
    options.eviction_settings.fetch = fetch_.value_or(cache::FetchTime{});
  }
  options.identity_seed = identity_seed();
  options.concurrent = false;
  return planned;
}

Row KernelArguments::parameters() const {
  return {{"cache_size", sizes_},
          {"eviction", evictions_},
          {"admission", admissions_},
          {"capacity", capacities_},
          {"fpr", fprs_},
          {"min_requests", min_requests_},
          {"probability", probabilities_},
          {"size_threshold", size_thresholds_},
          {"bits", bits_},
          {"hashes", hashes_},
          {"layout", layout_},
          {"hash", hash_},
          {"rotate_after", rotate_after_},
          {"refresh", !no_refresh_},
          {"shards", shards_},
          {"shadow", shadow_},
          {"overhead", overhead_}};
}

}  // namespace encore::sim
