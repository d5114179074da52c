// Loop: one event loop, run by one thread (a worker). Everything that is bound to a loop is
// confined to that thread, but for stop() and post(), which any thread may call.
//
// A turn of the loop: sleep until something is ready, run the callbacks of what is, run what was
// deferred meanwhile, call the connections that wait for their share (TurnShares). Time stands
// still within a turn.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/http_date.h"
#include "base/mutex.h"
#include "base/time.h"
#include "proxy/net/deferred_node.h"
#include "proxy/net/turn_shares.h"

struct event_base;

namespace encore::net {

class Event;

// Data of a loop for others of net/: destroyed by it, while it is still usable.
class LoopPart {
 public:
  virtual ~LoopPart() = default;
};

class Loop {
 public:
  using Function = std::move_only_function<void()>;

  // The buffer of a read whose handler offers none. One read of a loopback or LAN connection rarely
  // exceeds 64 KiB; a bigger buffer only costs cache.
  static constexpr std::size_t kScratchBytes = 64 * 1024;

  // Errors: no epoll or eventfd to be had. Ignores SIGPIPE for the whole process.
  static Result<std::unique_ptr<Loop>> create();
  Loop(const Loop&) = delete;
  Loop& operator=(const Loop&) = delete;
  // REQUIRES: not running; all objects bound to it (streams, timers, ...) are gone. Posted
  // functions that have not run are destroyed unrun.
  ~Loop();

  // Runs until stop(). A stop() that came before makes it return after one turn that does not
  // sleep. May be called again.
  void run();
  // One turn of it, for who runs several loops on one thread. False where it was the last: stop()
  // was called.
  bool turn();
  // Makes run() return after the current turn. Any thread.
  void stop();

  // The time of this turn: each clock is read at its first use in a turn. Loop's thread only.
  MonotonicTime now() {
    if (!now_known_) [[unlikely]] {
      now_ = monotonic_now();
      now_known_ = true;
    }
    return now_;
  }
  WallTime wall_now();
  // How much of this turn each connection may move. Loop's thread only.
  TurnShares& shares() { return shares_; }
  // How many steps of handshakes that clients ask of us go on in one turn, so that those who come
  // do not hold up those who are in. Loop's thread only. Why turns bound them, and no queue:
  // docs/decisions/0241.
  void set_handshakes_per_turn(std::uint32_t steps) { handshakes_per_turn_ = steps; }
  // Counts one more step; true if this turn still allows it.
  bool take_handshake() {
    if (handshakes_ >= handshakes_per_turn_) return false;
    ++handshakes_;
    return true;
  }
  // One that was taken has lasted so long: where that is longer than most do, it counts as many.
  void spend_on_handshakes(Nanoseconds time) {
    handshakes_ += static_cast<std::uint32_t>(time / kHandshakeStep);
  }
  // This turn is not before `moment`, which another thread's clock showed earlier: now() is from
  // here on no less. Loop's thread only.
  void catch_up(MonotonicTime moment) {
    if (now() < moment) now_ = moment;
  }
  // The wall clock as an HTTP date: "Sun, 06 Nov 1994 08:49:37 GMT" (RFC 9110 5.6.7), formatted
  // once a second. Valid until the next call.
  std::string_view http_date();

  // Runs `function` on the loop's thread in a later turn, in the order of posting. Any thread; the
  // loop is woken once for all that is posted before it gets there.
  void post(Function function);
  // Runs `function` at the end of this turn, before the loop sleeps. Loop's thread only. Use
  // Deferred where the caller may be gone by then.
  void defer(Function function);

  // The worker's read buffer: overwritten by the next read of any stream of the loop.
  std::span<std::byte> scratch() { return scratch_; }
  // The worker's buffer for making up one TLS record. For net/ only.
  std::span<std::byte> record_scratch();

  // For net/ only. Scheduling a linked node changes nothing, neither does unlinking a free one.
  void schedule(DeferredNode& node, void (*call)(DeferredNode& node));
  // Calls the node when it has its share of a turn. One that waits already keeps its place.
  void wait_for_share(DeferredNode& node, void (*call)(DeferredNode& node));
  void unschedule(DeferredNode& node);
  event_base* base() { return base_; }
  // Made by Lingering at its first use.
  std::unique_ptr<LoopPart>& lingering() { return lingering_; }

 private:
  Loop();
  static void on_wake(int descriptor, short what, void* context);
  void wake();
  void run_mailbox();
  bool has_deferred() const;
  void run_deferred();

  event_base* base_ = nullptr;
  int wake_descriptor_ = -1;
  std::unique_ptr<Event> wake_event_;
  std::unique_ptr<LoopPart> lingering_;
  std::atomic<bool> stopped_ = false;

  bool now_known_ = false;
  bool wall_now_known_ = false;
  MonotonicTime now_{};
  WallTime wall_now_{};
  static constexpr Nanoseconds kHandshakeStep = std::chrono::microseconds(500);
  // 16 of 0.3 ms are a turn of 5 ms.
  std::uint32_t handshakes_per_turn_ = 16;
  std::uint32_t handshakes_ = 0;
  std::int64_t date_second_ = -1;
  std::array<char, kHttpDateBytes> date_{};

  std::vector<Function> functions_;
  std::vector<Function> functions_running_;
  DeferredList deferred_;
  TurnShares shares_;

  std::vector<std::byte> scratch_;
  std::vector<std::byte> record_scratch_;

  Mutex mutex_;
  std::vector<Function> mailbox_ ENCORE_GUARDED_BY(mutex_);
  std::vector<Function> mail_running_;
};

}  // namespace encore::net
