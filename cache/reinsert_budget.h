// ReinsertBudget: the budget for the objects of a reclaimed segment that are re-inserted, and two
// ways to divide it among the shards, whose objects come one shard after the other. In one, each
// shard has its share, and what the shards before it have left. In the other, the objects with the
// most visits move, whatever shard they belong to. For that the objects of all shards are counted
// first. Then the fewest visits that still move are known, and each shard gets its share of the
// objects with exactly so many. A share of the whole for each shard would be less than an object if
// segments are small or shards many.
//
// Thread-compatible, deterministic.
#pragma once

#include <array>
#include <cstdint>

namespace encore::cache {

class ReinsertBudget {
 public:
  static constexpr std::uint32_t kVisitsMax = 7;

  ReinsertBudget() = default;
  // Room for so many bytes of one segment; so many shards take.
  ReinsertBudget(std::uint64_t room_bytes, std::uint32_t shards)
      : room_bytes_(room_bytes), shards_(shards) {}

  // By shares: whether so many bytes more of a shard may move.
  bool is_within_share(std::uint32_t shard, std::uint64_t bytes) const {
    return moved_bytes_ + bytes <= room_bytes_ * (std::uint64_t{shard} + 1) / shards_;
  }
  // Bytes that have moved, in either way.
  void moved(std::uint64_t bytes) { moved_bytes_ += bytes; }

  // By visits: an object that may move. REQUIRES: visits <= kVisitsMax, end_count() comes later.
  void count(std::uint32_t visits, std::uint64_t bytes) { bytes_of_[visits] += bytes; }
  void end_count();
  // True if one of shard `shard` moves: then it is taken, and its room with it. Shards ask in the
  // order of their numbers. An object that was not counted finds room like the rest, up to the
  // whole.
  bool take(std::uint32_t visits, std::uint32_t shard, std::uint64_t bytes);
  // It moves whatever its visits are: it is being read.
  void take_any(std::uint64_t bytes) { taken_bytes_ += bytes; }

 private:
  std::uint64_t room_bytes_ = 0;
  std::uint32_t shards_ = 1;
  std::uint64_t moved_bytes_ = 0;
  std::array<std::uint64_t, kVisitsMax + 1> bytes_of_{};  // by visits
  std::uint32_t fewest_ = 0;                              // with fewer nothing moves
  bool all_fit_ = true;
  std::uint64_t fewest_room_ = 0;   // for those with just the fewest
  std::uint64_t fewest_taken_ = 0;  // part of it
  std::uint64_t taken_bytes_ = 0;
};

}  // namespace encore::cache
