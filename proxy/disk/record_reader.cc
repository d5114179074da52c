#include "proxy/disk/record_reader.h"

#include <algorithm>
#include <cstring>

#include "base/check.h"

namespace encore::disk {
namespace {

std::uint64_t page_floor(std::uint64_t offset) { return offset / kPageBytes * kPageBytes; }
std::uint64_t page_ceil(std::uint64_t offset) { return page_floor(offset + kPageBytes - 1); }

}  // namespace

std::expected<void, Damage> RecordReader::load(Window& window, std::uint64_t begin,
                                               std::uint64_t end) {
  window.begin = page_floor(begin);
  window.end = page_ceil(end);
  const auto bytes = static_cast<std::size_t>(window.end - window.begin);
  if (window.memory.size() < bytes) window.memory = AlignedBuffer(bytes);
  auto got = file_.read(window.memory.first(bytes), segment_offset_ + window.begin);
  if (got) return {};
  window.end = window.begin;
  error_ = std::move(got.error().message);
  return std::unexpected(Damage::kRead);
}

std::expected<const RecordFront*, Damage> RecordReader::open(const Wanted& wanted) {
  const cache::DiskPlace& place = wanted.place;
  first_verified_ = 0;
  later_blocks_ = {};
  // An index built from the contents of a disk is not trusted either.
  if (place.segment >= superblock_.segments || place.bytes < kRecordHeaderBytes ||
      place.bytes > superblock_.segment_bytes ||
      place.offset() > superblock_.segment_bytes - place.bytes) {
    return std::unexpected(Damage::kHeader);
  }
  segment_offset_ = superblock_.segment_offset(place.segment);
  record_offset_ = place.offset();
  room_ = place.bytes;
  salt_ = superblock_.salt(place.segment, wanted.sequence);
  if (auto loaded = load_front(wanted); !loaded) return std::unexpected(loaded.error());
  const bool is_key = (!wanted.key || front_.fields.key == *wanted.key) &&
                      (wanted.key_text.empty() || front_.text.key == wanted.key_text);
  if (!is_key) return std::unexpected(Damage::kKey);
  return &front_;
}

std::expected<void, Damage> RecordReader::load_first(const Wanted& wanted) {
  body_room_ = {};
  const std::uint64_t behind = room_ - std::min<std::uint64_t>(room_, kPageBytes);
  const auto fits =
      static_cast<std::size_t>(std::min(page_ceil(behind), page_floor(wanted.body_room.size())));
  if (fits == 0 || record_offset_ % kPageBytes != 0) {
    // If the record is not aligned its header may continue in the next page.
    const std::uint64_t first = std::clamp(wanted.first_bytes, kRecordHeaderBytes, kWindowBytes);
    return load(first_, record_offset_, page_ceil(record_offset_ + std::min(room_, first)));
  }
  first_.begin = record_offset_;
  first_.end = record_offset_ + kPageBytes;
  if (first_.memory.size() < kPageBytes) first_.memory = AlignedBuffer(kPageBytes);
  const std::span<std::byte> room = wanted.body_room.first(fits);
  auto got = file_.read_two(first_.memory.first(kPageBytes), room, segment_offset_ + first_.begin);
  if (got) {
    body_room_ = room;
    return {};
  }
  first_.end = first_.begin;
  error_ = std::move(got.error().message);
  return std::unexpected(Damage::kRead);
}

std::expected<void, Damage> RecordReader::load_front(const Wanted& wanted) {
  if (auto loaded = load_first(wanted); !loaded) return loaded;
  const auto header =
      decode_header(first_.bytes(record_offset_, kRecordHeaderBytes).first<kRecordHeaderBytes>(),
                    salt_, record_offset_);
  if (!header || record_bytes(header->shape) > room_) return std::unexpected(Damage::kHeader);
  const std::uint64_t bytes = front_bytes(header->shape);
  if (record_offset_ + bytes > first_.end) {
    if (auto loaded = load(first_, record_offset_, record_offset_ + bytes); !loaded) return loaded;
  }
  auto front = decode_front(*header, first_.bytes(record_offset_, bytes), salt_, record_offset_);
  if (!front) return std::unexpected(front.error());
  front_ = *front;
  if (front_.body_offset != record_offset_ + kPageBytes) body_room_ = {};
  return {};
}

std::expected<std::size_t, Damage> RecordReader::read_room() const {
  std::uint64_t bytes = std::min<std::uint64_t>(body_room_.size(), front_.shape.body_bytes);
  if (bytes < front_.shape.body_bytes) bytes = bytes / kBlockBytes * kBlockBytes;
  const auto body = body_room_.first(static_cast<std::size_t>(bytes));
  if (auto good = verify({0, block_count(bytes)}, body); !good) {
    return std::unexpected(good.error());
  }
  return body.size();
}

std::uint64_t RecordReader::begin_of(std::size_t block) const {
  return front_.body_offset + block * std::uint64_t{kBlockBytes};
}

std::uint64_t RecordReader::end_of(std::size_t block) const {
  return front_.body_offset +
         std::min<std::uint64_t>((block + std::uint64_t{1}) * kBlockBytes, front_.shape.body_bytes);
}

std::expected<void, Damage> RecordReader::verify(Blocks blocks,
                                                 std::span<const std::byte> bytes) const {
  for (std::size_t i = blocks.begin; i < blocks.end; ++i) {
    const std::size_t size = front_.block_bytes(i);
    if (!front_.is_block(i, bytes.first(size))) return std::unexpected(Damage::kBody);
    bytes = bytes.subspan(size);
  }
  return {};
}

std::expected<std::span<const std::byte>, Damage> RecordReader::read_first(std::uint64_t begin,
                                                                           std::uint64_t end) {
  const auto block = static_cast<std::size_t>(begin / kBlockBytes);
  if ((first_verified_ >> block & 1U) == 0) {
    const auto bytes = first_.bytes(begin_of(block), front_.block_bytes(block));
    if (auto good = verify({block, block + 1}, bytes); !good) return std::unexpected(good.error());
    first_verified_ |= std::uint64_t{1} << block;
  }
  const std::uint64_t stop = std::min(front_.body_offset + end, end_of(block));
  return first_.bytes(front_.body_offset + begin, stop - front_.body_offset - begin);
}

std::expected<std::span<const std::byte>, Damage> RecordReader::read(std::uint64_t begin,
                                                                     std::uint64_t end) {
  ENCORE_CHECK(begin < end && end <= front_.shape.body_bytes, "a range of the body");
  const auto block = static_cast<std::size_t>(begin / kBlockBytes);
  if (end_of(block) <= first_.end) return read_first(begin, end);
  if (block < later_blocks_.begin || block >= later_blocks_.end) {
    const auto last = static_cast<std::size_t>((end - 1) / kBlockBytes);
    const Blocks wanted{block, std::min(last + 1, block + kWindowBytes / kBlockBytes)};
    const std::uint64_t window_end = end_of(wanted.end - 1);
    later_blocks_ = {};
    if (auto loaded = load(later_, begin_of(block), window_end); !loaded) {
      return std::unexpected(loaded.error());
    }
    const auto bytes = later_.bytes(begin_of(block), window_end - begin_of(block));
    if (auto good = verify(wanted, bytes); !good) return std::unexpected(good.error());
    later_blocks_ = wanted;
  }
  const std::uint64_t stop = std::min(front_.body_offset + end, end_of(later_blocks_.end - 1));
  return later_.bytes(front_.body_offset + begin, stop - front_.body_offset - begin);
}

std::expected<std::size_t, Damage> RecordReader::read_into(std::uint64_t begin,
                                                           std::span<std::byte> out) {
  ENCORE_CHECK(begin % kBlockBytes == 0 && begin < front_.shape.body_bytes, "a block begins here");
  const std::uint64_t rest = front_.shape.body_bytes - begin;
  std::size_t bytes = static_cast<std::size_t>(std::min<std::uint64_t>(rest, out.size()));
  if (bytes < rest) bytes = bytes / kBlockBytes * kBlockBytes;
  ENCORE_CHECK(bytes != 0, "no room for a block");
  const auto block = static_cast<std::size_t>(begin / kBlockBytes);
  const std::uint64_t from = front_.body_offset + begin;
  const bool is_aligned = from % kPageBytes == 0 && page_ceil(bytes) <= out.size() &&
                          reinterpret_cast<std::uintptr_t>(out.data()) % kIoAlign == 0;
  if (end_of(block) <= first_.end || !is_aligned) {
    // Uses the bytes that are already there; if they can be read up to the wanted end, no more are
    // copied.
    std::size_t done = 0;
    do {
      const auto piece = read(begin + done, begin + bytes);
      if (!piece) return std::unexpected(piece.error());
      std::memcpy(out.data() + done, piece->data(), piece->size());
      done += piece->size();
    } while (done < bytes && (!is_aligned || end_of((begin + done) / kBlockBytes) <= first_.end));
    return done;
  }
  if (auto got = file_.read(out.first(page_ceil(bytes)), segment_offset_ + from); !got) {
    error_ = std::move(got.error().message);
    return std::unexpected(Damage::kRead);
  }
  const std::size_t stop = block + block_count(bytes);
  if (auto good = verify({block, stop}, out.first(bytes)); !good) {
    return std::unexpected(good.error());
  }
  return bytes;
}

}  // namespace encore::disk
