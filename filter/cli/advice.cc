#include "filter/cli/advice.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <cstdlib>

#include "filter/published/bloomnames.h"
#include "filter/theory.h"

namespace encore::filter {
namespace {

constexpr double kOverfull = 1.1;   // estimates lie a little above the truth or below
constexpr double kErrors = 2;       // standard errors of an estimate
constexpr double kOversized = 8;    // times the bits that are needed
constexpr double kFarFromBest = 2;  // times the rate of the best number of hashes
constexpr double kRateThatMatters = 1e-3;

std::string shown(double rate) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.2g", rate);
  return text.data();
}

bool has_one_size(FilterKind kind) {
  return kind == FilterKind::kPlain || kind == FilterKind::kCounting;
}

// The most hashes that the family has for so many bits.
std::uint32_t hashes_max(HashFamily family, std::uint64_t bits) {
  if (family == HashFamily::kSquidMd5) {
    return kSquidHashes;
  }
  const std::uint32_t width = field_width(family, bits);
  return width == 0 ? kHashesMax : fielded_bits(family) / width;
}

// The number of keys. Added keys that tested positive are not counted: with a high rate the
// estimate is nearer.
std::uint64_t keys_of(const AnyFilterInfo& info) {
  constexpr double kLowRate = 0.01;
  const bool counted = info.fpr_now < kLowRate || !std::isfinite(info.keys_estimated);
  return counted ? info.keys : static_cast<std::uint64_t>(std::round(info.keys_estimated));
}

// A size as options of build.
struct Advised {
  Sizing sizing;
  std::string options;
};

// The size for so many keys at a rate, which is read as it is shown: build computes the same then.
// Nothing if no filter of the same layout and hash has it.
std::optional<Advised> advised(const FilterParameters& parameters, double keys, double rate) {
  const std::string rate_text = shown(rate);
  const double shown_rate = std::strtod(rate_text.c_str(), nullptr);
  if (!(shown_rate > 0 && shown_rate < 1 && keys >= 1)) {
    return std::nullopt;
  }
  const SizingGoal goal{keys, shown_rate};
  Sizing sizing = size_for(parameters.layout, goal);
  const std::uint32_t most = hashes_max(parameters.hash, sizing.bits);
  if (sizing.hashes > most) {
    sizing = size_with_hashes(parameters.layout, goal, most);
  }
  FilterParameters wanted = parameters;
  wanted.bits = sizing.bits;
  wanted.hashes = sizing.hashes;
  const auto fits = checked(wanted);
  if (!sizing.reached || !fits) {
    return std::nullopt;
  }
  sizing.bits = fits->bits;
  const bool split = parameters.layout == Layout::kSplit;
  std::string options = split ? "" : "--layout " + std::string(to_string(parameters.layout)) + " ";
  options += "--capacity " + std::to_string(static_cast<std::uint64_t>(keys)) + " --fpr " +
             rate_text + " (or --bits " + std::to_string(sizing.bits) + " --hashes " +
             std::to_string(sizing.hashes) + " instead of --fpr)";
  return Advised{sizing, std::move(options)};
}

}  // namespace

std::optional<std::string> overfull_advice(const AnyFilterInfo& info,
                                           std::optional<std::uint64_t> keys_read) {
  // A filter that grows is never overfull. The rate may also be above the planned one with no key
  // too many: by fields, which prefer some positions, and by chance in small filters.
  const bool saturated = !std::isfinite(info.keys_estimated);
  const auto capacity = static_cast<double>(info.capacity);
  const double least = info.keys_estimated - kErrors * info.keys_error;
  if (info.fpr_now <= kOverfull * info.fpr_capacity ||
      (!saturated && info.keys <= info.capacity && least <= capacity)) {
    return std::nullopt;
  }
  const double keys =
      saturated ? static_cast<double>(keys_read.value_or(0)) : std::round(info.keys_estimated);
  std::string text = "the filter is sized for " + std::to_string(info.capacity) + " keys and ";
  text += saturated ? "is saturated, so that its number of keys is unknown"
                    : "has about " + std::to_string(static_cast<std::uint64_t>(keys));
  text += ": its false-positive rate is " + shown(info.fpr_now) + " instead of " +
          shown(info.fpr_capacity);
  if (keys > capacity) {
    if (const auto better = advised(info.parameters, keys, info.fpr_capacity)) {
      return text + "; build it" + (saturated ? " for the keys read" : "") + " with " +
             better->options;
    }
  }
  return text + "; build it with the number of keys as --capacity, or without a size (scalable)";
}

std::optional<std::string> oversized_advice(const AnyFilterInfo& info) {
  const FilterParameters published = bloomnames_parameters();
  const bool fixed =
      info.parameters.hash == published.hash && info.parameters.shape() == published.shape();
  const std::uint64_t keys = keys_of(info);
  if (!has_one_size(info.kind) || keys == 0 || fixed) {
    return std::nullopt;
  }
  const auto needed = advised(info.parameters, static_cast<double>(keys), info.fpr_capacity);
  const auto bits = static_cast<double>(info.parameters.bits);
  if (!needed || bits < kOversized * static_cast<double>(needed->sizing.bits)) {
    return std::nullopt;
  }
  const auto times = static_cast<std::uint64_t>(bits / static_cast<double>(needed->sizing.bits));
  return "the filter is sized for " + std::to_string(info.capacity) + " keys and has " +
         std::to_string(keys) + ", " + std::to_string(times) +
         " times the bits that they need at the rate " + shown(info.fpr_capacity) +
         "; build it with " + needed->options;
}

std::optional<std::string> hashes_advice(const AnyFilterInfo& info, std::uint64_t keys) {
  const FilterParameters& parameters = info.parameters;
  const bool lines = parameters.layout == Layout::kBlocked || parameters.layout == Layout::kSplit;
  if (!has_one_size(info.kind) || lines || keys == 0 || parameters.hash == HashFamily::kSquidMd5) {
    return std::nullopt;
  }
  const auto count = static_cast<double>(keys);
  FilterShape best = parameters.shape();
  const double rate = fpr(best, count);
  best.hashes = std::min(best_hashes(best, count), hashes_max(parameters.hash, best.bits));
  const double lowest = fpr(best, count);
  if (rate < kRateThatMatters || rate < kFarFromBest * lowest) {
    return std::nullopt;
  }
  const std::string hashes = std::to_string(parameters.hashes);
  std::string text = "--hashes " + hashes + " is far from the best number for " +
                     std::to_string(keys) + " keys in " + std::to_string(best.bits) +
                     " bits: the false-positive rate is " + shown(rate) + ", with --hashes " +
                     std::to_string(best.hashes) + " it is " + shown(lowest);
  const auto same = advised(parameters, count, rate);
  if (same && same->sizing.bits < best.bits) {
    text += "; for the same rate build it with " + same->options;
  }
  return text;
}

std::vector<std::string> advice_for(const AnyFilterInfo& info, const AdviceSource& source) {
  std::vector<std::string> all;
  const auto add = [&](std::optional<std::string> text) {
    if (text) {
      all.push_back(std::move(*text));
    }
    return text.has_value();
  };
  add(overfull_advice(info, source.keys_read));
  const bool oversized = add(oversized_advice(info));
  const std::uint64_t planned = source.capacity_given ? info.capacity : 0;
  // Few keys in a large filter want many hashes, whatever it is for.
  if (!oversized || source.capacity_given) {
    add(hashes_advice(info, std::max(planned, keys_of(info))));
  }
  return all;
}

}  // namespace encore::filter
