// The fuzzer's own loop: descriptors by epoll, timers in a map. One thread. Nothing of the proxy's.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <unordered_map>
#include <utility>
#include <vector>

namespace encore::proxyfuzz {

// Seconds of the monotonic clock.
double now() noexcept;

class Handler {
 public:
  virtual ~Handler() = default;
  // `events` are epoll's.
  virtual void on_ready(std::uint32_t events) = 0;
};

class Loop {
 public:
  using Timer = std::pair<double, std::uint64_t>;

  Loop();
  ~Loop();
  Loop(const Loop&) = delete;
  Loop& operator=(const Loop&) = delete;

  // The descriptor stays the caller's, who calls remove() before closing it.
  void add(int descriptor, Handler& handler, std::uint32_t events);
  void modify(int descriptor, std::uint32_t events);
  void remove(int descriptor);
  Timer after(double seconds, std::function<void()> call);
  void cancel(Timer& timer);
  // Keeps what may be what calls until the turn has ended.
  void dispose(std::unique_ptr<Handler> handler) { disposed_.push_back(std::move(handler)); }
  // Waits for what comes first, and tells it.
  void turn();

 private:
  int epoll_;
  std::uint64_t next_timer_ = 1;
  std::map<Timer, std::function<void()>> timers_;
  std::unordered_map<int, Handler*> handlers_;
  std::vector<std::unique_ptr<Handler>> disposed_;
};

// Non-blocking sockets on loopback; they end the program where the system refuses them.
int listen_on_loopback(std::uint16_t& port);
int connect_to_loopback(std::uint16_t port, int receive_buffer);
// A port that was free a moment ago, below those that the system gives to clients.
std::uint16_t free_port();
// Closes so that the other side sees a reset.
void close_with_reset(int descriptor);

}  // namespace encore::proxyfuzz
