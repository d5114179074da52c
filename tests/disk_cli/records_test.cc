#include <algorithm>
#include <map>
#include <random>
#include <set>
#include <string>

#include "base/units.h"
#include "proxy/disk/cli/key_set.h"
#include "proxy/disk/cli/live_records.h"
#include "proxy/disk/cli/stat.h"
#include "proxy/disk/cli/wear.h"
#include "proxy/disk/open.h"
#include "proxy/disk/segment_scan.h"
#include "tests/disk/model/start.h"
#include "tests/disk_cli/looked.h"

namespace encore::disk {
namespace {

using Versions = std::map<std::string, cache::DiskVersion>;

class Collector final : public RecordVisitor {
 public:
  bool on_record(const VisitedRecord& record) override {
    ++records;
    if (record.state != RecordState::kObject) return true;
    heads += record.parts.all == 0 ? 0 : 1;
    const bool is_new =
        objects.emplace(std::string(record.front->text.key), record.line.version).second;
    CHECK(is_new);
    return true;
  }
  bool on_segment(const VisitedSegment& segment) override {
    CHECK(segment.header.sequence < sequence);
    sequence = segment.header.sequence;
    return true;
  }
  Versions objects;
  std::uint64_t records = 0;
  std::uint64_t heads = 0;
  std::uint64_t sequence = UINT64_MAX;
};

Collector objects_on(File& file) {
  const InspectedDisk disk = looked(file);
  PartIndex parts({&disk}, kModelPartBytes);
  LiveRecords records(disk, parts, is_purged_in_model);
  Collector collector;
  REQUIRE(records.visit(collector));
  return collector;
}

// The records that a start finds which reads every record whole, as the crash model does it.
std::vector<Start::Winner> found_on(File& file, const Superblock& superblock) {
  const Start start(file, superblock, {.writes_footers = false});
  REQUIRE(start.refusal().empty());
  return start.winners();
}

Versions versions_of(const std::vector<Start::Winner>& found) {
  Versions versions;
  for (const Start::Winner& winner : found) {
    versions[winner.object.key] = winner.record.line.version;
  }
  return versions;
}

std::uint64_t room_of(const FoundRecord& record) { return record.place().bytes; }

}  // namespace

TEST_CASE("what is listed is what a start finds, and all that was resident", "[disk-cli]") {
  std::uint64_t objects = 0;
  std::uint64_t open = 0;
  std::uint64_t heads = 0;
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    MemoryFile file;
    History history;
    for (std::uint64_t life = 0; life < 3; ++life) {
      Driver driver(file, kDisk, history, seed * 10 + life);
      REQUIRE(driver.refusal().empty());
      for (std::uint64_t i = 0; i < 40 + seed * 3; ++i) driver.step();
      // As a crash leaves it, too.
      const Versions crashed = objects_on(file).objects;
      CHECK(crashed == versions_of(found_on(file, driver.superblock())));
      open += crashed.size();
      REQUIRE(driver.stop());
      const Collector seen = objects_on(file);
      const Versions& listed = seen.objects;
      heads += seen.heads;
      REQUIRE(listed == versions_of(found_on(file, driver.superblock())));
      objects += listed.size();
      for (const auto& [key, version] : driver.resident()) {
        CAPTURE(seed, life, key);
        REQUIRE(listed.contains(key));
        CHECK(listed.at(key) == version);
      }
    }
  }
  CHECK(objects > 1000);
  CHECK(open > 1000);
  CHECK(heads > 50);
}

TEST_CASE("the numbers of a disk add up", "[disk-cli]") {
  std::uint64_t purged = 0;
  std::uint64_t parts = 0;
  std::uint64_t incomplete = 0;
  std::uint64_t dead = 0;
  for (std::uint64_t seed = 1; seed <= 90; ++seed) {
    MemoryFile file;
    History history;
    Driver driver(file, kDisk, history, seed);
    for (std::uint64_t i = 0; i < 150; ++i) driver.step();
    REQUIRE(driver.stop());
    const InspectedDisk disk = looked(file);
    Monitor monitor;
    PartIndex index({&disk}, kModelPartBytes);
    const auto stat = stat_disk(disk, index, 100'000, monitor, is_purged_in_model);
    REQUIRE(stat);
    const Superblock& superblock = driver.superblock();

    // Objects are counted as a start finds them; parts, wherever they lie.
    std::map<std::string, CountAndBytes, std::less<>> hosts;
    CountAndBytes objects;
    std::uint64_t body_bytes = 0;
    for (const Start::Winner& winner : found_on(file, superblock)) {
      objects.add(room_of(winner.record));
      const std::string& key = winner.object.key;
      hosts[key.substr(8, key.find('/', 8) - 8)].add(winner.object.body.size());
      body_bytes += winner.object.body.size();
    }
    CountAndBytes all;
    CountAndBytes apart;
    for (const SegmentHeader& header : disk.read_headers()) {
      const ScannedSegment scanned = scan_segment(file, superblock, header);
      for (const RecordLine& line : scanned.footer.lines) {
        const FoundRecord found{line, header.segment, header.sequence};
        all.add(room_of(found));
        if (line.kind == RecordKind::kPart) apart.add(room_of(found));
      }
    }
    CHECK(stat->objects == objects);
    CHECK(stat->parts == apart);
    CHECK(stat->live().count + stat->dead().count == all.count);
    CHECK(stat->live().bytes + stat->dead().bytes == all.bytes);
    CHECK(stat->hosts == hosts);
    CHECK(stat->unreadable.count == 0);
    CHECK(stat->segments_unsealed == 0);
    for (const auto& classes : {std::vector(stat->ages.begin(), stat->ages.end()),
                                std::vector(stat->sizes.begin(), stat->sizes.end())}) {
      CountAndBytes sum;
      for (const CountAndBytes& amount : classes) {
        sum.count += amount.count;
        sum.bytes += amount.bytes;
      }
      CHECK(sum == CountAndBytes{objects.count, body_bytes});
    }
    // A segment holds what is in it.
    CHECK(stat->overhead_bytes >= stat->segments_used * cache::kSegmentHeaderBytes);
    CHECK(all.bytes + stat->overhead_bytes <= stat->segments_used * superblock.segment_bytes);
    purged += stat->purged.count;
    parts += stat->parts.count;
    incomplete += stat->incomplete.count;
    dead += stat->dead().count;
  }
  CHECK(purged > 50);
  CHECK(parts > 50);
  CHECK(incomplete > 5);
  CHECK(dead > 500);
}

TEST_CASE("what is written a day follows from the turns, and the ring from that", "[disk-cli]") {
  MemoryFile file;
  History history;
  Driver driver(file, kDisk, history, 7);
  while (driver.counts().turns < 20) driver.step();
  REQUIRE(driver.stop());
  const InspectedDisk disk = looked(file);
  const auto headers = disk.read_headers();
  Monitor monitor;
  // The driver opens each segment in second 1.
  PartIndex parts({&disk}, kModelPartBytes);
  CHECK_FALSE(stat_disk(disk, parts, 3600, monitor)->written_a_day);
  const auto stat = stat_disk(disk, parts, 1 + 43'200, monitor);
  REQUIRE(stat->written_a_day);
  const std::uint64_t turns = headers.front().sequence - headers.back().sequence;
  CHECK(turns >= 6);
  CHECK(*stat->written_a_day > 2 * turns * disk.superblock().segment_bytes);
  CHECK(*stat->written_a_day <= 2 * (turns + 1) * disk.superblock().segment_bytes);
  const double segments_a_day =
      static_cast<double>(*stat->written_a_day) / static_cast<double>(kDisk.segment_bytes);
  const double around = *stat->days_for(disk.superblock().segments) * segments_a_day;
  CHECK(around > 12 - 1e-6);
  CHECK(around < 12 + 1e-6);
}

TEST_CASE("how long a device bears what is written to it is said in years", "[disk-cli]") {
  CHECK(shown_wear(5 * kMiB, 0) == "5MiB a day");
  CHECK(shown_wear(0, kTiB) == "0B a day");
  CHECK(shown_wear(10 * kGiB, 600'000'000'000'000ULL) ==
        "10GiB a day, at which the 545.7TiB that its device is rated for last 153 years");
  CHECK(shown_wear(kTiB, 600 * kTiB) ==
        "1TiB a day, at which the 600TiB that its device is rated for last 1.6 years");
  CHECK(shown_wear(kMiB, kTiB).find("last more than 1000 years") != std::string::npos);
}

TEST_CASE("whatever is flipped or cut off, looking ends and believes nothing wrong", "[disk-cli]") {
  MemoryFile file;
  History history;
  Driver driver(file, kDisk, history, 11);
  for (int i = 0; i < 120; ++i) driver.step();
  REQUIRE(driver.stop());
  std::mt19937_64 random(12);
  std::uint64_t looked_at = 0;
  for (int i = 0; i < 300; ++i) {
    Image image = file.image();
    for (auto flips = 1 + random() % 40; flips != 0; --flips) {
      image[random() % image.size()] ^= std::byte{1} << static_cast<int>(random() % 8);
    }
    if (i % 3 == 0) image.resize(random() % image.size() / 512 * 512);
    MemoryFile damaged(std::move(image));
    auto disk = InspectedDisk::open(std::make_unique<Shared>(damaged));
    if (!disk) continue;
    PartIndex parts({&*disk}, kModelPartBytes);
    LiveRecords records(*disk, parts, is_purged_in_model);
    Collector collector;
    if (!records.visit(collector)) continue;
    ++looked_at;
    for (const auto& [key, version] : collector.objects) {
      const auto object = history.find(version);
      REQUIRE(object != nullptr);
      CHECK(object->key == key);
    }
    Monitor monitor;
    CHECK(stat_disk(*disk, parts, 5, monitor).has_value());
  }
  CHECK(looked_at > 150);
}

TEST_CASE("a set of keys is one", "[disk-cli][plain]") {
  std::mt19937_64 random(1);
  KeySet keys;
  std::set<std::pair<std::uint64_t, std::uint64_t>> model;
  for (int i = 0; i < 20'000; ++i) {
    // Zeros, and many that begin at the same place.
    const filter::Hash128 key{random() % 40 * (std::uint64_t{1} << 40U) + random() % 500 * 7,
                              random() % 3};
    CHECK(keys.contains(key) == model.contains({key.lo, key.hi}));
    CHECK(keys.insert(key) == model.emplace(key.lo, key.hi).second);
    CHECK(keys.size() == model.size());
  }
}

}  // namespace encore::disk
