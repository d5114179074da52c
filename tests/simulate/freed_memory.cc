// What is deleted is overwritten, so that who uses it still is found without a sanitizer, whose own
// doing this is where there is one. glibc's M_PERTURB does not reach what its caches of a thread
// take, which is nearly all that is small, and writes all of what is large, twice.
#include "base/sanitizers.h"

#if !defined(ENCORE_ADDRESS_SANITIZER) && !defined(ENCORE_THREAD_SANITIZER)

#include <malloc.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <new>

namespace {

// Objects are smaller; of buffers the beginning will do.
constexpr std::size_t kOverwrittenMax = 4096;
constexpr int kFreed = 0xa5;

void give_back(void* memory) noexcept {
  if (memory == nullptr) return;
  std::memset(memory, kFreed, std::min(malloc_usable_size(memory), kOverwrittenMax));
  std::free(memory);
}

}  // namespace

void operator delete(void* memory) noexcept { give_back(memory); }
void operator delete(void* memory, std::size_t) noexcept { give_back(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { give_back(memory); }
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept { give_back(memory); }

#endif
