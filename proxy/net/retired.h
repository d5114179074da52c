// How event-driven objects end. One contract for all that live on a loop:
//
// - No function of an object calls its caller back before it returns: completions come from the
//   loop.
// - In a callback any object may be ended, also the caller. So an object that may be amid its own
//   callback is not destroyed but retired: it is told that nothing more is wanted of it, and its
//   owner gives it to Retired, which destroys it at the end of the turn, when none of its functions
//   is on the stack.
// - A retired object calls nobody any more, and nobody calls it.
// - Requests of an object end with it: its streams, timers and Deferred are its members.
//
// Confined to the loop's thread.
#pragma once

#include <memory>
#include <vector>

#include "proxy/net/timer.h"

namespace encore::net {

class Retirable {
 public:
  virtual ~Retirable() = default;

 protected:
  Retirable() = default;
};

class Retired {
 public:
  // Calls `on_emptied` after all of a turn are destroyed. `loop` is borrowed.
  Retired(Loop& loop, Loop::Function on_emptied);
  Retired(const Retired&) = delete;
  Retired& operator=(const Retired&) = delete;

  // Destroys it at the end of this turn; what is retired first goes first.
  void add(std::unique_ptr<Retirable> object);
  // Destroys all now, and what that retires. REQUIRES: none of their functions is on the stack.
  void drop();
  bool is_empty() const { return objects_.empty() && dying_.empty(); }

 private:
  std::vector<std::unique_ptr<Retirable>> objects_;
  std::vector<std::unique_ptr<Retirable>> dying_;
  Loop::Function on_emptied_;
  Deferred drop_;
};

}  // namespace encore::net
