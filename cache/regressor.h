// Regressor: a function of features that is learnt from examples, for eviction policies that
// predict. cache/ has none of its own: a program that has a library for it hands over a factory.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

namespace encore::cache {

struct RegressorOptions {
  std::uint32_t width = 1;    // features of an example
  std::uint32_t trees = 32;   // where it is a sum of trees: their number,
  std::uint32_t leaves = 32;  // the most leaves of one,
  double rate = 0.1;          // and how much each of them corrects
  std::uint64_t seed = 1;
};

// Deterministic. Confined to one thread.
class Regressor {
 public:
  Regressor() = default;
  virtual ~Regressor() = default;
  Regressor(const Regressor&) = delete;
  Regressor& operator=(const Regressor&) = delete;

  // Learns from examples, and from nothing before them. `rows` has `width` features for each
  // target, row by row; NaN: unknown.
  virtual void fit(std::span<const float> rows, std::span<const float> targets) = 0;
  // Fills `predicted`, one for each row. REQUIRES: fit() was called.
  virtual void predict(std::span<const float> rows, std::span<float> predicted) const = 0;
};

// Null: policies that learn are not available.
using RegressorFactory = std::unique_ptr<Regressor> (*)(const RegressorOptions& options);

}  // namespace encore::cache
