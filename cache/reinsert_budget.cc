#include "cache/reinsert_budget.h"

namespace encore::cache {

void ReinsertBudget::end_count() {
  std::uint64_t above = 0;
  for (std::uint32_t visits = kVisitsMax + 1; visits-- != 0;) {
    if (bytes_of_[visits] > room_bytes_ - above) {
      fewest_ = visits;
      fewest_room_ = room_bytes_ - above;
      all_fit_ = false;
      return;
    }
    above += bytes_of_[visits];
  }
}

bool ReinsertBudget::take(std::uint32_t visits, std::uint32_t shard, std::uint64_t bytes) {
  if (taken_bytes_ + bytes > room_bytes_ || visits < fewest_) {
    return false;
  }
  if (!all_fit_ && visits == fewest_) {
    // The last one of a shard may go beyond its share, the last of all not beyond the room.
    const std::uint64_t share = fewest_room_ * (std::uint64_t{shard} + 1) / shards_;
    if (fewest_taken_ >= share || fewest_taken_ + bytes > fewest_room_) {
      return false;
    }
    fewest_taken_ += bytes;
  }
  taken_bytes_ += bytes;
  return true;
}

}  // namespace encore::cache
