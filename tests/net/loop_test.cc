#include "proxy/net/loop.h"

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <ctime>
#include <thread>
#include <vector>

#include "proxy/net/signals.h"
#include "proxy/net/timer.h"
#include "tests/catch.h"
#include "tests/net/net_test_support.h"

namespace encore::net {

TEST_CASE("what is posted from other threads runs on the loop, in each poster's order",
          "[net][loop]") {
  TestLoop loop;
  constexpr int kThreads = 4;
  constexpr int kEach = 2000;
  std::vector<int> last(kThreads, -1);
  int ran = 0;
  const auto loop_thread = std::this_thread::get_id();
  bool in_order = true;
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < kEach; ++i) {
        loop->post([&, t, i] {
          const auto at = static_cast<std::size_t>(t);
          in_order = in_order && last[at] == i - 1 && std::this_thread::get_id() == loop_thread;
          last[at] = i;
          ++ran;
        });
      }
    });
  }
  loop.run_until([&] { return ran == kThreads * kEach; });
  for (auto& thread : threads) thread.join();
  CHECK(in_order);
}

TEST_CASE("two loops in two threads pass a message back and forth", "[net][loop]") {
  TestLoop here;
  auto there = Loop::create();
  REQUIRE(there);
  Loop& other = **there;
  int count = 0;
  std::function<void()> ping = [&] {
    if (++count == 1000) {
      other.stop();
      return;
    }
    other.post([&] { here->post([&] { ping(); }); });
  };
  std::thread thread([&] { other.run(); });
  here->post([&] { ping(); });
  here.run_until([&] { return count == 1000; });
  thread.join();
}

TEST_CASE("what was posted and never run is destroyed with the loop", "[net][loop]") {
  auto held = std::make_shared<int>(1);
  {
    TestLoop loop;
    loop->post([held] {});
    loop->defer([held] {});
    CHECK(held.use_count() == 3);
  }
  CHECK(held.use_count() == 1);
}

TEST_CASE("a stop that came before the run lets one turn pass", "[net][loop]") {
  TestLoop loop;
  loop->stop();
  loop->run();
  bool posted = false;
  loop->post([&] { posted = true; });
  loop->stop();
  loop->run();
  CHECK(posted);
}

TEST_CASE("what is deferred runs in order at the end of the turn, what it defers in the next",
          "[net][loop]") {
  TestLoop loop;
  std::string order;
  loop->post([&] {
    loop->defer([&] {
      order += 'b';
      loop->defer([&] { order += 'd'; });
    });
    loop->defer([&] { order += 'c'; });
    order += 'a';
  });
  loop.run_turns(1);
  CHECK(order == "abc");
  loop.run_turns(1);
  CHECK(order == "abcd");
}

TEST_CASE("a deferred call comes once a turn, not after cancelling, not after its end",
          "[net][loop]") {
  TestLoop loop;
  int calls = 0;
  auto deferred = std::make_unique<Deferred>(*loop, [&] { ++calls; });
  deferred->schedule();
  deferred->schedule();
  CHECK(deferred->is_scheduled());
  loop.run_turns(3);
  CHECK(calls == 1);
  deferred->schedule();
  deferred->cancel();
  loop.run_turns(2);
  CHECK(calls == 1);
  deferred->schedule();
  deferred.reset();
  loop.run_turns(2);
  CHECK(calls == 1);
}

TEST_CASE("a deferred call may cancel another of the same turn and destroy itself", "[net][loop]") {
  TestLoop loop;
  bool other_ran = false;
  std::unique_ptr<Deferred> first;
  auto other = std::make_unique<Deferred>(*loop, [&] { other_ran = true; });
  first = std::make_unique<Deferred>(*loop, [&] {
    other.reset();
    first.reset();
  });
  first->schedule();
  other->schedule();
  loop.run_turns(2);
  CHECK(first == nullptr);
  CHECK_FALSE(other_ran);
}

TEST_CASE("a deferred call that schedules itself leaves turns for others", "[net][loop]") {
  TestLoop loop;
  int calls = 0;
  std::unique_ptr<Deferred> again;
  again = std::make_unique<Deferred>(*loop, [&] {
    ++calls;
    again->schedule();
  });
  again->schedule();
  loop.run_turns(3);
  CHECK(calls == 3);
}

TEST_CASE("a timer fires once, a periodic one again, a cancelled one never", "[net][loop]") {
  using namespace std::chrono_literals;
  TestLoop loop;
  int once = 0;
  int periodic = 0;
  int cancelled = 0;
  Timer first(*loop, [&] { ++once; });
  Timer second(*loop, [&] { ++periodic; });
  Timer third(*loop, [&] { ++cancelled; });
  first.start(1ms);
  second.start_periodic(1ms);
  third.start(1ms);
  third.cancel();
  CHECK(first.is_running());
  CHECK_FALSE(third.is_running());
  loop.run_until([&] { return periodic >= 3; });
  CHECK(once == 1);
  CHECK_FALSE(first.is_running());
  CHECK(cancelled == 0);
  first.start(0ns);
  loop.run_until([&] { return once == 2; });
}

TEST_CASE("a timer does not fire early, neither once nor again and again", "[net][loop]") {
  using namespace std::chrono_literals;
  TestLoop loop;
  for (int round = 0; round < 30; ++round) {
    bool fired = false;
    const MonotonicTime start = monotonic_now();
    Timer timer(*loop, [&] {
      CHECK(monotonic_now() - start >= 5ms);
      fired = true;
    });
    timer.start(5ms);
    loop.run_until([&] { return fired; });
  }
  int fired = 0;
  const MonotonicTime start = monotonic_now();
  Timer periodic(*loop, [&] { CHECK(monotonic_now() - start >= ++fired * 3ms); });
  periodic.start_periodic(3ms);
  loop.run_until([&] { return fired >= 30; });
}

TEST_CASE("a timer that is started late in a turn counts from there", "[net][loop]") {
  using namespace std::chrono_literals;
  TestLoop loop;
  bool fired = false;
  MonotonicTime start{};
  Timer timer(*loop, [&] {
    CHECK(monotonic_now() - start >= 20ms);
    fired = true;
  });
  loop->post([&] {
    const MonotonicTime turn = monotonic_now();
    while (monotonic_now() - turn < 15ms) {
    }
    start = monotonic_now();
    timer.start(20ms);
  });
  loop.run_until([&] { return fired; });
}

TEST_CASE("a timer may destroy itself or start anew in its function", "[net][loop]") {
  TestLoop loop;
  int calls = 0;
  std::unique_ptr<Timer> timer;
  timer = std::make_unique<Timer>(*loop, [&] {
    if (++calls < 3) {
      timer->start(Nanoseconds(1));
    } else {
      timer.reset();
    }
  });
  timer->start(Nanoseconds(1));
  loop.run_until([&] { return timer == nullptr; });
  CHECK(calls == 3);
}

TEST_CASE("time stands still within a turn and moves between turns", "[net][loop]") {
  TestLoop loop;
  MonotonicTime first{};
  WallTime wall{};
  int seen = 0;
  loop->post([&] {
    first = loop->now();
    wall = loop->wall_now();
    while (monotonic_now() == first) {
    }
    CHECK(loop->now() == first);
    CHECK(loop->wall_now() == wall);
    loop->defer([&] {
      CHECK(loop->now() == first);
      ++seen;
    });
  });
  loop.run_turns(1);
  CHECK(seen == 1);
  loop.run_turns(1);
  CHECK(loop->now() > first);
}

TEST_CASE("the HTTP date is what the C library makes of the same second", "[net][loop]") {
  TestLoop loop;
  const std::string date(loop->http_date());
  const auto second = static_cast<std::time_t>(
      std::chrono::floor<std::chrono::seconds>(loop->wall_now().time_since_epoch()).count());
  std::tm parts{};
  gmtime_r(&second, &parts);
  char expected[64];
  std::strftime(expected, sizeof expected, "%a, %d %b %Y %H:%M:%S GMT", &parts);
  CHECK(date == expected);
}

TEST_CASE("signals come on the loop and go back to what they did", "[net][loop]") {
  TestLoop loop;
  struct sigaction before{};
  struct sigaction after{};
  ::sigaction(SIGUSR1, nullptr, &before);
  int got = 0;
  {
    Signals signals(*loop, {SIGUSR1, SIGHUP}, [&](int signal) { got = signal; });
    ::raise(SIGUSR1);
    loop.run_until([&] { return got == SIGUSR1; });
    ::raise(SIGHUP);
    loop.run_until([&] { return got == SIGHUP; });
  }
  ::sigaction(SIGUSR1, nullptr, &after);
  CHECK(before.sa_handler == after.sa_handler);
  ::sigaction(SIGPIPE, nullptr, &after);
  CHECK(after.sa_handler == SIG_IGN);
}

TEST_CASE("a turn's time follows what another clock has shown, and never goes back",
          "[net][loop]") {
  TestLoop loop;
  const MonotonicTime begin = loop->now();
  loop->catch_up(begin - std::chrono::seconds(1));
  CHECK(loop->now() == begin);
  loop->catch_up(begin + std::chrono::nanoseconds(1));
  CHECK(loop->now() == begin + std::chrono::nanoseconds(1));
  loop->catch_up(begin);
  CHECK(loop->now() == begin + std::chrono::nanoseconds(1));
}

TEST_CASE("signals that are held back wait for who takes them, and are held back after him",
          "[net][loop]") {
  TestLoop loop;
  sigset_t before;
  ::pthread_sigmask(SIG_SETMASK, nullptr, &before);
  hold_signals({SIGUSR1, SIGHUP});
  // Were they not held back, these would end the program.
  ::raise(SIGUSR1);
  ::raise(SIGHUP);
  std::vector<int> got;
  {
    Signals signals(*loop, {SIGUSR1, SIGHUP}, [&](int signal) { got.push_back(signal); });
    loop.run_until([&] { return got.size() == 2; });
    std::ranges::sort(got);
    CHECK(got == std::vector<int>{SIGHUP, SIGUSR1});
  }
  ::raise(SIGUSR1);
  {
    Signals signals(*loop, {SIGUSR1}, [&](int signal) { got.push_back(signal); });
    loop.run_until([&] { return got.size() == 3; });
    CHECK(got.back() == SIGUSR1);
  }
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

}  // namespace encore::net
