#include "proxy/transfer/lamport_clock.h"

#include <thread>
#include <vector>

#include "tests/catch.h"

namespace encore::server {
namespace {

MonotonicTime at_nanosecond(int nanoseconds) { return MonotonicTime(Nanoseconds(nanoseconds)); }

TEST_CASE("the latest moment never goes back", "[server][transfer]") {
  LamportClock latest;
  CHECK(latest.get() == MonotonicTime{});
  latest.note(at_nanosecond(5));
  CHECK(latest.get() == at_nanosecond(5));
  latest.note(at_nanosecond(3));
  CHECK(latest.get() == at_nanosecond(5));
  latest.note(at_nanosecond(5));
  latest.note(at_nanosecond(6));
  CHECK(latest.get() == at_nanosecond(6));
}

TEST_CASE("of moments that threads note at once the latest stays", "[server][transfer]") {
  constexpr int kThreads = 4;
  constexpr int kNotes = 20'000;
  LamportClock latest;
  bool went_back = false;
  std::vector<std::thread> threads;
  threads.reserve(kThreads);
  for (int thread = 0; thread < kThreads; ++thread) {
    threads.emplace_back([&latest, thread] {
      for (int i = 1; i <= kNotes; ++i) latest.note(at_nanosecond(i * kThreads + thread));
    });
  }
  MonotonicTime before = latest.get();
  while (before < at_nanosecond(kNotes * kThreads)) {
    const MonotonicTime now = latest.get();
    went_back = went_back || now < before;
    before = now;
  }
  for (std::thread& thread : threads) thread.join();
  CHECK_FALSE(went_back);
  CHECK(latest.get() == at_nanosecond(kNotes * kThreads + kThreads - 1));
}

}  // namespace
}  // namespace encore::server
