#include "tests/simulate/poller.h"

#include <utility>

namespace encore::simulate {
namespace {

bool is_earlier(const Watch& a, const Watch& b) {
  return a.due != b.due ? a.due < b.due : a.order < b.order;
}

}  // namespace

void Poller::Ring::push_back(Watch& watch) {
  watch.next = &head;
  watch.previous = head.previous;
  head.previous->next = &watch;
  head.previous = &watch;
}

void Poller::Ring::push_front(Watch& watch) {
  watch.previous = &head;
  watch.next = head.next;
  head.next->previous = &watch;
  head.next = &watch;
}

Poller::Poller(PolledSystem& system, std::function<void()> wake)
    : system_(system), wake_(std::move(wake)) {
  system_.add(*this);
}

Poller::~Poller() { system_.remove(*this); }

void Poller::unlink(Watch& watch) {
  if (watch.next == nullptr) return;
  watch.previous->next = watch.next;
  watch.next->previous = watch.previous;
  watch.previous = watch.next = nullptr;
}

bool Poller::watch(Watch& watch) {
  if (watch.watches) return true;
  if (!system_.add_watch(watch)) return false;
  watch.watches = true;
  ++watches_;
  if ((system_.readiness(watch.descriptor) & watch.wants) != 0) note_ready(watch);
  return true;
}

void Poller::set_time(Watch& watch, std::int64_t due) {
  forget_time(watch);
  watch.due = due;
  watch.order = system_.next_order();
  times_.push_back(&watch);
  watch.place = static_cast<std::uint32_t>(times_.size());
  sift_up(watch.place);
  if (watch.place == 1) system_.schedule_wake(*this, due);
}

void Poller::remove(Watch& watch) {
  unlink(watch);
  forget_time(watch);
  watch.timed_out = false;
  if (!watch.watches) return;
  watch.watches = false;
  --watches_;
  system_.remove_watch(watch);
}

void Poller::note_ready(Watch& watch) {
  if (watch.next != nullptr) return;
  // epoll reports in the order of readiness; no caller has a right to rely on that.
  if ((system_.next_order() & 1) != 0) {
    ready_.push_back(watch);
  } else {
    ready_.push_front(watch);
  }
  system_.wake_soon(*this);
}

void Poller::ask_for_turn() {
  while (!ready_.empty()) {
    Watch& watch = *ready_.head.next;
    if ((system_.readiness(watch.descriptor) & watch.wants) != kNone) break;
    unlink(watch);
  }
  if (std::exchange(another_, false) || !ready_.empty()) {
    system_.wake_soon(*this);
  } else if (!times_.empty()) {
    system_.schedule_wake(*this, times_.front()->due);
  }
}

std::size_t Poller::turn() {
  while (!ready_.empty()) {
    Watch& watch = *ready_.head.next;
    unlink(watch);
    watch.ready = system_.readiness(watch.descriptor) & watch.wants;
    if (watch.ready != kNone) active_.push_back(watch);
  }
  while (!times_.empty() && times_.front()->due <= system_.now()) {
    Watch& watch = *times_.front();
    forget_time(watch);
    watch.timed_out = true;
    if (watch.next == nullptr) {
      watch.ready = kNone;
      active_.push_back(watch);
    }
  }
  std::size_t calls = 0;
  while (!active_.empty()) {
    Watch& watch = *active_.head.next;
    unlink(watch);
    const std::uint8_t ready = watch.ready;
    const bool timed_out = std::exchange(watch.timed_out, false);
    if (!watch.persistent) {
      remove(watch);
    } else if (watch.watches) {
      ready_.push_back(watch);  // until a look finds it not ready
    }
    ++calls;
    watch.call(watch, ready, timed_out);
  }
  return calls;
}

void Poller::put(std::uint32_t place, Watch* watch) {
  times_[place - 1] = watch;
  watch->place = place;
}

void Poller::sift_up(std::uint32_t place) {
  Watch* moved = times_[place - 1];
  while (place > 1 && is_earlier(*moved, *times_[place / 2 - 1])) {
    put(place, times_[place / 2 - 1]);
    place /= 2;
  }
  put(place, moved);
}

void Poller::sift_down(std::uint32_t place) {
  Watch* moved = times_[place - 1];
  while (2 * place <= times_.size()) {
    std::uint32_t child = 2 * place;
    if (child < times_.size() && is_earlier(*times_[child], *times_[child - 1])) ++child;
    if (!is_earlier(*times_[child - 1], *moved)) break;
    put(place, times_[child - 1]);
    place = child;
  }
  put(place, moved);
}

void Poller::forget_time(Watch& watch) {
  if (watch.place == 0) return;
  const std::uint32_t place = std::exchange(watch.place, 0);
  Watch* last = times_.back();
  times_.pop_back();
  if (last == &watch) return;
  put(place, last);
  sift_up(place);
  sift_down(last->place);
}

}  // namespace encore::simulate
