// Parameters of eviction policies: names, defaults and ranges, and values that replace defaults. A
// policy declares them as its `kParameters` and reads them when it is constructed. How they are
// written: cache/eviction_name.h. Values.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "cache/regressor.h"

namespace encore::cache {

struct PolicyParameter {
  // kShare: of a count, in millionths; kCount: a whole number; kReal: any number; kChoice: one of
  // `names`, by its place there.
  enum class Kind : std::uint8_t { kShare, kCount, kReal, kChoice };
  std::string_view name;
  Kind kind;
  double initial;  // in the absence of a value
  double min;      // both ends are accepted
  double max;
  std::string_view meaning;
  std::span<const std::string_view> names = {};

  static constexpr PolicyParameter share(std::string_view name, double initial, double min,
                                         double max, std::string_view meaning) {
    return {name, Kind::kShare, initial, min, max, meaning};
  }
  static constexpr PolicyParameter count(std::string_view name, double initial, double min,
                                         double max, std::string_view meaning) {
    return {name, Kind::kCount, initial, min, max, meaning};
  }
  static constexpr PolicyParameter real(std::string_view name, double initial, double min,
                                        double max, std::string_view meaning) {
    return {name, Kind::kReal, initial, min, max, meaning};
  }
  // The first of the names is the default.
  static constexpr PolicyParameter choice(std::string_view name,
                                          std::span<const std::string_view> names,
                                          std::string_view meaning) {
    return {name, Kind::kChoice, 0, 0, static_cast<double>(names.size()) - 1, meaning, names};
  }
};

// A share of a count, as a fraction of a million: comparisons and rounding are exact. Counts are
// below 2^40.
class Share {
 public:
  explicit constexpr Share(double share)
      : millionths_(static_cast<std::uint64_t>(share * kWhole + kHalf)) {}
  // True if `count` is more than this share of `all`.
  constexpr bool exceeded_by(std::uint64_t count, std::uint64_t all) const {
    return count * kWhole > all * millionths_;
  }
  // True if `count` is at least this share of `all`.
  constexpr bool reached_by(std::uint64_t count, std::uint64_t all) const {
    return count * kWhole >= all * millionths_;
  }
  // This share of `all`, rounded down.
  constexpr std::uint64_t of(std::uint64_t all) const { return all * millionths_ / kWhole; }

 private:
  static constexpr std::uint64_t kWhole = 1'000'000;
  static constexpr double kHalf = 0.5;  // to round: std::lround is not constexpr
  std::uint64_t millionths_;
};

inline constexpr std::size_t kPolicyParametersMax = 8;

// Values of a policy's parameters, by their place in its `kParameters`.
class PolicyValues {
 public:
  void set(std::size_t number, double value) {
    values_.at(number) = value;
    given_ |= std::uint32_t{1} << number;
  }
  bool given(std::size_t number) const { return (given_ >> number & 1U) != 0; }
  bool empty() const { return given_ == 0; }
  // REQUIRES: given(number).
  double at(std::size_t number) const { return values_.at(number); }

  // Return the value of the parameter, or its default. REQUIRES: a parameter has the name.
  double real(std::span<const PolicyParameter> parameters, std::string_view name) const;
  std::uint64_t count(std::span<const PolicyParameter> parameters, std::string_view name) const;
  Share share(std::span<const PolicyParameter> parameters, std::string_view name) const;
  friend bool operator==(const PolicyValues&, const PolicyValues&) = default;

 private:
  std::array<double, kPolicyParametersMax> values_{};
  std::uint32_t given_ = 0;
};

// Time of a fetch from the origin, for policies that weigh it (cache/miss_cost.h).
struct FetchTime {
  double seconds = 1;  // until its first byte
  double seconds_per_byte = 0;
  friend bool operator==(const FetchTime&, const FetchTime&) = default;
};

// Settings of an eviction policy. A value.
struct EvictionSettings {
  PolicyValues values;
  FetchTime fetch = {};
  RegressorFactory make_regressor = nullptr;
  friend bool operator==(const EvictionSettings&, const EvictionSettings&) = default;
};

// A parameter of several policies.
inline constexpr PolicyParameter kSeedParameter =
    PolicyParameter::count("seed", 1, 0, 4294967295, "seed of the policy's own draws");

}  // namespace encore::cache
