#include "proxy/disk/format.h"

#include <array>
#include <cstring>
#include <random>
#include <string>

#include "base/units.h"
#include "proxy/disk/bytes.h"
#include "proxy/disk/footer.h"
#include "proxy/disk/record.h"
#include "tests/catch.h"
#include "tests/disk/model/made_record.h"

namespace encore::disk {
namespace {

using Bytes = std::vector<std::byte>;

// Calls `is_refused` with each bit of `bytes` flipped, but those from `end` on.
template <typename Check>
void flip_each_bit(Bytes bytes, std::size_t end, const Check& is_refused) {
  std::size_t accepted = 0;
  for (std::size_t at = 0; at < end * 8; ++at) {
    const auto bit = std::byte{1} << static_cast<int>(at % 8);
    bytes[at / 8] ^= bit;
    if (!is_refused(bytes)) ++accepted;
    bytes[at / 8] ^= bit;
  }
  CHECK(accepted == 0);
}

Superblock some_superblock() {
  Superblock block = *lay_out(4 * kMiB, 256 * kKiB);
  block.uuid = {1, 2};
  block.identity_seed = {3, 4};
  block.generation = 5;
  block.made_at = 6;
  return block;
}

Bytes encoded(const Superblock& block, std::uint64_t offset) {
  Bytes page(kPageBytes, std::byte{9});
  encode(block, offset, Page(page));
  return page;
}

Bytes encoded_front(MadeRecord& made, Salt salt, std::uint64_t offset) {
  const Record record = made.view();
  Bytes bytes(front_bytes(shape_of(record)));
  encode_front(record, salt, offset, bytes);
  return bytes;
}

std::expected<RecordFront, Damage> decoded_front(std::span<const std::byte> bytes, Salt salt,
                                                 std::uint64_t offset) {
  const auto header = decode_header(bytes.first<kRecordHeaderBytes>(), salt, offset);
  if (!header || front_bytes(header->shape) != bytes.size()) {
    return std::unexpected(Damage::kHeader);
  }
  return decode_front(*header, bytes, salt, offset);
}

Footer some_footer(std::mt19937_64& random, std::size_t records) {
  Footer footer;
  footer.sequence = 77;
  for (std::size_t i = 0; i < records; ++i) {
    RecordLine line{.kind = static_cast<RecordKind>(1 + random() % 3),
                    .key = {random(), random()},
                    .version = random() >> 9U,
                    .unit = static_cast<std::uint32_t>(64 + random() % 3000),
                    .room_units = static_cast<std::uint32_t>(2 + random() % 900),
                    .names = footer.names.number_of("name-" + std::to_string(random() % 5)),
                    .fresh_until = static_cast<WallSeconds>(random())};
    const bool is_part = line.kind == RecordKind::kPart;
    (is_part ? line.part : line.keep_until) = 99;
    (is_part ? line.body : line.variant) = random();
    footer.version_max = std::max(footer.version_max, line.version);
    footer.lines.push_back(line);
  }
  return footer;
}

constexpr std::uint64_t kSegmentBytes = 256 * kKiB;

Bytes encoded(const Footer& footer, Salt salt) {
  Bytes bytes(footer_bytes(footer), std::byte{9});
  encode_footer(footer, salt, kSegmentBytes, bytes);
  return bytes;
}

}  // namespace

TEST_CASE("a disk is divided into segments, and too small a one is refused", "[disk]") {
  for (const std::uint64_t bytes : {128 * kMiB, kGiB, 100 * kGiB, 100 * kTiB}) {
    const auto block = lay_out(bytes, cache::default_segment_bytes(bytes));
    REQUIRE(block);
    CHECK(block->disk_bytes() <= bytes);
    CHECK(bytes - block->disk_bytes() < block->segment_bytes);
    CHECK(block->data_offset % kMiB == 0);
    CHECK(block->data_offset <= std::max(bytes / 100, 2 * kMiB));
    CHECK(segments_in(*block, bytes) == block->segments);
    CHECK(segments_in(*block, bytes + block->segment_bytes) == block->segments + 1);
  }
  CHECK(segments_in(some_superblock(), 1000) == 0);
  const auto small = lay_out(40 * kMiB, 16 * kMiB);
  REQUIRE_FALSE(small);
  CHECK(small.error().message == "a disk of 40MiB is too small: accepted are 65MiB and more");
  CHECK_FALSE(lay_out(std::uint64_t{1} << 62U, 64 * kMiB));
}

TEST_CASE("a superblock is read as it was written, and with no bit changed", "[disk]") {
  const Superblock block = some_superblock();
  const Bytes page = encoded(block, 0);
  const auto decoded = decode_superblock(ConstPage(page), 0);
  CHECK(decoded.kind == PageKind::kOurs);
  CHECK(decoded.superblock == block);
  // The copy belongs where it was written.
  CHECK(decode_superblock(ConstPage(page), kSecondSuperblock).kind == PageKind::kDamaged);
  flip_each_bit(page, kSectorBytes, [](const Bytes& bytes) {
    return decode_superblock(ConstPage(bytes), 0).kind == PageKind::kDamaged;
  });
}

TEST_CASE("what is no superblock of ours is told apart", "[disk]") {
  Bytes page(kPageBytes);
  CHECK(decode_superblock(ConstPage(page), 0).kind == PageKind::kBlank);
  page[100] = std::byte{1};
  CHECK(decode_superblock(ConstPage(page), 0).kind == PageKind::kForeign);
  page = encoded(some_superblock(), 0);
  const auto reseal = [&] {
    put(page.data() + kSectorBytes - kSumBytes,
        checksum(0x454e434f4449534bU, 0, std::span(page).first(kSectorBytes - kSumBytes)));
  };
  put(page.data() + 8, kFormatVersion + 1);
  reseal();
  const auto newer = decode_superblock(ConstPage(page), 0);
  CHECK(newer.kind == PageKind::kNewer);
  CHECK(newer.version == kFormatVersion + 1);
}

TEST_CASE("a superblock whose sizes cannot be is refused though its checksum is right", "[disk]") {
  const auto kind_with = [](auto change) {
    Superblock block = some_superblock();
    change(block);
    const Bytes page = encoded(block, 0);
    return decode_superblock(ConstPage(page), 0).kind;
  };
  CHECK(kind_with([](Superblock&) {}) == PageKind::kOurs);
  CHECK(kind_with([](Superblock& b) { b.segment_bytes = 0; }) == PageKind::kDamaged);
  CHECK(kind_with([](Superblock& b) { b.segment_bytes = 3 * 64 * kKiB; }) == PageKind::kDamaged);
  CHECK(kind_with([](Superblock& b) { b.segment_bytes = 512 * kMiB; }) == PageKind::kDamaged);
  CHECK(kind_with([](Superblock& b) { b.segments = 0; }) == PageKind::kDamaged);
  CHECK(kind_with([](Superblock& b) { b.segments = cache::kSegmentsMax + 1; }) ==
        PageKind::kDamaged);
  CHECK(kind_with([](Superblock& b) { b.purge_offset = 0; }) == PageKind::kDamaged);
  CHECK(kind_with([](Superblock& b) { b.purge_offset = UINT64_MAX - 4095; }) == PageKind::kDamaged);
  CHECK(kind_with([](Superblock& b) { b.purge_bytes = 100; }) == PageKind::kDamaged);
  CHECK(kind_with([](Superblock& b) { b.data_offset -= kPageBytes; }) == PageKind::kDamaged);
  CHECK(kind_with([](Superblock& b) { b.data_offset = 1ULL << 60U; }) == PageKind::kDamaged);
}

TEST_CASE("a segment's header belongs to its disk and place, to the bit", "[disk]") {
  const SegmentHeader header{.segment = 3, .sequence = 9, .versions_seen = 1000, .opened_at = 7};
  const Uuid disk{1, 2};
  Bytes page(kPageBytes);
  CHECK_FALSE(decode_segment_header(ConstPage(page), disk, 3));
  encode(header, disk, Page(page));
  CHECK(decode_segment_header(ConstPage(page), disk, 3) == header);
  CHECK_FALSE(decode_segment_header(ConstPage(page), disk, 4));
  CHECK_FALSE(decode_segment_header(ConstPage(page), Uuid{2, 1}, 3));
  flip_each_bit(page, kSectorBytes, [&](const Bytes& bytes) {
    return !decode_segment_header(ConstPage(bytes), disk, 3);
  });
}

TEST_CASE("a record is read as it was written, in its own place and turn only", "[disk]") {
  std::mt19937_64 random(1);
  const Salt salt = salt_of({1, 2}, 3, 4);
  for (const auto kind : {RecordKind::kObject, RecordKind::kPart, RecordKind::kHead}) {
    for (const std::uint64_t bytes : {0UL, 1UL, 65535UL, 65536UL, 65537UL, 1000000UL}) {
      MadeRecord made = made_record(random, {kind, bytes, 1 + random() % 4});
      const Bytes front = encoded_front(made, salt, 8192);
      const auto decoded = decoded_front(front, salt, 8192);
      REQUIRE(decoded);
      CHECK(decoded->fields == made.fields);
      CHECK(decoded->text.key == made.key);
      CHECK(decoded->text.names == made.names);
      CHECK(decoded->text.meta == made.meta);
      CHECK(decoded->text.head == made.head);
      CHECK(decoded->block_sums.size() == kSumBytes * block_count(made.body.size()));
      for (std::size_t i = 0; i < block_count(made.body.size()); ++i) {
        const auto block = bytes_of(made.body).subspan(i * kBlockBytes, decoded->block_bytes(i));
        CHECK(decoded->is_block(i, block));
        Bytes changed(block.begin(), block.end());
        changed[random() % changed.size()] ^= std::byte{16};
        CHECK_FALSE(decoded->is_block(i, changed));
      }
      CHECK_FALSE(decoded_front(front, salt, 8192 + 64));
      CHECK_FALSE(decoded_front(front, salt_of({1, 2}, 3, 5), 8192));
      CHECK_FALSE(decoded_front(front, salt_of({1, 2}, 2, 4), 8192));
      CHECK_FALSE(decoded_front(front, salt_of({2, 2}, 3, 4), 8192));
    }
  }
}

TEST_CASE("blocks of one body do not fit each other's places", "[disk]") {
  std::mt19937_64 random(2);
  MadeRecord made = made_record(random, {RecordKind::kPart, 2 * kBlockBytes, 1});
  made.body.replace(0, kBlockBytes, std::string(kBlockBytes, 'x'));
  made.body.replace(kBlockBytes, kBlockBytes, std::string(kBlockBytes, 'x'));
  const Bytes front = encoded_front(made, 1, 4096);
  const auto decoded = decoded_front(front, 1, 4096);
  REQUIRE(decoded);
  CHECK_FALSE(std::ranges::equal(decoded->block_sums.first(8), decoded->block_sums.subspan(8)));
}

TEST_CASE("no bit of a record's front can change", "[disk]") {
  std::mt19937_64 random(3);
  for (const auto kind : {RecordKind::kObject, RecordKind::kHead}) {
    MadeRecord made = made_record(random, {kind, 400'000, 2});
    const Bytes front = encoded_front(made, 5, 4096);
    flip_each_bit(front, front.size(),
                  [](const Bytes& bytes) { return !decoded_front(bytes, 5, 4096); });
  }
}

TEST_CASE("records of earlier versions say where their bodies begin", "[disk]") {
  std::mt19937_64 random(4);
  for (const std::uint64_t bytes : {65'535U, 65'536U, 262'144U}) {
    MadeRecord made = made_record(random, {RecordKind::kObject, bytes, 1});
    Bytes front = encoded_front(made, 5, 4096);
    const auto header_of = [&](std::uint8_t layout) {
      front[5] = std::byte{layout};
      const auto header = std::span<const std::byte>(front).first<kRecordHeaderBytes>();
      put(front.data() + kRecordHeaderBytes - kSumBytes,
          checksum(5, 4096, header.first(kRecordHeaderBytes - kSumBytes)));
      return decode_header(header, 5, 4096);
    };
    const auto now = header_of(1);
    REQUIRE(now);
    CHECK(now->shape == shape_of(made.view()));
    const auto earlier = header_of(0);
    REQUIRE(earlier);
    CHECK(body_begin(earlier->shape) % 4096 == (bytes >= 65'536 ? 0 : front.size() % 4096));
    CHECK(record_bytes(earlier->shape) >= record_bytes(now->shape));
    CHECK_FALSE(header_of(2));
  }
}

TEST_CASE("a large body begins with a page, a small one at once", "[disk]") {
  const RecordShape small{.key_bytes = 30, .head_bytes = 200, .body_bytes = 262143};
  CHECK(body_begin(small) == 128 + 30 + 200 + 32);
  CHECK(record_bytes(small) == 128 + 30 + 200 + 32 + 262143);
  const RecordShape large{.key_bytes = 30, .head_bytes = 200, .body_bytes = 262144};
  CHECK(body_begin(large) == 4096);
  CHECK(record_bytes(large) == 4096 + 262144);
  CHECK(is_sound({.body_bytes = kRecordBodyMax}));
  CHECK_FALSE(is_sound({.body_bytes = kRecordBodyMax + 1}));
  CHECK_FALSE(is_sound({.head_bytes = UINT32_MAX}));
  CHECK_FALSE(is_sound({.names_bytes = cache::kNamesBytesMax + 1}));
}

TEST_CASE("of a body in parts a head has the length and the number, and nothing else", "[disk]") {
  std::mt19937_64 random(5);
  // However long it is.
  MadeRecord head = made_record(random, {RecordKind::kHead, kBodyBytesMax});
  CHECK(front_bytes(shape_of(head.view())) == record_bytes(shape_of(head.view())));
  const Bytes front = encoded_front(head, 1, 4096);
  const auto decoded = decoded_front(front, 1, 4096);
  REQUIRE(decoded);
  CHECK(decoded->fields.body_bytes == kBodyBytesMax);
  CHECK(decoded->shape.body_bytes == 0);
  // Values that no disk of ours has, with a checksum that fits.
  const auto is_refused = [](Bytes bytes, std::size_t at, std::uint64_t value) {
    std::memcpy(bytes.data() + at, &value, sizeof value);
    const std::uint64_t sum = checksum(1, 4096, std::span(bytes).first(120));
    std::memcpy(bytes.data() + 120, &sum, sizeof sum);
    return !decoded_front(bytes, 1, 4096);
  };
  constexpr std::size_t kBodyBytesAt = 72;
  constexpr std::size_t kBodyNumberAt = 88;
  CHECK_FALSE(is_refused(front, kBodyBytesAt, kBodyBytesMax - 1));
  CHECK(is_refused(front, kBodyBytesAt, kBodyBytesMax + 1));
  CHECK_FALSE(is_refused(front, kBodyNumberAt, 1));
  CHECK(is_refused(front, kBodyNumberAt, 0));
  MadeRecord part = made_record(random, {RecordKind::kPart, 1000});
  const Bytes part_front = encoded_front(part, 1, 4096);
  CHECK_FALSE(is_refused(part_front, kBodyNumberAt, 1));
  CHECK(is_refused(part_front, kBodyNumberAt, 0));
}

TEST_CASE("a footer is read as it was written, with no bit changed", "[disk]") {
  std::mt19937_64 random(4);
  for (const std::size_t records : {0U, 1U, 80U, 200U}) {
    const Footer footer = some_footer(random, records);
    const Bytes bytes = encoded(footer, 5);
    CHECK(bytes.size() % kPageBytes == 0);
    const auto last = std::span(bytes).last<kPageBytes>();
    CHECK(footer_length(last, 77, kSegmentBytes) == bytes.size());
    CHECK_FALSE(footer_length(last, 78, kSegmentBytes));
    CHECK_FALSE(footer_length(last, 77, bytes.size()));
    const auto decoded = decode_footer(bytes, 77, 5, kSegmentBytes);
    REQUIRE(decoded);
    CHECK(decoded->lines == footer.lines);
    CHECK(decoded->names.texts() == footer.names.texts());
    CHECK(decoded->version_max == footer.version_max);
    CHECK_FALSE(decode_footer(bytes, 77, 6, kSegmentBytes));
    CHECK_FALSE(decode_footer(bytes, 77, 5, 2 * kSegmentBytes));
    CHECK_FALSE(decode_footer(std::span(bytes).first(100), 77, 5, kSegmentBytes));
    flip_each_bit(bytes, bytes.size(),
                  [](const Bytes& each) { return !decode_footer(each, 77, 5, kSegmentBytes); });
  }
}

TEST_CASE("a footer whose lines cannot be is refused though its checksum is right", "[disk]") {
  std::mt19937_64 random(5);
  const auto is_read_with = [&](auto change) {
    Footer footer = some_footer(random, 3);
    change(footer.lines[1]);
    return decode_footer(encoded(footer, 5), 77, 5, kSegmentBytes).has_value();
  };
  CHECK(is_read_with([](RecordLine&) {}));
  CHECK_FALSE(is_read_with([](RecordLine& line) { line.unit = 63; }));
  CHECK_FALSE(is_read_with([](RecordLine& line) { line.room_units = 1; }));
  CHECK_FALSE(is_read_with([](RecordLine& line) { line.room_units = 4096; }));
  CHECK_FALSE(is_read_with([](RecordLine& line) { line.names = 9; }));
  CHECK_FALSE(is_read_with([](RecordLine& line) { line.kind = static_cast<RecordKind>(4); }));
  CHECK_FALSE(is_read_with([](RecordLine& line) { line.version = kNumberMax; }));
}

TEST_CASE("names are numbered once each", "[disk]") {
  NameTable names;
  CHECK(names.number_of("") == 0);
  CHECK(names.number_of("accept") == 1);
  CHECK(names.number_of("cookie") == 2);
  CHECK(names.number_of("accept") == 1);
  CHECK(names.text(2) == "cookie");
  CHECK(names.text(0).empty());
  CHECK(names.bytes() == 2 * (cache::kFooterNameBytes + 6));
  names.clear();
  CHECK(names.number_of("cookie") == 1);
}

}  // namespace encore::disk
