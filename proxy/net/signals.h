// Signals: calls a function on a loop's thread when the process gets a signal. One loop of the
// process has signals. Confined to its loop's thread.
#pragma once

#include <csignal>
#include <functional>
#include <initializer_list>
#include <memory>
#include <vector>

#include "proxy/net/event.h"

namespace encore::net {

class Loop;

// Holds signals back from this thread and from those that it starts later: they wait until a
// Signals takes them, and do not end the process before. For the first lines of main().
void hold_signals(std::initializer_list<int> signals);

// Takes that back for this thread: they do what they did before.
void release_signals(std::initializer_list<int> signals);

// True if one of these was sent to the process and is still held back.
bool is_held(std::initializer_list<int> signals);

class Signals {
 public:
  using OnSignal = std::move_only_function<void(int signal)>;
  // Takes those that were held back as well: they come in the loop's next turn.
  // The callback must not destroy this object; it may stop the loop.
  Signals(Loop& loop, std::initializer_list<int> signals, OnSignal on_signal);
  Signals(const Signals&) = delete;
  Signals& operator=(const Signals&) = delete;
  // Gives the signals back to what they did before: what was held back is again, so that one that
  // comes while the process ends does not end it otherwise.
  ~Signals();

 private:
  static void on_event(int signal, short what, void* context);
  OnSignal on_signal_;
  sigset_t mask_before_{};
  std::vector<std::unique_ptr<Event>> events_;
};

}  // namespace encore::net
