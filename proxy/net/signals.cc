#include "proxy/net/signals.h"

#include <event2/event.h>

#include <algorithm>

#include "proxy/net/loop.h"

namespace encore::net {
namespace {

sigset_t set_of(std::initializer_list<int> signals) {
  sigset_t set;
  sigemptyset(&set);
  for (const int signal : signals) sigaddset(&set, signal);
  return set;
}

}  // namespace

void hold_signals(std::initializer_list<int> signals) {
  const sigset_t set = set_of(signals);
  ::pthread_sigmask(SIG_BLOCK, &set, nullptr);
}

void release_signals(std::initializer_list<int> signals) {
  const sigset_t set = set_of(signals);
  ::pthread_sigmask(SIG_UNBLOCK, &set, nullptr);
}

bool is_held(std::initializer_list<int> signals) {
  sigset_t held;
  sigemptyset(&held);
  ::sigpending(&held);
  return std::ranges::any_of(signals, [&](int signal) { return sigismember(&held, signal) == 1; });
}

Signals::Signals(Loop& loop, std::initializer_list<int> signals, OnSignal on_signal)
    : on_signal_(std::move(on_signal)) {
  for (const int signal : signals) {
    auto& event = events_.emplace_back(std::make_unique<Event>());
    event->assign(loop.base(), signal, EV_SIGNAL | EV_PERSIST, &Signals::on_event, this);
    event->add();
  }
  const sigset_t set = set_of(signals);
  ::pthread_sigmask(SIG_UNBLOCK, &set, &mask_before_);
}

Signals::~Signals() {
  ::pthread_sigmask(SIG_SETMASK, &mask_before_, nullptr);
  events_.clear();
}

void Signals::on_event(int signal, short, void* context) {
  static_cast<Signals*>(context)->on_signal_(signal);
}

}  // namespace encore::net
