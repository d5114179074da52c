#include "proxy/disk/cli/verify.h"

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "proxy/disk/cli/segment_check.h"
#include "proxy/disk/open.h"
#include "proxy/disk/segment_bytes.h"
#include "proxy/disk/segment_scan.h"
#include "tests/disk/model/start.h"
#include "tests/disk_cli/looked.h"

namespace encore::disk {
namespace {

VerifyReport verified(File& file, std::function<void()> before_read = {}) {
  const InspectedDisk disk = looked(file, std::move(before_read));
  Monitor monitor;
  return verify_disk(disk, monitor);
}

struct Run {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  std::string what;
};

// Begins of erased segments that still have the footer of their turn: without a header the rest
// means nothing.
std::vector<std::uint64_t> erased_headers(File& file, const Superblock& superblock) {
  std::vector<std::uint64_t> found;
  AlignedBuffer page(kPageBytes);
  for (std::uint32_t segment = 0; segment < superblock.segments; ++segment) {
    const std::uint64_t at = superblock.segment_offset(segment);
    REQUIRE(file.read(page.first(kPageBytes), at));
    const Page bytes(page.first(kPageBytes));
    if (decode_segment_header(bytes, superblock.uuid, segment)) continue;
    REQUIRE(file.read(bytes, at + superblock.segment_bytes - kPageBytes));
    const auto sequence = footer_sequence(bytes);
    if (sequence && read_footer(file, superblock, {.segment = segment, .sequence = *sequence})) {
      found.push_back(at);
    }
  }
  return found;
}

// The meaningful bytes on the disk, by the format.
std::vector<Run> live_bytes(File& file, const Superblock& superblock, std::uint64_t purge_used) {
  std::vector<Run> runs = {{0, kSectorBytes, "superblock"},
                           {kSecondSuperblock, kSecondSuperblock + kSectorBytes, "superblock"}};
  for (const std::uint64_t at :
       {superblock.purge_offset, superblock.purge_offset + superblock.purge_bytes}) {
    runs.push_back({at, at + purge_used, "purge log"});
  }
  MemoryFile copy(static_cast<MemoryFile&>(file).image());
  for (const SegmentHeader& header : looked(copy).read_headers()) {
    const std::uint64_t at = superblock.segment_offset(header.segment);
    runs.push_back({at, at + kSectorBytes, "header"});
    const auto footer = read_footer(copy, superblock, header);
    const ScannedSegment scanned = scan_segment(copy, superblock, header);
    const auto& lines = footer ? footer->lines : scanned.footer.lines;
    const Salt salt = superblock.salt(header.segment, header.sequence);
    SegmentBytes bytes(copy, superblock, header.segment);
    for (const RecordLine& line : lines) {
      const std::uint64_t offset = std::uint64_t{line.unit} * cache::kDiskUnit;
      const auto record = read_header(bytes, salt, offset);
      REQUIRE(record);
      const std::uint64_t body = body_begin(record->shape);
      runs.push_back({at + offset, at + offset + front_bytes(record->shape), "record"});
      runs.push_back({at + offset + body, at + offset + body + record->shape.body_bytes, "record"});
    }
    if (footer) {
      const std::uint64_t end = at + superblock.segment_bytes;
      runs.push_back({end - footer_bytes(*footer), end, "footer"});
    }
  }
  for (const std::uint64_t at : erased_headers(copy, superblock)) {
    runs.push_back({at, at + kSectorBytes, "header"});
  }
  std::erase_if(runs, [](const Run& run) { return run.begin == run.end; });
  return runs;
}

struct Filled {
  explicit Filled(std::uint64_t seed, bool stops = true, int steps = 100) {
    Driver driver(file, kDisk, history, seed);
    for (int i = 0; i < steps; ++i) driver.step();
    if (stops) REQUIRE(driver.stop());
    superblock = driver.superblock();
    purge_used = looked(file).read_purges()->used_bytes;
  }
  MemoryFile file;
  History history;
  Superblock superblock;
  std::uint64_t purge_used = 0;
};

}  // namespace

TEST_CASE("each flipped bit that means anything is found, where it is, and no other",
          "[disk-cli]") {
  std::map<std::string, int> found;
  for (std::uint64_t seed = 1; seed <= 4; ++seed) {
    Filled disk(seed);
    const VerifyReport sound = verified(disk.file);
    REQUIRE(sound.fault_count == 0);
    REQUIRE(sound.unfinished == 0);
    const std::vector<Run> runs = live_bytes(disk.file, disk.superblock, disk.purge_used);
    std::mt19937_64 random(seed);
    for (int i = 0; i < 400; ++i) {
      // Each kind alike, and the first and last bits of all.
      const Run& run = runs[random() % runs.size()];
      const std::uint64_t bits = (run.end - run.begin) * 8;
      const std::uint64_t bit = i % 7 == 0 ? bits - 1 : i % 7 == 1 ? 0 : random() % bits;
      const std::uint64_t at = run.begin + bit / 8;
      const auto mask = std::byte{1} << static_cast<int>(bit % 8);
      disk.file.image()[at] ^= mask;
      CAPTURE(seed, run.what, run.begin, at, bit % 8);
      const VerifyReport report = verified(disk.file);
      REQUIRE(report.fault_count == 1);
      const DiskFault& fault = report.faults[0];
      REQUIRE(fault.what == run.what);
      if (fault.segment) {
        const std::uint64_t begin = disk.superblock.segment_offset(*fault.segment);
        CHECK(begin + fault.offset <= at);
        CHECK(at < begin + disk.superblock.segment_bytes);
      } else {
        CHECK(fault.offset <= at);
        CHECK(at < fault.offset + kPageBytes);
      }
      if (run.what == "record") CHECK(report.records == sound.records - 1);
      ++found[run.what];
      disk.file.image()[at] ^= mask;
    }
    // Bytes between them mean nothing.
    for (int i = 0; i < 300; ++i) {
      const std::uint64_t at = random() % disk.file.image().size();
      const bool is_live = std::ranges::any_of(
          runs, [at](const Run& run) { return run.begin <= at && at < run.end; });
      if (is_live) continue;
      disk.file.image()[at] ^= std::byte{4};
      CAPTURE(seed, at);
      CHECK(verified(disk.file).fault_count == 0);
      disk.file.image()[at] ^= std::byte{4};
    }
  }
  for (const auto* const what : {"superblock", "purge log", "header", "footer", "record"}) {
    CAPTURE(what);
    CHECK(found[what] > 10);
  }
}

TEST_CASE("each bit that tells what a page is may flip, and is missed", "[disk-cli][plain]") {
  Filled disk(6);
  const SegmentHeader newest = looked(disk.file).read_headers().front();
  const std::uint64_t header = disk.superblock.segment_offset(newest.segment);
  const std::uint64_t end = header + disk.superblock.segment_bytes;
  const std::vector<Run> runs = {
      {0, kSectorBytes, "superblock"},
      {kSecondSuperblock, kSecondSuperblock + kSectorBytes, "superblock"},
      {header, header + kSectorBytes, "header"},
      {end - cache::kFooterHeadBytes, end, "footer"}};
  for (const Run& run : runs) {
    for (std::uint64_t bit = run.begin * 8; bit < run.end * 8; ++bit) {
      auto& byte = disk.file.image()[bit / 8];
      const auto mask = std::byte{1} << static_cast<int>(bit % 8);
      byte ^= mask;
      const VerifyReport report = verified(disk.file);
      CAPTURE(run.what, bit - run.begin * 8);
      REQUIRE(report.fault_count == 1);
      REQUIRE(report.faults[0].what == run.what);
      byte ^= mask;
    }
  }
}

TEST_CASE("the header of an open segment is missed, that of an earlier disk is not", "[disk-cli]") {
  // So few steps that no segment is begun for the second time, and has an old footer.
  Filled disk(6, false, 15);
  const VerifyReport sound = verified(disk.file);
  const SegmentHeader newest = looked(disk.file).read_headers().front();
  const std::uint64_t begin = disk.superblock.segment_offset(newest.segment);
  for (std::uint64_t bit = 0; bit < kSectorBytes * 8; ++bit) {
    auto& byte = disk.file.image()[begin + bit / 8];
    const auto mask = std::byte{1} << static_cast<int>(bit % 8);
    byte ^= mask;
    const VerifyReport report = verified(disk.file);
    CAPTURE(bit);
    REQUIRE(report.fault_count == 1);
    REQUIRE(report.faults[0].what == "header");
    byte ^= mask;
  }
  REQUIRE(open_disk(disk.file, {.disk_bytes = kDisk.disk_bytes,
                                .segment_bytes = kDisk.segment_bytes,
                                .identity_seed = {7, 8},
                                .uuid = {9, 9},
                                .now = 100,
                                .clear = true}));
  const VerifyReport cleared = verified(disk.file);
  CHECK(sound.segments_used > 1);
  CHECK(cleared.fault_count == 0);
  CHECK(cleared.segments_used == 0);
  CHECK(cleared.segments_free == disk.superblock.segments);
}

TEST_CASE("in a segment that is still open flips are found, but in what was written last",
          "[disk-cli]") {
  std::uint64_t unfinished = 0;
  std::uint64_t flipped = 0;
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    Filled disk(seed, false);
    const InspectedDisk view = looked(disk.file);
    const SegmentHeader newest = view.read_headers().front();
    const ScannedSegment scanned = scan_segment(disk.file, disk.superblock, newest);
    const auto& lines = scanned.footer.lines;
    const VerifyReport sound = verified(disk.file);
    REQUIRE(sound.fault_count == 0);
    if (lines.size() < 3) continue;
    std::mt19937_64 random(seed);
    for (int i = 0; i < 60; ++i) {
      const std::size_t number = random() % lines.size();
      const std::uint64_t offset = std::uint64_t{lines[number].unit} * cache::kDiskUnit;
      // In the header, or in the text behind it.
      const std::uint64_t within =
          i % 2 == 0 ? random() % kRecordHeaderBytes : kRecordHeaderBytes + random() % 50;
      const std::uint64_t at = disk.superblock.segment_offset(newest.segment) + offset + within;
      disk.file.image()[at] ^= std::byte{8};
      const VerifyReport report = verified(disk.file);
      CAPTURE(seed, number, lines.size(), at, offset);
      CHECK(report.records == sound.records - 1);
      if (number + 1 < lines.size()) {
        REQUIRE(report.fault_count == 1);
        CHECK(report.faults[0].what == "record");
        CHECK(report.faults[0].offset == offset);
        ++flipped;
      } else {
        CHECK(report.fault_count == 0);
        unfinished += report.unfinished - sound.unfinished;
      }
      disk.file.image()[at] ^= std::byte{8};
    }
  }
  CHECK(flipped > 100);
  CHECK(unfinished > 20);
}

TEST_CASE("what a process writes meanwhile is no damage", "[disk-cli]") {
  std::uint64_t overwritten = 0;
  std::uint64_t turns = 0;
  for (std::uint64_t seed = 1; seed <= 80; ++seed) {
    MemoryFile file;
    History history;
    Driver driver(file, kDisk, history, seed);
    for (int i = 0; i < 150; ++i) driver.step();
    const std::uint64_t before = driver.counts().turns;
    const VerifyReport report = verified(file, [&] {
      for (std::uint64_t i = 0; i < seed % 5; ++i) driver.step();
    });
    CAPTURE(seed);
    for (const DiskFault& fault : report.faults) {
      UNSCOPED_INFO(fault.what << " " << fault.segment.value_or(99) << " " << fault.offset << " "
                               << fault.why);
    }
    CHECK(report.fault_count == 0);
    overwritten += report.overwritten;
    turns += driver.counts().turns - before;
    // And what was there is still there when nobody writes.
    CHECK(verified(file).fault_count == 0);
  }
  CHECK(turns > 40);
  CHECK(overwritten > 10);
}

TEST_CASE("what a crash leaves is no damage, as long as one process wrote in order", "[disk-cli]") {
  std::uint64_t unfinished = 0;
  for (std::uint64_t seed = 1; seed <= 30; ++seed) {
    MemoryFile file;
    History history;
    {
      Driver driver(file, kDisk, history, seed);
      for (std::uint64_t i = 0; i < 60 + seed; ++i) driver.step();
    }
    const std::size_t writes = file.unsynced().size();
    for (std::size_t kept = 0; kept <= writes; ++kept) {
      for (const std::size_t sectors : {0U, 1U, 3U, 7U}) {
        if (kept == writes && sectors != 0) continue;
        MemoryFile crashed(sectors == 0 ? file.crash_after(kept)
                                        : file.crash_within(kept, sectors));
        const VerifyReport report = verified(crashed);
        CAPTURE(seed, kept, sectors);
        for (const DiskFault& fault : report.faults) {
          UNSCOPED_INFO(fault.what << " " << fault.segment.value_or(99) << " " << fault.offset
                                   << " " << fault.why);
        }
        CHECK(report.fault_count == 0);
        unfinished += report.unfinished;
      }
    }
  }
  CHECK(unfinished > 20);
}

TEST_CASE("a disk that is cut off says where", "[disk-cli]") {
  Filled disk(5);
  Image cut = disk.file.image();
  cut.resize(cut.size() - 2 * kDisk.segment_bytes - 5000);
  MemoryFile file(std::move(cut));
  const VerifyReport report = verified(file);
  REQUIRE(report.fault_count >= 2);
  CHECK(report.faults[0].what == "disk");
  CHECK(report.faults[0].offset == file.image().size());
}

}  // namespace encore::disk
