#include "tests/simulate/adversity.h"

#include <array>

namespace encore::simulate {
namespace {

constexpr std::array<std::string_view, kFeatures> kNames = {
#define ENCORE_SIMULATE_TEXT(name, text, meaning) text,
    ENCORE_SIMULATE_FEATURES(ENCORE_SIMULATE_TEXT)
#undef ENCORE_SIMULATE_TEXT
};

constexpr std::int64_t kMillisecond = 1'000'000;

}  // namespace

std::string_view to_string(Feature feature) { return kNames[static_cast<std::size_t>(feature)]; }

std::optional<Feature> find_feature(std::string_view name) {
  for (std::size_t i = 0; i < kFeatures; ++i) {
    if (kNames[i] == name) return static_cast<Feature>(i);
  }
  return std::nullopt;
}

std::string Features::removed() const {
  std::string out;
  for (std::size_t i = 0; i < kFeatures; ++i) {
    if (has(static_cast<Feature>(i))) continue;
    out += (out.empty() ? "" : ",") + std::string(kNames[i]);
  }
  return out;
}

// Every draw is made, whether its feature is there or not: what one feature does must not change
// what the others do.
Adversity Adversity::draw(Random& random, const Features& features) {
  Adversity out;
  const auto of = [&](Feature feature, auto value) {
    return features.has(feature) ? value : decltype(value){};
  };
  out.split = of(Feature::kSplit, random.pick({0.0, 1.0, 10.0, 50.0}));
  out.short_write = of(Feature::kShortWrite, random.pick({0.0, 0.5, 5.0, 20.0}));
  out.interrupt = of(Feature::kInterrupt, random.pick({0.0, 0.1, 1.0, 5.0}));
  out.small_buffers = of(Feature::kSmallBuffers, random.pick({0.0, 2.0, 20.0, 60.0}));
  out.reset = of(Feature::kReset, random.pick({0.0, 0.0, 0.01, 0.1}));
  out.refuse = of(Feature::kRefuse, random.pick({0.0, 0.0, 0.5, 3.0}));
  out.starve = of(Feature::kStarve, random.pick({0.0, 0.01, 0.1}));
  out.starve_max = random.pick<std::int64_t>({1, 10, 40}) * kMillisecond;
  out.latency_max = of(Feature::kLatency, random.pick<std::int64_t>({0, 1, 5, 30}) * kMillisecond);
  out.mean_seconds_between_shortages = of(Feature::kDescriptors, random.pick({0.0, 0.0, 3.0}));
  return out;
}

}  // namespace encore::simulate
