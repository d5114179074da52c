#include "cache/disk_slab.h"

#include <algorithm>
#include <bit>
#include <new>

#include "base/check.h"

namespace encore::cache {
namespace {

// A number as `digits` binary ones and an exponent: exact below 2^digits.
std::uint32_t encode(std::uint64_t value, unsigned digits) {
  const auto width = static_cast<unsigned>(std::bit_width(value));
  if (width <= digits) {
    return static_cast<std::uint32_t>(value);
  }
  const unsigned exponent = width - digits;  // the highest digit is not kept
  return (exponent << (digits - 1)) + static_cast<std::uint32_t>(value >> exponent);
}
std::uint64_t decode(std::uint32_t code, unsigned digits) {
  const std::uint32_t half = 1U << (digits - 1);
  if (code < 2 * half) {
    return code;
  }
  const std::uint32_t exponent = code / half - 1;
  return std::uint64_t{code - exponent * half} << exponent;
}

constexpr unsigned kTagBits = 7;
constexpr unsigned kKeepDigits = 5;
constexpr std::uint32_t kKeepForeverCode = 0x1ff;

}  // namespace

DiskPlace DiskEntry::place() const {
  return {.disk = static_cast<std::uint16_t>((place_high_ >> 10U) & 0xfU),
          .segment = ((place_high_ & 0x3ffU) << 10U) | (place_low_ >> 22U),
          .unit = place_low_ & 0x3fffffU,
          .bytes = decode(room_code(), kRoomDigits) * kDiskUnit};
}

void DiskEntry::set_place(const DiskPlace& place) {
  const std::uint32_t flags = place_high_ & (kFilled | kWritten | kPart);
  place_low_ = (place.segment << 22U) | place.unit;
  place_high_ = (encode(place.bytes / kDiskUnit, kRoomDigits) << 16U) | flags |
                (std::uint32_t{place.disk} << 10U) | (place.segment >> 10U);
}

std::uint32_t DiskEntry::keep_until() const {
  const std::uint32_t code = std::uint32_t{life_} >> kTagBits;
  if (code == kKeepForeverCode || fresh_until_ == kForever) {
    return kForever;
  }
  return static_cast<std::uint32_t>(
      std::min<std::uint64_t>(fresh_until_ + decode(code, kKeepDigits), kForever - 1));
}

void DiskEntry::set_times(std::uint32_t fresh_until, std::uint32_t keep_until) {
  fresh_until_ = fresh_until;
  const std::uint32_t code =
      keep_until == kForever
          ? kKeepForeverCode
          : encode(keep_until > fresh_until ? keep_until - fresh_until : 0, kKeepDigits);
  life_ = static_cast<std::uint16_t>((code << kTagBits) | (life_ & kTagMask));
}

EntryRef DiskSlab::allocate() {
  // The lowest chunk with room, so that the last ones become empty and are given back.
  while (first_ < chunks_.size() && chunks_[first_].used == kChunk) {
    ++first_;
  }
  if (first_ == chunks_.size()) {
    if (chunks_.size() >= kNoEntry / kChunk) {
      return kNoEntry;
    }
    chunks_.emplace_back();
  }
  Chunk& chunk = chunks_[first_];
  if (chunk.entries == nullptr) {
    chunk.entries.reset(new (std::nothrow) DiskEntry[kChunk]);
    if (chunk.entries == nullptr) {
      return kNoEntry;
    }
    ++held_;
  }
  EntryRef ref = chunk.free;
  if (ref != kNoEntry) {
    chunk.free = at(ref).next_in_segment;
  } else {
    ENCORE_CHECK(chunk.untouched < kChunk, "a chunk with room has a place");
    ref = first_ * kChunk + chunk.untouched++;
  }
  at(ref) = DiskEntry{};
  ++chunk.used;
  ++size_;
  return ref;
}

void DiskSlab::release(EntryRef ref) {
  const std::uint32_t number = ref / kChunk;
  ENCORE_CHECK(number < chunks_.size() && chunks_[number].used != 0 && size_ != 0,
               "an entry is released once");
  Chunk& chunk = chunks_[number];
  at(ref).clear();
  at(ref).next_in_segment = chunk.free;
  chunk.free = ref;
  first_ = std::min(first_, number);
  --size_;
  if (--chunk.used == 0) {
    chunk = {};
    --held_;
    while (!chunks_.empty() && chunks_.back().entries == nullptr) {
      chunks_.pop_back();
    }
    first_ = std::min(first_, static_cast<std::uint32_t>(chunks_.size()));
  }
}

}  // namespace encore::cache
