// How event-driven objects end. One contract for all that live on a loop:
//
// - No function of an object calls its caller back before it returns: completions come from the
//   loop.
// - In a callback any object may be ended, also the caller. So an object that may be amid its own
//   callback is not destroyed but retired: it is told that nothing more is wanted of it, and its
//   owner gives it to DeferredDeleter, which destroys it at the end of the turn, when none of its
//   functions is on the stack.
// - A retired object calls nobody any more, and nobody calls it.
// - Requests of an object end with it: its streams, timers and Deferred are its members.
//
// Confined to the loop's thread.
#pragma once

#include <memory>
#include <vector>

#include "proxy/net/timer.h"

namespace encore::net {

class DeferredDeletable {
 public:
  virtual ~DeferredDeletable() = default;

 protected:
  DeferredDeletable() = default;
};

class DeferredDeleter {
 public:
  // Calls `on_emptied` after all of a turn are destroyed. `loop` is borrowed.
  DeferredDeleter(Loop& loop, Loop::Function on_emptied);
  DeferredDeleter(const DeferredDeleter&) = delete;
  DeferredDeleter& operator=(const DeferredDeleter&) = delete;

  // Destroys it at the end of this turn; what is retired first goes first.
  void add(std::unique_ptr<DeferredDeletable> object);
  // Destroys all now, and what that retires. REQUIRES: none of their functions is on the stack.
  void drop();
  bool is_empty() const { return objects_.empty() && dying_.empty(); }

 private:
  std::vector<std::unique_ptr<DeferredDeletable>> objects_;
  std::vector<std::unique_ptr<DeferredDeletable>> dying_;
  Loop::Function on_emptied_;
  Deferred drop_;
};

}  // namespace encore::net
