#include "proxy/store/page_pool.h"

#include <sys/mman.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <string>

#include "base/check.h"
#include "base/poison.h"
#include "base/units.h"

namespace encore::store {

namespace {

constexpr std::size_t kExtentBytes = kExtentPages * kPageBytes;
static_assert(kHugeBytes % kExtentBytes == 0);
// MADV_COLLAPSE, since Linux 6.1: younger than some systems' headers.
constexpr int kCollapse = 25;
constexpr std::size_t kOsPagesPerPage = kPageBytes / kOsPageBytes;
// Blocks that one call checks: 512 MiB of address space, in some microseconds.
constexpr std::size_t kBlocksLookedAt = 256;

std::byte* map(std::size_t bytes, int protection) {
  void* address =
      mmap(nullptr, bytes, protection, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return address == MAP_FAILED ? nullptr : static_cast<std::byte*>(address);
}

template <typename T>
T* map_table(std::size_t count) {
  return reinterpret_cast<T*>(map(count * sizeof(T), PROT_READ | PROT_WRITE));
}

// The last one may be half.
constexpr std::size_t block_count(std::size_t address_bytes) {
  return (address_bytes + kHugeBytes - 1) / kHugeBytes;
}

constexpr std::size_t os_pages(std::size_t bytes) {
  return (bytes + kOsPageBytes - 1) / kOsPageBytes;
}

// First page of the shortest run of at least `pages` set bits, or -1.
int find_run(std::uint16_t free, std::uint32_t pages) {
  int best = -1;
  std::uint32_t best_length = kExtentPages + 1;
  for (std::uint32_t at = 0; at < kExtentPages;) {
    const auto rest = static_cast<std::uint16_t>(free >> at);
    if (rest == 0) break;
    at += static_cast<std::uint32_t>(std::countr_zero(rest));
    const auto length =
        static_cast<std::uint32_t>(std::countr_one(static_cast<std::uint16_t>(free >> at)));
    if (length >= pages && length < best_length) {
      best = static_cast<int>(at);
      best_length = length;
    }
    at += length;
  }
  return best;
}

std::uint32_t longest_run(std::uint16_t free) {
  int longest = 0;
  for (std::uint32_t bits = free; bits != 0;) {
    bits >>= std::countr_zero(bits);
    const int length = std::countr_one(bits);
    longest = std::max(longest, length);
    bits >>= length;
  }
  return static_cast<std::uint32_t>(longest);
}

constexpr std::uint16_t run_mask(std::uint32_t at, std::uint32_t pages) {
  return static_cast<std::uint16_t>(((1U << pages) - 1U) << at);
}

}  // namespace

Result<std::unique_ptr<PagePool>> PagePool::create(const PagePoolOptions& options) {
  const std::uint64_t needed = std::max(options.limit_bytes, std::uint64_t{16} * kMiB);
  std::uint64_t wanted =
      options.address_bytes != 0 ? options.address_bytes : std::max(8 * needed, 16 * kGiB);
  wanted = std::max<std::uint64_t>(wanted / kExtentBytes, 1) * kExtentBytes;
  std::byte* base = map(wanted + kHugeBytes, PROT_NONE);
  while (base == nullptr && wanted / 2 >= needed) {
    wanted = wanted / 2 / kExtentBytes * kExtentBytes;
    base = map(wanted + kHugeBytes, PROT_NONE);
  }
  if (base == nullptr) {
    return fail("cannot reserve " + format_bytes(wanted) +
                " of address space for the cache: " + std::strerror(errno));
  }
  // Aligned for huge pages; the two ends that alignment cuts off go back.
  const auto address = reinterpret_cast<std::uintptr_t>(base);
  const std::size_t skip = (kHugeBytes - address % kHugeBytes) % kHugeBytes;
  if (skip != 0) munmap(base, skip);
  munmap(base + skip + wanted, kHugeBytes - skip);
  base += skip;
  // A huge page would make resident what was never touched.
  madvise(base, wanted, MADV_NOHUGEPAGE);

  const Tables tables{.info = map_table<PageInfo>(wanted / kPageBytes),
                      .extents = map_table<Extent>(wanted / kExtentBytes),
                      .blocks = map_table<Block>(block_count(wanted))};
  if (tables.info == nullptr || tables.extents == nullptr || tables.blocks == nullptr) {
    return fail("cannot reserve address space for the tables of the cache's pages");
  }
  return std::unique_ptr<PagePool>(new PagePool(base, wanted, tables, options));
}

PagePool::PagePool(std::byte* base, std::size_t address_bytes, const Tables& tables,
                   const PagePoolOptions& options)
    : base_(base),
      page_count_(address_bytes / kPageBytes),
      info_(tables.info),
      extents_(tables.extents),
      blocks_(tables.blocks),
      idle_max_(options.idle_bytes_max),
      limit_(options.limit_bytes) {
  buckets_.fill(kNone);
}

PagePool::~PagePool() {
  {
    MutexLock lock(mutex_);
    unpoison(base_, extents_used_ * kExtentBytes);
  }
  munmap(base_, page_count_ * kPageBytes);
  munmap(info_, page_count_ * sizeof(PageInfo));
  munmap(extents_, page_count_ / kExtentPages * sizeof(Extent));
  munmap(blocks_, block_count(page_count_ * kPageBytes) * sizeof(Block));
}

std::uint64_t PagePool::idle_bytes() const {
  MutexLock lock(mutex_);
  return idle_;
}

PagePool::Run PagePool::allocate(std::uint32_t pages) {
  ENCORE_CHECK(pages >= 1 && pages <= kExtentPages, "a run is of 1 to 16 pages");
  MutexLock lock(mutex_);
  if (pages == 1 && idle_newest_ != kNone) {
    const PageIndex page = idle_newest_;
    take(page, 1);
    return {page, 1};
  }
  const auto fits = [this](std::uint32_t length) ENCORE_NO_THREAD_SAFETY_ANALYSIS {
    while (length <= kExtentPages && buckets_[length] == kNone) ++length;
    return length;
  };
  std::uint32_t bucket = fits(pages);
  if (bucket > kExtentPages && add_extent()) bucket = kExtentPages;
  // Out of address space: the longest run there is.
  while (bucket > kExtentPages && pages > 1) bucket = fits(--pages);
  if (bucket > kExtentPages) return {};
  const std::uint32_t extent = buckets_[bucket];
  const int at = find_run(extents_[extent].free, pages);
  const auto first = static_cast<PageIndex>(extent * kExtentPages + static_cast<std::uint32_t>(at));
  take(first, pages);
  return {first, pages};
}

bool PagePool::add_extent() {
  const std::uint32_t extent = extents_used_;
  if (extent >= page_count_ / kExtentPages) return false;
  if (mprotect(base_ + extent * kExtentBytes, kExtentBytes, PROT_READ | PROT_WRITE) != 0) {
    return false;
  }
  ++extents_used_;
  extents_[extent] = {0xFFFF, 0, kNone, kNone};
  rank(extent);
  return true;
}

void PagePool::take(PageIndex first, std::uint32_t pages) {
  for (PageIndex page = first; page < first + pages; ++page) {
    if (info_[page].idle) unlink_idle(page);
  }
  Extent& extent = extents_[first / kExtentPages];
  const std::uint16_t mask = run_mask(first % kExtentPages, pages);
  extent.free = static_cast<std::uint16_t>(extent.free & ~mask);
  rank(first / kExtentPages);
}

void PagePool::give(Run run) {
  Extent& extent = extents_[run.first / kExtentPages];
  const std::uint16_t mask = run_mask(run.first % kExtentPages, run.pages);
  ENCORE_CHECK((extent.free & mask) == 0, "a page of the arena is freed twice");
  extent.free = static_cast<std::uint16_t>(extent.free | mask);
  for (PageIndex page = run.first; page < run.first + run.pages; ++page) {
    if (info_[page].resident != 0) link_idle(page);
  }
  rank(run.first / kExtentPages);
}

// Moves the extent into the bucket of its longest free run; bucket 0 is not kept.
void PagePool::rank(std::uint32_t index) {
  Extent& extent = extents_[index];
  const std::uint32_t longest = longest_run(extent.free);
  if (longest == extent.longest_free) return;
  if (extent.longest_free != 0) {
    if (extent.next != kNone) extents_[extent.next].previous = extent.previous;
    if (extent.previous != kNone) {
      extents_[extent.previous].next = extent.next;
    } else {
      buckets_[extent.longest_free] = extent.next;
    }
  }
  extent.longest_free = static_cast<std::uint8_t>(longest);
  if (longest == 0) return;
  extent.previous = kNone;
  extent.next = buckets_[longest];
  if (extent.next != kNone) extents_[extent.next].previous = index;
  buckets_[longest] = index;
}

void PagePool::free(Run run) {
  {
    MutexLock lock(mutex_);
    give(run);
    if (idle_ <= idle_max_) return;
  }
  shed(idle_max_);
}

void PagePool::link_idle(PageIndex page) {
  PageInfo& info = info_[page];
  info.idle = true;
  info.previous = kNone;
  info.next = idle_newest_;
  if (idle_newest_ != kNone) {
    info_[idle_newest_].previous = page;
  } else {
    idle_oldest_ = page;
  }
  idle_newest_ = page;
  idle_ += info.resident * kOsPageBytes;
}

void PagePool::unlink_idle(PageIndex page) {
  PageInfo& info = info_[page];
  info.idle = false;
  if (info.next != kNone) {
    info_[info.next].previous = info.previous;
  } else {
    idle_oldest_ = info.previous;
  }
  if (info.previous != kNone) {
    info_[info.previous].next = info.next;
  } else {
    idle_newest_ = info.next;
  }
  idle_ -= info.resident * kOsPageBytes;
}

// The pages are taken out of the pool for the system call, so that no lock is held over it.
void PagePool::shed(std::uint64_t bytes) {
  for (;;) {
    PageIndex page;
    {
      MutexLock lock(mutex_);
      if (idle_ <= bytes) return;
      page = idle_oldest_;
      take(page, 1);
    }
    discard(page, 0);
    MutexLock lock(mutex_);
    give({page, 1});
  }
}

void PagePool::discard(PageIndex page, std::size_t resident) {
  PageInfo& info = info_[page];
  if (info.resident <= resident) return;
  const std::size_t bytes = (info.resident - resident) * kOsPageBytes;
  {
    MutexLock lock(huge_mutex_);
    Block& block = blocks_[page / kHugePages];
    if (info.resident == kOsPagesPerPage) {
      block.whole_pages.fetch_sub(1, std::memory_order_relaxed);
    }
    if (block.backing == Backing::kHuge) {
      // Else the system would fill the hole again when it next tidies up.
      madvise(block_data(page / kHugePages), kHugeBytes, MADV_NOHUGEPAGE);
      huge_.fetch_sub(kHugeBytes, std::memory_order_relaxed);
    }
    block.backing = Backing::kSmall;
    madvise(data(page) + resident * kOsPageBytes, bytes, MADV_DONTNEED);
  }
  info.resident = static_cast<std::uint8_t>(resident);
  held_.fetch_sub(bytes, std::memory_order_relaxed);
}

// --- Huge pages ----------------------------------------------------------------------------------

bool PagePool::back_with_huge_page(std::size_t block) {
  // Immediately, and for these bytes alone: left to itself the system would take any 2 MiB of which
  // one page is resident.
  if (madvise(block_data(block), kHugeBytes, MADV_HUGEPAGE) == 0) {
    if (madvise(block_data(block), kHugeBytes, kCollapse) == 0) return true;
    // A system that does not know the call will never know it; else there may be no huge page just
    // now.
    huge_refused_ = errno == EINVAL;
    madvise(block_data(block), kHugeBytes, MADV_NOHUGEPAGE);
    return false;
  }
  huge_refused_ = true;
  return false;
}

std::size_t PagePool::back_with_huge_pages(std::size_t blocks_max) {
  std::size_t blocks_used = 0;
  {
    MutexLock lock(mutex_);
    blocks_used = block_count(extents_used_ * kExtentBytes);
  }
  MutexLock lock(huge_mutex_);
  std::size_t backed = 0;
  const std::size_t looked_at = std::min(kBlocksLookedAt, blocks_used);
  for (std::size_t i = 0; i < looked_at && backed < blocks_max && !huge_refused_; ++i) {
    if (next_block_ >= blocks_used) next_block_ = 0;
    const std::size_t number = next_block_++;
    Block& block = blocks_[number];
    if (block.backing != Backing::kSmall) continue;
    if (block.whole_pages.load(std::memory_order_relaxed) != kHugePages) continue;
    block.backing = back_with_huge_page(number) ? Backing::kHuge : Backing::kRefused;
    if (block.backing != Backing::kHuge) break;
    huge_.fetch_add(kHugeBytes, std::memory_order_relaxed);
    ++backed;
  }
  return backed;
}

bool PagePool::commit_more(Run run, std::size_t bytes, std::uint64_t spared) {
  const std::size_t wanted = os_pages(bytes);
  constexpr std::size_t kPerPage = kOsPagesPerPage;
  ENCORE_CHECK(wanted <= run.pages * kPerPage, "more is committed than a run has");
  const auto target = [&](std::uint32_t page) {
    const std::size_t before = page * kPerPage;
    return wanted <= before ? 0 : std::min(wanted - before, kPerPage);
  };
  std::size_t more = 0;
  for (std::uint32_t i = 0; i < run.pages; ++i) {
    const std::size_t resident = info_[run.first + i].resident;
    if (resident < target(i)) more += (target(i) - resident) * kOsPageBytes;
  }
  if (more == 0) return true;
  const std::uint64_t allowed = limit_bytes() - std::min(spared, limit_bytes());
  if (held_.fetch_add(more, std::memory_order_relaxed) + more > allowed) {
    shed(0);
    if (held_bytes() > allowed) {
      held_.fetch_sub(more, std::memory_order_relaxed);
      return false;
    }
  }
  for (std::uint32_t i = 0; i < run.pages; ++i) {
    PageInfo& info = info_[run.first + i];
    if (target(i) <= info.resident) continue;
    info.resident = static_cast<std::uint8_t>(target(i));
    if (info.resident == kPerPage) {
      blocks_[(run.first + i) / kHugePages].whole_pages.fetch_add(1, std::memory_order_relaxed);
    }
  }
  return true;
}

void PagePool::trim(Run run, std::size_t bytes) {
  constexpr std::size_t kPerPage = kOsPagesPerPage;
  const std::size_t kept = os_pages(bytes);
  for (std::uint32_t i = 0; i < run.pages; ++i) {
    const std::size_t before = i * kPerPage;
    discard(run.first + i, kept <= before ? 0 : std::min(kept - before, kPerPage));
  }
}

}  // namespace encore::store
