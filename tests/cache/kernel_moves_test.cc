// The moves of a kernel on probation that reclaims a segment, against a naive model: all that lies
// in the segment is a list, searched from one end to the other, request by request.
#include <algorithm>
#include <map>
#include <random>
#include <set>
#include <vector>

#include "tests/cache/support.h"

namespace encore::cache::test {
namespace {

constexpr std::uint64_t kSegment = 64 * 1024;
constexpr std::uint32_t kPercent = 25;

struct Lies {
  std::uint64_t id = 0;
  std::uint32_t shard = 0;
  std::uint32_t visits = 0;
  DiskPlace place;
};

std::uint64_t bytes_above(const std::vector<Lies>& all, std::uint32_t visits) {
  std::uint64_t bytes = 0;
  for (const Lies& each : all) bytes += each.visits > visits ? each.place.bytes : 0;
  return bytes;
}

// Those that were hit twice or more, most visits first. If not all of them fit, those with the
// fewest visits that come into question share what is left, shard after shard.
std::set<std::uint64_t> moves_of(std::vector<Lies> all, std::uint32_t shards) {
  const std::uint64_t room = kSegment * kPercent / 100;
  std::erase_if(all, [](const Lies& each) { return each.visits < 2; });
  std::uint32_t fewest = 7;
  while (fewest > 1 && bytes_above(all, fewest - 1) <= room) --fewest;
  const std::uint64_t left = room - bytes_above(all, fewest);
  std::ranges::sort(all, {}, [](const Lies& each) {
    return std::tuple(each.shard, 7 - each.visits, each.place.unit);
  });
  std::set<std::uint64_t> moves;
  std::uint64_t taken = 0;
  for (const Lies& each : all) {
    if (each.visits > fewest) {
      moves.insert(each.id);
    } else if (each.visits == fewest && taken < left * (each.shard + 1) / shards &&
               taken + each.place.bytes <= left) {
      taken += each.place.bytes;
      moves.insert(each.id);
    }
  }
  return moves;
}

class Compared {
 public:
  explicit Compared(std::uint32_t shards) : shards_(shards) {
    KernelOptions options = plain_options(400'000);
    options.shards = shards;
    options.admission.policy = AdmissionPolicy::kProbation;
    options.admission.filter.bits = 1 << 16;
    options.disks = {{.segments = 8, .segment_bytes = kSegment}};
    options.disk_rules.reinsert_percent = kPercent;
    kernel_ = make_kernel(options);
  }

  void request(std::uint64_t id, std::uint64_t bytes) {
    const bool is_there = kernel_->lookup(key(id), at(2)).on_disk();
    REQUIRE(is_there == disk_.contains(id));
    if (is_there) {
      disk_.at(id).visits = std::min(7U, disk_.at(id).visits + 1);
      return;
    }
    DiskDecision decision;
    kernel_->commit(key(id), {.disk_bytes = bytes, .disk_only = true}, 0, at(2), &decision);
    REQUIRE(decision.outcome == DiskOutcome::kPlaced);
    kernel_->written(key(id), decision.place, Kernel::Write::kDone, at(2));
    disk_[id] = {.id = id,
                 .shard = filter::shard_of(key(id).hash, shards_),
                 .visits = 0,
                 .place = decision.place};
    while (reclaim()) {
    }
  }
  std::uint64_t moved = 0;
  std::uint64_t left_behind = 0;  // that were hit twice, and found no room

 private:
  bool reclaim() {
    std::set<std::uint64_t> wanted;
    std::vector<Lies> all;
    std::set<std::uint64_t> moves;
    DiskReclaim step;
    do {
      step = kernel_->reclaim_disk(0, {}, at(3));
      if (step.state == DiskReclaim::State::kNothing) return false;
      if (all.empty()) {
        for (const auto& [id, each] : disk_) {
          if (each.place.segment == step.segment) all.push_back(each);
        }
        wanted = moves_of(all, shards_);
      }
      for (const DiskRelocation& move : step.moves) {
        const auto found = std::ranges::find(all, move.from, &Lies::place);
        REQUIRE(found != all.end());
        moves.insert(found->id);
        disk_.at(found->id).place = move.to;
        disk_.at(found->id).visits /= 2;
        kernel_->written(key(found->id), move.to, Kernel::Write::kDone, at(3));
      }
    } while (step.state == DiskReclaim::State::kMore);
    REQUIRE(kernel_->free_segment(0, step.segment, at(3)));
    REQUIRE(moves == wanted);
    for (const Lies& each : all) {
      if (moves.contains(each.id)) continue;
      left_behind += each.visits >= 2 ? 1U : 0U;
      disk_.erase(each.id);
    }
    moved += moves.size();
    return true;
  }

  std::uint32_t shards_;
  std::unique_ptr<Kernel> kernel_;
  std::map<std::uint64_t, Lies> disk_;
};

}  // namespace

TEST_CASE("What moves is what a naive model moves, request by request",
          "[cache][probation][model]") {
  const std::uint32_t shards = GENERATE(1U, 4U, 64U);
  const std::uint64_t largest = GENERATE(std::uint64_t{2'000}, std::uint64_t{12'000});
  CAPTURE(shards, largest);
  std::mt19937_64 random(shards + largest);
  const std::uint64_t often = 600'000 / (600 + largest);
  Compared compared(shards);
  for (int i = 0; i < 20'000; ++i) {
    // More that comes again than half of the disk takes, and a stream of others.
    const std::uint64_t id = random() % 4 != 0 ? random() % often : often + random() % 4000;
    compared.request(id, 300 + filter::scrambled(id) % largest);
  }
  CHECK(compared.moved > 300);
  CHECK(compared.left_behind > 20);
}

}  // namespace encore::cache::test
