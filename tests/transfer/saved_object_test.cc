#include "proxy/transfer/saved_object.h"

#include <algorithm>
#include <array>
#include <random>
#include <string>
#include <vector>

#include "proxy/disk/open.h"
#include "proxy/disk/segment_writer.h"
#include "tests/catch.h"
#include "tests/disk/model/memory_file.h"
#include "tests/transfer/made_object.h"

namespace encore::server {
namespace {

using std::chrono::hours;
using std::chrono::seconds;

const Clocks kWritten{MonotonicTime(hours(50)), WallTime(hours(480'000))};
// After a boot: the monotonic clock begins anew.
const Clocks kRead{MonotonicTime(hours(1)), WallTime(hours(480'000) + seconds(90))};

std::string random_text(std::mt19937_64& random, std::size_t bytes) {
  std::string text(bytes, '\0');
  for (char& each : text) each = static_cast<char>('a' + random() % 26);
  return text;
}

std::unique_ptr<store::Store> make_store(std::uint64_t bytes = 64U << 20U) {
  auto store = store::make_memory_store({.limit_bytes = bytes});
  REQUIRE(store.has_value());
  return std::move(*store);
}

struct Parts {
  std::string key;
  std::string head;
  std::string body;
  ObjectMeta meta;
};

Parts random_parts(std::mt19937_64& random, std::size_t body_bytes) {
  Parts parts;
  const std::string primary = "forward:http://a.example/" + random_text(random, random() % 40);
  const std::string names = random() % 2 == 0 ? "" : "accept-language";
  parts.key = primary + names + (names.empty() ? "" : random_text(random, 5));
  const std::string tags = random() % 2 == 0 ? "" : "one\ntwo\n";
  parts.head = "HTTP/1.1 200 OK\r\nX: " + random_text(random, random() % 400) + "\r\n";
  parts.meta.http.head_bytes = static_cast<std::uint32_t>(parts.head.size());
  parts.head += tags;
  parts.body = random_text(random, body_bytes);
  parts.meta.http.status = 200;
  parts.meta.http.age_zero = kWritten.monotonic - seconds(random() % 1000);
  parts.meta.http.fresh_until = kWritten.monotonic + seconds(random() % 1000);
  parts.meta.variant = names.empty() ? 0 : random();
  parts.meta.primary_bytes = static_cast<std::uint32_t>(primary.size());
  parts.meta.names_bytes = static_cast<std::uint32_t>(names.size());
  parts.meta.tag_bytes = static_cast<std::uint32_t>(tags.size());
  return parts;
}

store::ObjectRef make(store::Store& store, const Parts& parts) {
  const store::ObjectParts of = {
      .key = parts.key, .meta = std::as_bytes(std::span(&parts.meta, 1)), .head = parts.head};
  if (cache::is_inline({.key = parts.key.size(),
                        .meta = sizeof(ObjectMeta),
                        .head = parts.head.size(),
                        .body = parts.body.size()})) {
    const iovec part{const_cast<char*>(parts.body.data()), parts.body.size()};
    auto object = store.make_small(of, std::span(&part, parts.body.empty() ? 0 : 1));
    REQUIRE(object.has_value());
    return *object;
  }
  // Every other one has an unknown length: in pieces of other sizes.
  const auto length =
      parts.body.size() % 2 == 0 ? std::optional<std::uint64_t>(parts.body.size()) : std::nullopt;
  auto writer = store.reserve({.key = parts.key, .length = length, .body = {}});
  REQUIRE(writer.has_value());
  store::Body& body = *(*writer)->body();
  REQUIRE(body.append(std::as_bytes(std::span(parts.body))) == parts.body.size());
  body.complete();
  auto object = (*writer)->commit(of);
  REQUIRE(object.has_value());
  return *object;
}

std::string body_of(const store::Object& object) {
  if (object.is_inline()) return std::string(object.inline_body());
  std::string text;
  auto cursor = object.body()->open(0);
  REQUIRE(cursor.has_value());
  std::array<iovec, 8> room;
  while (!cursor->at_end()) {
    const auto peeked = cursor->peek(room, 1U << 20U);
    for (std::size_t i = 0; i < peeked.parts; ++i) {
      text.append(static_cast<const char*>(room[i].iov_base), room[i].iov_len);
    }
    cursor->advance(peeked.bytes);
  }
  return text;
}

// A disk of one segment's records.
class OneSegment {
 public:
  OneSegment() {
    auto opened = disk::open_disk(file_, {.disk_bytes = 64U << 20U,
                                          .segment_bytes = 8U << 20U,
                                          .identity_seed = {1, 2},
                                          .uuid = {3, 4},
                                          .now = 1,
                                          .clear = false});
    REQUIRE(opened.has_value());
    superblock_ = *opened;
    writer_ = std::make_unique<disk::SegmentWriter>(
        file_, superblock_, disk::SegmentWriter::FoundState{{0, 0, 0, 0, 0, 0, 0, 0}, 0, false});
  }

  cache::DiskPlace write(const store::ObjectRef& object, const EntryTimes& times) {
    if (at_ == 0) {
      REQUIRE(writer_->open({.disk = 0, .segment = 0, .sequence = 1}, 1).has_value());
      at_ = cache::kSegmentHeaderBytes;
    }
    const auto bytes = record_bytes_of(*object);
    REQUIRE(bytes.has_value());
    at_ = (at_ + 4095) / 4096 * 4096;
    const cache::DiskPlace place{.disk = 0,
                                 .segment = 0,
                                 .unit = static_cast<std::uint32_t>(at_ / cache::kDiskUnit),
                                 .bytes = cache::disk_room(*bytes)};
    const auto source = make_record_source(object, kKey, times, kWritten);
    REQUIRE(source != nullptr);
    writer_->add(source->record(), place);
    at_ += place.bytes;
    REQUIRE(writer_->flush().has_value());
    return place;
  }

  std::expected<store::ObjectRef, LoadFault> load(store::Store& store,
                                                  const cache::DiskPlace& place,
                                                  disk::RecordFields* fields = nullptr) {
    std::optional<std::string> body;
    {
      const auto loaded = load_from(store, place, {}, fields);
      if (loaded) body = body_of(**loaded);
    }
    // Read to where it is to lie, the same comes.
    auto loaded = load_from(store, place, make_body_room(store, place.bytes), fields);
    CHECK(loaded.has_value() == body.has_value());
    if (loaded && body) CHECK(body_of(**loaded) == *body);
    return loaded;
  }
  disk::Image& image() { return file_.image(); }
  std::uint64_t offset(const cache::DiskPlace& place) const {
    return superblock_.segment_offset(0) + place.offset();
  }

  static constexpr filter::Hash128 kKey{7, 8};

 private:
  std::expected<store::ObjectRef, LoadFault> load_from(store::Store& store,
                                                       const cache::DiskPlace& place,
                                                       const BodyBuffer& room,
                                                       disk::RecordFields* fields) {
    disk::RecordReader reader(file_, superblock_);
    const auto front = reader.open(
        {.place = place, .sequence = 1, .key = kKey, .key_text = {}, .body_room = room.bytes});
    if (!front) return std::unexpected(LoadFault::kDamaged);
    if (fields != nullptr) *fields = (*front)->fields;
    return load_object(store, **front, reader, kRead, room.body);
  }

  disk::MemoryFile file_;
  disk::Superblock superblock_;
  std::unique_ptr<disk::SegmentWriter> writer_;
  std::uint64_t at_ = 0;
};

void check_same(const Parts& parts, const store::Object& object) {
  CHECK(object.key() == parts.key);
  CHECK(object.head() == parts.head);
  CHECK(body_of(object) == parts.body);
  const ObjectMeta& meta = meta_of(object);
  CHECK(meta.variant == parts.meta.variant);
  CHECK(meta.primary_bytes == parts.meta.primary_bytes);
  CHECK(meta.tag_bytes == parts.meta.tag_bytes);
  // As old on the other clock, and as long fresh.
  const auto moved = [](MonotonicTime time) {
    return kRead.monotonic + (time - kWritten.monotonic) - (kRead.wall - kWritten.wall);
  };
  CHECK(meta.http.age_zero == moved(parts.meta.http.age_zero));
  CHECK(meta.http.fresh_until == moved(parts.meta.http.fresh_until));
}

TEST_CASE("an object comes back from its record, whatever its size", "[transfer][disk]") {
  std::mt19937_64 random(GENERATE(1U, 2U, 3U));
  const auto store = make_store();
  OneSegment segment;
  for (const std::size_t bytes :
       {0UL, 1UL, 900UL, 5000UL, 65'535UL, 65'536UL, 65'537UL, random() % 500'000, 262'144UL,
        1'048'577UL, 1'200'000 + random() % 100'000}) {
    CAPTURE(bytes);
    const Parts parts = random_parts(random, bytes);
    const auto object = make(*store, parts);
    const EntryTimes times{kWritten.monotonic + seconds(100), kWritten.monotonic + seconds(300)};
    const auto place = segment.write(object, times);
    disk::RecordFields fields;
    const auto loaded = segment.load(*store, place, &fields);
    REQUIRE(loaded.has_value());
    check_same(parts, **loaded);
    const auto wall = std::chrono::floor<seconds>(kWritten.wall.time_since_epoch()).count();
    CHECK(fields.fresh_until == wall + 100);
    CHECK(fields.keep_until == wall + 300);
    CHECK(fields.stored_at == wall);
  }
}

TEST_CASE("the record of a part has its bytes, in however many pieces they lie",
          "[transfer][disk]") {
  // A chunk that is ended early has an empty rest: each of these is a piece.
  const std::size_t piece = GENERATE(as<std::size_t>(), 5000, 60'000, 1'500'000);
  const std::size_t begin = GENERATE(as<std::size_t>(), 0, 1, 123'456);
  constexpr std::uint64_t kBytes = 1'000'000;
  constexpr filter::Hash128 kPartKey{5, 6};
  CAPTURE(piece, begin);
  const auto store = make_store();
  std::string whole;
  for (std::size_t i = 0; i < 1'500'000; ++i) whole += static_cast<char>('a' + i * 7 % 26);
  auto body = store->make_body({});
  REQUIRE(body.has_value());
  for (std::size_t at = 0; at < whole.size(); at += piece) {
    const auto some =
        std::as_bytes(std::span(whole).subspan(at, std::min(piece, whole.size() - at)));
    REQUIRE((*body)->append(some) == some.size());
    (*body)->end_chunk();
  }
  auto cursor = (*body)->open(begin);
  REQUIRE(cursor.has_value());
  const auto source = make_part_source(
      {.cursor = cursor->copy(), .bytes = kBytes, .body = 77, .number = 3}, kPartKey, kWritten);
  // The source holds what it needs.
  cursor.reset();
  (*body)->stop_retaining();
  const disk::Record record = source->record();
  std::string text;
  for (const iovec& part : record.body) {
    text.append(static_cast<const char*>(part.iov_base), part.iov_len);
  }
  CHECK((text == whole.substr(begin, kBytes)));
  CHECK(record.fields.kind == disk::RecordKind::kPart);
  CHECK(record.fields.key == kPartKey);
  CHECK(record.fields.body == 77);
  CHECK(record.fields.part == 3);
  CHECK(record.fields.body_bytes == kBytes);
  CHECK(record.fields.fresh_until == UINT32_MAX);
  CHECK(record.fields.keep_until == UINT32_MAX);
  const auto wall = std::chrono::floor<seconds>(kWritten.wall.time_since_epoch()).count();
  CHECK(record.fields.stored_at == wall);
  CHECK(record.text.key.empty());
  CHECK_FALSE(source->is_urgent());
  CHECK(record_bytes_of_part(kBytes) == disk::record_bytes(disk::shape_of(record)));
  (*body)->abort();
}

TEST_CASE("moments beyond what a record holds are its ends", "[transfer][disk]") {
  std::mt19937_64 random(1);
  const auto store = make_store();
  OneSegment segment;
  const auto object = make(*store, random_parts(random, 10));
  disk::RecordFields fields;
  const auto never = segment.write(object, {MonotonicTime::max(), MonotonicTime::max()});
  REQUIRE(segment.load(*store, never, &fields).has_value());
  CHECK(fields.fresh_until == UINT32_MAX);
  CHECK(fields.keep_until == UINT32_MAX);
  const auto gone = segment.write(object, {MonotonicTime::min(), MonotonicTime::min()});
  REQUIRE(segment.load(*store, gone, &fields).has_value());
  CHECK(fields.fresh_until == 0);
}

TEST_CASE("what is damaged in a record is never an object", "[transfer][disk]") {
  std::mt19937_64 random(GENERATE(4U, 5U));
  const auto store = make_store();
  OneSegment segment;
  const Parts parts = random_parts(random, GENERATE(700UL, 200'000UL));
  const auto place =
      segment.write(make(*store, parts), {kWritten.monotonic + seconds(9), kWritten.monotonic});
  std::size_t refused = 0;
  for (int i = 0; i < 400; ++i) {
    std::byte& hit = segment.image()[segment.offset(place) + random() % place.bytes];
    const auto bit = static_cast<std::byte>(1U << (random() % 8));
    hit ^= bit;
    const auto loaded = segment.load(*store, place);
    if (loaded) {
      check_same(parts, **loaded);  // it fell on what pads the record
    } else {
      ++refused;
    }
    hit ^= bit;
  }
  CHECK(refused > 300);
  CHECK(store->stats().objects == 0);
}

TEST_CASE("an object for which there is no memory is not damaged", "[transfer][disk]") {
  std::mt19937_64 random(6);
  const auto store = make_store();
  OneSegment segment;
  const auto place = segment.write(make(*store, random_parts(random, 3'000'000)),
                                   {kWritten.monotonic, kWritten.monotonic});
  const auto small = make_store(2U << 20U);
  const auto loaded = segment.load(*small, place);
  REQUIRE_FALSE(loaded.has_value());
  CHECK(loaded.error() == LoadFault::kNoMemory);
  CHECK(small->stats().in_flight_bytes == 0);
}

TEST_CASE("where there is no memory for a body no room is made for it", "[transfer][disk]") {
  const auto store = make_store(2U << 20U);
  constexpr std::uint64_t kRecordBytes = 1U << 20U;
  CHECK(make_body_room(*store, kRecordBytes).body);
  std::vector<BodyBuffer> all;
  do {
    all.push_back(make_body_room(*store, kRecordBytes));
    REQUIRE(all.size() < 10);
  } while (all.back().body);
  CHECK(all.back().bytes.empty());
  CHECK(all.size() > 1);
  // Nor where there is none for what describes it.
  all.clear();
  std::vector<store::BodyRef> empty_ones;
  while (auto made = store->make_body({})) {
    empty_ones.push_back(std::move(*made));
    REQUIRE(empty_ones.size() < 100'000);
  }
  CHECK_FALSE(make_body_room(*store, kRecordBytes).body);
}

TEST_CASE("an object that comes back lies in memory as it did", "[transfer][disk]") {
  std::mt19937_64 random(GENERATE(1U, 2U, 3U));
  const auto store = make_store();
  OneSegment segment;
  int inline_ones = 0;
  for (std::size_t bytes = cache::kSlotBytesMax - 1500; bytes < cache::kSlotBytesMax; bytes += 17) {
    CAPTURE(bytes);
    const auto object = make(*store, random_parts(random, bytes));
    const auto loaded =
        segment.load(*store, segment.write(object, {kWritten.monotonic, kWritten.monotonic}));
    REQUIRE(loaded.has_value());
    CHECK((*loaded)->is_inline() == object->is_inline());
    inline_ones += object->is_inline() ? 1 : 0;
  }
  CHECK(inline_ones > 10);
  CHECK(inline_ones < 80);
}

TEST_CASE("what is larger than a record has none", "[transfer][disk]") {
  std::mt19937_64 random(7);
  const auto store = make_store();
  const auto object = make(*store, random_parts(random, disk::kRecordBodyMax + 1));
  CHECK_FALSE(record_bytes_of(*object).has_value());
  CHECK(make_record_source(object, OneSegment::kKey, {}, kWritten) == nullptr);
}

TEST_CASE("names that are longer than a disk knows have no record", "[transfer][disk]") {
  const auto store = make_store();
  for (const std::size_t bytes :
       {cache::kNamesBytesMax - 1, cache::kNamesBytesMax, cache::kNamesBytesMax + 1}) {
    const std::string names(bytes, 'n');
    const auto object = make_object(*store, {.key = "f http://a.example/", .names = names});
    CHECK(record_bytes_of(*object).has_value() == (bytes <= cache::kNamesBytesMax));
  }
}

TEST_CASE("the head of a body in parts comes back without it, and with what finds them",
          "[transfer][disk]") {
  std::mt19937_64 random(4);
  const auto store = make_store();
  const LargeBody large{.number = 0x0123456789abcdef, .length = 5ULL << 32U};
  const bool has_body = GENERATE(false, true);
  Parts parts = random_parts(random, has_body ? 100'000 : 0);
  const std::string tags = parts.head.substr(parts.head.size() - parts.meta.tag_bytes);
  parts.head.resize(parts.head.size() - tags.size());
  parts.head += write_large_body(large) + tags;
  parts.meta.large_bytes = kLargeBodyBytes;
  const store::ObjectRef object = make(*store, parts);
  CHECK(large_body_of(*object) == large);
  CHECK(tags_of(*object) == tags);
  CHECK(trailers_of(*object).empty());
  CHECK(is_on_disk_alone(*object) == !has_body);
  CHECK(body_length_of(*object) == large.length);
  OneSegment disk;
  const cache::DiskPlace place = disk.write(object, {kWritten.monotonic, kWritten.monotonic});
  CHECK(place.bytes < 2000);
  disk::RecordFields fields;
  const auto loaded = disk.load(*store, place, &fields);
  REQUIRE(loaded.has_value());
  CHECK(fields.kind == disk::RecordKind::kHead);
  CHECK(fields.body == large.number);
  CHECK(fields.body_bytes == large.length);
  parts.body.clear();
  check_same(parts, **loaded);
  CHECK(is_on_disk_alone(**loaded));
  CHECK(large_body_of(**loaded) == large);
}

}  // namespace
}  // namespace encore::server
