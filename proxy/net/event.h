// Event: libevent's `struct event`, embedded and without its header. For net/ only: others use
// Timer, Deferred, Stream. Confined to its loop's thread. Not movable: the loop keeps its address.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/time.h"

struct event;
struct event_base;

namespace encore::net {

class Event {
 public:
  // `what` is libevent's set of EV_ flags.
  using Callback = void (*)(int descriptor, short what, void* context);

  Event() = default;
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;
  // Removes it from the loop; a callback that is due no longer comes.
  ~Event();

  // Binds the event; nothing happens yet. REQUIRES: not pending.
  void assign(event_base* base, int descriptor, short what, Callback callback, void* context);
  // Waits for what was assigned. False with errno where the kernel refuses (out of memory).
  bool add();
  // True from add() until remove(). Only for events with EV_PERSIST: others cease by themselves.
  bool is_added() const { return state_ == State::kAdded; }
  // Fires after `delay` (and each `delay` again with EV_PERSIST), as libevent counts: from the
  // beginning of the turn, by a coarse clock. Timer is exact.
  bool add(Nanoseconds delay);
  void remove();

 private:
  // sizeof(struct event) in libevent 2.1 on 64-bit machines; event.cc checks it.
  static constexpr std::size_t kEventBytes = 128;
  enum class State : std::uint8_t { kNew, kAssigned, kAdded };
  event* get();

  alignas(void*) std::byte storage_[kEventBytes];
  State state_ = State::kNew;
};

}  // namespace encore::net
