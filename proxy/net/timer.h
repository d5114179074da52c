// Timer and Deferred: calls that come later, and do not come once their handle is gone. Confined
// to their loop's thread.
#pragma once

#include "base/time.h"
#include "proxy/net/event.h"
#include "proxy/net/loop.h"

namespace encore::net {

// Calls a function after a time, once or again and again. About 200 bytes and a place in the
// loop's heap: for an owner of many connections that sweeps them, not for each connection.
class Timer {
 public:
  // Does not start it. `loop` is borrowed.
  Timer(Loop& loop, Loop::Function function);
  Timer(const Timer&) = delete;
  Timer& operator=(const Timer&) = delete;
  // Cancels. The function may destroy its own timer.
  ~Timer();

  // Calls once, never before `delay` has passed since this very moment, however late in the loop's
  // turn it is; replaces what was started before.
  void start(Nanoseconds delay);
  // Calls each `interval`, from one to the next as exactly. Calls missed because the loop was busy
  // are not made up for.
  void start_periodic(Nanoseconds interval);
  void cancel();
  bool is_running() const { return running_; }

 private:
  static void on_event(int descriptor, short what, void* context);
  void restart(Nanoseconds delay);

  Loop& loop_;
  Loop::Function function_;
  bool running_ = false;
  Nanoseconds interval_{};  // zero: it calls once
  MonotonicTime due_{};
  bool* watched_ = nullptr;
  Event event_;
};

// Calls a function at the end of the loop's turn. Scheduling it twice in a turn calls it once;
// scheduled from its own function it runs in the next turn, which does not sleep.
class Deferred : private DeferredNode {
 public:
  Deferred(Loop& loop, Loop::Function function);
  Deferred(const Deferred&) = delete;
  Deferred& operator=(const Deferred&) = delete;
  // Cancels. The function may destroy its own Deferred.
  ~Deferred();

  void schedule();
  // Calls it when its owner, which has much to write, has its share of a turn (TurnShares).
  void wait_for_share();
  void cancel();
  bool is_scheduled() const { return run != nullptr; }

 private:
  static void on_run(DeferredNode& node);

  Loop& loop_;
  Loop::Function function_;
  bool* watched_ = nullptr;
};

}  // namespace encore::net
