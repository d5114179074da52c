// Tells the address sanitizer which bytes nobody may touch: what is free in the arena, and what
// waits to be used again (base/recycled.h). Nothing in other builds.
#pragma once

#include "base/sanitizers.h"

#if defined(ENCORE_ADDRESS_SANITIZER)
#include <sanitizer/asan_interface.h>
#endif

#include <cstddef>

namespace encore {

inline void poison([[maybe_unused]] const void* address, [[maybe_unused]] std::size_t bytes) {
#if defined(ENCORE_ADDRESS_SANITIZER)
  __asan_poison_memory_region(address, bytes);
#endif
}

inline void unpoison([[maybe_unused]] const void* address, [[maybe_unused]] std::size_t bytes) {
#if defined(ENCORE_ADDRESS_SANITIZER)
  __asan_unpoison_memory_region(address, bytes);
#endif
}

}  // namespace encore
