#include "proxy/disk/record.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "base/check.h"
#include "proxy/disk/bytes.h"

namespace encore::disk {
namespace {

constexpr std::uint32_t kRecordMagic = 0x43524e45;  // "ENRC"
// Offsets of the fields of the header; the bytes between them are zero.
constexpr std::size_t kKindAt = 4;
constexpr std::size_t kLayoutAt = 5;
constexpr std::size_t kNamesSizeAt = 6;
constexpr std::size_t kRecordVersionAt = 8;
constexpr std::size_t kKeyAt = 16;
constexpr std::size_t kVariantAt = 32;
constexpr std::size_t kTimesAt = 40;  // fresh until, keep until, stored at
constexpr std::size_t kPartAt = 52;
constexpr std::size_t kSizesAt = 56;  // key, meta, head
constexpr std::size_t kBodyAt = 72;
constexpr std::size_t kFrontSumAt = 80;
constexpr std::size_t kBodyNumberAt = 88;
constexpr std::size_t kHeaderSumAt = kRecordHeaderBytes - kSumBytes;
// At kLayoutAt.
constexpr std::uint8_t kEarlierLayout = 0;
constexpr std::uint8_t kLayout = 1;

std::string_view take_text(std::span<const std::byte>& bytes, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), size);
  bytes = bytes.subspan(size);
  return text;
}

std::byte* put_text(std::byte* at, std::string_view text) {
  // Not std::ranges::copy, which goes byte by byte.
  return at + text.copy(reinterpret_cast<char*>(at), text.size());
}

bool has_own_body(RecordKind kind) { return kind != RecordKind::kHead; }

// Checks the requirements of its kind.
bool is_sound(const RecordFields& fields) {
  return (fields.kind == RecordKind::kObject || fields.body != 0) &&
         fields.body_bytes <= kBodyBytesMax && fields.version <= kNumberMax;
}

void put_header(const Record& record, std::byte* out) {
  const RecordFields& fields = record.fields;
  std::fill_n(out, kRecordHeaderBytes, std::byte{0});
  put(out, kRecordMagic);
  put(out + kKindAt, static_cast<std::uint8_t>(fields.kind));
  put(out + kLayoutAt, kLayout);
  put(out + kNamesSizeAt, static_cast<std::uint16_t>(record.text.names.size()));
  put(out + kRecordVersionAt, fields.version);
  put(out + kKeyAt, fields.key.lo);
  put(out + kKeyAt + 8, fields.key.hi);
  put(out + kVariantAt, fields.variant);
  put(out + kTimesAt, fields.fresh_until);
  put(out + kTimesAt + 4, fields.keep_until);
  put(out + kTimesAt + 8, fields.stored_at);
  put(out + kPartAt, fields.part);
  put(out + kSizesAt, static_cast<std::uint32_t>(record.text.key.size()));
  put(out + kSizesAt + 4, static_cast<std::uint32_t>(record.text.meta.size()));
  put(out + kSizesAt + 8, static_cast<std::uint32_t>(record.text.head.size()));
  put(out + kBodyAt, fields.body_bytes);
  put(out + kBodyNumberAt, fields.body);
}

}  // namespace

std::string_view to_string(Damage damage) {
  constexpr std::array kNames = {std::string_view("read"), std::string_view("header"),
                                 std::string_view("front"), std::string_view("body"),
                                 std::string_view("key")};
  return kNames.at(static_cast<std::size_t>(damage));
}

RecordShape shape_of(const Record& record) {
  return {.key_bytes = static_cast<std::uint32_t>(record.text.key.size()),
          .names_bytes = static_cast<std::uint32_t>(record.text.names.size()),
          .meta_bytes = static_cast<std::uint32_t>(record.text.meta.size()),
          .head_bytes = static_cast<std::uint32_t>(record.text.head.size()),
          .body_bytes = has_own_body(record.fields.kind) ? record.fields.body_bytes : 0};
}

bool is_sound(const RecordShape& shape) {
  return shape.body_bytes <= kRecordBodyMax && shape.names_bytes <= cache::kNamesBytesMax &&
         front_bytes(shape) <= kFrontBytesMax;
}

void encode_front(const Record& record, Salt salt, std::uint64_t offset, std::span<std::byte> out) {
  const RecordShape shape = shape_of(record);
  ENCORE_CHECK(is_sound(shape) && out.size() == front_bytes(shape), "a front of another size");
  ENCORE_CHECK(is_sound(record.fields), "a part and a head have the number of their body");
  put_header(record, out.data());
  std::byte* at = out.data() + kRecordHeaderBytes;
  for (const std::string_view text :
       {record.text.key, record.text.names, record.text.meta, record.text.head}) {
    at = put_text(at, text);
  }
  const std::size_t sums = kSumBytes * block_count(shape.body_bytes);
  put_block_sums(salt, offset + body_begin(shape), record.body, {at, sums});
  const auto rest = out.subspan(kRecordHeaderBytes);
  put(out.data() + kFrontSumAt, checksum(salt, offset + kRecordHeaderBytes, rest));
  put(out.data() + kHeaderSumAt, checksum(salt, offset, out.first(kHeaderSumAt)));
}

std::optional<RecordHeader> decode_header(std::span<const std::byte, kRecordHeaderBytes> bytes,
                                          Salt salt, std::uint64_t offset) {
  const std::byte* const at = bytes.data();
  if (get<std::uint32_t>(at) != kRecordMagic) return std::nullopt;
  // The header has a sum of its own, for its sizes say how much is read next.
  if (get<std::uint64_t>(at + kHeaderSumAt) != checksum(salt, offset, bytes.first(kHeaderSumAt))) {
    return std::nullopt;
  }
  const auto kind = get<std::uint8_t>(at + kKindAt);
  if (kind < static_cast<std::uint8_t>(RecordKind::kObject) ||
      kind > static_cast<std::uint8_t>(RecordKind::kHead)) {
    return std::nullopt;
  }
  const auto layout = get<std::uint8_t>(at + kLayoutAt);
  if (layout > kLayout) return std::nullopt;
  RecordHeader header{
      .fields = {.kind = static_cast<RecordKind>(kind),
                 .part = get<std::uint32_t>(at + kPartAt),
                 .key = {get<std::uint64_t>(at + kKeyAt), get<std::uint64_t>(at + kKeyAt + 8)},
                 .variant = get<std::uint64_t>(at + kVariantAt),
                 .version = get<std::uint64_t>(at + kRecordVersionAt),
                 .fresh_until = get<std::uint32_t>(at + kTimesAt),
                 .keep_until = get<std::uint32_t>(at + kTimesAt + 4),
                 .stored_at = get<std::uint32_t>(at + kTimesAt + 8),
                 .body_bytes = get<std::uint64_t>(at + kBodyAt),
                 .body = get<std::uint64_t>(at + kBodyNumberAt)},
      .shape = {.key_bytes = get<std::uint32_t>(at + kSizesAt),
                .names_bytes = get<std::uint16_t>(at + kNamesSizeAt),
                .meta_bytes = get<std::uint32_t>(at + kSizesAt + 4),
                .head_bytes = get<std::uint32_t>(at + kSizesAt + 8),
                .is_earlier = layout == kEarlierLayout},
      .front_sum = get<std::uint64_t>(at + kFrontSumAt)};
  if (has_own_body(header.fields.kind)) header.shape.body_bytes = header.fields.body_bytes;
  if (!is_sound(header.fields) || !is_sound(header.shape)) return std::nullopt;
  return header;
}

std::expected<RecordFront, Damage> decode_front(const RecordHeader& header,
                                                std::span<const std::byte> bytes, Salt salt,
                                                std::uint64_t offset) {
  const RecordShape& shape = header.shape;
  ENCORE_CHECK(bytes.size() == front_bytes(shape), "a front of another size");
  bytes = bytes.subspan(kRecordHeaderBytes);
  if (checksum(salt, offset + kRecordHeaderBytes, bytes) != header.front_sum) {
    return std::unexpected(Damage::kFront);
  }
  RecordFront front{.fields = header.fields,
                    .shape = shape,
                    .text = {},
                    .block_sums = {},
                    .salt = salt,
                    .body_offset = offset + body_begin(shape)};
  front.text.key = take_text(bytes, shape.key_bytes);
  front.text.names = take_text(bytes, shape.names_bytes);
  front.text.meta = take_text(bytes, shape.meta_bytes);
  front.text.head = take_text(bytes, shape.head_bytes);
  front.block_sums = bytes.first(kSumBytes * block_count(shape.body_bytes));
  return front;
}

std::size_t RecordFront::block_bytes(std::size_t i) const {
  return static_cast<std::size_t>(
      std::min<std::uint64_t>(kBlockBytes, shape.body_bytes - i * kBlockBytes));
}

bool RecordFront::is_block(std::size_t i, std::span<const std::byte> bytes) const {
  ENCORE_CHECK(bytes.size() == block_bytes(i), "a block is checked whole");
  return get<std::uint64_t>(block_sums.data() + i * kSumBytes) ==
         checksum(salt, body_offset + i * kBlockBytes, bytes);
}

}  // namespace encore::disk
