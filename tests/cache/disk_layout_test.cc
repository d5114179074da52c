// How a disk is divided.
#include "cache/disk_layout.h"
#include "cache/disk_parts.h"

#include <algorithm>
#include <string>

#include "base/units.h"
#include "tests/catch.h"

using namespace encore;
using namespace encore::cache;

namespace {

// The size that a refusal names, in bytes.
std::uint64_t bound_in(const std::string& message) {
  const std::string mark = "accepted are ";
  const auto at = message.find(mark) + mark.size();
  std::string text = message.substr(at, message.find(" and ", at) - at);
  if (text.ends_with(" bytes")) text.resize(text.size() - 6);
  const auto bytes = parse_bytes(text);
  REQUIRE(bytes);
  return *bytes;
}

}  // namespace

TEST_CASE("Segments are larger on larger disks", "[cache][disk]") {
  CHECK(default_segment_bytes(100 * kGiB) == 64 * kMiB);
  CHECK(default_segment_bytes(4 * kGiB) == 64 * kMiB);
  CHECK(default_segment_bytes(4 * kGiB - 1) == 32 * kMiB);
  CHECK(default_segment_bytes(512 * kMiB) == 8 * kMiB);
  CHECK(default_segment_bytes(512 * kMiB - 1) == 4 * kMiB);
  CHECK(default_segment_bytes(240 * kMiB) == 4 * kMiB);
  CHECK(default_segment_bytes(128 * kMiB) == 4 * kMiB);
  CHECK(default_segment_bytes(128 * kMiB - 1) == 2 * kMiB);
  CHECK(default_segment_bytes(48 * kMiB) == kMiB);
  CHECK(default_segment_bytes(kMiB) == kSegmentBytesMin);
  CHECK(default_segment_bytes(0) == kSegmentBytesMin);
  CHECK(default_segment_bytes(4 * kTiB) == 64 * kMiB);
  CHECK(default_segment_bytes(4 * kTiB + 1) == 256 * kMiB);
}

TEST_CASE("A disk of which nothing is said has many segments, which take parts of large bodies",
          "[cache][disk]") {
  for (std::uint64_t bytes = kDiskBytesMin; bytes <= 4 * kTiB; bytes += 1 + bytes / 7) {
    CAPTURE(bytes);
    const auto layout = lay_out_disk(bytes, default_segment_bytes(bytes));
    REQUIRE(layout);
    if (bytes >= 128 * kMiB) {
      CHECK(layout->segments >= 31);  // the area before them is less than one
      CHECK(fits_empty_segment(kPartBytes + kDiskPage, 0, layout->segment_bytes));
    } else if (bytes >= 4 * kMiB) {
      CHECK(layout->segments >= 24);
    }
  }
}

TEST_CASE("What lies on a disk does not overlap, and no segment more would fit", "[cache][disk]") {
  const std::uint64_t segment =
      GENERATE(as<std::uint64_t>{}, kSegmentBytesMin, kMiB, 16 * kMiB, kSegmentBytesMax);
  for (std::uint64_t bytes = kDiskBytesMin; bytes <= kDiskBytesMax; bytes += 1 + bytes / 3) {
    const auto layout = lay_out_disk(bytes, segment);
    if (!layout) continue;
    CAPTURE(bytes, segment);
    CHECK(layout->purge_offset >= kSecondSuperblock + kDiskPage);
    CHECK(layout->data_offset >= layout->purge_offset + 2 * layout->purge_bytes);
    CHECK(layout->data_offset % std::min(segment, kMiB) == 0);
    const std::uint64_t end = layout->data_offset + layout->segments * segment;
    CHECK(end <= bytes);
    CHECK(bytes - end < segment);
  }
}

TEST_CASE("The size that a refusal names is accepted, and the next one is not", "[cache][disk]") {
  for (std::uint64_t segment = kSegmentBytesMin; segment <= kSegmentBytesMax; segment *= 2) {
    CAPTURE(segment);
    for (std::uint64_t bytes = 1; bytes < 4 * segment; bytes = 2 * bytes + 1) {
      const auto small = lay_out_disk(bytes, segment);
      REQUIRE_FALSE(small);
      const std::uint64_t least = bound_in(small.error().message);
      CHECK(lay_out_disk(least, segment));
      CHECK_FALSE(lay_out_disk(least - 1, segment));
    }
    const auto large = lay_out_disk(std::uint64_t{1} << 62U, segment);
    REQUIRE_FALSE(large);
    const std::uint64_t most = bound_in(large.error().message);
    CHECK(lay_out_disk(most, segment));
    CHECK(lay_out_disk(most, segment)->segments == kSegmentsMax);
  }
  CHECK(lay_out_disk(kDiskBytesMin, kSegmentBytesMin));
  CHECK_FALSE(lay_out_disk(kDiskBytesMin - 1, kSegmentBytesMin));
  CHECK(lay_out_disk(kDiskBytesMax, kSegmentBytesMax));
}
