#include "proxy/disk/purge_frame.h"

#include <algorithm>
#include <cstring>

#include "base/check.h"
#include "proxy/disk/bytes.h"

namespace encore::disk {
namespace {

constexpr std::uint32_t kFrameMagic = 0x4c504e45;  // "ENPL"
constexpr std::uint32_t kEndsSnapshot = 1;
constexpr std::size_t kFlagsAt = 4;
constexpr std::size_t kEpochAt = 8;
constexpr std::size_t kBytesAt = 16;
constexpr std::size_t kCountAt = 20;
constexpr std::size_t kFrameSumAt = 24;
constexpr std::size_t kEntryHeadBytes = 20;
constexpr std::size_t kKeyBytes = 16;
// No segment has this number.
constexpr std::uint32_t kPurgeSegment = UINT32_MAX;

std::size_t tail_bytes(const Purge& purge) {
  return purge.kind == PurgeKind::kKey ? kKeyBytes : purge.pattern.size();
}

std::size_t pages(std::size_t bytes) { return (bytes + kPageBytes - 1) / kPageBytes * kPageBytes; }

// Checksum of the header before its checksum, and of all behind it.
std::uint64_t frame_sum(std::span<const std::byte> bytes, Salt salt, std::uint64_t offset) {
  const std::uint64_t head = checksum(salt, offset, bytes.first(kFrameSumAt));
  return checksum(salt ^ head, offset, bytes.subspan(kFrameHeaderBytes));
}

}  // namespace

Salt purge_salt(const Uuid& disk, std::uint64_t epoch) {
  return salt_of(disk, kPurgeSegment, epoch);
}

std::size_t frame_entries(std::span<const Purge> purges) {
  std::size_t bytes = kFrameHeaderBytes;
  std::size_t entries = 0;
  for (const Purge& purge : purges) {
    bytes += kEntryHeadBytes + tail_bytes(purge);
    if (bytes > kFrameBytesMax) break;
    ++entries;
  }
  return entries;
}

std::uint64_t frames_bytes(std::span<const Purge> purges) {
  std::uint64_t bytes = 0;
  while (!purges.empty()) {
    const std::size_t entries = frame_entries(purges);
    std::size_t used = kFrameHeaderBytes;
    for (const Purge& purge : purges.first(entries)) used += kEntryHeadBytes + tail_bytes(purge);
    bytes += pages(used);
    purges = purges.subspan(entries);
  }
  return bytes;
}

bool FrameBuilder::add(const Purge& purge) {
  ENCORE_CHECK(purge.pattern.size() <= kPatternBytesMax, "a pattern that fits a frame");
  const std::size_t tail = tail_bytes(purge);
  if (kFrameHeaderBytes + bytes_ + kEntryHeadBytes + tail > kFrameBytesMax) return false;
  std::byte* const at = buffer_.data() + kFrameHeaderBytes + bytes_;
  put(at, static_cast<std::uint16_t>(purge.kind));
  put(at + 2, static_cast<std::uint16_t>(purge.pattern.size()));
  put(at + 4, purge.version);
  put(at + 12, purge.sequence);
  if (purge.kind == PurgeKind::kKey) {
    put(at + kEntryHeadBytes, purge.key.lo);
    put(at + kEntryHeadBytes + 8, purge.key.hi);
  } else {
    std::memcpy(at + kEntryHeadBytes, purge.pattern.data(), tail);
  }
  bytes_ += kEntryHeadBytes + tail;
  ++entries_;
  return true;
}

std::span<const std::byte> FrameBuilder::seal(const Seal& seal) {
  std::byte* const at = buffer_.data();
  const std::size_t used = kFrameHeaderBytes + bytes_;
  const std::size_t whole = pages(used);
  std::fill(at + used, at + whole, std::byte{0});
  put(at, kFrameMagic);
  put(at + kFlagsAt, seal.ends_snapshot ? kEndsSnapshot : 0U);
  put(at + kEpochAt, seal.epoch);
  put(at + kBytesAt, static_cast<std::uint32_t>(bytes_));
  put(at + kCountAt, entries_);
  put(at + kFrameSumAt, frame_sum({at, whole}, seal.salt, seal.offset));
  bytes_ = 0;
  entries_ = 0;
  return {at, whole};
}

std::optional<FrameHead> frame_head(ConstPage page) {
  const std::byte* const at = page.data();
  const auto bytes = get<std::uint32_t>(at + kBytesAt);
  if (get<std::uint32_t>(at) != kFrameMagic || bytes > kFrameBytesMax - kFrameHeaderBytes) {
    return std::nullopt;
  }
  return FrameHead{get<std::uint64_t>(at + kEpochAt), pages(kFrameHeaderBytes + bytes)};
}

std::optional<Frame> decode_frame(std::span<const std::byte> bytes, Salt salt,
                                  std::uint64_t offset) {
  const std::byte* const at = bytes.data();
  if (get<std::uint64_t>(at + kFrameSumAt) != frame_sum(bytes, salt, offset)) return std::nullopt;
  const auto flags = get<std::uint32_t>(at + kFlagsAt);
  const Frame frame{bytes.subspan(kFrameHeaderBytes, get<std::uint32_t>(at + kBytesAt)),
                    (flags & kEndsSnapshot) != 0};
  std::uint32_t entries = 0;
  const bool is_sound = for_each_purge(frame.entries, [&](const Purge&) { ++entries; });
  if (!is_sound || entries != get<std::uint32_t>(at + kCountAt)) return std::nullopt;
  return frame;
}

bool for_each_purge(std::span<const std::byte> entries, const VisitPurge& visit) {
  while (!entries.empty()) {
    if (entries.size() < kEntryHeadBytes) return false;
    const auto kind = get<std::uint16_t>(entries.data());
    if (kind < static_cast<std::uint16_t>(PurgeKind::kKey) ||
        kind > static_cast<std::uint16_t>(PurgeKind::kBan)) {
      return false;
    }
    Purge purge;
    purge.kind = static_cast<PurgeKind>(kind);
    purge.version = get<std::uint64_t>(entries.data() + 4);
    purge.sequence = get<std::uint64_t>(entries.data() + 12);
    if (purge.version > kNumberMax || purge.sequence > kNumberMax) return false;
    const std::size_t pattern = get<std::uint16_t>(entries.data() + 2);
    entries = entries.subspan(kEntryHeadBytes);
    const bool is_key = purge.kind == PurgeKind::kKey;
    const std::size_t tail = is_key ? kKeyBytes : pattern;
    if (entries.size() < tail || pattern > kPatternBytesMax || (is_key && pattern != 0)) {
      return false;
    }
    if (is_key) {
      purge.key = {get<std::uint64_t>(entries.data()), get<std::uint64_t>(entries.data() + 8)};
    } else {
      purge.pattern.assign(reinterpret_cast<const char*>(entries.data()), tail);
    }
    entries = entries.subspan(tail);
    visit(purge);
  }
  return true;
}

}  // namespace encore::disk
