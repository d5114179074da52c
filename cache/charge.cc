#include "cache/charge.h"

#include <algorithm>

#include "cache/size_class.h"

namespace encore::cache {

namespace {

std::uint64_t slot_size(std::uint64_t bytes) {
  return bytes <= kSlotBytesMax ? slot_bytes(static_cast<std::size_t>(bytes)) : bytes;
}

std::uint64_t fixed_bytes(const ObjectSizes& sizes) {
  return kObjectBytes + (sizes.meta + 7) / 8 * 8 + sizes.key + sizes.head;
}

}  // namespace

bool is_inline(const ObjectSizes& sizes) {
  return sizes.body <= kSlotBytesMax && fixed_bytes(sizes) + sizes.body <= kSlotBytesMax;
}

std::uint64_t charge_for(const ObjectSizes& sizes) {
  if (is_inline(sizes)) return slot_size(fixed_bytes(sizes) + sizes.body);
  return slot_size(fixed_bytes(sizes)) + body_charge(sizes.body);
}

std::uint64_t body_charge(std::uint64_t length) {
  const std::uint64_t runs = (length + kRunBytesMax - 1) / kRunBytesMax;
  const std::uint64_t memory = (length + kOsPageBytes - 1) / kOsPageBytes * kOsPageBytes;
  return slot_size(kBodyBytes) + memory + (runs > 1 ? (runs - 1) * slot_size(kChunkBytes) : 0);
}

}  // namespace encore::cache
