// prefetch(): asks for the cache line at an address, which need not be valid.
#pragma once

namespace encore {

// GCC takes a function that only prefetches for one without effect, and drops calls of it. It keeps
// an asm, which is no instruction here.
[[gnu::always_inline]] inline void prefetch(const void* address) {
  __builtin_prefetch(address);
  asm volatile("");
}

}  // namespace encore
