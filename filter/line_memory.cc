#include "filter/line_memory.h"

#include <sys/mman.h>

#include <cstdlib>
#include <cstring>
#include <string>

namespace encore::filter {
namespace {

constexpr std::size_t kAlignment = 2 * kLineBytes;  // a pair of lines never straddles
constexpr std::size_t kHugePage = std::size_t{2} << 20U;

// Anonymous memory aligned to a huge page: mapped with room to spare, the ends given back.
void* map_huge(std::size_t bytes) {
  void* raw = mmap(nullptr, bytes + kHugePage, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (raw == MAP_FAILED) {
    return nullptr;
  }
  auto* start = static_cast<std::byte*>(raw);
  const std::size_t before =
      (kHugePage - reinterpret_cast<std::uintptr_t>(start) % kHugePage) % kHugePage;
  if (before != 0) {
    munmap(start, before);
  }
  if (before != kHugePage) {
    munmap(start + before + bytes, kHugePage - before);
  }
  // A refusal costs speed, not correctness.
  static_cast<void>(madvise(start + before, bytes, MADV_HUGEPAGE));
  return start + before;
}

constexpr std::size_t round_up(std::size_t value, std::size_t unit) {
  return (value + unit - 1) / unit * unit;
}

}  // namespace

Result<LineMemory> LineMemory::create(std::uint64_t lines) {
  const auto refuse = [&] {
    return fail("no memory for a filter of " + std::to_string(lines) + " lines of 64 bytes");
  };
  // Far above what checked() parameters ask for, and no product below can overflow.
  if (lines == 0 || lines > (std::uint64_t{1} << 40U)) {
    return refuse();
  }
  LineMemory memory;
  const std::size_t bytes = lines * kLineBytes;
  if (bytes >= kHugePage) {
    memory.size_bytes_ = round_up(bytes, kHugePage);
    memory.words_ = static_cast<std::uint64_t*>(map_huge(memory.size_bytes_));
    memory.mapped_ = true;
  } else {
    memory.size_bytes_ = round_up(bytes, kAlignment);
    memory.words_ = static_cast<std::uint64_t*>(std::aligned_alloc(kAlignment, memory.size_bytes_));
    if (memory.words_ != nullptr) {
      std::memset(memory.words_, 0, memory.size_bytes_);
    }
  }
  if (memory.words_ == nullptr) {
    return refuse();
  }
  memory.base_ = memory.words_;
  return memory;
}

LineMemory LineMemory::adopt(const Mapping& mapping) {
  LineMemory memory;
  memory.base_ = mapping.base;
  memory.words_ =
      reinterpret_cast<std::uint64_t*>(static_cast<std::byte*>(mapping.base) + mapping.words_at);
  memory.size_bytes_ = mapping.size_bytes;
  memory.mapped_ = true;
  return memory;
}

LineMemory::~LineMemory() {
  if (words_ == nullptr) {
    return;
  }
  if (mapped_) {
    munmap(base_, size_bytes_);
  } else {
    std::free(base_);
  }
}

}  // namespace encore::filter
