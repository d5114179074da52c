#include "tests/fuzz/proxy/loop.h"

#include <limits>

namespace encore::proxyfuzz {

Loop::Timer Loop::after(double seconds, std::function<void()> call) {
  const Timer timer{now() + seconds, next_timer_++};
  const auto added = timers_.emplace(timer, std::move(call)).first;
  if (added == timers_.begin()) first_timer_changed();
  return timer;
}

void Loop::cancel(Timer& timer) {
  timers_.erase(timer);
  timer = {};
}

double Loop::first_due() const {
  return timers_.empty() ? std::numeric_limits<double>::infinity() : timers_.begin()->first.first;
}

void Loop::end_turn() {
  const double time = now();
  while (!timers_.empty() && timers_.begin()->first.first <= time) {
    auto node = timers_.extract(timers_.begin());
    node.mapped()();
  }
  disposed_.clear();
}

}  // namespace encore::proxyfuzz
