// Deleted memory is overwritten, so that its later use is found without a sanitizer, which does
// this itself where there is one.
//
// glibc's M_PERTURB does not reach the memory that its caches of a thread take, which is nearly all
// that is small, and writes all of what is large, twice.
//
// Objects of the size of a connection wait before their memory is used again: a use of one that has
// just gone reads nothing sensible, and a write to one ends the run.
#include "base/sanitizers.h"

#if !defined(ENCORE_ADDRESS_SANITIZER) && !defined(ENCORE_THREAD_SANITIZER)

#include <malloc.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>
#include <utility>

namespace {

// Objects are smaller; of buffers the beginning will do.
constexpr std::size_t kOverwrittenMax = 4096;
constexpr int kFreed = 0xa5;

// Smaller ones are too many for it, and larger ones are buffers.
constexpr std::size_t kWaitsMin = 512;
// A turn of a worker ends far fewer.
constexpr std::size_t kWaiting = 128;

struct Freed {
  unsigned char* memory = nullptr;
  std::size_t bytes = 0;
};
std::array<Freed, kWaiting> waiting;  // a ring
std::size_t next_waiting = 0;

void let_go(const Freed& freed) noexcept {
  if (freed.memory == nullptr) return;
  const auto* const end = freed.memory + freed.bytes;
  if (std::any_of(static_cast<const unsigned char*>(freed.memory), end,
                  [](unsigned char byte) { return byte != kFreed; })) {
    std::fputs("memory was written to after it was deleted\n", stderr);
    std::abort();
  }
  std::free(freed.memory);
}

void give_back(void* memory) noexcept {
  if (memory == nullptr) return;
  const std::size_t bytes = malloc_usable_size(memory);
  std::memset(memory, kFreed, std::min(bytes, kOverwrittenMax));
  if (bytes < kWaitsMin || bytes > kOverwrittenMax) return std::free(memory);
  let_go(std::exchange(waiting[next_waiting], {static_cast<unsigned char*>(memory), bytes}));
  next_waiting = (next_waiting + 1) % kWaiting;
}

}  // namespace

void operator delete(void* memory) noexcept { give_back(memory); }
void operator delete(void* memory, std::size_t) noexcept { give_back(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { give_back(memory); }
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept { give_back(memory); }

#endif
