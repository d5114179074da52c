#include "proxy/disk/footer.h"

#include <algorithm>
#include <cstring>

#include "base/check.h"
#include "proxy/disk/bytes.h"

namespace encore::disk {
namespace {

constexpr std::string_view kFooterMagic = "ENCOFOOT";
// Offsets of the fields of the head; the bytes between them are zero.
constexpr std::size_t kSequenceAt = 8;
constexpr std::size_t kVersionMaxAt = 16;
constexpr std::size_t kRecordsAt = 24;
constexpr std::size_t kNamesAt = 28;
constexpr std::size_t kFooterSumAt = cache::kFooterHeadBytes - kSumBytes;
constexpr unsigned kKindShift = 56;  // above the version
constexpr std::uint64_t kVersionMask = (std::uint64_t{1} << kKindShift) - 1;

void put3(std::byte* at, std::uint32_t value) {
  put(at, static_cast<std::uint16_t>(value));
  put(at + 2, static_cast<std::uint8_t>(value >> 16U));
}

std::uint32_t get3(const std::byte* at) {
  return get<std::uint16_t>(at) | std::uint32_t{get<std::uint8_t>(at + 2)} << 16U;
}

void put_line(std::byte* at, const RecordLine& line) {
  put(at, line.key.lo);
  put(at + 8, line.key.hi);
  put(at + 16, line.kind == RecordKind::kPart ? line.body : line.variant);
  put(at + 24, (line.version & kVersionMask) | std::uint64_t(line.kind) << kKindShift);
  put3(at + 32, line.unit);
  put3(at + 35, line.room_units);
  put(at + 38, line.names);
  put(at + 40, line.fresh_until);
  put(at + 44, line.kind == RecordKind::kPart ? line.part : line.keep_until);
}

// Nothing: no line that this segment can have.
std::optional<RecordLine> get_line(const std::byte* at, std::uint64_t segment_bytes) {
  const auto version = get<std::uint64_t>(at + 24);
  const auto kind = static_cast<std::uint8_t>(version >> kKindShift);
  RecordLine line{.kind = static_cast<RecordKind>(kind),
                  .key = {get<std::uint64_t>(at), get<std::uint64_t>(at + 8)},
                  .version = version & kVersionMask,
                  .unit = get3(at + 32),
                  .room_units = get3(at + 35),
                  .names = get<std::uint16_t>(at + 38),
                  .fresh_until = get<std::uint32_t>(at + 40)};
  const bool is_part = line.kind == RecordKind::kPart;
  (is_part ? line.body : line.variant) = get<std::uint64_t>(at + 16);
  (is_part ? line.part : line.keep_until) = get<std::uint32_t>(at + 44);
  const std::uint64_t begin = std::uint64_t{line.unit} * cache::kDiskUnit;
  const std::uint64_t room = std::uint64_t{line.room_units} * cache::kDiskUnit;
  if (kind < static_cast<std::uint8_t>(RecordKind::kObject) ||
      kind > static_cast<std::uint8_t>(RecordKind::kHead) || begin < cache::kSegmentHeaderBytes ||
      room < kRecordHeaderBytes || begin + room > segment_bytes) {
    return std::nullopt;
  }
  return line;
}

bool get_names(std::span<const std::byte> bytes, NameTable& names) {
  while (!bytes.empty()) {
    if (bytes.size() < cache::kFooterNameBytes) return false;
    const auto number = get<std::uint16_t>(bytes.data());
    const auto size = get<std::uint16_t>(bytes.data() + 2);
    bytes = bytes.subspan(cache::kFooterNameBytes);
    if (size > bytes.size() || size > cache::kNamesBytesMax) return false;
    if (names.texts().size() == cache::kDiskNamesMax) return false;
    const std::string_view text(reinterpret_cast<const char*>(bytes.data()), size);
    // In their order, each but once.
    if (number != names.texts().size() + 1 || names.number_of(text) != number) return false;
    bytes = bytes.subspan(size);
  }
  return true;
}

std::uint64_t length_of(std::uint64_t records, std::uint64_t names_bytes) {
  const std::uint64_t bytes =
      cache::kFooterHeadBytes + names_bytes + records * cache::kFooterEntryBytes;
  return (bytes + kPageBytes - 1) / kPageBytes * kPageBytes;
}

}  // namespace

RecordLine line_of(const RecordFields& fields, const cache::DiskPlace& place, std::uint16_t names) {
  const bool is_part = fields.kind == RecordKind::kPart;
  return {.kind = fields.kind,
          .key = fields.key,
          .variant = is_part ? 0 : fields.variant,
          .body = is_part ? fields.body : 0,
          .version = fields.version,
          .unit = place.unit,
          .room_units = static_cast<std::uint32_t>(place.bytes / cache::kDiskUnit),
          .names = names,
          .fresh_until = fields.fresh_until,
          .keep_until = is_part ? 0 : fields.keep_until,
          .part = is_part ? fields.part : 0};
}

std::uint16_t NameTable::number_of(std::string_view text) {
  if (text.empty()) return 0;
  const auto found = numbers_.find(text);
  if (found != numbers_.end()) return found->second;
  ENCORE_CHECK(texts_.size() < cache::kDiskNamesMax, "more names than there may be");
  texts_.emplace_back(text);
  bytes_ += static_cast<std::uint32_t>(cache::kFooterNameBytes + text.size());
  const auto number = static_cast<std::uint16_t>(texts_.size());
  numbers_.emplace(text, number);
  return number;
}

void NameTable::clear() {
  numbers_.clear();
  texts_.clear();
  bytes_ = 0;
}

std::uint64_t footer_bytes(const Footer& footer) {
  return cache::footer_bytes({.records = static_cast<std::uint32_t>(footer.lines.size()),
                              .names_bytes = footer.names.bytes()});
}

void encode_footer(const Footer& footer, Salt salt, std::uint64_t segment_bytes,
                   std::span<std::byte> out) {
  ENCORE_CHECK(out.size() == footer_bytes(footer), "a footer of another size");
  std::ranges::fill(out, std::byte{0});
  std::byte* at = out.data();
  for (const RecordLine& line : footer.lines) {
    put_line(at, line);
    at += cache::kFooterEntryBytes;
  }
  std::uint16_t number = 0;
  for (const std::string& text : footer.names.texts()) {
    put(at, ++number);
    put(at + 2, static_cast<std::uint16_t>(text.size()));
    at += cache::kFooterNameBytes;
    std::memcpy(at, text.data(), text.size());
    at += text.size();
  }
  std::byte* const head = out.data() + out.size() - cache::kFooterHeadBytes;
  std::memcpy(head, kFooterMagic.data(), kFooterMagic.size());
  put(head + kSequenceAt, footer.sequence);
  put(head + kVersionMaxAt, footer.version_max);
  put(head + kRecordsAt, static_cast<std::uint32_t>(footer.lines.size()));
  put(head + kNamesAt, footer.names.bytes());
  put(head + kFooterSumAt,
      checksum(salt, segment_bytes - out.size(), out.first(out.size() - kSumBytes)));
}

std::optional<std::uint64_t> footer_length(ConstPage last, std::uint64_t sequence,
                                           std::uint64_t segment_bytes) {
  const std::byte* const head = last.data() + last.size() - cache::kFooterHeadBytes;
  if (std::memcmp(head, kFooterMagic.data(), kFooterMagic.size()) != 0 ||
      get<std::uint64_t>(head + kSequenceAt) != sequence) {
    return std::nullopt;
  }
  const std::uint64_t length =
      length_of(get<std::uint32_t>(head + kRecordsAt), get<std::uint32_t>(head + kNamesAt));
  if (length > segment_bytes - cache::kSegmentHeaderBytes) return std::nullopt;
  return length;
}

std::optional<std::uint64_t> footer_sequence(ConstPage last) {
  const std::byte* const head = last.data() + last.size() - cache::kFooterHeadBytes;
  if (std::memcmp(head, kFooterMagic.data(), kFooterMagic.size()) != 0) return std::nullopt;
  return get<std::uint64_t>(head + kSequenceAt);
}

void mend_footer(Page last, std::uint64_t sequence) {
  std::byte* const head = last.data() + last.size() - cache::kFooterHeadBytes;
  std::memcpy(head, kFooterMagic.data(), kFooterMagic.size());
  put(head + kSequenceAt, sequence);
}

std::optional<Footer> decode_footer(std::span<const std::byte> bytes, std::uint64_t sequence,
                                    Salt salt, std::uint64_t segment_bytes,
                                    std::vector<RecordLine> lines) {
  if (bytes.size() < kPageBytes) return std::nullopt;
  const auto length = footer_length(bytes.last<kPageBytes>(), sequence, segment_bytes);
  if (length != bytes.size()) return std::nullopt;
  const std::byte* const head = bytes.data() + bytes.size() - cache::kFooterHeadBytes;
  if (get<std::uint64_t>(head + kFooterSumAt) !=
      checksum(salt, segment_bytes - bytes.size(), bytes.first(bytes.size() - kSumBytes))) {
    return std::nullopt;
  }
  Footer footer;
  footer.sequence = sequence;
  footer.version_max = get<std::uint64_t>(head + kVersionMaxAt);
  if (footer.version_max > kNumberMax) return std::nullopt;
  const auto records = get<std::uint32_t>(head + kRecordsAt);
  const auto names_bytes = get<std::uint32_t>(head + kNamesAt);
  const std::size_t lines_bytes = std::size_t{records} * cache::kFooterEntryBytes;
  if (!get_names(bytes.subspan(lines_bytes, names_bytes), footer.names)) return std::nullopt;
  footer.lines = std::move(lines);
  footer.lines.clear();
  footer.lines.reserve(records);
  for (std::uint32_t i = 0; i < records; ++i) {
    const auto line =
        get_line(bytes.data() + std::size_t{i} * cache::kFooterEntryBytes, segment_bytes);
    if (!line || line->names > footer.names.texts().size() || line->version > footer.version_max) {
      return std::nullopt;
    }
    footer.lines.push_back(*line);
  }
  return footer;
}

}  // namespace encore::disk
