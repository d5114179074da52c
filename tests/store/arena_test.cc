#include "proxy/store/arena.h"

#include <cstring>
#include <map>
#include <random>
#include <vector>

#include "base/units.h"
#include "tests/catch.h"

namespace encore::store {

namespace {

std::unique_ptr<SlabArena> arena(std::uint64_t limit_bytes, std::uint64_t address_bytes = 0) {
  auto made = SlabArena::create({limit_bytes, kMiB, address_bytes});
  REQUIRE(made);
  return std::move(*made);
}

// Moves every slot whose first word after the count is known to it.
class TableMover final : public SlotMover {
 public:
  TableMover(SlabArena& arena, std::map<void*, std::size_t>& slots)
      : arena_(arena), slots_(slots) {}
  bool pin(void* slot) override { return slots_.contains(slot); }
  bool move(void* slot) override {
    const std::size_t bytes = slots_.at(slot);
    void* room = arena_.allocate_elsewhere(bytes);
    if (room == nullptr) return false;
    slots_.erase(slot);
    slots_[room] = bytes;
    arena_.free(slot);
    return true;
  }

 private:
  SlabArena& arena_;
  std::map<void*, std::size_t>& slots_;
};

}  // namespace

TEST_CASE("what is larger than a slot is a run of whole pages, and is given back", "[store]") {
  const auto made = arena(kMiB);
  std::vector<void*> slots;
  std::uint64_t live = 0;
  for (const std::size_t bytes :
       {kSlotBytesMax + 1, 3 * kSlotBytesMax, kPageBytes, kPageBytes + 1, 4 * kPageBytes}) {
    void* const slot = made->allocate(bytes, SlotKind::kMovable);
    REQUIRE(slot != nullptr);
    CHECK(*static_cast<std::uint32_t*>(slot) == 0);
    std::memset(slot, 0xAB, bytes);
    live += (bytes + kOsPageBytes - 1) / kOsPageBytes * kOsPageBytes;
    CHECK(made->live_bytes() == live);
    slots.push_back(slot);
  }
  // Beyond the limit there is none, and nothing is lost by asking.
  while (void* const more = made->allocate(4 * kPageBytes, SlotKind::kMovable)) {
    slots.push_back(more);
  }
  CHECK(made->held_bytes() <= kMiB);
  CHECK(slots.size() < 9);
  for (void* const slot : slots) made->free(slot);
  CHECK(made->live_bytes() == 0);
  void* const again = made->allocate(15 * kPageBytes, SlotKind::kFixed);
  CHECK(again != nullptr);
  made->free(again);
}

TEST_CASE("a slot is at most a sixteenth larger than what was asked for", "[store]") {
  for (std::size_t bytes = 1; bytes <= kSlotBytesMax; ++bytes) {
    const SizeClass shape = size_class(size_class_for(bytes));
    if (shape.slot_bytes < bytes) FAIL(bytes << " does not fit " << shape.slot_bytes);
    // Between 8 and 16 KiB the steps are wider; below 128 bytes there is one class; rounding to
    // the alignment costs up to 16 bytes.
    const std::size_t slack = bytes <= 128    ? 127
                              : bytes <= 4096 ? bytes / 16 + 16
                              : bytes <= 8192 ? bytes / 8 + 16
                                              : bytes / 5;
    if (shape.slot_bytes - bytes > slack) FAIL(bytes << " takes " << shape.slot_bytes);
  }
  for (std::size_t i = 0; i < size_class_count(); ++i) {
    const SizeClass shape = size_class(i);
    CHECK(shape.slot_bytes % kSlotAlignment == 0);
    // The resident bytes behind the last slot of a full slab.
    const std::size_t used = std::size_t{shape.slot_bytes} * shape.slots_per_page;
    const std::size_t resident = (used + kOsPageBytes - 1) / kOsPageBytes * kOsPageBytes;
    CHECK(static_cast<double>(resident - used) <= 0.025 * static_cast<double>(used));
  }
}

TEST_CASE("a slab is touched no further than its slots in use", "[store]") {
  const auto memory = arena(32 * kMiB);
  void* first = memory->allocate(5'000, SlotKind::kMovable);
  CHECK(memory->held_bytes() == 2 * kOsPageBytes);
  void* second = memory->allocate(5'000, SlotKind::kMovable);
  CHECK(memory->held_bytes() == 3 * kOsPageBytes);
  memory->free(first);
  first = memory->allocate(4'990, SlotKind::kMovable);
  CHECK(memory->held_bytes() == 3 * kOsPageBytes);
  memory->free(first);
  memory->free(second);
}

TEST_CASE("slots do not overlap and keep their bytes", "[store]") {
  const auto memory = arena(32 * kMiB);
  std::mt19937_64 random(4);
  struct Slot {
    std::uint8_t* data;
    std::size_t bytes;
    std::uint8_t mark;
  };
  std::vector<Slot> slots;
  std::uint64_t live = 0;
  for (int i = 0; i < 60'000; ++i) {
    if (slots.size() < 3'000 && random() % 2 == 0) {
      // Fixed slots have two sizes, as the bookkeeping of bodies does.
      const auto kind = random() % 4 == 0 ? SlotKind::kFixed : SlotKind::kMovable;
      const std::size_t bytes = kind == SlotKind::kFixed
                                    ? (i % 2 == 0 ? 160 : 56)
                                    : 1 + random() % (kSlotBytesMax >> (i % 7));
      auto* data = static_cast<std::uint8_t*>(memory->allocate(bytes, kind));
      if (data == nullptr) continue;
      slots.push_back({data, bytes, static_cast<std::uint8_t>(random())});
      std::fill_n(data, bytes, slots.back().mark);
      live += SlabArena::slot_bytes(bytes);
    } else if (!slots.empty()) {
      std::swap(slots[random() % slots.size()], slots.back());
      const Slot slot = slots.back();
      slots.pop_back();
      const auto wrong = std::count_if(slot.data, slot.data + slot.bytes,
                                       [&](std::uint8_t byte) { return byte != slot.mark; });
      if (wrong != 0) FAIL("a slot of " << slot.bytes << " was overwritten");
      memory->free(slot.data);
      live -= SlabArena::slot_bytes(slot.bytes);
    }
  }
  CHECK(memory->live_bytes() == live);
  CHECK(memory->held_bytes() >= live);
  for (const Slot& slot : slots) memory->free(slot.data);
  CHECK(memory->live_bytes() == 0);
  // One empty slab of each size of what is fixed is kept.
  CHECK(memory->held_bytes() - memory->idle_bytes() <= 2 * kPageBytes);
  CHECK(memory->held_bytes() <= kMiB + 2 * kPageBytes);
}

TEST_CASE("an empty slab that is kept gives way at the limit", "[store]") {
  const auto memory = arena(kMiB);
  memory->free(memory->allocate(200, SlotKind::kFixed));
  const auto run = memory->allocate_run(16);
  REQUIRE(run.pages == 16);
  constexpr std::size_t kForBodies = kMiB - kMiB / SlabArena::kSlotShare;
  CHECK(memory->commit(run, 0, kForBodies));
  CHECK(memory->held_bytes() == kForBodies);
  memory->free_run(run, kForBodies);
  CHECK(memory->allocate(200, SlotKind::kFixed) != nullptr);
}

TEST_CASE("bodies leave the last of the memory to slots, and slots take all of it", "[store]") {
  const auto memory = arena(kMiB);
  const auto run = memory->allocate_run(16);
  constexpr std::size_t kForBodies = kMiB - kMiB / SlabArena::kSlotShare;
  REQUIRE(memory->commit(run, 0, kForBodies));
  CHECK_FALSE(memory->commit(run, kForBodies, kForBodies + 1));
  std::size_t slots = 0;
  while (memory->allocate(1000, SlotKind::kFixed) != nullptr) ++slots;
  CHECK(slots >= kMiB / SlabArena::kSlotShare / 1024);
  CHECK(memory->held_bytes() == kMiB);
}

TEST_CASE("the last empty slab of what is fixed is used again, and full ones go", "[store]") {
  const auto memory = arena(8 * kMiB);
  void* first = memory->allocate(200, SlotKind::kFixed);
  memory->free(first);
  const std::uint64_t held = memory->held_bytes();
  CHECK(memory->idle_bytes() == 0);
  CHECK(memory->allocate(200, SlotKind::kFixed) == first);
  CHECK(memory->held_bytes() == held);
  std::vector<void*> slots{first};
  for (int i = 0; i < 2'000; ++i) slots.push_back(memory->allocate(200, SlotKind::kFixed));
  for (void* slot : slots) memory->free(slot);
  const std::uint64_t kept = memory->held_bytes() - memory->idle_bytes();
  CHECK(kept <= kPageBytes);
  // A movable slab goes with its last slot.
  memory->free(memory->allocate(200, SlotKind::kMovable));
  CHECK(memory->held_bytes() - memory->idle_bytes() == kept);
}

TEST_CASE("sparse slabs are emptied by moving, and nothing is moved without gain", "[store]") {
  const auto memory = arena(64 * kMiB);
  std::map<void*, std::size_t> slots;
  std::vector<void*> all;
  for (int i = 0; i < 20'000; ++i) {
    void* slot = memory->allocate(1'000, SlotKind::kMovable);
    REQUIRE(slot != nullptr);
    all.push_back(slot);
    slots[slot] = 1'000;
  }
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (i % 10 == 0) continue;
    memory->free(all[i]);
    slots.erase(all[i]);
  }
  const std::uint64_t live = memory->live_bytes();
  CHECK(memory->held_bytes() > 9 * live);
  TableMover mover(*memory, slots);
  std::size_t moved = 0;
  for (int calls = 0; calls < 1'000; ++calls) {
    const auto result = memory->compact(50, mover);
    CHECK(result.moved <= 50);
    if (result.moved == 0) break;
    moved += result.moved;
  }
  // Nine in ten slabs are emptied into the tenth.
  CHECK(moved <= 1'850);
  CHECK(memory->held_bytes() <= live + live / 50 + kPageBytes + memory->idle_bytes());
  CHECK(memory->live_bytes() == live);
  for (const auto& [slot, bytes] : slots) memory->free(slot);
}

TEST_CASE("runs of pages do not overlap and are accounted to the 4-KiB page", "[store]") {
  auto made = PagePool::create({32 * kMiB, 0, 0});
  REQUIRE(made);
  PagePool& pool = **made;
  std::mt19937_64 random(5);
  std::vector<std::pair<PagePool::Run, std::size_t>> runs;
  std::vector<bool> taken(pool.page_count());
  std::uint64_t held = 0;
  for (int i = 0; i < 50'000; ++i) {
    if (random() % 2 == 0) {
      const auto wanted = static_cast<std::uint32_t>(1 + random() % kExtentPages);
      const auto run = pool.allocate(wanted);
      REQUIRE(run.pages == wanted);
      std::size_t bytes = random() % (run.pages * kPageBytes + 1);
      bytes = (bytes + kOsPageBytes - 1) / kOsPageBytes * kOsPageBytes;
      if (!pool.commit(run, bytes)) {
        CHECK(held + bytes > 32 * kMiB);
        pool.free(run);
        continue;
      }
      for (std::uint32_t page = run.first; page < run.first + run.pages; ++page) {
        if (taken[page]) FAIL("page " << page << " is in two runs");
        taken[page] = true;
      }
      runs.emplace_back(run, bytes);
      held += bytes;
    } else if (!runs.empty()) {
      std::swap(runs[random() % runs.size()], runs.back());
      const auto [run, bytes] = runs.back();
      runs.pop_back();
      for (std::uint32_t page = run.first; page < run.first + run.pages; ++page) {
        taken[page] = false;
      }
      pool.free(run);
      held -= bytes;
    }
    REQUIRE(pool.held_bytes() == held);
  }
}

TEST_CASE("where address space is short a run comes out shorter, then not at all", "[store]") {
  auto made = PagePool::create({kMiB, 0, 2 * kMiB});
  REQUIRE(made);
  PagePool& pool = **made;
  std::vector<PagePool::Run> pages;
  for (int i = 0; i < 32; ++i) pages.push_back(pool.allocate(1));
  CHECK(pool.allocate(1).pages == 0);
  for (std::size_t i = 0; i < pages.size(); i += 2) pool.free(pages[i]);
  CHECK(pool.allocate(16).pages == 1);
}

TEST_CASE("idle pages are kept up to the reserve and given back at the limit", "[store]") {
  auto made = PagePool::create({kMiB, 512 * kKiB, 0});
  REQUIRE(made);
  PagePool& pool = **made;
  const auto run = pool.allocate(16);
  REQUIRE(pool.commit(run, kMiB));
  pool.free(run);
  CHECK(pool.idle_bytes() == 512 * kKiB);
  CHECK(pool.held_bytes() == 512 * kKiB);
  const auto again = pool.allocate(16);
  REQUIRE(pool.commit(again, kMiB));
  CHECK(pool.held_bytes() == kMiB);
  const auto more = pool.allocate(1);
  CHECK_FALSE(pool.commit(more, 1));
  CHECK(pool.held_bytes() == kMiB);
  pool.trim(again, kMiB - kPageBytes);
  CHECK(pool.commit(more, 1));
}

}  // namespace encore::store
