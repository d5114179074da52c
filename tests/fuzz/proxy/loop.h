// The loop of clients and origin: descriptors, and timers in a map. One thread. Nothing of the
// proxy's. Which descriptors, and whose time it is, says the program that it is linked into: the
// system's (epoll_loop.h), or simulated ones (tests/simulate/ring_loop.h).
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

namespace encore::proxyfuzz {

// Seconds of the monotonic clock.
double now() noexcept;
// Seconds since 1970 by the clock of clients and origin.
std::int64_t wall_seconds() noexcept;

class Handler {
 public:
  virtual ~Handler() = default;
  // `events` are epoll's.
  virtual void on_ready(std::uint32_t events) = 0;
};

class Loop {
 public:
  using Timer = std::pair<double, std::uint64_t>;

  Loop() = default;
  virtual ~Loop() = default;
  Loop(const Loop&) = delete;
  Loop& operator=(const Loop&) = delete;

  // The descriptor stays the caller's, who calls remove() before closing it.
  virtual void add(int descriptor, Handler& handler, std::uint32_t events) = 0;
  virtual void modify(int descriptor, std::uint32_t events) = 0;
  virtual void remove(int descriptor) = 0;
  Timer after(double seconds, std::function<void()> call);
  void cancel(Timer& timer);
  // Keeps what may be what calls until the turn has ended.
  void dispose(std::unique_ptr<Handler> handler) { disposed_.push_back(std::move(handler)); }

 protected:
  // A timer is the first now.
  virtual void first_timer_changed() {}
  // When the first timer is due; infinity without one.
  double first_due() const;
  // Calls what is due, and lets go what was disposed of.
  void end_turn();

 private:
  std::uint64_t next_timer_ = 1;
  std::map<Timer, std::function<void()>> timers_;
  std::vector<std::unique_ptr<Handler>> disposed_;
};

// Non-blocking sockets on loopback; they end the program where the system refuses them.
int listen_on_loopback(std::uint16_t& port);
// -1 where nobody waits.
int accept_connection(int listener);
int connect_to_loopback(std::uint16_t port, int receive_buffer);
// Closes so that the other side sees a reset.
void close_with_reset(int descriptor);
// True if the network has ended the connection, and neither side. The system's loopback never does.
bool was_broken(int descriptor);
// True if all that was sent has been read, as far as the system can tell: a server that ends an
// idle connection may cross a request on its way.
bool was_heard(int descriptor);
// True if the other side had read when all that was sent to it was there, and has then sent what
// came from it last. As far as the system can tell.
bool had_read_all(int descriptor);
// The end of a connection by its other side: of its own half, or all.
struct OtherEnding {
  std::uint64_t order = 0;  // among all that happens
  double at = 0;
  std::uint64_t undelivered = 0;  // bytes that it had sent and that had not arrived by then
};
// Each such call of the other side, the first in front. Nothing: the system does not tell.
std::optional<std::vector<OtherEnding>> other_endings(int descriptor);
// When the other side had last sent or read a byte, or was connected, before it did that. Nothing:
// the system does not tell.
std::optional<double> other_moved_before(int descriptor, std::uint64_t order);

}  // namespace encore::proxyfuzz
