#include "proxy/net/event.h"

#include <event2/event.h>
#include <event2/event_struct.h>

#include <new>

#include "base/check.h"

namespace encore::net {
namespace {

timeval to_timeval(Nanoseconds delay) {
  if (delay < Nanoseconds::zero()) delay = Nanoseconds::zero();
  const auto microseconds = std::chrono::ceil<std::chrono::microseconds>(delay).count();
  return {.tv_sec = microseconds / 1'000'000,
          .tv_usec = static_cast<suseconds_t>(microseconds % 1'000'000)};
}

}  // namespace

event* Event::get() { return std::launder(reinterpret_cast<event*>(storage_)); }

Event::~Event() { remove(); }

void Event::assign(event_base* base, int descriptor, short what, Callback callback, void* context) {
  static_assert(sizeof(event) <= kEventBytes && alignof(event) <= alignof(void*));
  remove();
  new (storage_) event;
  const int result = event_assign(get(), base, descriptor, what, callback, context);
  ENCORE_CHECK(result == 0, "an event is assigned what libevent accepts");
  state_ = State::kAssigned;
}

bool Event::add() {
  if (event_add(get(), nullptr) != 0) return false;
  state_ = State::kAdded;
  return true;
}

bool Event::add(Nanoseconds delay) {
  const timeval time = to_timeval(delay);
  if (event_add(get(), &time) != 0) return false;
  state_ = State::kAdded;
  return true;
}

void Event::remove() {
  if (state_ != State::kAdded) return;
  event_del(get());
  state_ = State::kAssigned;
}

}  // namespace encore::net
