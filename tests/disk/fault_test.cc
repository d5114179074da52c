#include <algorithm>
#include <cstdint>
#include <string>

#include "base/units.h"
#include "proxy/disk/open.h"
#include "tests/catch.h"
#include "tests/disk/model/driver.h"
#include "tests/disk/model/history.h"
#include "tests/disk/model/memory_file.h"
#include "tests/disk/model/start.h"

namespace encore::disk {
namespace {

constexpr DriverOptions kDisk{.disk_bytes = (256U + 8 * 64U) << 10U, .segment_bytes = 64U << 10U};

// Two lives of a disk, on the second of which the device fails; whether it has. Adds up what was
// found wrong.
struct Sweep {
  std::uint64_t wrong = 0;
  std::uint64_t refused = 0;
  std::uint64_t found = 0;
  std::string first;

  bool run(std::uint64_t seed, std::uint64_t nth, Fault fault, bool lasting) {
    MemoryFile file;
    History history;
    {
      Driver driver(file, kDisk, history, seed);
      REQUIRE(driver.refusal().empty());
      for (int i = 0; i < 40; ++i) driver.step();
      REQUIRE(driver.stop());
    }
    FaultFile failing(file, nth, fault, lasting);
    // Later, so that also where nothing can be read no version is given twice.
    DriverOptions later = kDisk;
    later.now = 1'000'000;
    Driver driver(failing, later, history, seed + 1);
    if (driver.refusal().empty()) {
      for (int i = 0; i < 40; ++i) driver.step();
      const bool is_clean = driver.stop();
      if (!failing.has_failed() && !is_clean) note("a clean stop failed");
    } else {
      ++refused;
    }
    std::mt19937_64 random(seed);
    for (const Image& image : {file.image(), file.crash_after(0), file.crash_anyhow(random)}) {
      if (auto fault_found = fault_on(image, history, &found)) note(*fault_found);
    }
    return failing.has_failed();
  }
  void note(const std::string& what) {
    if (wrong++ == 0) first = what;
  }
};

}  // namespace

TEST_CASE("whichever operation fails, only what was promised is found", "[disk]") {
  const auto fault = GENERATE(Fault::kEio, Fault::kEnospc, Fault::kShort);
  const bool lasting = GENERATE(false, true);
  Sweep sweep;
  std::uint64_t nth = 0;
  // If all operations fail from then on, the first ones, and then a choice.
  while (sweep.run(1 + nth % 3, nth, fault, lasting)) nth += lasting && nth > 60 ? 5U : 1U;
  INFO(sweep.first);
  CHECK(sweep.wrong == 0);
  // Every operation of a start and of forty steps; few are such that a start cannot do without.
  CHECK(nth > 100);
  CHECK(sweep.refused > 0);
  CHECK(sweep.refused < nth / 2);
  CHECK(sweep.found > nth);
}

TEST_CASE("no bit of a segment can change unseen, and none takes more than a record", "[disk]") {
  MemoryFile file;
  History history;
  {
    Driver driver(file, kDisk, history, 3);
    for (int i = 0; i < 6; ++i) driver.step();
    REQUIRE(driver.stop());
  }
  Image image = file.image();
  const auto superblock = read_superblock(file);
  REQUIRE(superblock);
  std::uint64_t all = 0;
  REQUIRE_FALSE(fault_on(image, history, &all));
  REQUIRE(all >= 3);
  const std::uint64_t begin = superblock->segment_offset(0);
  std::uint64_t wrong = 0;
  std::uint64_t lost = 0;
  std::uint64_t most_lost = 0;
  for (std::uint64_t bit = 0; bit < superblock->segment_bytes * 8;) {
    auto& byte = image[begin + bit / 8];
    const auto mask = std::byte{1} << static_cast<int>(bit % 8);
    byte ^= mask;
    std::uint64_t found = 0;
    if (fault_on(image, history, &found)) ++wrong;
    byte ^= mask;
    const std::uint64_t gone = all - std::min(found, all);
    lost += gone != 0 ? 1 : 0;
    // There is but one header of a segment.
    if (bit >= kSectorBytes * 8) most_lost = std::max(most_lost, gone);
    // A choice of the bits in a record or a footer, and all bits of headers.
    bit += bit < kSectorBytes * 8 ? 1U : 19U;
  }
  CHECK(wrong == 0);
  CHECK(lost > kSectorBytes);
  CHECK(most_lost == 1);
}

TEST_CASE("no bit of a part can change unseen, and none takes more than its object", "[disk]") {
  MemoryFile file;
  History history;
  {
    Driver driver(file, kDisk, history, 8);
    for (int i = 0; i < 60; ++i) driver.step();
    REQUIRE(driver.stop());
  }
  Image image = file.image();
  const auto superblock = read_superblock(file);
  REQUIRE(superblock);
  std::uint64_t all = 0;
  REQUIRE_FALSE(fault_on(image, history, &all));
  const Start start(file, *superblock, {.writes_footers = false});
  std::mt19937_64 random(8);
  std::uint64_t lost = 0;
  for (const std::size_t number : start.parts()) {
    const FoundRecord& part = start.records()[number];
    const bool is_used = std::ranges::any_of(start.winners(), [&](const Start::Winner& winner) {
      return winner.object.fields.body == part.line.body;
    });
    const std::uint64_t begin = superblock->segment_offset(part.segment) + part.place().offset();
    for (int i = 0; i < 40; ++i) {
      // But what pads it.
      const std::uint64_t bit = random() % ((part.place().bytes - cache::kDiskUnit) * 8);
      auto& byte = image[begin + bit / 8];
      const auto mask = std::byte{1} << static_cast<int>(bit % 8);
      byte ^= mask;
      std::uint64_t found = 0;
      CHECK_FALSE(fault_on(image, history, &found));
      byte ^= mask;
      CHECK(all - found == (is_used ? 1 : 0));
      lost += all - found;
    }
  }
  CHECK(lost >= 40);
}

TEST_CASE("a disk that was cut off anywhere is used as far as it is there", "[disk]") {
  MemoryFile file;
  History history;
  {
    Driver driver(file, kDisk, history, 4);
    for (int i = 0; i < 60; ++i) driver.step();
    REQUIRE(driver.stop());
  }
  std::uint64_t wrong = 0;
  std::uint64_t found = 0;
  // Contents behind the cut cannot show that something in front of it is old.
  History without_newest = history;
  without_newest.forget_durable();
  for (std::size_t size = 0; size < file.image().size(); size += 509) {
    const Image cut(file.image().begin(), file.image().begin() + static_cast<std::ptrdiff_t>(size));
    if (fault_on(cut, without_newest, &found)) ++wrong;
    // And a process that opens it for use goes on, or says why not.
    if (size % 16 != 0) continue;
    MemoryFile again(cut);
    // With a history of its own: what has lost its headers does not know its versions either.
    History then;
    Driver driver(again, kDisk, then, size);
    if (!driver.refusal().empty()) continue;
    for (int i = 0; i < 5; ++i) driver.step();
    if (!driver.stop()) ++wrong;
  }
  CHECK(wrong == 0);
  CHECK(found > 100);
}

TEST_CASE("what was scanned has a footer, so that the next start need not scan", "[disk]") {
  MemoryFile file;
  History history;
  {
    Driver driver(file, kDisk, history, 5);
    for (int i = 0; i < 60; ++i) driver.step();
  }
  const auto superblock = read_superblock(file);
  REQUIRE(superblock);
  const Start first(file, *superblock, {});
  CHECK(first.counts().scanned == 1);
  const Start second(file, *superblock, {});
  CHECK(second.counts().scanned == 0);
  CHECK(second.counts().records == first.counts().records);
  REQUIRE(second.records().size() == first.records().size());
  for (std::size_t i = 0; i < first.records().size(); ++i) {
    CHECK(second.records()[i].line == first.records()[i].line);
  }
}

}  // namespace encore::disk
