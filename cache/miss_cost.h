// MissCost: a policy's cost of a miss, by its parameter `cost`: 1 for each object (most hits), its
// bytes (most hits by bytes), or the time of its fetch (least waiting); docs/decisions/0617. Cao
// and Irani's GreedyDual-Size has it ("Cost-aware WWW proxy caching algorithms", USITS 1997), and
// so have GDSF, hyperbolic caching and LHD. A value.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "cache/policy_parameters.h"

namespace encore::cache {

class MissCost {
 public:
  enum class Kind : std::uint8_t { kOne, kLatency, kBytes };
  static constexpr std::array<std::string_view, 3> kNames = {"1", "latency", "bytes"};
  static constexpr std::string_view kName = "cost";
  static constexpr PolicyParameter kParameter = PolicyParameter::choice(
      kName, kNames, "cost of a miss: each the same, the time of its fetch, or its bytes");

  // `kind`: the parameter's value.
  MissCost(std::uint64_t kind, const FetchTime& fetch)
      : fixed_(kind == static_cast<std::uint64_t>(Kind::kOne)       ? 1
               : kind == static_cast<std::uint64_t>(Kind::kLatency) ? fetch.seconds
                                                                    : 0),
        per_byte_(kind == static_cast<std::uint64_t>(Kind::kLatency) ? fetch.seconds_per_byte
                  : kind == static_cast<std::uint64_t>(Kind::kBytes) ? 1
                                                                     : 0) {}

  double of(double bytes) const { return fixed_ + per_byte_ * bytes; }

 private:
  double fixed_;
  double per_byte_;
};

}  // namespace encore::cache
