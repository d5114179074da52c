// The journal reads places and records of disks as it has written them, and refuses those that no
// disk can have.
#include "cache/disk_codec.h"

#include <functional>
#include <random>
#include <string>
#include <vector>

#include "tests/cache/support.h"

namespace encore::cache::test {
namespace {

constexpr std::uint64_t kUnits = kSegmentBytesMax / kDiskUnit;

DiskPlace random_place(std::mt19937_64& random) {
  return {.disk = static_cast<std::uint16_t>(random() % kDisksMax),
          .segment = static_cast<std::uint32_t>(random() % kSegmentsMax),
          .unit = static_cast<std::uint32_t>(random() % kUnits),
          .bytes = disk_room(1 + random() % 100'000)};
}

DiskRecord random_record(std::mt19937_64& random) {
  DiskRecord record;
  record.key = {random(), random()};
  record.variant = static_cast<std::uint32_t>(random());
  record.names = static_cast<std::uint16_t>(random() % kDiskNamesMax);
  record.place = random_place(random);
  record.visited = random() % 2 == 0;
  record.part = random() % 2 == 0;
  record.fresh_until = at(static_cast<int>(random() % 1'000'000));
  record.keep_until = at(static_cast<int>(random() % 1'000'000));
  return record;
}

}  // namespace

TEST_CASE("Places, records and sequences are read as they were written", "[cache][disk]") {
  std::mt19937_64 random(6);
  for (const std::size_t count : {0U, 1U, 2U, 50U}) {
    std::vector<DiskPlace> places;
    std::vector<DiskRecord> records;
    std::vector<std::uint64_t> sequences;
    for (std::size_t i = 0; i < count; ++i) {
      places.push_back(random_place(random));
      records.push_back(random_record(random));
      sequences.push_back(random() >> (random() % 64));
    }
    const auto read_places = decode_places(encode_places(places));
    REQUIRE(read_places.has_value());
    CHECK(*read_places == places);
    const auto read_records = decode_records(encode_records(records));
    REQUIRE(read_records.has_value());
    CHECK((*read_records == records));
    const auto read_sequences = decode_sequences(encode_sequences(sequences));
    REQUIRE(read_sequences.has_value());
    CHECK(*read_sequences == sequences);
  }
}

TEST_CASE("What no disk can have is not read, and each bound itself is", "[cache][disk]") {
  struct Row {
    std::function<void(DiskRecord&)> change;
    bool is_read;
  };
  const std::vector<Row> rows = {
      {[](DiskRecord&) {}, true},
      {[](DiskRecord& of) { of.place.disk = kDisksMax - 1; }, true},
      {[](DiskRecord& of) { of.place.disk = kDisksMax; }, false},
      {[](DiskRecord& of) { of.place.segment = kSegmentsMax - 1; }, true},
      {[](DiskRecord& of) { of.place.segment = kSegmentsMax; }, false},
      {[](DiskRecord& of) { of.place.unit = kUnits - 1; }, true},
      {[](DiskRecord& of) { of.place.unit = kUnits; }, false},
      {[](DiskRecord& of) { of.place.bytes = 0; }, false},
      {[](DiskRecord& of) { of.place.bytes = kDiskUnit; }, true},
      {[](DiskRecord& of) { of.place.bytes = kDiskUnit - 1; }, false},
      {[](DiskRecord& of) { of.place.bytes = kSegmentBytesMax; }, true},
      {[](DiskRecord& of) { of.place.bytes = 2 * kSegmentBytesMax; }, false},
      {[](DiskRecord& of) { of.names = kDiskNamesMax - 1; }, true},
      {[](DiskRecord& of) { of.names = kDiskNamesMax; }, false}};
  std::mt19937_64 random(7);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    CAPTURE(i);
    const DiskRecord first = random_record(random);
    DiskRecord second = random_record(random);
    rows[i].change(second);
    const std::string bytes = encode_records(std::vector{first, second});
    const auto records = decode_records(bytes);
    CHECK(records.has_value() == rows[i].is_read);
    if (!records) CHECK(records.error().message == "damaged records of a disk, number 2");
    const auto places = decode_places(encode_places(std::vector{second.place}));
    const bool is_of_place = i < rows.size() - 1;
    CHECK(places.has_value() == (rows[i].is_read || !is_of_place));
    if (!places) CHECK(places.error().message == "damaged places on disk, number 1");
    // Cut anywhere it is damaged.
    if (!records) continue;
    CHECK_FALSE(decode_records(std::string_view(bytes).substr(0, bytes.size() - 1)).has_value());
  }
  std::string flags = encode_records(std::vector{random_record(random)});
  // Behind key, variant and names.
  constexpr std::size_t kFlags = 16 + 4 + 2;
  flags[kFlags] = 3;
  CHECK(decode_records(flags).has_value());
  flags[kFlags] = 4;
  CHECK_FALSE(decode_records(flags).has_value());
}

}  // namespace encore::cache::test
