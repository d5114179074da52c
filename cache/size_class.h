// The slot sizes of the proxy's store, which decide what an object is charged: a slab of 64 KiB
// holds n slots of 64 KiB / n. Below 4 KiB n has 16 steps a doubling (all n from 16 to 32, every
// second to 64, ...), so a slot is at most 1/16 larger than requested, 1/32 on average. Above 4 KiB
// n itself is the step, with additional sizes that leave whole untouched 4-KiB pages at a slab's
// end. Pure functions, thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>

namespace encore::cache {

inline constexpr std::size_t kOsPageBytes = 4096;
// The unit in which the arena hands out slabs and pieces of a body.
inline constexpr std::size_t kPageBytes = 64 * 1024;
// The largest slot; what is larger is a run of pages.
inline constexpr std::size_t kSlotBytesMax = 16 * 1024;
inline constexpr std::size_t kSlotBytesMin = 128;
// Slots are aligned to this.
inline constexpr std::size_t kSlotAlignment = 16;
inline constexpr std::size_t kSlotsPerPageMax = kPageBytes / kSlotBytesMin;

struct SizeClass {
  std::uint32_t slot_bytes;      // a multiple of kSlotAlignment
  std::uint32_t slots_per_page;  // slot_bytes * slots_per_page <= kPageBytes
};

// Number of classes; class 0 has the smallest slots.
std::size_t size_class_count();
// REQUIRES: index < size_class_count().
SizeClass size_class(std::size_t index);
// The smallest class that holds `bytes`. REQUIRES: bytes <= kSlotBytesMax.
std::size_t size_class_for(std::size_t bytes);
// Returns the size of the slot for N bytes. REQUIRES: as size_class_for().
inline std::size_t slot_bytes(std::size_t bytes) {
  return size_class(size_class_for(bytes)).slot_bytes;
}

}  // namespace encore::cache
