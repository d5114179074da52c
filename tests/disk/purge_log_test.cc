#include "proxy/disk/purge_log.h"

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "base/units.h"
#include "proxy/disk/purge_merger.h"
#include "proxy/disk/purge_rules.h"
#include "tests/catch.h"
#include "tests/disk/model/memory_file.h"
#include "tests/disk/model/watched_file.h"

namespace encore::disk {
namespace {

using Purges = std::vector<Purge>;

Superblock small_disk() {
  Superblock block = *lay_out(2 * kMiB, 256 * kKiB);
  block.uuid = {5, 6};
  return block;
}

Purge some_purge(std::mt19937_64& random, std::uint64_t version, std::uint64_t sequence) {
  Purge purge;
  purge.kind = static_cast<PurgeKind>(1 + random() % 3);
  purge.version = version;
  purge.sequence = sequence;
  if (purge.kind == PurgeKind::kKey) {
    purge.key = {random(), random()};
  } else {
    // No two are alike.
    purge.pattern = std::to_string(random()) + std::string(random() % 180, 'p');
  }
  return purge;
}

// The purges that a process finds when it starts on this image; nothing if it refuses to.
std::optional<Purges> found_in(Image image, const Superblock& superblock) {
  MemoryFile file(std::move(image));
  PurgeLog log(file, superblock);
  Purges found;
  if (!log.load([&](const Purge& purge) { found.push_back(purge); })) return std::nullopt;
  return found;
}

struct LogDisk {
  LogDisk() {
    // No more than the log needs.
    REQUIRE(file.allocate(superblock.data_offset));
    REQUIRE(log.make());
  }
  Superblock superblock = small_disk();
  MemoryFile file;
  PurgeLog log{file, superblock};
};

bool begins_with(const Purges& all, const Purges& first) {
  return all.size() >= first.size() && std::equal(first.begin(), first.end(), all.begin());
}

}  // namespace

TEST_CASE("purges are found in their order, the log rewritten or not", "[disk]") {
  LogDisk disk;
  std::mt19937_64 random(1);
  Purges all;
  for (std::uint64_t i = 1; i <= 300; ++i) {
    Purges some;
    for (auto rest = random() % 4; rest != 0; --rest) some.push_back(some_purge(random, i, i));
    REQUIRE(disk.log.append(some));
    all.insert(all.end(), some.begin(), some.end());
    if (i % 50 == 0) {
      CHECK(found_in(disk.file.image(), disk.superblock) == all);
      CHECK(disk.log.entries() == all.size());
    }
  }
  // A page each, and the area has 16.
  CHECK(disk.log.used_bytes() <= disk.superblock.purge_bytes);
  // The next process goes on with it.
  MemoryFile file(disk.file.image());
  PurgeLog log(file, disk.superblock);
  REQUIRE(log.load([](const Purge&) {}));
  CHECK(log.version_max() == all.back().version);
  const Purge more = some_purge(random, 301, 301);
  REQUIRE(log.append({&more, 1}));
  all.push_back(more);
  CHECK(found_in(file.image(), disk.superblock) == all);
}

TEST_CASE("many purges at once are several frames", "[disk]") {
  LogDisk disk;
  Purges all;
  for (std::uint64_t i = 1; i <= 400; ++i) {
    Purge purge;
    purge.kind = PurgeKind::kPrefix;
    purge.version = i;
    purge.pattern = std::string(100, 'p');
    all.push_back(purge);
  }
  CHECK(frame_entries(all) == 400);
  all[399].pattern = std::string(20'000, 'q');
  CHECK(frame_entries(all) == 399);
  CHECK(frames_bytes({all.data(), 399}) == 49'152);
  all[399].pattern.resize(10'000);
  CHECK(frames_bytes(all) == 61'440);
  REQUIRE(disk.log.append(all));
  CHECK(found_in(disk.file.image(), disk.superblock) == all);
}

TEST_CASE("what no segment has any more is forgotten, and the rest is kept", "[disk]") {
  LogDisk disk;
  std::mt19937_64 random(2);
  Purges kept;
  for (std::uint64_t i = 1; i <= 20; ++i) {
    const Purge purge = some_purge(random, i, i);
    REQUIRE(disk.log.append({&purge, 1}));
    if (i >= 15) kept.push_back(purge);
  }
  REQUIRE(disk.log.prune(5));
  CHECK(disk.log.entries() == 20);  // not worth it
  REQUIRE(disk.log.prune(15));
  CHECK(disk.log.entries() == 6);
  CHECK(found_in(disk.file.image(), disk.superblock) == kept);
  CHECK(disk.file.unsynced().empty());
}

TEST_CASE("purges of one key or pattern are one when the log is rewritten", "[disk]") {
  LogDisk disk;
  Purges last(3);
  last[0].kind = PurgeKind::kKey;
  last[0].key = {1, 2};
  last[1].kind = PurgeKind::kTag;
  last[1].pattern = "news";
  last[2].kind = PurgeKind::kPrefix;
  last[2].pattern = "news";
  // Far more than there is room for.
  for (std::uint64_t i = 1; i <= 6000; ++i) {
    Purge& purge = last[i % 3];
    purge.version = purge.sequence = i;
    REQUIRE(disk.log.append({&purge, 1}));
  }
  CHECK(disk.log.overflows() == 0);
  const auto found = found_in(disk.file.image(), disk.superblock);
  REQUIRE(found);
  // The last of each are there, each behind all others of its own.
  CHECK(Purges(found->end() - 3, found->end()) == Purges{last[1], last[2], last[0]});
  CHECK(found->size() < 20);
}

TEST_CASE("of purges that come in no order the highest version and turn are kept", "[disk]") {
  PurgeMerger merger(2);
  Purge high;
  high.kind = PurgeKind::kTag;
  high.version = 9;
  high.sequence = 3;
  high.pattern = "a";
  Purge late = high;
  late.version = 7;
  late.sequence = 4;
  Purge other = high;
  other.kind = PurgeKind::kBan;
  Purge one_too_many = high;
  one_too_many.pattern = "b";
  for (const Purge& purge : {high, other, one_too_many, late, one_too_many}) merger.show(purge);
  CHECK_FALSE(merger.take(high));
  CHECK(merger.take(other) == other);
  CHECK(merger.take(one_too_many) == one_too_many);
  Purge both = high;
  both.sequence = 4;
  CHECK(merger.take(late) == both);
  CHECK(merger.take(one_too_many) == one_too_many);
}

TEST_CASE("a log that is full forgets what it may, and says more than it was told", "[disk]") {
  LogDisk disk;
  Purge purge;
  purge.kind = PurgeKind::kTag;
  std::uint64_t count = 0;
  while (disk.log.overflows() == 0) {
    purge.version = purge.sequence = ++count;
    purge.pattern = std::to_string(count) + std::string(5000, 't');
    REQUIRE(disk.log.append({&purge, 1}));
    if (count == 6) REQUIRE(disk.log.prune(3));  // not worth it
  }
  // Two that may be forgotten have made room for some, once.
  CHECK(count == 12);
  Purge all;
  all.kind = PurgeKind::kPrefix;
  all.version = all.sequence = count;
  CHECK(found_in(disk.file.image(), disk.superblock) == Purges{all});
  CHECK(disk.log.entries() == 1);
  purge.version = purge.sequence = ++count;
  REQUIRE(disk.log.append({&purge, 1}));
  CHECK(found_in(disk.file.image(), disk.superblock) == Purges{all, purge});
  // As long as what it is of may be there, and no longer.
  REQUIRE(disk.log.prune(count - 1));
  CHECK(found_in(disk.file.image(), disk.superblock) == Purges{all, purge});
  REQUIRE(disk.log.prune(count));
  CHECK(found_in(disk.file.image(), disk.superblock) == Purges{purge});
  // And more in one call than it could ever have.
  Purges many;
  for (std::size_t i = 0; i < 20; ++i) {
    purge.version = ++count;
    purge.pattern = std::to_string(i) + std::string(5000, 't');
    many.push_back(purge);
  }
  REQUIRE(disk.log.append(many));
  CHECK(disk.log.overflows() == 2);
  all.version = count;
  all.sequence = purge.sequence;
  CHECK(found_in(disk.file.image(), disk.superblock) == Purges{all});
}

TEST_CASE("a full log purges in each crash what was purged, and what is newer never", "[disk]") {
  LogDisk disk;
  std::mt19937_64 random(9);
  Purges told;  // the last that append() was given included
  std::size_t durable = 0;
  std::size_t images = 0;
  std::size_t wrong = 0;
  const auto is_all = [](const Purge& purge) {
    return purge.kind == PurgeKind::kPrefix && purge.pattern.empty();
  };
  const auto is_of = [&](const Purge& by, const Purge& purge) {
    return is_all(by) ||
           (by.kind == purge.kind && by.key == purge.key && by.pattern == purge.pattern);
  };
  const auto check = [&](Image image) {
    ++images;
    const auto found = found_in(std::move(image), disk.superblock);
    if (!found) return void(++wrong);
    const bool all_said = std::all_of(
        told.begin(), told.begin() + static_cast<std::ptrdiff_t>(durable), [&](const Purge& purge) {
          return std::ranges::any_of(*found, [&](const Purge& by) {
            return is_of(by, purge) && by.version >= purge.version && by.sequence >= purge.sequence;
          });
        });
    const bool none_newer = std::ranges::all_of(*found, [&](const Purge& by) {
      return std::ranges::any_of(told, [&](const Purge& purge) {
        return is_of(by, purge) && by.version <= purge.version;
      });
    });
    if (!all_said || !none_newer) ++wrong;
  };
  WatchedFile file(disk.file);
  file.on_write = [&] {
    const std::size_t unsynced = disk.file.unsynced().size();
    check(disk.file.crash_after(unsynced));
    check(disk.file.crash_within(unsynced - 1, 1 + random() % 7));
    check(disk.file.crash_anyhow(random));
  };
  PurgeLog log(file, disk.superblock);
  REQUIRE(log.load([](const Purge&) {}));
  for (std::uint64_t i = 1; log.overflows() < 3; ++i) {
    Purge purge = some_purge(random, i, 1 + i / 50);
    // Some again and again, and large enough to fill the log soon.
    if (random() % 4 == 0 && !told.empty()) purge = told[random() % told.size()];
    if (purge.kind != PurgeKind::kKey && random() % 4 == 0) purge.pattern.resize(3000, 'q');
    purge.version = i;
    purge.sequence = 1 + i / 50;
    told.push_back(purge);
    REQUIRE(log.append({&purge, 1}));
    durable = told.size();
  }
  CHECK(wrong == 0);
  CHECK(images > 500);
}

TEST_CASE("a purge of all is of each key, and not of what is newer", "[disk]") {
  PurgeRules rules([](const Purge&, const RecordFront&) { return false; });
  Purge all;
  all.kind = PurgeKind::kPrefix;
  all.version = 5;
  all.sequence = 2;
  rules.add(all);
  CHECK(rules.is_dead({1, 2}, 4));
  CHECK_FALSE(rules.is_dead({1, 2}, 5));
  all.version = 3;
  rules.add(all);
  CHECK(rules.is_dead({1, 2}, 4));
  rules.forget_below(3);
  CHECK_FALSE(rules.is_dead({1, 2}, 1));
}

TEST_CASE("no single bit, page or copy of the log loses a purge", "[disk][plain]") {
  LogDisk disk;
  std::mt19937_64 random(3);
  Purges all;
  for (std::uint64_t i = 1; i <= 25; ++i) {
    const Purge purge = some_purge(random, i, i);
    REQUIRE(disk.log.append({&purge, 1}));
    all.push_back(purge);
  }
  const std::uint64_t begin = disk.superblock.purge_offset;
  Image image = disk.file.image();
  std::size_t lost = 0;
  // In pages that are mostly zeros every bit of the beginning, and every 61st of the rest.
  for (std::uint64_t bit = 0; bit < disk.log.used_bytes() * 8;
       bit += bit % (kPageBytes * 8) < 800 ? 1U : 61U) {
    for (const std::uint64_t copy : {0U, 1U}) {
      auto& byte = image[begin + copy * disk.superblock.purge_bytes + bit / 8];
      byte ^= std::byte{1} << static_cast<int>(bit % 8);
      if (found_in(image, disk.superblock) != all) ++lost;
      byte ^= std::byte{1} << static_cast<int>(bit % 8);
    }
  }
  CHECK(lost == 0);
  for (const std::uint64_t copy : {0U, 1U}) {
    Image without = image;
    const auto at = static_cast<std::ptrdiff_t>(begin + copy * disk.superblock.purge_bytes);
    std::fill_n(without.begin() + at, disk.superblock.purge_bytes, std::byte{0xff});
    CHECK(found_in(without, disk.superblock) == all);
    // And the next process makes it two again.
    MemoryFile file(without);
    PurgeLog log(file, disk.superblock);
    REQUIRE(log.load([](const Purge&) {}));
    REQUIRE(log.append({}));
    without = file.image();
    const auto other =
        static_cast<std::ptrdiff_t>(begin + (1 - copy) * disk.superblock.purge_bytes);
    std::fill_n(without.begin() + other, disk.superblock.purge_bytes, std::byte{0xff});
    CHECK(found_in(without, disk.superblock) == all);
  }
}

TEST_CASE("a log of which nothing can be read is refused", "[disk]") {
  LogDisk disk;
  MemoryFile file{Image(disk.superblock.data_offset)};
  PurgeLog log(file, disk.superblock);
  const auto loaded = log.load([](const Purge&) {});
  REQUIRE_FALSE(loaded);
  CHECK(loaded.error().message.find("--clear-disk") != std::string::npos);
  // Another disk's log is not ours either.
  Superblock other = disk.superblock;
  ++other.uuid.lo;
  CHECK_FALSE(found_in(disk.file.image(), other));
}

TEST_CASE("after any crash all is found that was durable, and nothing else", "[disk]") {
  LogDisk disk;
  std::mt19937_64 random(4);
  Purges all;
  std::uint64_t sequence_min = 0;
  std::size_t images = 0;
  std::size_t wrong = 0;
  // Purges that append() has confirmed must be found; those of the call in progress may be.
  class Watched final : public File {
   public:
    Watched(File& file, std::function<void()> on_write)
        : file_(file), on_write_(std::move(on_write)) {}
    Result<void> read(std::span<std::byte> out, std::uint64_t offset) override {
      return file_.read(out, offset);
    }
    Result<void> write(std::span<const std::byte> bytes, std::uint64_t offset) override {
      auto written = file_.write(bytes, offset);
      on_write_();
      return written;
    }
    Result<void> sync() override { return file_.sync(); }
    Result<void> allocate(std::uint64_t bytes) override { return file_.allocate(bytes); }
    Result<void> truncate(std::uint64_t bytes) override { return file_.truncate(bytes); }
    Result<std::uint64_t> size() override { return file_.size(); }
    const std::string& path() const override { return file_.path(); }

   private:
    File& file_;
    std::function<void()> on_write_;
  };
  Purges with_next = all;
  const auto check_image = [&](Image image) {
    ++images;
    const auto found = found_in(std::move(image), disk.superblock);
    const auto is_needed = [&](const Purge& purge) { return purge.sequence >= sequence_min; };
    Purges needed;
    std::ranges::copy_if(all, std::back_inserter(needed), is_needed);
    if (!found) return void(++wrong);
    Purges live;
    std::ranges::copy_if(*found, std::back_inserter(live), is_needed);
    if (!begins_with(live, needed) || !begins_with(with_next, *found)) {
      // Dropped purges may be missing in front.
      Purges rest(
          with_next.end() - static_cast<std::ptrdiff_t>(std::min(found->size(), with_next.size())),
          with_next.end());
      const bool is_tail = begins_with(live, needed) && (rest == *found || live == needed);
      if (!is_tail) ++wrong;
    }
  };
  Watched file(disk.file, [&] {
    const std::size_t unsynced = disk.file.unsynced().size();
    for (std::size_t i = 0; i <= unsynced; ++i) check_image(disk.file.crash_after(i));
    for (std::size_t sectors = 1; sectors < 8; ++sectors) {
      check_image(disk.file.crash_within(unsynced - 1, sectors));
    }
    for (int i = 0; i < 5; ++i) check_image(disk.file.crash_anyhow(random));
  });
  PurgeLog log(file, disk.superblock);
  REQUIRE(log.load([](const Purge&) {}));
  for (std::uint64_t i = 1; i <= 60; ++i) {
    const Purge purge = some_purge(random, i, i);
    with_next.push_back(purge);
    REQUIRE(log.append({&purge, 1}));
    all.push_back(purge);
    if (i % 12 == 0) {
      sequence_min = i - 3;
      REQUIRE(log.prune(sequence_min));
    }
  }
  CHECK(wrong == 0);
  CHECK(images > 1000);
}

TEST_CASE("a log of several frames is rewritten whole or not at all", "[disk]") {
  Superblock superblock = small_disk();
  superblock.purge_bytes = 256 * kKiB;
  superblock.data_offset = superblock.purge_offset + 2 * superblock.purge_bytes;
  MemoryFile memory;
  REQUIRE(memory.allocate(superblock.data_offset));
  PurgeLog made(memory, superblock);
  REQUIRE(made.make());
  Purges all;
  for (std::uint64_t i = 1; i <= 3; ++i) {
    Purge purge;
    purge.kind = PurgeKind::kTag;
    purge.version = purge.sequence = i;
    purge.pattern = std::string(50'000, static_cast<char>('a' + i));
    all.push_back(purge);
  }
  REQUIRE(made.append(all));
  std::size_t images = 0;
  std::size_t wrong = 0;
  WatchedFile file(memory);
  file.on_write = [&] {
    for (std::size_t i = 0; i <= memory.unsynced().size(); ++i, ++images) {
      if (found_in(memory.crash_after(i), superblock) != all) ++wrong;
    }
  };
  PurgeLog log(file, superblock);
  REQUIRE(log.load([](const Purge&) {}));
  REQUIRE(log.append({}));
  CHECK(wrong == 0);
  CHECK(images > 10);
}

TEST_CASE("whatever fails, what was told to be durable is found later", "[disk]") {
  for (const auto fault : {Fault::kEio, Fault::kShort}) {
    for (const bool lasting : {false, true}) {
      for (std::uint64_t nth = 0;; ++nth) {
        LogDisk disk;
        std::mt19937_64 random(5);
        FaultFile failing(disk.file, nth, fault, lasting);
        PurgeLog log(failing, disk.superblock);
        Purges durable;
        if (log.load([](const Purge&) {})) {
          for (std::uint64_t i = 1; i <= 20; ++i) {
            const Purge purge = some_purge(random, i, i);
            if (log.append({&purge, 1})) durable.push_back(purge);
          }
        }
        INFO("operation " << nth);
        const auto found = found_in(disk.file.crash_after(0), disk.superblock);
        REQUIRE(found);
        // Some that failed may be there as well.
        std::size_t next = 0;
        for (const Purge& purge : *found) {
          if (next < durable.size() && purge == durable[next]) ++next;
        }
        CHECK(next == durable.size());
        if (!failing.has_failed()) {
          CHECK(durable.size() == 20);
          break;
        }
      }
    }
  }
}

TEST_CASE("what one copy of the log has lost is told, and where", "[disk]") {
  LogDisk disk;
  std::mt19937_64 random(8);
  const auto gaps_in = [&](Image image) {
    MemoryFile file(std::move(image));
    PurgeLog log(file, disk.superblock);
    REQUIRE(log.load([](const Purge&) {}));
    return log.gaps();
  };
  for (std::uint64_t i = 1; i <= 6; ++i) {
    const Purge purge = some_purge(random, i, i);
    REQUIRE(disk.log.append({&purge, 1}));
  }
  CHECK(gaps_in(disk.file.image()).empty());
  for (int i = 0; i < 400; ++i) {
    Image image = disk.file.image();
    const std::uint64_t copy = random() % 2;
    const std::uint64_t at = disk.superblock.purge_offset + copy * disk.superblock.purge_bytes +
                             random() % disk.log.used_bytes();
    image[at] ^= std::byte{1} << static_cast<int>(random() % 8);
    const auto gaps = gaps_in(std::move(image));
    REQUIRE(gaps.size() == 1);
    // Each frame here has a page.
    CHECK(gaps[0].offset == at / kPageBytes * kPageBytes);
    CHECK_FALSE(gaps[0].is_unwritten);
  }
  // A crash after the first of two copies was written.
  const Image before = disk.file.image();
  const std::uint64_t end = disk.log.used_bytes();
  const Purge purge = some_purge(random, 7, 7);
  REQUIRE(disk.log.append({&purge, 1}));
  Image torn = disk.file.image();
  const auto second =
      static_cast<std::ptrdiff_t>(disk.superblock.purge_offset + disk.superblock.purge_bytes + end);
  std::copy_n(before.begin() + second, kPageBytes, torn.begin() + second);
  const auto gaps = gaps_in(torn);
  REQUIRE(gaps.size() == 1);
  CHECK(gaps[0].offset == static_cast<std::uint64_t>(second));
  CHECK(gaps[0].is_unwritten);
}

}  // namespace encore::disk
