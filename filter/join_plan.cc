#include "filter/join_plan.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "filter/theory.h"

namespace encore::filter {
namespace {

constexpr double kLn2 = std::numbers::ln2;

// Sizes of a filter, in bytes, for one number of hashes.
class BestSize {
 public:
  BestSize(std::uint32_t hashes, double keys, double absent_bytes)
      : hashes_(hashes), keys_(keys), absent_bytes_(absent_bytes) {}

  // The size from `low` to `high` with the fewest bytes sent. Steps of a sixteenth find the valley,
  // a search by thirds its lowest point.
  std::uint64_t in(std::uint64_t low, std::uint64_t high) const {
    constexpr double kStep = 1.0625;
    std::uint64_t best = low;
    for (auto at = static_cast<double>(low); at <= static_cast<double>(high);
         at = std::max(at + 1, at * kStep)) {
      const auto bytes = static_cast<std::uint64_t>(at);
      best = sent(bytes) < sent(best) ? bytes : best;
    }
    low = std::max<std::uint64_t>(low, static_cast<std::uint64_t>(static_cast<double>(best) / 1.2));
    high = std::min<std::uint64_t>(high,
                                   static_cast<std::uint64_t>(static_cast<double>(best) * 1.2) + 2);
    while (high - low > 2) {
      const std::uint64_t third = (high - low) / 3;
      if (sent(low + third) < sent(high - third)) {
        high -= third;
      } else {
        low += third;
      }
    }
    for (std::uint64_t bytes = low; bytes <= high; ++bytes) {
      best = sent(bytes) < sent(best) ? bytes : best;
    }
    return best;
  }
  double sent(std::uint64_t bytes) const {
    return join_bytes({8 * bytes, hashes_}, keys_, absent_bytes_);
  }

 private:
  std::uint32_t hashes_;
  double keys_;
  double absent_bytes_;
};

}  // namespace

double join_bytes(const JoinFilter& filter, double keys, double absent_bytes) {
  return std::ceil(static_cast<double>(filter.bits) / 8) +
         absent_bytes * fpr({Layout::kClassic, filter.bits, filter.hashes}, keys);
}

JoinPlan plan_join(double keys, double absent_bytes) {
  JoinPlan best{.bits = 0, .hashes = 0, .fpr = 1, .bytes = absent_bytes};
  if (keys < 1 || absent_bytes <= 0) {
    return best;
  }
  const double ideal =
      keys / (kLn2 * kLn2) * std::log(std::max(1.0, 8 * kLn2 * kLn2 * absent_bytes / keys));
  // Nothing above the bytes of all keys pays.
  const auto most = static_cast<std::uint64_t>(std::min(
      {std::ceil(absent_bytes), ideal / 4 + keys + 64, static_cast<double>(kBitsMax) / 8}));
  const auto hashes_max = static_cast<std::uint32_t>(
      std::clamp(std::ceil(ideal / keys * kLn2) + 3, 1.0, double{kHashesMax}));
  for (std::uint32_t hashes = 1; hashes <= hashes_max && most >= 1; ++hashes) {
    const BestSize size(hashes, keys, absent_bytes);
    const std::uint64_t bytes = size.in(1, most);
    const double sent = size.sent(bytes);
    if (sent < best.bytes) {
      best = {.bits = 8 * bytes,
              .hashes = hashes,
              .fpr = fpr({Layout::kClassic, 8 * bytes, hashes}, keys),
              .bytes = sent};
    }
  }
  return best;
}

}  // namespace encore::filter
