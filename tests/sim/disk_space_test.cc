#include "sim/replay/disk_space.h"

#include "tests/sim/kernel.h"

namespace encore::sim {
namespace {

constexpr std::uint64_t kSegment = 1U << 20U;
constexpr std::uint64_t kPage = cache::kDiskPage;

std::uint64_t all(const DiskSpace::Sums& sums) {
  return sums.body_bytes + sums.beside_bytes + sums.gap_bytes + sums.described_bytes +
         sums.unfilled_bytes + sums.free_bytes;
}

}  // namespace

TEST_CASE("Each byte of a disk is one thing", "[sim][disk]") {
  cache::DiskStatistics disks;
  disks.disks.push_back({.segments = 4, .free_segments = 4, .segment_bytes = kSegment});
  DiskSpace space;
  CHECK(space.sums(disks).free_bytes == 4 * kSegment);
  CHECK(all(space.sums(disks)) == 4 * kSegment);

  // A small one behind the header, and one at the next page.
  space.placed({.disk = 0, .segment = 2, .unit = kPage / 64, .bytes = 640}, 500);
  space.placed({.disk = 0, .segment = 2, .unit = 2 * kPage / 64, .bytes = 80'000 / 64 * 64},
               79'000);
  disks.disks[0].live_bytes = 640 + 80'000 / 64 * 64;
  DiskSpace::Sums sums = space.sums(disks);
  CHECK(sums.body_bytes == 79'500);
  CHECK(sums.beside_bytes == 140 + 80'000 / 64 * 64 - 79'000);
  CHECK(sums.gap_bytes == kPage - 640);
  CHECK(sums.described_bytes == 2 * kPage);
  CHECK(sums.free_bytes == 3 * kSegment);
  CHECK(sums.dead_bytes == 0);
  CHECK(all(sums) == 4 * kSegment);

  // The large one moves on, the small one is dropped with the segment.
  space.moved({.disk = 0, .segment = 2, .unit = 2 * kPage / 64, .bytes = 80'000 / 64 * 64},
              {.disk = 0, .segment = 3, .unit = kPage / 64, .bytes = 80'000 / 64 * 64});
  disks.disks[0].live_bytes = 80'000 / 64 * 64;
  sums = space.sums(disks);
  CHECK(sums.dead_bytes == disks.disks[0].live_bytes + 640);
  space.freed(0, 2);
  sums = space.sums(disks);
  CHECK(sums.body_bytes == 79'000);
  CHECK(sums.dead_bytes == 0);
  CHECK(all(sums) == 4 * kSegment);
}

}  // namespace encore::sim
