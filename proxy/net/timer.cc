#include "proxy/net/timer.h"

#include <event2/event.h>

#include <algorithm>
#include <utility>

#include "proxy/net/destruction.h"

namespace encore::net {
namespace {

// Calls the function of an object that the call may destroy: the function is held here meanwhile.
void call_owned(Loop::Function& function, bool*& watched) {
  const DestructionWatch watch(watched);
  Loop::Function running = std::move(function);
  running();
  if (!watch.destroyed()) function = std::move(running);
}

}  // namespace

Timer::Timer(Loop& loop, Loop::Function function) : loop_(loop), function_(std::move(function)) {}

Timer::~Timer() { DestructionWatch::tell(watched_); }

void Timer::start(Nanoseconds delay) {
  interval_ = Nanoseconds::zero();
  restart(delay);
}

void Timer::start_periodic(Nanoseconds interval) {
  interval_ = std::max(interval, Nanoseconds(1));
  restart(interval_);
}

void Timer::restart(Nanoseconds delay) {
  due_ = monotonic_now() + std::max(delay, Nanoseconds::zero());
  event_.assign(loop_.base(), -1, 0, &Timer::on_event, this);
  running_ = event_.add(delay);
}

void Timer::cancel() {
  event_.remove();
  running_ = false;
}

void Timer::on_event(int, short, void* context) {
  auto& timer = *static_cast<Timer*>(context);
  // libevent counts from the beginning of the turn, by a clock that moves once in a tick of the
  // kernel: up to some milliseconds may be missing yet.
  const MonotonicTime now = monotonic_now();
  if (now < timer.due_) {
    timer.running_ = timer.event_.add(timer.due_ - now);
    return;
  }
  timer.running_ = false;
  if (timer.interval_ != Nanoseconds::zero()) {
    timer.due_ = std::max(timer.due_, now - timer.interval_) + timer.interval_;
    timer.running_ = timer.event_.add(timer.due_ - now);
  }
  call_owned(timer.function_, timer.watched_);
}

Deferred::Deferred(Loop& loop, Loop::Function function)
    : loop_(loop), function_(std::move(function)) {}

Deferred::~Deferred() {
  cancel();
  DestructionWatch::tell(watched_);
}

void Deferred::schedule() { loop_.schedule(*this, &Deferred::on_run); }

void Deferred::wait_for_share() { loop_.wait_for_share(*this, &Deferred::on_run); }

void Deferred::cancel() { loop_.unschedule(*this); }

void Deferred::on_run(DeferredNode& node) {
  auto& deferred = static_cast<Deferred&>(node);
  call_owned(deferred.function_, deferred.watched_);
}

}  // namespace encore::net
