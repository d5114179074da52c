// Huge pages under the arena: what is full gets them, and nothing becomes resident or is lost by
// it.
#include <cstring>
#include <fstream>
#include <string>
#include <vector>

#include "base/units.h"
#include "proxy/store/page_pool.h"
#include "tests/catch.h"

namespace encore::store {
namespace {

// Reads the process's own accounting: its memory in huge pages, or the resident bytes from `from`
// on.
std::uint64_t of_mapping(const std::byte* from, std::size_t bytes, const std::string& name) {
  std::ifstream file("/proc/self/smaps");
  std::string line;
  std::uint64_t sum = 0;
  bool within = false;
  while (std::getline(file, line)) {
    std::uintptr_t first = 0;
    std::uintptr_t last = 0;
    if (std::sscanf(line.c_str(), "%lx-%lx ", &first, &last) == 2) {
      const auto begin = reinterpret_cast<std::uintptr_t>(from);
      within = first < begin + bytes && last > begin;
    } else if (within && line.starts_with(name + ":")) {
      sum += std::stoull(line.substr(name.size() + 1)) * kKiB;
    }
  }
  return sum;
}

constexpr std::size_t kBlocks = 3;

// Blocks of 2 MiB, page by page, each byte of a page telling which one it is.
struct Filled {
  Filled() : pool(std::move(*PagePool::create({64 * kMiB, 0, 64 * kMiB}))) {
    for (std::uint32_t i = 0; i < kBlocks * kHugePages; ++i) add(i);
  }
  void add(std::uint32_t number) {
    const auto run = pool->allocate(1);
    REQUIRE(run.pages == 1);
    REQUIRE(pool->commit(run, kPageBytes));
    std::memset(pool->data(run.first), static_cast<int>(number % 251), kPageBytes);
    pages.push_back(run);
  }
  bool is_whole(std::uint32_t number) const {
    const std::byte* data = pool->data(pages[number].first);
    for (std::size_t i = 0; i < kPageBytes; ++i) {
      if (data[i] != static_cast<std::byte>(number % 251)) return false;
    }
    return true;
  }

  std::unique_ptr<PagePool> pool;
  std::vector<PagePool::Run> pages;
};

// Not every system has them.
void without_huge_pages(const PagePool& pool) {
  WARN("this system has no huge pages to give");
  CHECK(pool.huge_bytes() == 0);
}

}  // namespace

TEST_CASE("what is full is backed by huge pages, a bounded part at a time", "[store]") {
  Filled filled;
  PagePool& pool = *filled.pool;
  if (pool.back_with_huge_pages(1) == 0) return without_huge_pages(pool);
  CHECK(pool.huge_bytes() == kHugeBytes);
  CHECK(pool.back_with_huge_pages(kBlocks) == kBlocks - 1);
  CHECK(pool.back_with_huge_pages(kBlocks) == 0);
  CHECK(pool.huge_bytes() == kBlocks * kHugeBytes);
  CHECK(of_mapping(pool.data(0), kBlocks * kHugeBytes, "AnonHugePages") == kBlocks * kHugeBytes);
  CHECK(pool.held_bytes() == kBlocks * kHugeBytes);
  for (std::uint32_t i = 0; i < filled.pages.size(); ++i) CHECK(filled.is_whole(i));
}

TEST_CASE("what is given back of a huge page is given back to the system for good", "[store]") {
  Filled filled;
  PagePool& pool = *filled.pool;
  if (pool.back_with_huge_pages(kBlocks) == 0) return without_huge_pages(pool);
  const std::byte* begin = pool.data(0);
  pool.trim(filled.pages[3], kOsPageBytes);
  pool.free(filled.pages[40]);
  const std::size_t back = kPageBytes - kOsPageBytes + kPageBytes;
  CHECK(pool.held_bytes() == kBlocks * kHugeBytes - back);
  CHECK(pool.huge_bytes() == (kBlocks - 2) * kHugeBytes);
  // Holes are not filled by asking again.
  CHECK(pool.back_with_huge_pages(kBlocks) == 0);
  CHECK(of_mapping(begin, kBlocks * kHugeBytes, "Rss") == pool.held_bytes());
  for (std::uint32_t i = 0; i < filled.pages.size(); ++i) {
    if (i != 3 && i != 40) CHECK(filled.is_whole(i));
  }
  // A block that is full again gets them again.
  filled.add(40);
  CHECK(filled.pages.back().first == filled.pages[40].first);
  CHECK(pool.back_with_huge_pages(kBlocks) == 1);
  CHECK(pool.huge_bytes() == (kBlocks - 1) * kHugeBytes);
}

TEST_CASE("what is not full gets no huge page", "[store]") {
  auto made = PagePool::create({64 * kMiB, kMiB, 64 * kMiB});
  REQUIRE(made);
  PagePool& pool = **made;
  CHECK(pool.back_with_huge_pages(1) == 0);
  for (std::uint32_t i = 0; i < kHugePages; ++i) {
    const auto run = pool.allocate(1);
    // One 4-KiB page is missing in the last one.
    REQUIRE(pool.commit(run, i + 1 < kHugePages ? kPageBytes : kPageBytes - kOsPageBytes));
  }
  CHECK(pool.back_with_huge_pages(1) == 0);
  CHECK(pool.huge_bytes() == 0);
  CHECK(pool.held_bytes() == kHugeBytes - kOsPageBytes);
}

}  // namespace encore::store
