#include "cache/charge.h"

#include <algorithm>

#include "cache/size_class.h"

namespace encore::cache {

namespace {

std::uint64_t fixed_bytes(const ObjectSizes& sizes) {
  return kObjectBytes + (sizes.meta + 7) / 8 * 8 + sizes.key + sizes.head;
}

}  // namespace

bool is_object(const ObjectSizes& sizes) {
  return sizes.key <= kKeyBytesMax && fixed_bytes(sizes) <= kObjectBytesMax;
}

bool is_inline(const ObjectSizes& sizes) {
  if (sizes.body == 0) return is_object(sizes);
  return sizes.body <= kSlotBytesMax && fixed_bytes(sizes) + sizes.body <= kSlotBytesMax;
}

std::uint64_t own_charge(std::uint64_t bytes) {
  if (bytes <= kSlotBytesMax) return slot_bytes(static_cast<std::size_t>(bytes));
  return (bytes + kOsPageBytes - 1) / kOsPageBytes * kOsPageBytes;
}

std::uint64_t charge_for(const ObjectSizes& sizes) {
  if (is_inline(sizes)) return own_charge(fixed_bytes(sizes) + sizes.body);
  return own_charge(fixed_bytes(sizes)) + body_charge(sizes.body);
}

std::uint64_t body_charge(std::uint64_t length) {
  const std::uint64_t runs = (length + kRunBytesMax - 1) / kRunBytesMax;
  const std::uint64_t memory = (length + kOsPageBytes - 1) / kOsPageBytes * kOsPageBytes;
  return own_charge(kBodyBytes) + memory + (runs > 1 ? (runs - 1) * own_charge(kChunkBytes) : 0);
}

}  // namespace encore::cache
