#include "base/mutex.h"

#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <thread>
#include <vector>

#include "tests/catch.h"

namespace encore {
namespace {

struct Guarded {
  Mutex mutex;
  std::uint64_t one ENCORE_GUARDED_BY(mutex) = 0;
  std::uint64_t other ENCORE_GUARDED_BY(mutex) = 0;
};

template <typename Work>
void on_threads(int threads, Work work) {
  std::vector<std::jthread> running;
  for (int i = 0; i < threads; ++i) running.emplace_back(work);
}

}  // namespace

TEST_CASE("a mutex lets one thread at a time, and forgets none that waits", "[base]") {
  constexpr int kThreads = 8;
  constexpr std::uint64_t kTurns = 20'000;
  Guarded guarded;
  std::uint64_t torn = 0;
  on_threads(kThreads, [&] {
    for (std::uint64_t i = 0; i < kTurns; ++i) {
      const MutexLock lock(guarded.mutex);
      if (guarded.one != guarded.other) ++torn;
      ++guarded.one;
      // The others find it taken, and sleep.
      if (i % 64 == 0) std::this_thread::yield();
      ++guarded.other;
    }
  });
  const MutexLock lock(guarded.mutex);
  CHECK(torn == 0);
  CHECK(guarded.one == kThreads * kTurns);
  CHECK(guarded.other == kThreads * kTurns);
}

TEST_CASE("a mutex that is taken is tried in vain", "[base]") {
  Mutex mutex;
  const auto try_elsewhere = [&] {
    bool taken = false;
    on_threads(1, [&] {
      if (mutex.try_lock()) {
        taken = true;
        mutex.unlock();
      }
    });
    return taken;
  };
  {
    const MutexLock lock(mutex);
    CHECK_FALSE(try_elsewhere());
  }
  CHECK(try_elsewhere());
}

TEST_CASE("a condition is waited for with a mutex", "[base]") {
  Mutex mutex;
  std::condition_variable_any changed;
  int turn = 0;
  constexpr int kTurns = 2'000;
  const auto play = [&](int mine) {
    for (int i = 0; i < kTurns; ++i) {
      std::unique_lock<Mutex> lock(mutex);
      changed.wait(lock, [&] { return turn % 2 == mine; });
      ++turn;
      changed.notify_all();
    }
  };
  {
    const std::jthread one([&] { play(0); });
    const std::jthread other([&] { play(1); });
  }
  CHECK(turn == 2 * kTurns);
}

}  // namespace encore
