// Signals: calls a function on a loop's thread when the process gets a signal. One loop of the
// process has signals. Confined to its loop's thread.
#pragma once

#include <functional>
#include <initializer_list>
#include <memory>
#include <vector>

#include "proxy/net/event.h"

namespace encore::net {

class Loop;

class Signals {
 public:
  using OnSignal = std::move_only_function<void(int signal)>;
  // The callback must not destroy this object; it may stop the loop.
  Signals(Loop& loop, std::initializer_list<int> signals, OnSignal on_signal);
  Signals(const Signals&) = delete;
  Signals& operator=(const Signals&) = delete;
  // Gives the signals back to what they did before.
  ~Signals();

 private:
  static void on_event(int signal, short what, void* context);
  OnSignal on_signal_;
  std::vector<std::unique_ptr<Event>> events_;
};

}  // namespace encore::net
