#include "proxy/disk/segment_bytes.h"

#include <algorithm>
#include <random>
#include <utility>

#include "tests/catch.h"
#include "tests/disk/model/memory_file.h"

namespace encore::disk {
namespace {

constexpr std::uint64_t kBytes = std::uint64_t{1} << 20U;

Superblock one_segment() {
  Superblock superblock;
  superblock.segments = 1;
  superblock.segment_bytes = kBytes;
  return superblock;
}

TEST_CASE("any range of a segment is read, also one that is longer than a window", "[disk]") {
  std::mt19937_64 random(3);
  const Superblock superblock = one_segment();
  const std::uint64_t begin_of_segment = superblock.segment_offset(0);
  Image image(begin_of_segment + kBytes);
  for (std::byte& each : image) each = static_cast<std::byte>(random());
  const Image whole = image;
  MemoryFile file(std::move(image));
  for (const std::uint64_t window : {std::uint64_t{4096}, std::uint64_t{65'536}, 2 * kBytes}) {
    SegmentBytes segment(file, superblock, 0, window);
    for (int i = 0; i < 400; ++i) {
      const std::uint64_t begin = random() % kBytes;
      const std::uint64_t bytes = random() % std::min(kBytes - begin + 1, 4 * window);
      const auto got = segment.get(begin, bytes);
      REQUIRE(got);
      REQUIRE(got->size() == bytes);
      const auto wanted = whole.begin() + static_cast<std::ptrdiff_t>(begin_of_segment + begin);
      REQUIRE(std::equal(got->begin(), got->end(), wanted));
    }
    CHECK_FALSE(segment.get(kBytes, 1));
    CHECK_FALSE(segment.get(0, kBytes + 1));
    CHECK_FALSE(segment.has_failed());
  }
}

}  // namespace
}  // namespace encore::disk
