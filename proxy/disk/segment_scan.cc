#include "proxy/disk/segment_scan.h"

#include <algorithm>
#include <optional>
#include <span>
#include <utility>

#include "cache/disk_place.h"
#include "proxy/disk/record.h"
#include "proxy/disk/segment_bytes.h"

namespace encore::disk {
namespace {

// The part of a footer that is read with its last page: for most segments all of it.
constexpr std::uint64_t kFooterWindow = 64U << 10U;

// The line of a record that is whole.
std::optional<RecordLine> line_at(SegmentBytes& segment, const RecordHeader& header, Salt salt,
                                  std::uint64_t offset, NameTable& names) {
  const auto kept = read_front(segment, header, salt, offset);
  if (!kept || !check_body(segment, kept->front)) return std::nullopt;
  if (names.texts().size() == cache::kDiskNamesMax - 1) return std::nullopt;
  const cache::DiskPlace place{.disk = 0,
                               .segment = 0,
                               .unit = static_cast<std::uint32_t>(offset / cache::kDiskUnit),
                               .bytes = cache::disk_room(record_bytes(header.shape))};
  return line_of(header.fields, place, names.number_of(kept->front.text.names));
}

}  // namespace

std::optional<Footer> read_footer(File& file, const Superblock& superblock,
                                  const SegmentHeader& header, FooterBuffer* room) {
  FooterBuffer own;
  if (room == nullptr) room = &own;
  const std::uint64_t size = superblock.segment_bytes;
  const std::uint64_t end = superblock.segment_offset(header.segment) + size;
  std::uint64_t bytes = std::min(kFooterWindow, size - cache::kSegmentHeaderBytes);
  AlignedBuffer& memory = room->bytes;
  if (memory.size() < bytes) memory = AlignedBuffer(bytes);
  if (!file.read(memory.first(bytes), end - bytes)) return std::nullopt;
  const auto last = memory.first(bytes).last<kPageBytes>();
  const auto length = footer_length(last, header.sequence, size);
  if (!length) return std::nullopt;
  if (*length > bytes) {
    if (memory.size() < *length) memory = AlignedBuffer(*length);
    bytes = *length;
    if (!file.read(memory.first(bytes), end - bytes)) return std::nullopt;
  }
  return decode_footer(memory.first(bytes).last(*length), header.sequence,
                       superblock.salt(header.segment, header.sequence), size,
                       std::move(room->lines));
}

ScannedSegment scan_segment(File& file, const Superblock& superblock, const SegmentHeader& header) {
  ScannedSegment found;
  found.footer.sequence = header.sequence;
  const Salt salt = superblock.salt(header.segment, header.sequence);
  SegmentBytes segment(file, superblock, header.segment);
  std::uint64_t at = cache::kSegmentHeaderBytes;
  while (at + kRecordHeaderBytes <= superblock.segment_bytes) {
    const auto record = read_header(segment, salt, at);
    if (!record && record.error() == Damage::kRead) {
      // On to the next page.
      at = (at / kPageBytes + 1) * kPageBytes;
      continue;
    }
    const std::uint64_t room = record ? cache::disk_room(record_bytes(record->shape)) : 0;
    if (!record || room > superblock.segment_bytes - at) {
      // Behind a damaged record others may be whole: records begin at each unit.
      at += cache::kDiskUnit;
      continue;
    }
    if (const auto line = line_at(segment, *record, salt, at, found.footer.names)) {
      found.footer.lines.push_back(*line);
      found.footer.version_max = std::max(found.footer.version_max, line->version);
      found.end = at + room;
    } else {
      found.damaged.push_back(at);
    }
    at += room;
  }
  found.is_readable = !segment.has_failed();
  return found;
}

}  // namespace encore::disk
