// PagePool: pages of 64 KiB of address space, handed out singly or in runs, with exact account of
// how much of each is resident. Address space is plentiful and memory is not: of a page only the
// 4-KiB pages up to its commitment are ever touched, and what is freed is given back to the system
// (madvise) beyond a small reserve of idle pages. Thread-safe.
//
// If no contiguous pages are left, a run is shorter than requested.
//
// Wholly resident blocks of 2 MiB may be backed by huge pages (back_with_huge_pages): a lookup
// among many objects then does not look up the page of each as well. No further pages become
// resident by it; if a part is returned, the rest is small pages again.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "base/error.h"
#include "base/mutex.h"
#include "cache/charge.h"
#include "cache/size_class.h"

namespace encore::store {

// The sizes stand where charges are made of them.
using cache::kOsPageBytes;
using cache::kPageBytes;
using cache::kSlotAlignment;
using cache::kSlotBytesMax;
using cache::kSlotBytesMin;
using cache::kSlotsPerPageMax;
using cache::size_class;
using cache::size_class_count;
using cache::size_class_for;
using cache::SizeClass;
// Address space is reserved in extents of this many pages (1 MiB), which is also the longest run.
inline constexpr std::uint32_t kExtentPages = 16;
static_assert(kExtentPages * kPageBytes == cache::kRunBytesMax);
// Size of a huge page.
inline constexpr std::size_t kHugeBytes = 2 * 1024 * 1024;
inline constexpr std::uint32_t kHugePages = kHugeBytes / kPageBytes;

struct PagePoolOptions {
  std::uint64_t limit_bytes = 0;     // most that is ever resident
  std::uint64_t idle_bytes_max = 0;  // free pages, kept resident for reuse
  // Address space to reserve; less is taken where the system refuses. 0: eight times the limit,
  // 16 GiB at least, so that runs are found however scattered the pages in use are.
  std::uint64_t address_bytes = 0;
};

class PagePool {
 public:
  using PageIndex = std::uint32_t;
  static constexpr PageIndex kNone = ~PageIndex{0};

  // Errors: not even the limit can be reserved.
  static Result<std::unique_ptr<PagePool>> create(const PagePoolOptions& options);
  ~PagePool();
  PagePool(const PagePool&) = delete;
  PagePool& operator=(const PagePool&) = delete;

  struct Run {
    PageIndex first = kNone;
    std::uint32_t pages = 0;  // 0: no address space is left
  };
  // At most `pages` adjacent pages (1 to 16), which belong to the caller, uncommitted: they may be
  // resident to some part, left over from a former use.
  Run allocate(std::uint32_t pages) ENCORE_EXCLUDES(mutex_);
  void free(Run run) ENCORE_EXCLUDES(mutex_);

  // Makes sure that the first `bytes` of the run may be touched. False where less than `spared`
  // bytes would be left below the limit; nothing is changed then. REQUIRES: the caller owns the run
  // and no other thread commits or trims it.
  bool commit(Run run, std::size_t bytes, std::uint64_t spared = 0) ENCORE_EXCLUDES(mutex_) {
    if (run.pages == 1 && bytes <= resident_bytes(run.first)) return true;
    return commit_more(run, bytes, spared);
  }
  // Gives back what lies behind the first `bytes`, rounded up to 4 KiB; the address space stays.
  void trim(Run run, std::size_t bytes);

  // Checks some of the address space, and backs at most `blocks_max` blocks of 2 MiB that are
  // wholly resident by huge pages: some hundred microseconds each. Returns how many there were;
  // none if the system has no huge pages left. For a maintenance tick.
  std::size_t back_with_huge_pages(std::size_t blocks_max) ENCORE_EXCLUDES(mutex_, huge_mutex_);
  // Bytes that are backed by huge pages now.
  std::uint64_t huge_bytes() const { return huge_.load(std::memory_order_relaxed); }

  std::byte* data(PageIndex page) const { return base_ + std::size_t{page} * kPageBytes; }
  PageIndex page_of(const void* address) const {
    return static_cast<PageIndex>(
        static_cast<std::size_t>(static_cast<const std::byte*>(address) - base_) / kPageBytes);
  }
  // Resident bytes of one page. REQUIRES: the caller owns it.
  std::size_t resident_bytes(PageIndex page) const { return info_[page].resident * kOsPageBytes; }

  std::uint64_t held_bytes() const { return held_.load(std::memory_order_relaxed); }
  std::uint64_t idle_bytes() const ENCORE_EXCLUDES(mutex_);
  std::uint64_t limit_bytes() const { return limit_.load(std::memory_order_relaxed); }
  void set_limit(std::uint64_t bytes) { limit_.store(bytes, std::memory_order_relaxed); }
  // Number of pages of the address space.
  std::size_t page_count() const { return page_count_; }

 private:
  struct PageInfo {
    // Resident 4-KiB pages from its start. Written by the owner; by the pool while free.
    std::uint8_t resident;
    // In the list of idle pages: free and resident to some part.
    bool idle;
    // Links of that list.
    PageIndex previous;
    PageIndex next;
  };
  struct Extent {
    std::uint16_t free;         // one bit a page
    std::uint8_t longest_free;  // run of pages; also the bucket it stands in
    std::uint32_t previous;
    std::uint32_t next;
  };

  enum class Backing : std::uint8_t {
    kSmall,
    kHuge,
    kRefused,  // asked for in vain; asked for again when a part of it was given back
  };
  // 2 MiB: two extents.
  struct Block {
    std::atomic<std::uint8_t> whole_pages;  // the wholly resident ones of its 32
    Backing backing;                        // guarded by huge_mutex_
  };
  struct Tables {
    PageInfo* info;
    Extent* extents;
    Block* blocks;
  };

  PagePool(std::byte* base, std::size_t address_bytes, const Tables& tables,
           const PagePoolOptions& options);

  bool commit_more(Run run, std::size_t bytes, std::uint64_t spared) ENCORE_EXCLUDES(mutex_);
  bool add_extent() ENCORE_REQUIRES(mutex_);
  void take(PageIndex first, std::uint32_t pages) ENCORE_REQUIRES(mutex_);
  void give(Run run) ENCORE_REQUIRES(mutex_);
  void rank(std::uint32_t extent) ENCORE_REQUIRES(mutex_);
  void link_idle(PageIndex page) ENCORE_REQUIRES(mutex_);
  void unlink_idle(PageIndex page) ENCORE_REQUIRES(mutex_);
  // Gives idle pages back to the system until at most `bytes` are kept.
  void shed(std::uint64_t bytes) ENCORE_EXCLUDES(mutex_);
  void discard(PageIndex page, std::size_t resident) ENCORE_EXCLUDES(huge_mutex_);
  std::byte* block_data(std::size_t block) const { return base_ + block * kHugeBytes; }
  bool back_with_huge_page(std::size_t block) ENCORE_REQUIRES(huge_mutex_);

  std::byte* const base_;
  const std::size_t page_count_;
  PageInfo* const info_;
  Extent* const extents_;
  Block* const blocks_;
  const std::uint64_t idle_max_;
  std::atomic<std::uint64_t> limit_;
  std::atomic<std::uint64_t> held_{0};
  std::atomic<std::uint64_t> huge_{0};

  // How blocks are backed against what is given back of them: a huge page must not bring back what
  // was discarded meanwhile. Taken without mutex_.
  Mutex huge_mutex_;
  std::size_t next_block_ ENCORE_GUARDED_BY(huge_mutex_) = 0;
  bool huge_refused_ ENCORE_GUARDED_BY(huge_mutex_) = false;  // by the system, for good

  mutable Mutex mutex_;
  std::uint32_t extents_used_ ENCORE_GUARDED_BY(mutex_) = 0;
  std::uint64_t idle_ ENCORE_GUARDED_BY(mutex_) = 0;
  PageIndex idle_newest_ ENCORE_GUARDED_BY(mutex_) = kNone;
  PageIndex idle_oldest_ ENCORE_GUARDED_BY(mutex_) = kNone;
  // Extents by their longest free run.
  std::array<std::uint32_t, kExtentPages + 1> buckets_ ENCORE_GUARDED_BY(mutex_);
};

}  // namespace encore::store
