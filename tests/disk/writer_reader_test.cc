#include <algorithm>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "base/units.h"
#include "cache/segment_log.h"
#include "proxy/disk/purge_log.h"
#include "proxy/disk/record_reader.h"
#include "proxy/disk/segment_scan.h"
#include "proxy/disk/segment_writer.h"
#include "tests/catch.h"
#include "tests/disk/model/made_record.h"
#include "tests/disk/model/memory_file.h"

namespace encore::disk {
namespace {

constexpr std::uint64_t kSegment = 1 * kMiB;

Superblock some_disk() {
  Superblock block = *lay_out(12 * kMiB, kSegment);
  block.uuid = {7, 8};
  return block;
}

std::string text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// Notes what was read of it.
class ReadNotingFile : public File {
 public:
  explicit ReadNotingFile(File& file) : file_(file) {}
  Result<void> read(std::span<std::byte> out, std::uint64_t offset) override {
    reads.push_back(out.size());
    return file_.read(out, offset);
  }
  Result<void> write(std::span<const std::byte> bytes, std::uint64_t offset) override {
    return file_.write(bytes, offset);
  }
  Result<void> sync() override { return file_.sync(); }
  Result<void> allocate(std::uint64_t bytes) override { return file_.allocate(bytes); }
  Result<void> truncate(std::uint64_t bytes) override { return file_.truncate(bytes); }
  Result<std::uint64_t> size() override { return file_.size(); }
  const std::string& path() const override { return file_.path(); }
  std::vector<std::size_t> reads;

 private:
  File& file_;
};

struct Stored {
  MadeRecord made;
  cache::DiskPlace place;
  std::uint64_t sequence = 0;

  RecordReader::Wanted wanted() const { return {place, sequence, made.fields.key, made.key}; }
};

// A disk that records are written to as the kernel places them.
class Disk {
 public:
  explicit Disk(std::uint64_t seed = 1) : random(seed) {
    REQUIRE(file.allocate(superblock.disk_bytes()));
  }

  // Nothing where the disk is full.
  Stored* write(const RecordSpec& spec) { return write_made(made_record(random, spec)); }
  Stored* write_made(MadeRecord of) {
    auto made = std::make_unique<Stored>(Stored{std::move(of), {}, 0});
    made->made.fields.version = ++version_;
    const Record record = made->made.view();
    const auto placed =
        log.place({.bytes = record_bytes(shape_of(record)),
                   .names = static_cast<std::uint16_t>(record.text.names.empty() ? 0 : 1),
                   .names_bytes = static_cast<std::uint32_t>(record.text.names.size())});
    if (!placed) return nullptr;
    if (placed->turn.sequence != 0) {
      sequence_ = placed->turn.sequence;
      REQUIRE(writer.open(placed->turn, 5));
    }
    made->place = placed->place;
    made->sequence = sequence_;
    writer.add(record, placed->place);
    stored.push_back(std::move(made));
    return stored.back().get();
  }

  // With so long a head; in a segment that is sealed.
  const Stored& write_alone(const RecordSpec& spec, std::size_t head_bytes) {
    MadeRecord made = made_record(random, spec);
    made.head = random_text(random, head_bytes);
    const Stored* one = write_made(std::move(made));
    REQUIRE(one != nullptr);
    REQUIRE(writer.seal());
    return *one;
  }

  Superblock superblock = some_disk();
  MemoryFile file;
  cache::SegmentLog log{
      {.segments = superblock.segments, .segment_bytes = superblock.segment_bytes}};
  SegmentWriter writer{file, superblock, {}};
  std::mt19937_64 random;
  std::vector<std::unique_ptr<Stored>> stored;

 private:
  cache::DiskVersion version_ = 0;
  std::uint64_t sequence_ = 0;
};

// Whether the record is read as it was made, its body in random ranges.
bool is_as_made(File& file, const Superblock& superblock, const Stored& stored,
                std::mt19937_64& random) {
  RecordReader reader(file, superblock);
  const auto front = reader.open(stored.wanted());
  if (!front) return false;
  const MadeRecord& made = stored.made;
  if ((*front)->fields != made.fields || (*front)->text.key != made.key ||
      (*front)->text.names != made.names || (*front)->text.meta != made.meta ||
      (*front)->text.head != made.head) {
    return false;
  }
  for (int i = 0; i < 3 && !made.body.empty(); ++i) {
    std::uint64_t begin = i == 0 ? 0 : random() % made.body.size();
    const std::uint64_t end =
        i == 0 ? made.body.size() : begin + 1 + random() % (made.body.size() - begin);
    while (begin != end) {
      const auto piece = reader.read(begin, end);
      if (!piece || piece->empty() || begin + piece->size() > end) return false;
      if (text_of(*piece) != made.body.substr(begin, piece->size())) return false;
      begin += piece->size();
    }
  }
  return true;
}

std::string read_all_into(RecordReader& reader, std::uint64_t size, std::size_t room,
                          std::size_t shift) {
  AlignedBuffer memory(room + kIoAlign);
  std::string text;
  while (text.size() < size) {
    const std::span<std::byte> out(memory.data() + shift, room);
    const auto got = reader.read_into(text.size(), out);
    REQUIRE(got);
    text += text_of(out.first(*got));
  }
  return text;
}

}  // namespace

TEST_CASE("what is written is read, whatever its size, kind and range", "[disk]") {
  const auto seed = GENERATE(1U, 2U, 3U);
  Disk disk(seed);
  std::size_t wrong = 0;
  std::size_t untold = 0;
  const auto check_written = [&] {
    std::size_t told = 0;
    for (const auto& written : disk.writer.take_written()) {
      const auto& stored = *disk.stored[untold + told++];
      if (!written.is_written || written.place != stored.place ||
          written.version != stored.made.fields.version) {
        ++wrong;
      }
    }
    untold += told;
    for (int i = 0; i < 10 && untold != 0; ++i) {
      const auto& stored = *disk.stored[disk.random() % untold];
      if (!is_as_made(disk.file, disk.superblock, stored, disk.random)) ++wrong;
    }
  };
  for (;;) {
    auto& random = disk.random;
    const std::uint64_t sizes[] = {0,      random() % 300,     random() % 20'000,
                                   65'536, random() % 200'000, random() % 600'000};
    const RecordSpec spec{.kind = static_cast<RecordKind>(1 + random() % 3),
                          .body_bytes = sizes[random() % 6],
                          .pieces = 1 + random() % 4};
    if (disk.write(spec) == nullptr) break;
    if (random() % 4 == 0) REQUIRE(disk.writer.flush());
    if (random() % 4 == 0) check_written();
  }
  REQUIRE(disk.writer.seal());
  check_written();
  CHECK(untold == disk.stored.size());
  for (const auto& stored : disk.stored) {
    if (!is_as_made(disk.file, disk.superblock, *stored, disk.random)) ++wrong;
  }
  CHECK(wrong == 0);
  CHECK(disk.stored.size() > 100);
  CHECK(disk.writer.sequence_max() >= 8);
  CHECK(disk.writer.sequence_min() == 1);
  CHECK(disk.writer.version_max() == disk.stored.size());
}

TEST_CASE("a body is read into the caller's memory, aligned or not", "[disk]") {
  Disk disk;
  for (const std::uint64_t bytes : {1UL, 65'535UL, 65'536UL, 300'000UL, 900'000UL}) {
    const Stored& stored = *disk.write({RecordKind::kObject, bytes, 2});
    REQUIRE(disk.writer.flush());
    for (const std::size_t room : {65'536U, 200'000U, 1'000'000U}) {
      for (const std::size_t shift : {0U, 1U}) {
        RecordReader reader(disk.file, disk.superblock);
        REQUIRE(reader.open(stored.wanted()));
        CHECK(read_all_into(reader, bytes, room, shift) == stored.made.body);
      }
    }
  }
}

TEST_CASE("a small record is one read, a longer one goes on in windows", "[disk]") {
  Disk disk;
  const Stored small = *disk.write({RecordKind::kObject, 30'000, 1});
  const Stored large = *disk.write({RecordKind::kObject, 900'000, 1});
  REQUIRE(disk.writer.seal());
  ReadNotingFile file(disk.file);
  RecordReader reader(file, disk.superblock);
  REQUIRE(reader.open(small.wanted()));
  REQUIRE(reader.read(0, 30'000));
  CHECK(file.reads.size() == 1);
  CHECK(file.reads[0] <= 30'000 + 2 * kPageBytes);
  file.reads.clear();
  REQUIRE(reader.open(large.wanted()));
  // The bytes of one block, somewhere.
  REQUIRE(reader.read(655'360, 655'370));
  CHECK(file.reads == std::vector<std::size_t>{256 * kKiB, 64 * kKiB});
  file.reads.clear();
  REQUIRE(reader.open(large.wanted()));
  AlignedBuffer memory(1 * kMiB);
  std::uint64_t done = 0;
  while (done < 900'000) done += *reader.read_into(done, memory.first(memory.size()));
  CHECK(file.reads.size() == 2);
}

TEST_CASE("of a part its front is one page, and a piece of it exactly its blocks", "[disk]") {
  Disk disk;
  // At any offset in a page.
  std::vector<Stored> parts;
  for (const std::uint64_t bytes : {900'000U, 1000U, 30'000U, 3950U, 70'000U, 65'000U, 200U}) {
    parts.push_back(*disk.write({RecordKind::kPart, bytes, 2}));
  }
  for (int i = 0; i < 200; ++i) {
    parts.push_back(*disk.write({RecordKind::kPart, 1 + disk.random() % 3000, 1}));
  }
  const auto goes_over = [](const Stored& part) {
    return part.place.offset() % kPageBytes > kPageBytes - kRecordHeaderBytes;
  };
  CHECK(std::ranges::any_of(parts, goes_over));
  REQUIRE(disk.writer.seal());
  ReadNotingFile file(disk.file);
  RecordReader reader(file, disk.superblock);
  for (const Stored& part : parts) {
    auto wanted = part.wanted();
    wanted.first_bytes = RecordReader::kPartFrontBytes;
    file.reads.clear();
    const auto front = reader.open(wanted);
    REQUIRE(front);
    CHECK((*front)->fields == part.made.fields);
    CHECK(file.reads.size() == 1);
    CHECK(file.reads[0] <= 2 * kPageBytes);
    CHECK(read_all_into(reader, part.made.body.size(), 128 * kKiB, 0) == part.made.body);
  }
  auto wanted = parts[0].wanted();
  wanted.first_bytes = RecordReader::kPartFrontBytes;
  REQUIRE(reader.open(wanted));
  file.reads.clear();
  AlignedBuffer memory(192 * kKiB);
  REQUIRE(reader.read_into(655'360, memory.first(192 * kKiB)) == 192 * kKiB);
  CHECK(text_of(memory.first(192 * kKiB)) == parts[0].made.body.substr(655'360, 192 * kKiB));
  CHECK(file.reads == std::vector<std::size_t>{192 * kKiB});
}

TEST_CASE("a long body is read to where it is wanted, at once with its front", "[disk]") {
  Disk disk;
  const std::uint64_t bytes = GENERATE(262'144U, 300'001U, 393'216U, 700'000U);
  const Stored one = *disk.write({RecordKind::kObject, bytes, 1});
  REQUIRE(disk.writer.seal());
  const std::string& body = one.made.body;
  REQUIRE(one.place.offset() % kPageBytes == 0);
  ReadNotingFile file(disk.file);
  RecordReader reader(file, disk.superblock);
  AlignedBuffer memory(1 * kMiB);
  const auto open = [&](std::size_t room) {
    auto wanted = one.wanted();
    wanted.body_room = memory.first(room);
    std::ranges::fill(wanted.body_room, std::byte{0});
    return reader.open(wanted).has_value();
  };

  SECTION("with room for all of it") {
    REQUIRE(open(1 * kMiB));
    CHECK(file.reads.size() == 2);
    CHECK(file.reads[0] == kPageBytes);
    CHECK(reader.read_room() == bytes);
    CHECK(file.reads.size() == 2);
    CHECK(text_of(memory.first(bytes)) == body);
    // And from the disk again, as without.
    CHECK(read_all_into(reader, bytes, 128 * kKiB, 0) == body);
  }
  SECTION("with room for some blocks, and a piece") {
    const std::size_t room = 2 * kBlockBytes + kPageBytes;
    REQUIRE(open(room));
    const std::size_t there = std::min<std::size_t>(bytes, bytes > room ? 2 * kBlockBytes : room);
    CHECK(reader.read_room() == there);
    CHECK(text_of(memory.first(there)) == body.substr(0, there));
    if (there < bytes) {
      REQUIRE(reader.read_into(there, memory.first(1 * kMiB)) == bytes - there);
      CHECK(text_of(memory.first(bytes - there)) == body.substr(there));
    }
  }
  SECTION("with room for less than a block") {
    REQUIRE(open(kPageBytes));
    CHECK(reader.read_room() == 0);
    CHECK(read_all_into(reader, bytes, 128 * kKiB, 0) == body);
  }
  SECTION("without any") {
    REQUIRE(open(0));
    CHECK(reader.read_room() == 0);
  }
  SECTION("damaged") {
    const std::uint64_t at =
        disk.superblock.segment_offset(one.place.segment) + one.place.offset() + kPageBytes;
    disk.file.image()[at + bytes - 1] ^= std::byte{4};
    REQUIRE(open(1 * kMiB));
    CHECK(reader.read_room() == std::unexpected(Damage::kBody));
  }
}

TEST_CASE("a body behind a longer front is read as any", "[disk]") {
  Disk disk;
  const Stored& one = disk.write_alone({RecordKind::kObject, 200'000, 1}, 5'000);
  RecordReader reader(disk.file, disk.superblock);
  AlignedBuffer memory(256 * kKiB);
  auto wanted = one.wanted();
  wanted.body_room = memory.first(256 * kKiB);
  REQUIRE(reader.open(wanted));
  CHECK(reader.read_room() == 0);
  CHECK(read_all_into(reader, one.made.body.size(), 128 * kKiB, 0) == one.made.body);
}

TEST_CASE("a front longer than the first window is read whole", "[disk]") {
  Disk disk;
  const Stored& one = disk.write_alone({RecordKind::kHead, 200'000, 1}, 480'000);
  RecordReader reader(disk.file, disk.superblock);
  const auto front = reader.open(one.wanted());
  REQUIRE(front);
  CHECK((*front)->text.head == one.made.head);
}

TEST_CASE("a record is not read under another key, turn or place", "[disk]") {
  Disk disk;
  const Stored one = *disk.write({RecordKind::kObject, 1000, 1});
  const Stored two = *disk.write({RecordKind::kObject, 1000, 1});
  REQUIRE(disk.writer.seal());
  RecordReader reader(disk.file, disk.superblock);
  const auto damage = [&](const RecordReader::Wanted& wanted) {
    const auto front = reader.open(wanted);
    return front ? std::string_view() : to_string(front.error());
  };
  CHECK(damage(one.wanted()).empty());
  auto wanted = one.wanted();
  wanted.place = two.place;
  CHECK(damage(wanted) == "key");
  wanted = one.wanted();
  wanted.key_text = two.made.key;
  CHECK(damage(wanted) == "key");
  wanted = one.wanted();
  ++wanted.sequence;
  CHECK(damage(wanted) == "header");
  wanted = one.wanted();
  ++wanted.place.unit;
  CHECK(damage(wanted) == "header");
  wanted = one.wanted();
  wanted.place.bytes = cache::kDiskUnit * 2;
  CHECK(damage(wanted) == "header");
  // Places that no index should have are refused as well.
  for (const cache::DiskPlace& place :
       {cache::DiskPlace{0, 10'000, 64, 1000}, cache::DiskPlace{0, 0, UINT32_MAX, 1000},
        cache::DiskPlace{0, 0, 64, UINT64_MAX}, cache::DiskPlace{0, 0, 64, 0}}) {
    wanted = one.wanted();
    wanted.place = place;
    CHECK(damage(wanted) == "header");
  }
}

TEST_CASE("no bit of a record can change unseen, and a failing read is told", "[disk]") {
  Disk disk;
  const Stored stored = *disk.write({RecordKind::kObject, 3000, 1});
  REQUIRE(disk.writer.seal());
  const auto begin = disk.superblock.segment_offset(0) + stored.place.offset();
  const auto used = record_bytes(shape_of(Stored(stored).made.view()));
  std::size_t unseen = 0;
  for (std::uint64_t bit = 0; bit < used * 8; ++bit) {
    const auto flip = [&] {
      disk.file.image()[begin + bit / 8] ^= std::byte{1} << static_cast<int>(bit % 8);
    };
    flip();
    if (is_as_made(disk.file, disk.superblock, stored, disk.random)) ++unseen;
    flip();
  }
  CHECK(unseen == 0);
  CHECK(is_as_made(disk.file, disk.superblock, stored, disk.random));
  FaultFile failing(disk.file, 0, Fault::kEio, true);
  RecordReader reader(failing, disk.superblock);
  const auto front = reader.open(stored.wanted());
  REQUIRE_FALSE(front);
  CHECK(front.error() == Damage::kRead);
  CHECK(reader.error() == "Input/output error");
}

TEST_CASE("a block that is damaged does not take the others with it", "[disk]") {
  Disk disk;
  const Stored stored = *disk.write({RecordKind::kObject, 10 * kBlockBytes, 1});
  REQUIRE(disk.writer.seal());
  RecordReader reader(disk.file, disk.superblock);
  for (const std::uint64_t bad : {0U, 1U, 5U}) {
    const auto at = disk.superblock.segment_offset(0) + stored.place.offset() + kPageBytes +
                    bad * kBlockBytes + 77;
    disk.file.image()[at] ^= std::byte{1};
    REQUIRE(reader.open(stored.wanted()));
    for (std::uint64_t block = 0; block < 10; ++block) {
      const auto got = reader.read(block * kBlockBytes, (block + 1) * kBlockBytes);
      CHECK(got.has_value() == (block != bad));
    }
    // Aligned memory is read into without a copy.
    for (const std::size_t shift : {0U, 1U}) {
      AlignedBuffer memory(10 * kBlockBytes + kIoAlign);
      const std::span<std::byte> out(memory.data() + shift, 10 * kBlockBytes);
      for (std::uint64_t block = 0; block < 10; ++block) {
        REQUIRE(reader.open(stored.wanted()));
        const auto got = reader.read_into(block * kBlockBytes, out.first(kBlockBytes));
        CHECK(got.has_value() == (block != bad));
        REQUIRE(reader.open(stored.wanted()));
        const auto rest = reader.read_into(block * kBlockBytes, out);
        CHECK((block > bad || !rest || *rest <= (bad - block) * kBlockBytes));
      }
    }
    disk.file.image()[at] ^= std::byte{1};
  }
}

TEST_CASE("a write that fails loses what was in it, and the next goes on", "[disk]") {
  // Every operation of a short history, once.
  for (std::uint64_t nth = 0;; ++nth) {
    Disk disk(9);
    FaultFile failing(disk.file, nth, Fault::kShort, false);
    SegmentWriter writer(failing, disk.superblock, {});
    std::vector<Stored> stored;
    std::uint64_t sequence = 0;
    for (int i = 0; i < 30; ++i) {
      Stored next{
          made_record(disk.random, {RecordKind::kObject, disk.random() % 300'000, 1}), {}, 0};
      next.made.fields.version = static_cast<cache::DiskVersion>(i) + 1;
      const auto placed = disk.log.place({.bytes = record_bytes(shape_of(next.made.view()))});
      REQUIRE(placed);
      // Its error comes back with the records.
      if (placed->turn.sequence != 0) (void)writer.open(placed->turn, 1);
      if (placed->turn.sequence != 0) sequence = placed->turn.sequence;
      next.place = placed->place;
      next.sequence = sequence;
      writer.add(next.made.view(), next.place);
      stored.push_back(std::move(next));
      if (i % 5 == 4) (void)writer.flush();
    }
    (void)writer.seal();
    const auto written = writer.take_written();
    REQUIRE(written.size() == stored.size());
    std::size_t lost = 0;
    std::size_t wrong = 0;
    for (std::size_t i = 0; i < stored.size(); ++i) {
      if (written[i].version != i + 1) ++wrong;
      if (!written[i].is_written) {
        ++lost;
      } else if (!is_as_made(disk.file, disk.superblock, stored[i], disk.random)) {
        ++wrong;
      }
    }
    INFO("operation " << nth);
    CHECK(wrong == 0);
    CHECK(lost < stored.size() / 2);
    if (!failing.has_failed()) {
      CHECK(lost == 0);
      CHECK(nth > 10);
      break;
    }
  }
}

TEST_CASE("where no segment was opened, purges of later ones are not forgotten", "[disk]") {
  Disk disk;
  PurgeLog log(disk.file, disk.superblock);
  REQUIRE(log.make());
  CHECK(disk.writer.sequence_min() == 1);
  REQUIRE(log.prune(disk.writer.sequence_min()));
  REQUIRE(disk.write({}) != nullptr);
  Purge purge;
  purge.version = 9;
  purge.sequence = disk.writer.sequence_max();
  REQUIRE(log.append({&purge, 1}));
  REQUIRE(log.prune(disk.writer.sequence_min()));
  CHECK(log.entries() == 1);
}

TEST_CASE("a turn whose sync failed is written again before the next one begins", "[disk]") {
  Disk disk;
  // The header, the record and the footer, then the sync.
  FaultFile failing(disk.file, 3, Fault::kEio, false);
  SegmentWriter writer(failing, disk.superblock, {});
  MadeRecord made = made_record(disk.random, {});
  REQUIRE(writer.open({0, 0, 1}, 1));
  writer.add(made.view(), {0, 0, 64, cache::disk_room(record_bytes(shape_of(made.view())))});
  CHECK_FALSE(writer.seal());
  const std::size_t before = disk.file.unsynced().size();
  REQUIRE(writer.open({0, 1, 2}, 1));
  // The first header again and a sync, before the second header.
  CHECK(before == 3);
  REQUIRE(disk.file.unsynced().size() == 1);
  CHECK(disk.file.unsynced()[0].offset == disk.superblock.segment_offset(1));
}

TEST_CASE("records behind a page that cannot be read are found, from the next page's first byte on",
          "[disk]") {
  // A device with one bad page.
  class OneBadPage final : public ReadNotingFile {
   public:
    OneBadPage(File& file, std::uint64_t page) : ReadNotingFile(file), bad_(page * kPageBytes) {}
    Result<void> read(std::span<std::byte> out, std::uint64_t offset) override {
      if (offset <= bad_ && bad_ < offset + out.size()) return fail("a bad page");
      return ReadNotingFile::read(out, offset);
    }

   private:
    const std::uint64_t bad_;
  };
  Disk disk;
  for (int i = 0; i < 1000; ++i) {
    if (disk.write({.body_bytes = disk.random() % 300}) == nullptr) break;
  }
  REQUIRE(disk.writer.seal());
  std::size_t looked_at = 0;
  for (const auto& stored : disk.stored) {
    const std::uint64_t begin = std::uint64_t{stored->place.unit} * cache::kDiskUnit;
    if (stored->place.segment != 0 || begin % kPageBytes != 0) continue;
    if (begin == cache::kSegmentHeaderBytes) continue;  // nothing is in front of it
    OneBadPage file(disk.file, (disk.superblock.segment_offset(0) + begin) / kPageBytes - 1);
    const ScannedSegment found =
        scan_segment(file, disk.superblock, {.segment = 0, .sequence = stored->sequence});
    CHECK_FALSE(found.is_readable);
    CHECK(std::ranges::count(found.footer.lines, stored->made.fields.version,
                             &RecordLine::version) == 1);
    ++looked_at;
  }
  CHECK(looked_at != 0);
}

}  // namespace encore::disk
