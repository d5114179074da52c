// TransferHome: one thread's end of the transfers. The transfers that it fills are notified here by
// readers on other threads, and its readers are woken here from there.
//
// A wake-up from another thread carries no address but a ticket: a place in the table of targets,
// and the generation of the target that was there when it was sent. A target that has left
// meanwhile is not called, nor is the next one in its place, or its memory.
//
// Confined to its thread but for what says otherwise.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "proxy/net/loop.h"

namespace encore::server {

// A target of wake-ups from other threads.
class WakeTarget {
 public:
  // On its home's thread, from the loop. It may leave, and be destroyed.
  virtual void on_wake_up() = 0;

 protected:
  ~WakeTarget() = default;
};

class TransferHome {
 public:
  // A target's place in the table. An empty one belongs to none.
  struct Ticket {
    std::uint32_t place = 0;
    std::uint32_t generation = 0;  // 0: empty
    explicit operator bool() const { return generation != 0; }
    friend bool operator==(const Ticket&, const Ticket&) = default;
  };

  // Says, for as long as it lives, whose turn it is on this thread; several homes may take turns on
  // one.
  class Turn {
   public:
    explicit Turn(TransferHome& home) : outer_(std::exchange(current, &home)) {}
    ~Turn() { current = outer_; }
    Turn(const Turn&) = delete;
    Turn& operator=(const Turn&) = delete;

   private:
    TransferHome* outer_;
  };

  // `loop` is borrowed.
  explicit TransferHome(net::Loop& loop) : loop_(loop) {}
  TransferHome(const TransferHome&) = delete;
  TransferHome& operator=(const TransferHome&) = delete;
  // REQUIRES: all have left.
  ~TransferHome();

  // Any thread: whether it is this one's, and its turn.
  bool is_here() const { return current == this; }
  // Any thread: calls back on the loop.
  void post(net::Loop::Function function) { loop_.post(std::move(function)); }

  // `target` is borrowed until leave().
  Ticket enter(WakeTarget& target);
  // REQUIRES: `ticket` is of enter(), and this is its first leave().
  void leave(Ticket ticket);
  // Null where it has left.
  WakeTarget* find(Ticket ticket) const;
  // Any thread: calls the holder in a later turn of the loop, if it is still there by then.
  void wake(Ticket ticket);

  // Those who have entered and not left.
  std::size_t size() const { return size_; }

 private:
  struct Place {
    WakeTarget* target = nullptr;  // null: free
    std::uint32_t generation = 0;  // that of the present target, or of the last one
    std::uint32_t next_free = 0;
  };
  static constexpr std::uint32_t kNoPlace = UINT32_MAX;

  static thread_local constinit inline TransferHome* current = nullptr;

  net::Loop& loop_;
  std::vector<Place> places_;
  std::uint32_t first_free_ = kNoPlace;
  std::size_t size_ = 0;
};

}  // namespace encore::server
