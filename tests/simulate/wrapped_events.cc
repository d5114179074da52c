// libevent's base and events over a Poller: what proxy/net/event.cc and loop.cc call, by the
// linker's --wrap. The events lie where libevent's would.
#include <event2/event.h>
#include <event2/event_struct.h>

#include <new>

#include "base/check.h"
#include "tests/simulate/system.h"

using encore::simulate::Poller;
using encore::simulate::System;
using encore::simulate::Watch;

namespace {

struct SimulatedEvent : Watch {
  event_callback_fn callback = nullptr;
  void* context = nullptr;
};
static_assert(sizeof(SimulatedEvent) <= sizeof(event));

SimulatedEvent& of(event* at) {
  return *std::launder(static_cast<SimulatedEvent*>(static_cast<void*>(at)));
}

void call_back(Watch& watch, std::uint8_t ready, bool timed_out) {
  auto& at = static_cast<SimulatedEvent&>(watch);
  int what = timed_out ? EV_TIMEOUT : 0;
  if ((ready & encore::simulate::kReadable) != 0) what |= EV_READ;
  if ((ready & encore::simulate::kWritable) != 0) what |= EV_WRITE;
  at.callback(at.descriptor, static_cast<short>(what), at.context);
}

// The process' own loop, next to the workers', is none of the simulation's.
Poller& of(event_base* base) { return *static_cast<Poller*>(static_cast<void*>(base)); }

}  // namespace

extern "C" {

event_base* __real_event_base_new_with_config(const event_config* config);
event_base* __wrap_event_base_new_with_config(const event_config* config);
void __real_event_base_free(event_base* base);
void __wrap_event_base_free(event_base* base);
int __real_event_base_loop(event_base* base, int flags);
int __wrap_event_base_loop(event_base* base, int flags);
int __real_event_assign(event* at, event_base* base, int descriptor, short what,
                        event_callback_fn callback, void* context);
int __wrap_event_assign(event* at, event_base* base, int descriptor, short what,
                        event_callback_fn callback, void* context);
int __real_event_add(event* at, const timeval* delay);
int __wrap_event_add(event* at, const timeval* delay);
int __real_event_del(event* at);
int __wrap_event_del(event* at);

event_base* __wrap_event_base_new_with_config(const event_config* config) {
  System* system = System::current();
  if (system == nullptr) return __real_event_base_new_with_config(config);
  return static_cast<event_base*>(static_cast<void*>(new Poller(*system, [] {})));
}

void __wrap_event_base_free(event_base* base) {
  System* system = System::current();
  if (system == nullptr) return __real_event_base_free(base);
  if (of(base).has_watches()) system->tell_fault("a loop ends while somebody waits for it");
  delete &of(base);
}

// Never sleeps. Calls that a turn has deferred are known to the loop alone: a turn in which there
// was something is followed by another.
int __wrap_event_base_loop(event_base* base, int flags) {
  if (System::current() == nullptr) return __real_event_base_loop(base, flags);
  const bool deferred = (flags & EVLOOP_NONBLOCK) != 0;
  if (of(base).turn() != 0 || deferred) of(base).ask_for_another();
  return 0;
}

int __wrap_event_assign(event* at, event_base* base, int descriptor, short what,
                        event_callback_fn callback, void* context) {
  if (System::current() == nullptr) {
    return __real_event_assign(at, base, descriptor, what, callback, context);
  }
  auto* made = new (static_cast<void*>(at)) SimulatedEvent;
  made->poller = &of(base);
  made->descriptor = descriptor;
  if ((what & EV_READ) != 0) made->wants |= encore::simulate::kReadable;
  if ((what & EV_WRITE) != 0) made->wants |= encore::simulate::kWritable;
  made->persistent = (what & EV_PERSIST) != 0;
  made->call = &call_back;
  made->callback = callback;
  made->context = context;
  return 0;
}

int __wrap_event_add(event* at, const timeval* delay) {
  System* system = System::current();
  if (system == nullptr) return __real_event_add(at, delay);
  SimulatedEvent& made = of(at);
  if (delay != nullptr) {
    ENCORE_CHECK(!made.persistent, "no simulated event fires again and again by itself");
    const std::int64_t nanoseconds = delay->tv_sec * 1'000'000'000LL + delay->tv_usec * 1000LL;
    made.poller->set_time(made, system->now() + nanoseconds);
  }
  if (made.wants == encore::simulate::kNone) return 0;
  return made.poller->watch(made) ? 0 : -1;
}

int __wrap_event_del(event* at) {
  if (System::current() == nullptr) return __real_event_del(at);
  of(at).poller->remove(of(at));
  return 0;
}

}  // extern "C"
