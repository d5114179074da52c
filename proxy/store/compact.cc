// SlabArena's compaction: emptying sparse slabs.
#include <bit>

#include "base/check.h"
#include "proxy/store/arena.h"

namespace encore::store {

namespace {

// Slabs tried in vain, because readers hold what is in them, before a call gives up.
constexpr std::size_t kFruitlessSlabsMax = 8;
// Slots moved at a time where somebody waits for memory: some 100 microseconds.
constexpr std::size_t kMovesAtLimit = 64;

}  // namespace

SlabArena::Compaction SlabArena::compact(std::size_t moves_max, SlotMover& mover) {
  if (!compacting_.try_lock()) return {};
  const Compaction result = compact_locked(moves_max, mover);
  compacting_.unlock();
  return result;
}

// At the limit holes are worth any work. Waits for another compaction, whose gain counts as well.
bool SlabArena::make_room() {
  if (release_kept_slabs()) return true;
  SlotMover* mover = mover_.load(std::memory_order_acquire);
  if (mover == nullptr) return false;
  const std::uint64_t held_before = held_bytes();
  MutexLock lock(compacting_);
  return compact_locked(kMovesAtLimit, *mover).moved != 0 || held_bytes() < held_before;
}

// Releases the empty slab that each class of fixed slots keeps. Returns whether there was one.
bool SlabArena::release_kept_slabs() {
  bool released = false;
  for (std::size_t i = size_class_count(); i < lists_.size(); ++i) {
    SlabList& list = lists_[i];
    MutexLock lock(list.mutex);
    if (list.slabs != 1 || list.used != 0) continue;
    release_slab(list, list.first.front());
    released = true;
  }
  return released;
}

SlabArena::Compaction SlabArena::compact_locked(std::size_t moves_max, SlotMover& mover) {
  Compaction result;
  std::vector<void*> pinned;
  pinned.reserve(kSlotsPerPageMax);
  std::size_t looked_at = 0;
  std::size_t fruitless = 0;
  while (looked_at < moves_max && fruitless < kFruitlessSlabsMax) {
    SlabList* list = most_to_gain();
    if (list == nullptr) break;
    pinned.clear();
    const PageIndex page = begin_drain(*list, moves_max - looked_at, mover, pinned, &looked_at);
    if (page == kNone) break;
    std::size_t moved = 0;
    for (void* slot : pinned) {
      if (mover.move(slot)) ++moved;
    }
    result.moved += moved;
    if (end_drain(*list, page)) ++result.slabs_emptied;
    if (moved == 0) ++fruitless;
  }
  return result;
}

// The class whose free slots fill the most slabs; null if none could be emptied.
SlabArena::SlabList* SlabArena::most_to_gain() {
  SlabList* best = nullptr;
  std::uint64_t best_gain = 0;
  for (std::size_t i = 0; i < size_class_count(); ++i) {
    SlabList& list = lists_[i];
    MutexLock lock(list.mutex);
    const std::uint64_t slots = list.shape.slots_per_page;
    const std::uint64_t gain = list.slabs - (list.used + slots - 1) / slots;
    if (gain > best_gain) {
      best_gain = gain;
      best = &list;
    }
  }
  return best;
}

// Takes the sparsest slab out of use and pins what is in it.
SlabArena::PageIndex SlabArena::begin_drain(SlabList& list, std::size_t slots_max, SlotMover& mover,
                                            std::vector<void*>& pinned, std::size_t* looked_at) {
  MutexLock lock(list.mutex);
  PageIndex page = kNone;
  for (std::size_t step = 0; step < kFullnessSteps && page == kNone; ++step) {
    page = list.first[step];
  }
  if (page == kNone) return kNone;
  list.draining = page;
  rank(list, page);
  const Slab& slab = slabs_.get()[page];
  for (std::size_t word = 0; word < slab.used.size(); ++word) {
    for (std::uint64_t bits = slab.used[word]; bits != 0; bits &= bits - 1) {
      if (slots_max-- == 0) return page;
      ++*looked_at;
      const auto slot = word * 64 + static_cast<std::size_t>(std::countr_zero(bits));
      void* address = pool_->data(page) + slot * list.shape.slot_bytes;
      if (mover.pin(address)) pinned.push_back(address);
    }
  }
  return page;
}

// Puts the slab back into use, at the end of its list, unless it was emptied and given back.
bool SlabArena::end_drain(SlabList& list, PageIndex page) {
  MutexLock lock(list.mutex);
  if (list.draining != page) return true;
  list.draining = kNone;
  rank(list, page);
  return false;
}

}  // namespace encore::store
