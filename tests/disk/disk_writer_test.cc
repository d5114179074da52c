// The writer of one disk: what it takes from its queue, and what it does where that cannot be
// written.
#include "proxy/disk/disk_writer.h"

#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "base/units.h"
#include "cache/segment_log.h"
#include "proxy/disk/purge_log.h"
#include "proxy/disk/segment_scan.h"
#include "tests/catch.h"
#include "tests/disk/model/made_record.h"
#include "tests/disk/model/memory_file.h"
#include "tests/disk/model/switched_file.h"

namespace encore::disk {
namespace {

Superblock disk_to_write() {
  Superblock block = *lay_out(12 * kMiB, 1 * kMiB);
  block.uuid = {7, 8};
  return block;
}

class Source final : public RecordSource {
 public:
  explicit Source(MadeRecord made) : made_(std::move(made)) {}
  Record record() const override { return const_cast<MadeRecord&>(made_).view(); }

 private:
  MadeRecord made_;
};

// A disk with its writer, and records that are placed as the kernel does it.
struct Written {
  struct Record {
    filter::Hash128 key;
    cache::DiskPlace place;
    std::uint64_t sequence = 0;
  };

  Written() {
    REQUIRE(memory.allocate(superblock.disk_bytes()));
    file.data_from(superblock.data_offset);
    common->clocks.monotonic = [this] { return now; };
    state.is_loading = false;
    auto purges = std::make_unique<PurgeLog>(file, superblock);
    REQUIRE(purges->make());
    purge_log = std::make_unique<DiskLog>(state, std::move(purges));
    writer = std::make_unique<DiskWriter>(state, *purge_log, queue, SegmentWriter::FoundState{});
  }
  // Places a record, and puts it in the queue; `late` puts are kept back.
  enum class Put : std::uint8_t { kNow, kLate, kWithoutSource, kTooLarge };
  Record put(Put how = Put::kNow, std::uint64_t body_bytes = 3000) {
    MadeRecord made = made_record(random, {.body_bytes = body_bytes});
    const std::uint64_t bytes = record_bytes(shape_of(made.view()));
    const auto placed = log.place({.bytes = bytes});
    REQUIRE(placed);
    if (placed->turn.sequence != 0) sequence = placed->turn.sequence;
    PendingWrite wanted{.key = made.fields.key,
                        .place = placed->place,
                        .turn = placed->turn,
                        .version = ++version,
                        .source = nullptr,
                        .from = std::nullopt};
    const Record record{made.fields.key, placed->place, sequence};
    if (how == Put::kTooLarge) wanted.place.bytes = bytes / 2;
    if (how != Put::kWithoutSource) wanted.source = std::make_unique<Source>(std::move(made));
    if (how != Put::kLate) (void)queue.put(placed->order, std::move(wanted));
    return record;
  }
  bool is_there(const Record& record) {
    RecordReader reader(memory, superblock);
    return reader.open({.place = record.place, .sequence = record.sequence, .key = record.key})
        .has_value();
  }

  Superblock superblock = disk_to_write();
  MonotonicTime now{std::chrono::hours(1)};
  MemoryFile memory;
  FileSwitch device;
  CountedFile file{std::make_unique<SwitchedFile>(memory, device)};
  std::shared_ptr<DiskCommon> common = std::make_shared<DiskCommon>();
  DiskState state{0, common, file, superblock,
                  [](const Purge&, const RecordFront&) { return false; }};
  std::unique_ptr<DiskLog> purge_log;
  WriteQueue queue{16 * kMiB};
  std::unique_ptr<DiskWriter> writer;
  cache::SegmentLog log{
      {.segments = superblock.segments, .segment_bytes = superblock.segment_bytes}};
  std::mt19937_64 random{1};
  cache::DiskVersion version = 0;
  std::uint64_t sequence = 0;
};

}  // namespace

TEST_CASE("what is put in the queue lies at its place when the second is over", "[disk]") {
  Written disk;
  std::vector<Written::Record> records;
  std::uint64_t bytes = 0;
  for (int i = 0; i < 5; ++i) {
    records.push_back(disk.put());
    bytes += records.back().place.bytes;
  }
  CHECK_FALSE(disk.writer->work());
  // So little waits for what comes in the second.
  for (const auto& record : records) CHECK_FALSE(disk.is_there(record));
  CHECK(disk.state.admit_bytes == 0);
  CHECK_FALSE(disk.writer->tick());
  for (const auto& record : records) CHECK(disk.is_there(record));
  CHECK(disk.state.admit_bytes == bytes);
  CHECK(disk.state.failed_records == 0);
  CHECK(disk.queue.bytes() == 0);
}

TEST_CASE("much is written at once", "[disk]") {
  Written disk;
  const auto record = disk.put(Written::Put::kNow, 200 * kKiB);
  CHECK_FALSE(disk.writer->work());
  CHECK(disk.is_there(record));
}

TEST_CASE("more than a batch is written batch by batch", "[disk]") {
  Written disk;
  std::vector<Written::Record> records;
  for (int i = 0; i < 6; ++i) records.push_back(disk.put(Written::Put::kNow, 900 * kKiB));
  CHECK(disk.writer->work());
  CHECK_FALSE(disk.is_there(records.back()));
  CHECK_FALSE(disk.writer->work());
  for (const auto& record : records) CHECK(disk.is_there(record));
}

TEST_CASE("a record that has no source, or no room, leaves its place empty alone", "[disk]") {
  Written disk;
  const auto first = disk.put();
  const auto odd = disk.put(GENERATE(Written::Put::kWithoutSource, Written::Put::kTooLarge));
  const auto last = disk.put();
  (void)disk.writer->tick();
  CHECK(disk.is_there(first));
  CHECK_FALSE(disk.is_there(odd));
  CHECK(disk.is_there(last));
  CHECK(disk.state.failed_records == 1);
}

TEST_CASE("a disk that fails is left alone for half a minute, and then tried again", "[disk]") {
  Written disk;
  (void)disk.put();
  (void)disk.writer->tick();
  disk.device.from = disk.superblock.data_offset;
  disk.device.writes_fail = true;
  for (std::uint64_t i = 0; i < DiskWriter::kFailedWritesMax; ++i) {
    CHECK_FALSE(disk.state.is_paused);
    (void)disk.put();
    (void)disk.writer->tick();
  }
  CHECK(disk.state.is_paused);
  CHECK(disk.state.pauses == 1);
  CHECK(disk.state.failed_records == DiskWriter::kFailedWritesMax);
  // It is not asked meanwhile, and new records are dropped.
  const auto failed = disk.file.writes().failed.load();
  const auto lost = disk.put();
  (void)disk.writer->tick();
  CHECK(disk.file.writes().failed == failed);
  CHECK(disk.state.failed_records == DiskWriter::kFailedWritesMax + 1);
  disk.device.writes_fail = false;
  disk.now += DiskWriter::kPause;
  const auto record = disk.put();
  (void)disk.writer->tick();
  CHECK_FALSE(disk.state.is_paused);
  CHECK(disk.is_there(record));
  CHECK_FALSE(disk.is_there(lost));
}

TEST_CASE("the end writes what has come, gives up what has not, and seals the segment", "[disk]") {
  Written disk;
  const auto first = disk.put();
  const auto late = disk.put(Written::Put::kLate);
  const auto behind = disk.put();
  (void)disk.writer->work();
  CHECK(disk.writer->finish());
  CHECK(disk.is_there(first));
  CHECK_FALSE(disk.is_there(late));
  CHECK_FALSE(disk.is_there(behind));
  CHECK(disk.state.failed_records == 1);
  const auto footer = read_footer(disk.memory, disk.superblock,
                                  {.segment = first.place.segment, .sequence = first.sequence});
  REQUIRE(footer.has_value());
  REQUIRE(footer->lines.size() == 1);
  CHECK(footer->lines[0].key == first.key);
  CHECK(disk.memory.unsynced().empty());
}

TEST_CASE("the end counts what a disk has lost", "[disk]") {
  Written disk;
  (void)disk.put();
  disk.device.from = disk.superblock.data_offset;
  disk.device.writes_fail = true;
  (void)disk.writer->finish();
  CHECK(disk.state.failed_records == 1);
}

TEST_CASE("nothing is written to a disk that has left service", "[disk]") {
  Written disk;
  disk.state.take_offline();
  const auto record = disk.put();
  const auto before = disk.file.writes().done.load();
  (void)disk.writer->work();
  (void)disk.writer->tick();
  CHECK_FALSE(disk.is_there(record));
  CHECK(disk.state.failed_records == 1);
  CHECK(disk.file.writes().done == before);
}

}  // namespace encore::disk
