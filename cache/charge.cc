#include "proxy/store/charge.h"

#include <algorithm>

#include "proxy/store/arena.h"
#include "proxy/store/body.h"
#include "proxy/store/object.h"
#include "proxy/store/size_class.h"

namespace encore::store {

namespace {

std::uint64_t slot_size(std::uint64_t bytes) {
  return bytes <= kSlotBytesMax ? SlabArena::slot_bytes(static_cast<std::size_t>(bytes)) : bytes;
}

std::uint64_t fixed_bytes(const ObjectSizes& sizes) {
  return sizeof(Object) + (sizes.meta + 7) / 8 * 8 + sizes.key + sizes.head;
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
  const std::uint64_t runs = (length + kChunkBytesMax - 1) / kChunkBytesMax;
  const std::uint64_t memory = (length + kOsPageBytes - 1) / kOsPageBytes * kOsPageBytes;
  return slot_size(sizeof(Body)) + memory + (runs > 1 ? (runs - 1) * slot_size(sizeof(Chunk)) : 0);
}

}  // namespace encore::store
