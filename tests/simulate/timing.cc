#include "tests/simulate/timing.h"

#include "tests/simulate/system.h"

namespace encore::simulate {
namespace {

// In how many pieces a head comes that an answer depends on.
constexpr double kPieces = 4;

}  // namespace

double way_max(const Adversity& adversity) {
  const std::int64_t late = adversity.starve != 0 ? adversity.starve_max : 0;
  return kPieces * static_cast<double>(adversity.latency_max + late) / 1e9;
}

double piece_max(const Adversity& adversity) {
  const std::int64_t late = adversity.starve != 0 ? adversity.starve_max : 0;
  return kSlack + static_cast<double>(adversity.latency_max + 2 * late) / 1e9;
}

std::int64_t wall_start(std::uint64_t seed) {
  Random random(seed, 'h', 0);
  const std::int64_t hour = (System::kWallSecondsAtStart / 3600 + 1) * 3600;
  return hour - random.pick<std::int64_t>({1, 1, 2, 3, 12});
}

Adversity draw_adversity(std::uint64_t seed, const Features& features) {
  Random random(seed, 'a', 0);
  return Adversity::draw(random, features);
}

}  // namespace encore::simulate
