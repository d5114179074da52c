#include "cache/size_class.h"

#include <algorithm>
#include <array>

#include "base/check.h"

namespace encore::cache {

namespace {

constexpr std::size_t kClassesMax = 128;

struct SizeTable {
  std::array<SizeClass, kClassesMax> classes{};
  std::size_t count = 0;
  // Class of the smallest slot for each multiple of the alignment.
  std::array<std::uint8_t, kSlotBytesMax / kSlotAlignment + 1> by_size{};

  constexpr void add(std::size_t slot_bytes) {
    const auto bytes = static_cast<std::uint32_t>(slot_bytes);
    classes[count++] = {bytes, static_cast<std::uint32_t>(kPageBytes) / bytes};
  }
};

constexpr SizeTable make_table() {
  SizeTable table;
  // n slots a page, n in 16 steps a doubling below 4 KiB.
  for (std::size_t n = 4; n <= kSlotsPerPageMax;) {
    table.add(kPageBytes / n / kSlotAlignment * kSlotAlignment);
    std::size_t step = 1;
    while (step * 32 <= n) step *= 2;
    n += step;
  }
  // Between 8 and 16 KiB n alone would leave steps of 25 %. These leave untouched 4-KiB pages
  // behind the last slot, which are never resident.
  for (const std::size_t kib : {15U, 14U, 12U, 10U}) table.add(kib * 1024);

  const auto less = [](const SizeClass& a, const SizeClass& b) {
    return a.slot_bytes < b.slot_bytes;
  };
  const auto equal = [](const SizeClass& a, const SizeClass& b) {
    return a.slot_bytes == b.slot_bytes;
  };
  const auto begin = table.classes.begin();
  std::sort(begin, begin + table.count, less);
  table.count = static_cast<std::size_t>(std::unique(begin, begin + table.count, equal) - begin);
  std::size_t index = 0;
  for (std::size_t unit = 0; unit < table.by_size.size(); ++unit) {
    while (table.classes[index].slot_bytes < unit * kSlotAlignment) ++index;
    table.by_size[unit] = static_cast<std::uint8_t>(index);
  }
  return table;
}

constexpr SizeTable kTable = make_table();
static_assert(kTable.classes[0].slot_bytes == kSlotBytesMin);
static_assert(kTable.classes[kTable.count - 1].slot_bytes == kSlotBytesMax);

}  // namespace

std::size_t size_class_count() { return kTable.count; }

SizeClass size_class(std::size_t index) {
  ENCORE_CHECK(index < kTable.count, "a size class that does not exist");
  return kTable.classes[index];
}

std::size_t size_class_for(std::size_t bytes) {
  ENCORE_CHECK(bytes <= kSlotBytesMax, "too large for a slot");
  return kTable.by_size[(bytes + kSlotAlignment - 1) / kSlotAlignment];
}

}  // namespace encore::cache
