#include "sim/cli/kernel_options.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include "base/units.h"
#include "config/derive.h"
#include "sim/cli/lists.h"

namespace encore::sim {
namespace {

Result<std::vector<double>> parse_reals(const std::string& text) {
  const auto words = parse_words(text);
  if (!words) {
    return std::unexpected(words.error());
  }
  std::vector<double> reals;
  for (const std::string& word : *words) {
    double real = 0;
    const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), real);
    if (error != std::errc{} || end != word.data() + word.size() || !(real > 0 && real < 1)) {
      return fail("--fpr \"" + word + "\", accepted: numbers between 0 and 1");
    }
    reals.push_back(real);
  }
  return reals;
}

}  // namespace

Result<std::vector<CacheSize>> parse_cache_sizes(const std::string& text) {
  const auto words = parse_words(text);
  if (!words) {
    return std::unexpected(words.error());
  }
  std::vector<CacheSize> sizes;
  for (const std::string& word : *words) {
    CacheSize size{.text = word};
    if (word.ends_with('%')) {
      double percent = 0;
      const char* last = word.data() + word.size() - 1;
      const auto [end, error] = std::from_chars(word.data(), last, percent);
      if (error != std::errc{} || end != last || !(percent > 0 && percent <= 1000)) {
        return fail("--cache-size \"" + word + "\", accepted: above 0 % and up to 1000 %");
      }
      size.footprint_share = percent / 100;
    } else {
      const auto bytes = parse_bytes(word);
      if (!bytes || *bytes == 0) {
        return fail("--cache-size \"" + word +
                    "\": " + (bytes ? "it is zero" : bytes.error().message));
      }
      size.bytes = *bytes;
    }
    sizes.push_back(std::move(size));
  }
  return sizes;
}

void KernelArguments::declare(Arguments& a) {
  a.text("--cache-size", sizes_, "sizes: 64MiB, or 10% of the trace's footprint; a list");
  std::string evictions;
  for (std::size_t i = 0; i < cache::kEvictionPolicyCount; ++i) {
    evictions +=
        (i == 0 ? "" : ", ") + std::string(to_string(static_cast<cache::EvictionPolicy>(i)));
  }
  std::string admissions;
  for (std::size_t i = 0; i < cache::kAdmissionPolicyCount; ++i) {
    admissions +=
        (i == 0 ? "" : ", ") + std::string(to_string(static_cast<cache::AdmissionPolicy>(i)));
  }
  a.text("--eviction", evictions_, "a list of: " + evictions);
  a.text("--admission", admissions_, "a list of: " + admissions);
  a.text("--capacity", capacities_, "filter: insertions a generation, over all shards; a list");
  a.text("--fpr", fprs_, "filter: worst false-positive rate of a cycle; a list");
  a.number("--bits", bits_, "filter: bits of a generation over all shards, instead of --fpr");
  a.number("--hashes", hashes_, "filter: hashes (0: the best)");
  a.text("--layout", layout_, "filter: classic, partitioned, blocked, split");
  a.text("--hash", hash_, "filter: xxh3, murmur3, siphash, md5, sha1, sha512");
  a.text("--rotate-after", rotate_after_, "filter: rotate after this time too (0s: never)");
  a.flag("--no-refresh", no_refresh_, "filter: do not re-insert what the older one has");
  a.number("--shards", shards_, "shards of the cache");
  a.number("--seed", seed_, "seed of the keys' hashes");
  a.number("--shadow", shadow_, "filter: measure false positives on one key in so many, 0: none");
  a.number("--overhead", overhead_, "bytes charged for an entry beside its size");
  a.text("--max-object", max_object_, "no larger object is stored (else: none above the cache)");
}

Result<cache::AdmissionOptions> KernelArguments::admission(cache::AdmissionPolicy policy,
                                                           std::uint64_t capacity,
                                                           double fpr) const {
  const auto layout = filter::parse_layout(layout_);
  const auto hash = filter::parse_hash_family(hash_);
  const auto rotate_after = parse_duration(rotate_after_);
  if (!layout || !hash || !rotate_after) {
    return std::unexpected(!layout ? layout.error() : !hash ? hash.error() : rotate_after.error());
  }
  config::Config config;
  config.cache.shards = static_cast<std::uint32_t>(shards_);
  config.admission.capacity = capacity;
  config.admission.fpr = fpr;
  config.admission.bits = bits_;
  config.admission.hashes = static_cast<std::uint32_t>(std::min<std::uint64_t>(hashes_, 1000));
  config.admission.layout = *layout;
  config.admission.hash = *hash;
  const auto plan = config::derive_filter(config);
  if (!plan) {
    return std::unexpected(plan.error());
  }
  cache::AdmissionOptions options{
      .policy = policy,
      .filter = plan->shard,
      .refresh = !no_refresh_,
      .rotate_after = *rotate_after,
      .shadow_one_in = static_cast<std::uint32_t>(std::min<std::uint64_t>(shadow_, UINT32_MAX))};
  options.filter.seed = identity_seed();
  return options;
}

Result<std::vector<PlannedKernel>> KernelArguments::plan(const Arguments& arguments) const {
  const auto sizes = parse_cache_sizes(sizes_);
  const auto evictions = parse_words(evictions_);
  const auto admissions = parse_words(admissions_);
  // With bits and no capacity given, the filter's half-full point is the capacity.
  const bool by_bits = bits_ != 0 && !arguments.given("--capacity");
  const auto capacities = by_bits ? Result<std::vector<std::uint64_t>>(std::in_place, 1, 0)
                                  : parse_numbers(capacities_);
  const auto fprs = parse_reals(bits_ != 0 ? "0.01" : fprs_);
  const auto max_object = max_object_.empty() ? Result<std::uint64_t>(0) : parse_bytes(max_object_);
  for (const Error* error :
       {sizes ? nullptr : &sizes.error(), evictions ? nullptr : &evictions.error(),
        admissions ? nullptr : &admissions.error(), capacities ? nullptr : &capacities.error(),
        fprs ? nullptr : &fprs.error(), max_object ? nullptr : &max_object.error()}) {
    if (error != nullptr) {
      return std::unexpected(*error);
    }
  }
  if (bits_ == 0 && std::ranges::find(*capacities, 0U) != capacities->end()) {
    return fail("--capacity 0, accepted: 1 or more insertions, or 0 with --bits (half full)");
  }
  if (shards_ == 0 || shards_ > cache::kShardsMax) {
    return fail(std::to_string(shards_) + " shards, accepted: a power of two, 1 to 256");
  }
  std::vector<PlannedKernel> all;
  for (const CacheSize& size : *sizes) {
    for (const std::string& eviction_name : *evictions) {
      const auto eviction = cache::parse_eviction(eviction_name);
      if (!eviction) {
        return std::unexpected(eviction.error());
      }
      for (const std::string& admission_name : *admissions) {
        const auto policy = cache::parse_admission(admission_name);
        if (!policy) {
          return std::unexpected(policy.error());
        }
        const bool filtered = *policy == cache::AdmissionPolicy::kSecondHit;
        const bool windowed = filtered || *policy == cache::AdmissionPolicy::kExactSecondHit;
        for (std::size_t c = 0; c < (windowed ? capacities->size() : 1); ++c) {
          for (std::size_t f = 0; f < (filtered ? fprs->size() : 1); ++f) {
            const auto options = admission(*policy, (*capacities)[c], (*fprs)[f]);
            if (!options) {
              return std::unexpected(options.error());
            }
            PlannedKernel planned{
                .options = {}, .size = size, .fpr_goal = filtered && bits_ == 0 ? (*fprs)[f] : 0};
            planned.options.capacity_bytes = std::max<std::uint64_t>(size.bytes, 1);
            planned.options.max_object_bytes = *max_object;
            planned.options.max_object_share = 1;
            planned.options.shards = static_cast<std::uint32_t>(shards_);
            planned.options.entry_overhead_bytes =
                static_cast<std::uint32_t>(std::min<std::uint64_t>(overhead_, 1U << 30U));
            planned.options.eviction = *eviction;
            planned.options.admission = *options;
            planned.options.identity_seed = identity_seed();
            planned.options.concurrent = false;
            if (auto fine = check_options(planned.options); !fine) {
              return std::unexpected(fine.error());
            }
            all.push_back(std::move(planned));
          }
        }
      }
    }
  }
  return all;
}

Row KernelArguments::parameters() const {
  return {{"cache_size", sizes_},
          {"eviction", evictions_},
          {"admission", admissions_},
          {"capacity", capacities_},
          {"fpr", fprs_},
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
