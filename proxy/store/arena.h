// SlabArena: memory for stored responses. Slots of finely spaced sizes in slabs of one page of
// 64 KiB each, and runs of pages for bodies (PagePool). Thread-safe: one lock a size class, the
// pool's below it.
//
// Fragmentation is bounded by moving: what a class holds in sparse slabs is moved into its fuller
// ones (compact), as far as the owner of the slots agrees. Without moving, a shift of sizes could
// leave every slab of a class with a single slot in use. Why bodies need not move:
// docs/decisions/0040.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/error.h"
#include "base/mutex.h"
#include "cache/size_class.h"
#include "proxy/store/page_pool.h"

namespace encore::store {

// Kinds of slots.
enum class SlotKind : std::uint8_t {
  kMovable,  // its first four bytes are an atomic count, 0 until the mover may read it
  kFixed,    // others hold its address
};

// Moves slots on behalf of the arena.
class SlotMover {
 public:
  // Takes a reference so that the slot cannot be freed, or declines. Called under the class's
  // lock: must not call the arena. The slot may be under construction: the count says so.
  virtual bool pin(void* slot) = 0;
  // Moves the content (SlabArena::allocate_elsewhere) and drops the reference of pin(), or only
  // drops it. Called without locks. Returns whether it moved.
  virtual bool move(void* slot) = 0;

 protected:
  ~SlotMover() = default;
};

class SlabArena {
 public:
  using Run = PagePool::Run;
  // With 300 MiB this is enough for the bookkeeping of 20,000 bodies, with heads.
  static constexpr std::uint64_t kSlotShare = 64;

  // Errors: address space cannot be reserved.
  static Result<std::unique_ptr<SlabArena>> create(const PagePoolOptions& options);
  // REQUIRES: everything was freed, or nobody will touch it again.
  ~SlabArena() = default;
  SlabArena(const SlabArena&) = delete;
  SlabArena& operator=(const SlabArena&) = delete;

  // Sets the mover of slots when the memory limit is reached: allocate() and commit() then compact
  // before they fail. Borrowed; null (the default): none.
  void set_mover(SlotMover* mover) { mover_.store(mover, std::memory_order_release); }

  // A slot of at least `bytes`, its first four bytes zero; null at the memory limit. One that is
  // larger than slots are is a run of pages of its own, in whole pages of the system, and never
  // moves. REQUIRES: bytes <= kExtentPages pages; the caller holds no lock that the mover takes.
  void* allocate(std::size_t bytes, SlotKind kind);
  // The same, but never from a new slab: for SlotMover::move. REQUIRES: bytes <= kSlotBytesMax.
  void* allocate_elsewhere(std::size_t bytes);
  void free(void* slot);
  static std::size_t slot_bytes(std::size_t bytes) { return cache::slot_bytes(bytes); }

  // Runs of pages: see PagePool, whose account of live bytes stands here.
  Run allocate_run(std::uint32_t pages) { return pool_->allocate(pages); }
  // False at the memory limit, of which a part in kSlotShare is kept for slots. REQUIRES: as
  // allocate().
  bool commit(Run run, std::size_t bytes_before, std::size_t bytes);
  // Gives back what lies behind `bytes`; pages without a byte in use leave the run.
  Run trim(Run run, std::size_t bytes_before, std::size_t bytes);
  void free_run(Run run, std::size_t bytes_committed);
  std::byte* data(Run run) const { return pool_->data(run.first); }
  PagePool::PageIndex page_of(const void* address) const { return pool_->page_of(address); }

  // Bytes taken from the system; never more than the limit.
  std::uint64_t held_bytes() const { return pool_->held_bytes(); }
  // Bytes of slots and committed runs in use.
  std::uint64_t live_bytes() const { return live_.load(std::memory_order_relaxed); }
  // Free pages kept for reuse; part of held.
  std::uint64_t idle_bytes() const { return pool_->idle_bytes(); }
  std::uint64_t limit_bytes() const { return pool_->limit_bytes(); }
  void set_limit(std::uint64_t bytes) { pool_->set_limit(bytes); }
  std::uint64_t limit_bytes_max() const { return pool_->page_count() * kPageBytes; }

  // See PagePool.
  std::size_t back_with_huge_pages(std::size_t blocks_max) {
    return pool_->back_with_huge_pages(blocks_max);
  }
  std::uint64_t huge_bytes() const { return pool_->huge_bytes(); }

  // Requests of the store's users that found no memory; who refuses them says so.
  void count_refusal() { refusals_.fetch_add(1, std::memory_order_relaxed); }
  std::uint64_t refusals() const { return refusals_.load(std::memory_order_relaxed); }

  struct Compaction {
    std::size_t moved = 0;
    std::size_t slabs_emptied = 0;
  };
  // Empties sparse slabs, the class with the most to gain first, until `moves_max` slots were
  // checked or nothing more can be gained. One at a time: another call meanwhile returns
  // immediately.
  Compaction compact(std::size_t moves_max, SlotMover& mover) ENCORE_EXCLUDES(compacting_);

 private:
  using PageIndex = PagePool::PageIndex;
  static constexpr PageIndex kNone = PagePool::kNone;
  // Slabs stand in lists by how full they are, so that full ones fill up and sparse ones drain.
  static constexpr std::size_t kFullnessSteps = 8;

  struct Slab {
    std::array<std::uint64_t, kSlotsPerPageMax / 64> used;
    std::uint16_t used_count;
    std::uint8_t list;      // its class, kinds apart; kAlone: a run, whose bytes are used[0]
    std::uint8_t fullness;  // list it stands in; kUnlisted while full or draining
    PageIndex previous;
    PageIndex next;
  };
  static constexpr std::uint8_t kUnlisted = 0xFF;
  static constexpr std::uint8_t kAlone = 0xFF;

  struct SlabList {
    mutable Mutex mutex;
    SizeClass shape{};
    std::array<PageIndex, kFullnessSteps> first ENCORE_GUARDED_BY(mutex){};
    std::array<PageIndex, kFullnessSteps> last ENCORE_GUARDED_BY(mutex){};
    // Being emptied: nothing is taken from it.
    PageIndex draining ENCORE_GUARDED_BY(mutex) = kNone;
    std::uint64_t slabs ENCORE_GUARDED_BY(mutex) = 0;
    std::uint64_t used ENCORE_GUARDED_BY(mutex) = 0;
  };

  SlabArena(std::unique_ptr<PagePool> pool, Slab* slabs);

  void* allocate_alone(std::size_t bytes);
  void free_alone(PageIndex page);
  void* allocate_from(SlabList& list, std::uint8_t index, bool may_grow);
  void* take_slot(SlabList& list, PageIndex page) ENCORE_REQUIRES(list.mutex);
  PageIndex add_slab(SlabList& list, std::uint8_t index) ENCORE_REQUIRES(list.mutex);
  void release_slab(SlabList& list, PageIndex page) ENCORE_REQUIRES(list.mutex);
  void rank(SlabList& list, PageIndex page) ENCORE_REQUIRES(list.mutex);
  void unlink(SlabList& list, PageIndex page) ENCORE_REQUIRES(list.mutex);
  bool make_room() ENCORE_EXCLUDES(compacting_);
  bool release_kept_slabs();
  Compaction compact_locked(std::size_t moves_max, SlotMover& mover) ENCORE_REQUIRES(compacting_);
  SlabList* most_to_gain();
  PageIndex begin_drain(SlabList& list, std::size_t slots_max, SlotMover& mover,
                        std::vector<void*>& pinned, std::size_t* looked_at);
  bool end_drain(SlabList& list, PageIndex page);

  struct Unmap {
    std::size_t bytes;
    void operator()(Slab* slabs) const;
  };

  std::unique_ptr<PagePool> pool_;
  std::unique_ptr<Slab, Unmap> slabs_;  // one a page of the address space, touched where used
  std::vector<SlabList> lists_;         // movable classes, then fixed ones
  std::atomic<std::uint64_t> live_{0};
  std::atomic<std::uint64_t> refusals_{0};
  std::atomic<SlotMover*> mover_{nullptr};
  Mutex compacting_;
};

}  // namespace encore::store
