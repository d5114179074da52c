#include "proxy/disk/segment_bytes.h"

#include <algorithm>
#include <utility>

namespace encore::disk {

std::optional<std::span<const std::byte>> SegmentBytes::get(std::uint64_t begin,
                                                            std::uint64_t bytes) {
  if (!has(begin, bytes)) return std::nullopt;
  if ((begin < begin_ || begin + bytes > end_) && !load(begin, begin + bytes)) {
    return std::nullopt;
  }
  return std::span<const std::byte>(window_.data() + (begin - begin_), bytes);
}

bool SegmentBytes::load(std::uint64_t begin, std::uint64_t end) {
  begin = begin / kPageBytes * kPageBytes;
  end = (end + kPageBytes - 1) / kPageBytes * kPageBytes;
  // Around what cannot be read only that is left out.
  return read(begin, std::max(end, std::min(begin + window_bytes_, size_))) || read(begin, end);
}

bool SegmentBytes::read(std::uint64_t begin, std::uint64_t end) {
  const auto bytes = static_cast<std::size_t>(end - begin);
  if (window_.size() < bytes) window_ = AlignedBuffer(bytes);
  begin_ = begin;
  auto got = file_.read(window_.first(bytes), offset_ + begin);
  end_ = got ? end : begin;
  if (!got) error_ = std::move(got.error().message);
  return got.has_value();
}

std::expected<RecordHeader, Damage> read_header(SegmentBytes& segment, Salt salt,
                                                std::uint64_t offset) {
  if (!segment.has(offset, kRecordHeaderBytes)) return std::unexpected(Damage::kHeader);
  const auto bytes = segment.get(offset, kRecordHeaderBytes);
  if (!bytes) return std::unexpected(Damage::kRead);
  const auto header = decode_header(bytes->first<kRecordHeaderBytes>(), salt, offset);
  if (!header) return std::unexpected(Damage::kHeader);
  return *header;
}

std::expected<OwnedRecordFront, Damage> read_front(SegmentBytes& segment,
                                                   const RecordHeader& header, Salt salt,
                                                   std::uint64_t offset) {
  if (!segment.has(offset, record_bytes(header.shape))) return std::unexpected(Damage::kHeader);
  const auto bytes = segment.get(offset, front_bytes(header.shape));
  if (!bytes) return std::unexpected(Damage::kRead);
  OwnedRecordFront kept;
  kept.bytes.assign(bytes->begin(), bytes->end());
  auto front = decode_front(header, kept.bytes, salt, offset);
  if (!front) return std::unexpected(front.error());
  kept.front = *front;
  return kept;
}

std::expected<OwnedRecordFront, Damage> read_front(SegmentBytes& segment, Salt salt,
                                                   std::uint64_t offset) {
  const auto header = read_header(segment, salt, offset);
  if (!header) return std::unexpected(header.error());
  return read_front(segment, *header, salt, offset);
}

std::expected<void, Damage> check_body(SegmentBytes& segment, const RecordFront& front) {
  for (std::size_t i = 0; i < block_count(front.shape.body_bytes); ++i) {
    const std::uint64_t at = front.body_offset + i * std::uint64_t{kBlockBytes};
    const auto block = segment.get(at, front.block_bytes(i));
    if (!block) return std::unexpected(Damage::kRead);
    if (!front.is_block(i, *block)) return std::unexpected(Damage::kBody);
  }
  return {};
}

}  // namespace encore::disk
