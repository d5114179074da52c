#include "proxy/store/arena.h"

#include <sys/mman.h>

#include <algorithm>
#include <bit>
#include <utility>

#include "base/check.h"
#include "base/poison.h"

namespace encore::store {

void SlabArena::Unmap::operator()(Slab* slabs) const { munmap(slabs, bytes); }

Result<std::unique_ptr<SlabArena>> SlabArena::create(const PagePoolOptions& options) {
  auto pool = PagePool::create(options);
  if (!pool) return std::unexpected(pool.error());
  const std::size_t bytes = (*pool)->page_count() * sizeof(Slab);
  void* slabs = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (slabs == MAP_FAILED) return fail("cannot reserve address space for the table of slabs");
  return std::unique_ptr<SlabArena>(new SlabArena(std::move(*pool), static_cast<Slab*>(slabs)));
}

SlabArena::SlabArena(std::unique_ptr<PagePool> pool, Slab* slabs)
    : pool_(std::move(pool)),
      slabs_(slabs, Unmap{pool_->page_count() * sizeof(Slab)}),
      lists_(2 * size_class_count()) {
  for (std::size_t i = 0; i < lists_.size(); ++i) {
    SlabList& list = lists_[i];
    MutexLock lock(list.mutex);
    list.shape = size_class(i % size_class_count());
    list.first.fill(kNone);
    list.last.fill(kNone);
  }
}

void* SlabArena::allocate(std::size_t bytes, SlotKind kind) {
  if (bytes > kSlotBytesMax) [[unlikely]]
    return allocate_alone(bytes);
  std::size_t index = size_class_for(bytes);
  if (kind == SlotKind::kFixed) index += size_class_count();
  void* slot = nullptr;
  do {
    slot = allocate_from(lists_[index], static_cast<std::uint8_t>(index), true);
  } while (slot == nullptr && make_room());
  return slot;
}

void* SlabArena::allocate_alone(std::size_t bytes) {
  const std::size_t whole = (bytes + kOsPageBytes - 1) / kOsPageBytes * kOsPageBytes;
  const auto pages = static_cast<std::uint32_t>((whole + kPageBytes - 1) / kPageBytes);
  ENCORE_CHECK(pages <= kExtentPages, "an object is no longer than a run");
  do {
    const Run run = pool_->allocate(pages);
    // The last of the memory is left to slots, as by bodies.
    if (run.pages == pages && pool_->commit(run, whole, pool_->limit_bytes() / kSlotShare)) {
      slabs_.get()[run.first] = {.used = {whole},
                                 .used_count = static_cast<std::uint16_t>(pages),
                                 .list = kAlone,
                                 .fullness = kUnlisted,
                                 .previous = kNone,
                                 .next = kNone};
      std::byte* const address = data(run);
      poison(address, run.pages * kPageBytes);
      unpoison(address, whole);
      live_.fetch_add(whole, std::memory_order_relaxed);
      std::atomic_ref(*reinterpret_cast<std::uint32_t*>(address))
          .store(0, std::memory_order_relaxed);
      return address;
    }
    if (run.pages != 0) pool_->free(run);
    // Address space that is in pieces does not grow together by moves of slots.
    if (run.pages != pages) return nullptr;
  } while (make_room());
  return nullptr;
}

void SlabArena::free_alone(PageIndex page) {
  Slab& slab = slabs_.get()[page];
  const std::uint64_t bytes = std::exchange(slab.used[0], 0);
  ENCORE_CHECK(bytes != 0, "a run of the arena is freed twice");
  slab.list = 0;
  free_run({page, slab.used_count}, bytes);
}

void* SlabArena::allocate_elsewhere(std::size_t bytes) {
  const std::size_t index = size_class_for(bytes);
  return allocate_from(lists_[index], static_cast<std::uint8_t>(index), false);
}

void* SlabArena::allocate_from(SlabList& list, std::uint8_t index, bool may_grow) {
  MutexLock lock(list.mutex);
  PageIndex page = kNone;
  for (std::size_t step = kFullnessSteps; step-- > 0 && page == kNone;) page = list.first[step];
  if (page == kNone && may_grow) page = add_slab(list, index);
  if (page == kNone) return nullptr;
  return take_slot(list, page);
}

// The lowest free slot, so that the page is touched no further than needed.
void* SlabArena::take_slot(SlabList& list, PageIndex page) {
  Slab& slab = slabs_.get()[page];
  std::size_t word = 0;
  while (slab.used[word] == ~std::uint64_t{0}) ++word;
  const auto bit = static_cast<std::size_t>(std::countr_one(slab.used[word]));
  const std::size_t slot = word * 64 + bit;
  const std::size_t bytes = list.shape.slot_bytes;
  if (!pool_->commit({page, 1}, (slot + 1) * bytes)) {
    if (slab.used_count == 0) release_slab(list, page);
    return nullptr;
  }
  slab.used[word] |= std::uint64_t{1} << bit;
  ++slab.used_count;
  ++list.used;
  rank(list, page);
  live_.fetch_add(bytes, std::memory_order_relaxed);
  std::byte* address = pool_->data(page) + slot * bytes;
  unpoison(address, bytes);
  std::atomic_ref(*reinterpret_cast<std::uint32_t*>(address)).store(0, std::memory_order_relaxed);
  return address;
}

SlabArena::PageIndex SlabArena::add_slab(SlabList& list, std::uint8_t index) {
  const Run run = pool_->allocate(1);
  if (run.pages == 0) return kNone;
  Slab& slab = slabs_.get()[run.first];
  slab = {{}, 0, index, kUnlisted, kNone, kNone};
  ++list.slabs;
  rank(list, run.first);
  poison(pool_->data(run.first), kPageBytes);
  return run.first;
}

void SlabArena::release_slab(SlabList& list, PageIndex page) {
  unlink(list, page);
  if (list.draining == page) list.draining = kNone;
  --list.slabs;
  unpoison(pool_->data(page), kPageBytes);
  pool_->free({page, 1});
}

void SlabArena::free(void* slot) {
  const PageIndex page = pool_->page_of(slot);
  Slab& slab = slabs_.get()[page];
  if (slab.list == kAlone) [[unlikely]]
    return free_alone(page);
  // The slot is in use, so its slab stays what it is.
  SlabList& list = lists_[slab.list];
  MutexLock lock(list.mutex);
  const std::size_t bytes = list.shape.slot_bytes;
  const auto offset = static_cast<std::size_t>(static_cast<std::byte*>(slot) - pool_->data(page));
  const std::size_t index = offset / bytes;
  const std::uint64_t mask = std::uint64_t{1} << index % 64;
  ENCORE_CHECK(offset % bytes == 0 && (slab.used[index / 64] & mask) != 0,
               "a slot of the arena is freed twice, or was never one");
  slab.used[index / 64] &= ~mask;
  --slab.used_count;
  --list.used;
  live_.fetch_sub(bytes, std::memory_order_relaxed);
  poison(slot, bytes);
  // The bodies of transfers come and go: the last slab of what is fixed is kept for the next.
  const bool kept = slab.list >= size_class_count() && list.slabs == 1;
  if (slab.used_count == 0 && !kept) {
    release_slab(list, page);
  } else {
    rank(list, page);
  }
}

// Puts the slab at the end of the list for its fullness; full and draining ones stand in none.
void SlabArena::rank(SlabList& list, PageIndex page) {
  Slab& slab = slabs_.get()[page];
  const std::size_t capacity = list.shape.slots_per_page;
  std::uint8_t fullness = kUnlisted;
  if (list.draining != page && slab.used_count < capacity) {
    fullness = static_cast<std::uint8_t>(slab.used_count * kFullnessSteps / capacity);
  }
  if (fullness == slab.fullness) return;
  unlink(list, page);
  slab.fullness = fullness;
  if (fullness == kUnlisted) return;
  slab.next = kNone;
  slab.previous = list.last[fullness];
  if (slab.previous != kNone) {
    slabs_.get()[slab.previous].next = page;
  } else {
    list.first[fullness] = page;
  }
  list.last[fullness] = page;
}

void SlabArena::unlink(SlabList& list, PageIndex page) {
  Slab& slab = slabs_.get()[page];
  if (slab.fullness == kUnlisted) return;
  if (slab.next != kNone) {
    slabs_.get()[slab.next].previous = slab.previous;
  } else {
    list.last[slab.fullness] = slab.previous;
  }
  if (slab.previous != kNone) {
    slabs_.get()[slab.previous].next = slab.next;
  } else {
    list.first[slab.fullness] = slab.next;
  }
  slab.fullness = kUnlisted;
}

bool SlabArena::commit(Run run, std::size_t bytes_before, std::size_t bytes) {
  // Bodies leave the last of the memory to slots: a transfer in progress has a place for its head
  // and its bookkeeping, and a body that waits for memory has them already.
  while (!pool_->commit(run, bytes, pool_->limit_bytes() / kSlotShare)) {
    if (!make_room()) return false;
  }
  unpoison(data(run), bytes);
  live_.fetch_add(bytes - bytes_before, std::memory_order_relaxed);
  return true;
}

SlabArena::Run SlabArena::trim(Run run, std::size_t bytes_before, std::size_t bytes) {
  const auto kept = static_cast<std::uint32_t>((bytes + kPageBytes - 1) / kPageBytes);
  poison(data(run) + bytes, run.pages * kPageBytes - bytes);
  if (kept < run.pages) {
    pool_->free({run.first + kept, run.pages - kept});
    run.pages = kept;
  }
  if (kept != 0) pool_->trim(run, bytes);
  live_.fetch_sub(bytes_before - bytes, std::memory_order_relaxed);
  return run;
}

void SlabArena::free_run(Run run, std::size_t bytes_committed) {
  poison(data(run), run.pages * kPageBytes);
  live_.fetch_sub(bytes_committed, std::memory_order_relaxed);
  pool_->free(run);
}

}  // namespace encore::store
