// Poller: what libevent's base is to a loop, over simulated descriptors and simulated time: who
// waits for what, what is ready, and one turn of calls. Level-triggered, as epoll is by default.
// One thread; the order of calls follows from the seed.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

namespace encore::simulate {

class Poller;

enum Readiness : std::uint8_t { kNone = 0, kReadable = 1, kWritable = 2 };

// One that waits for a descriptor (or none, with -1) or a time, or both. Lies where its owner wants
// it; watched until it fires (not persistent) or is removed.
struct Watch {
  using Call = void (*)(Watch& watch, std::uint8_t ready, bool timed_out);

  Poller* poller = nullptr;
  int descriptor = -1;
  std::uint8_t wants = kNone;
  bool persistent = false;
  bool watches = false;  // a descriptor, now
  Call call = nullptr;
  // In the ring of what may be ready, or of what is called in this turn.
  Watch* previous = nullptr;
  Watch* next = nullptr;
  std::int64_t due = 0;
  std::uint64_t order = 0;
  std::uint32_t place = 0;  // in the heap of times, from 1; 0: waits for none
  std::uint8_t ready = kNone;
  bool timed_out = false;
};

// The system that a poller polls for.
class PolledSystem {
 public:
  virtual std::int64_t now() const = 0;
  // A random number, which orders sockets that are ready at the same time.
  virtual std::uint64_t next_order() = 0;
  virtual void add(Poller& poller) = 0;
  virtual void remove(Poller& poller) = 0;
  // False with errno where the descriptor is not open.
  virtual bool add_watch(Watch& watch) = 0;
  virtual void remove_watch(Watch& watch) = 0;
  virtual std::uint8_t readiness(int descriptor) const = 0;
  // The poller's turn comes at that time, or earlier.
  virtual void schedule_wake(Poller& poller, std::int64_t at) = 0;
  virtual void wake_soon(Poller& poller) = 0;

 protected:
  ~PolledSystem() = default;
};

class Poller {
 public:
  // `wake` makes the turn of the polling loop: it is called when the system's time has reached it.
  Poller(PolledSystem& system, std::function<void()> wake);
  ~Poller();
  Poller(const Poller&) = delete;
  Poller& operator=(const Poller&) = delete;

  void set_wake(std::function<void()> wake) { wake_ = std::move(wake); }
  // Waits for the descriptor of the watch. False with errno where it is not open.
  bool watch(Watch& watch);
  void set_time(Watch& watch, std::int64_t due);
  // Waits for nothing any more; a call that is due does not come.
  void remove(Watch& watch);

  // Calls all that is ready or due. Returns how many there were.
  std::size_t turn();
  bool has_watches() const { return watches_ != 0 || !times_.empty(); }
  std::size_t watches() const { return watches_ + times_.size(); }

  // For the system.
  void note_ready(Watch& watch);
  void run_wake() { wake_(); }
  // Asks for a turn as soon as there may be work: now, or at the next time.
  void ask_for_turn();
  // Polls again even if nothing is ready: the loop has work of its own.
  void ask_for_another() { another_ = true; }
  std::int64_t wake_at = -1;
  std::uint32_t number = 0;

 private:
  struct Ring {
    Watch head;
    Ring() { head.previous = head.next = &head; }
    bool empty() const { return head.next == &head; }
    void push_back(Watch& watch);
    void push_front(Watch& watch);
  };
  static void unlink(Watch& watch);
  void forget_time(Watch& watch);
  void sift_up(std::uint32_t place);
  void sift_down(std::uint32_t place);
  void put(std::uint32_t place, Watch* watch);

  PolledSystem& system_;
  std::function<void()> wake_;
  Ring ready_;
  Ring active_;
  std::vector<Watch*> times_;  // a heap
  std::size_t watches_ = 0;
  bool another_ = false;
};

}  // namespace encore::simulate
