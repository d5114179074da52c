#include "base/mutex.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace encore {
namespace {

// Sleeps unless the word is no longer `expected`. Wakes now and then for nothing.
void sleep_while(std::atomic<std::uint32_t>& word, std::uint32_t expected) {
  static_assert(sizeof(word) == sizeof(std::uint32_t));
  ::syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, expected, nullptr, nullptr, 0);
}

}  // namespace

void Mutex::lock_slowly() {
  // From here on it says that it is awaited, also where this thread gets it: others may sleep, and
  // one wake too many costs less than one too few.
  while (state_.exchange(kHeldAndAwaited, std::memory_order_acquire) != kFree) {
    sleep_while(state_, kHeldAndAwaited);
  }
}

void Mutex::wake_one() {
  ::syscall(SYS_futex, &state_, FUTEX_WAKE_PRIVATE, 1, nullptr, nullptr, 0);
}

}  // namespace encore
