#include "sim/replay/object_memory.h"

#include <cmath>

#include "base/check.h"

namespace encore::sim {
namespace {

// One in so many remembered objects may be of the sample. The usual number gives 32 to 64 thousand,
// and a standard error of at most 0.55 %.
constexpr std::uint64_t kSampledShare = 16;
constexpr double kNineteenOfTwenty = 1.96;

// Horvitz and Thompson 1952: each object stands for 1 / rate of them; `squares` is the sum of the
// squares of what is counted.
EstimatedCount estimate(double sum, double squares, double rate) {
  return {.value = sum / rate, .error = kNineteenOfTwenty * std::sqrt(squares * (1 - rate)) / rate};
}

}  // namespace

ObjectMemory::ObjectMemory(std::uint64_t objects_max)
    : objects_max_(objects_max), sampled_max_(objects_max / kSampledShare), room_(objects_max) {
  ENCORE_CHECK(objects_max == 0 || objects_max >= kObjectsMin, "a sample of some objects");
}

void ObjectMemory::narrow_sample(const ObjectTable& table) {
  while (true) {
    std::uint64_t sampled = 0;
    for (std::uint32_t object = 0; object < table.objects(); ++object) {
      sampled += table.requests_of(object) != 0 && has_sampled(table, object) ? 1U : 0U;
    }
    if (sampled <= sampled_max_) {
      return;
    }
    sample_ = cache::SpatialSample({.rate = sample_.rate() / 2});
  }
}

EstimatedCount ObjectMemory::objects(const ObjectTable& table) const {
  std::uint64_t sampled = 0;
  for (std::uint32_t object = 0; object < table.objects(); ++object) {
    sampled += table.requests_of(object) != 0 && has_sampled(table, object) ? 1U : 0U;
  }
  return estimate(static_cast<double>(sampled), static_cast<double>(sampled), rate());
}

EstimatedCount ObjectMemory::footprint_bytes(const ObjectTable& table) const {
  double sum = 0;
  double squares = 0;
  for (std::uint32_t object = 0; object < table.objects(); ++object) {
    if (table.requests_of(object) != 0 && has_sampled(table, object)) {
      const auto bytes = static_cast<double>(table.size_of(object));
      sum += bytes;
      squares += bytes * bytes;
    }
  }
  return estimate(sum, squares, rate());
}

}  // namespace encore::sim
