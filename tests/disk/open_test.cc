#include "proxy/disk/open.h"

#include <algorithm>
#include <random>
#include <string>

#include "base/units.h"
#include "proxy/disk/bytes.h"
#include "proxy/disk/purge_log.h"
#include "tests/catch.h"
#include "tests/disk/model/driver.h"
#include "tests/disk/model/history.h"
#include "tests/disk/model/memory_file.h"
#include "tests/disk/model/start.h"
#include "tests/disk/model/switched_file.h"

namespace encore::disk {
namespace {

OpenOptions options_of(std::uint64_t disk_bytes) {
  OpenOptions options;
  options.disk_bytes = disk_bytes;
  options.segment_bytes = 256 * kKiB;
  options.identity_seed = {1, 2};
  options.uuid = {3, 4};
  options.now = 5;
  return options;
}

std::string error_of(File& file, const OpenOptions& options) {
  const auto opened = open_disk(file, options);
  return opened ? "" : opened.error().message;
}

bool is_in(std::string_view part, const std::string& text) {
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("a new disk is made once, and is the same later", "[disk]") {
  MemoryFile file;
  CHECK_FALSE(read_superblock(file));
  const auto made = open_disk(file, options_of(4 * kMiB));
  REQUIRE(made);
  CHECK(made->segments == 15);
  CHECK(made->uuid == Uuid{3, 4});
  CHECK(file.size() == made->disk_bytes());
  OpenOptions later = options_of(4 * kMiB);
  later.uuid = {9, 9};
  CHECK(open_disk(file, later) == *made);
  CHECK(read_superblock(file) == *made);
  CHECK(file.unsynced().empty());
  later.clear = true;
  CHECK(open_disk(file, later)->uuid == Uuid{9, 9});
}

TEST_CASE("what encore has not written is never wiped unless that is said", "[disk]") {
  for (const std::size_t at : {0U, 1080U, 65'600U, 500'000U}) {
    Image image(4 * kMiB);
    image[at] = std::byte{0x53};
    MemoryFile file(image);
    const std::string error = error_of(file, options_of(4 * kMiB));
    CHECK(is_in("/memory holds something that encore has not written", error));
    CHECK(is_in("--clear-disk", error));
    CHECK(file.image() == image);
    OpenOptions clear = options_of(4 * kMiB);
    clear.clear = true;
    CHECK(open_disk(file, clear));
  }
  // A text, and less than a page of it.
  MemoryFile text(Image(100, std::byte{'a'}));
  CHECK(is_in("has not written", error_of(text, options_of(4 * kMiB))));
}

TEST_CASE("a newer, a damaged and another seed's disk are refused with a remedy", "[disk]") {
  MemoryFile file;
  REQUIRE(open_disk(file, options_of(4 * kMiB)));
  const Image made = file.image();
  OpenOptions other = options_of(4 * kMiB);
  other.identity_seed = {7, 7};
  const std::string error = error_of(file, other);
  CHECK(is_in("was filled with another seed", error));
  CHECK(is_in("--clear-disk", error));
  for (const std::uint64_t copy : {std::uint64_t{0}, kSecondSuperblock}) {
    MemoryFile newer(made);
    std::byte* const page = newer.image().data() + copy;
    put(page + 8, kFormatVersion + 1);
    const std::span<const std::byte> sealed(page, kSectorBytes - kSumBytes);
    put(page + sealed.size(), checksum(0x454e434f4449534bU, copy, sealed));
    CHECK(is_in("was made by a newer encore (format 2, accepted: up to 1)",
                error_of(newer, options_of(4 * kMiB))));
  }
  MemoryFile damaged(made);
  damaged.image()[20] ^= std::byte{1};
  damaged.image()[kSecondSuperblock + 20] ^= std::byte{1};
  CHECK(is_in("neither of its two superblocks is whole", error_of(damaged, options_of(4 * kMiB))));
}

TEST_CASE("one superblock is enough, and is two again afterwards", "[disk]") {
  MemoryFile file;
  const auto made = open_disk(file, options_of(4 * kMiB));
  REQUIRE(made);
  for (const std::uint64_t copy : {std::uint64_t{0}, kSecondSuperblock}) {
    std::fill_n(file.image().begin() + static_cast<std::ptrdiff_t>(copy), kPageBytes,
                std::byte{0x11});
    CHECK(open_disk(file, options_of(4 * kMiB)) == *made);
  }
  CHECK(read_superblock(file) == *made);
}

TEST_CASE("a disk that is too small is refused with its size", "[disk]") {
  MemoryFile file;
  CHECK(is_in("disk /memory: a disk of 1MiB is too small", error_of(file, options_of(1 * kMiB))));
  CHECK(file.image().empty());
}

TEST_CASE("a disk grows and shrinks without losing what lies where it stays", "[disk]") {
  const std::uint64_t small = 256 * kKiB + 8 * 256 * kKiB;
  const std::uint64_t large = 256 * kKiB + 14 * 256 * kKiB;
  MemoryFile file;
  History history;
  std::uint64_t seed = GENERATE(range(std::uint64_t{1}, std::uint64_t{25}));
  CAPTURE(seed);
  const auto live = [&](std::uint64_t bytes, const auto& steps) {
    Driver driver(file, {bytes, 256 * kKiB}, history, seed++);
    REQUIRE(driver.refusal().empty());
    steps(driver);
    REQUIRE(driver.stop());
    return driver.resident();
  };
  const auto some = [](Driver& driver) {
    for (int i = 0; i < 200; ++i) driver.step();
  };
  const auto found = [&] {
    std::map<std::string, cache::DiskVersion> all;
    const auto superblock = read_superblock(file);
    REQUIRE(superblock);
    const Start start(file, *superblock, {});
    for (const auto& winner : start.winners()) {
      const std::string fault = history.fault_of(winner.object).value_or("");
      CAPTURE(fault);
      CHECK(fault.empty());
      all[winner.object.key] = winner.object.fields.version;
    }
    return all;
  };
  auto before = live(small, some);
  REQUIRE(open_disk(file, options_of(large)));
  CHECK(read_superblock(file)->segments == 14);
  CHECK(found() == before);
  const auto larger = live(large, some);
  before = live(large, [](Driver& driver) { REQUIRE(driver.shrink(8)); });
  CHECK(before.size() > larger.size() / 3);
  // The last ones' records were moved or buried, and do not come back.
  REQUIRE(resize(file, *read_superblock(file), 8));
  CHECK(file.size() == small);
  CHECK(read_superblock(file)->segments == 8);
  CHECK(found() == before);
  REQUIRE(open_disk(file, options_of(large)));
  CHECK(found() == before);
}

TEST_CASE("segments that a device still has are not there when it grows again", "[disk]") {
  MemoryFile file;
  auto block = open_disk(file, options_of(4 * kMiB));
  REQUIRE(block);
  SegmentWriter writer(file, *block, {});
  REQUIRE(writer.open({0, 14, 9}, 1));
  REQUIRE(writer.seal());
  const Image kept = file.image();
  auto smaller = resize(file, *block, 10);
  REQUIRE(smaller);
  // A block device is not truncated.
  REQUIRE(file.allocate(kept.size()));
  std::copy(kept.begin() + static_cast<std::ptrdiff_t>(smaller->disk_bytes()), kept.end(),
            file.image().begin() + static_cast<std::ptrdiff_t>(smaller->disk_bytes()));
  REQUIRE(open_disk(file, options_of(4 * kMiB)));
  const Start start(file, *read_superblock(file), {});
  CHECK(start.counts().segments == 0);
}

TEST_CASE("a disk for which there is no room is not made", "[disk]") {
  MemoryFile file;
  FileSwitch device;
  device.is_full = true;
  SwitchedFile full(file, device);
  CHECK(is_in("no room", error_of(full, options_of(4 * kMiB))));
  CHECK(file.image().empty());
  device.is_full = false;
  CHECK(open_disk(full, options_of(4 * kMiB)));
}

TEST_CASE("a disk that has no room to grow stays as it is", "[disk]") {
  MemoryFile file;
  const auto before = open_disk(file, options_of(4 * kMiB));
  REQUIRE(before);
  const Image image = file.image();
  FileSwitch device;
  device.is_full = true;
  SwitchedFile full(file, device);
  CHECK(is_in("no room", error_of(full, options_of(8 * kMiB))));
  CHECK(file.image() == image);
  device.is_full = false;
  REQUIRE(open_disk(full, options_of(8 * kMiB)));
  CHECK(read_superblock(file)->segments > before->segments);
}

TEST_CASE("a segment whose header cannot be read may be the newest", "[disk]") {
  constexpr WallSeconds kNow = 1'700'000'000U;
  MemoryFile file;
  const auto superblock = open_disk(file, options_of(4 * kMiB));
  REQUIRE(superblock);
  FileSwitch device;
  device.from = superblock->segment_offset(superblock->segments - 1);
  SwitchedFile switched(file, device);
  for (const bool is_damaged : {false, true}) {
    device.reads_fail = is_damaged;
    const Start start(switched, *superblock, {.now = kNow});
    REQUIRE(start.refusal().empty());
    CHECK(start.counts().unreadable == (is_damaged ? 1 : 0));
    CHECK(start.found().has_unknown == is_damaged);
    const cache::DiskVersion by_the_clock = cache::DiskVersion{kNow} << kVersionsASecond;
    CHECK((start.found().version_max >= by_the_clock) == is_damaged);
  }
}

TEST_CASE("whatever fails while a disk is opened, the next start goes on", "[disk]") {
  for (const auto fault : {Fault::kEio, Fault::kEnospc, Fault::kShort}) {
    for (std::uint64_t nth = 0;; ++nth) {
      MemoryFile file;
      FaultFile failing(file, nth, fault, true);
      const bool opened = open_disk(failing, options_of(4 * kMiB)).has_value();
      INFO("operation " << nth);
      MemoryFile after(file.crash_after(file.unsynced().size()));
      CHECK(open_disk(after, options_of(4 * kMiB)));
      if (!failing.has_failed()) {
        CHECK(opened);
        break;
      }
      CHECK_FALSE(opened);
    }
  }
}

}  // namespace encore::disk
