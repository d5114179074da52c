// Shared parts of the tests of net/: loops that cannot hang, connected pairs, raw peers, system
// calls that fail on demand.
#pragma once

#include <chrono>
#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "proxy/net/address.h"
#include "proxy/net/listener.h"
#include "proxy/net/loop.h"
#include "proxy/net/socket.h"
#include "proxy/net/stream.h"
#include "proxy/net/syscalls.h"

namespace encore::net {

// A loop that ends its run with a failed test, instead of hanging, where nothing ends it.
class TestLoop {
 public:
  TestLoop();
  Loop& operator*() { return *loop_; }
  Loop* operator->() { return loop_.get(); }
  // Runs until `done` holds.
  void run_until(const std::function<bool()>& done);
  // Runs turns that do not sleep.
  void run_turns(int turns);

 private:
  std::unique_ptr<Loop> loop_;
};

// Two ends of a loopback TCP connection; both do not block.
struct SocketPair {
  SocketPair();
  Socket near;
  Socket far;
  Address far_address;  // address of `far`, as `near` sees it
};

// The far end, driven by plain system calls.
bool send_all(const Socket& socket, std::string_view bytes);
// Returns the bytes that are there now, without waiting.
std::string receive_now(const Socket& socket);

// A listener as the proxy has them: on a socket that shares its address.
std::unique_ptr<Listener> listen(Loop& loop, const Address& address, Listener::OnAccept on_accept,
                                 Listener::OnOverload on_overload = nullptr);

// A handler that records and does what the test says.
struct Recorder final : StreamHandler {
  std::size_t on_data(Stream& stream, std::span<const std::byte> bytes) override;
  void on_writable(Stream& stream) override;
  void on_eof(Stream& stream) override;
  void on_error(Stream& stream, CloseReason reason, int os_error) override;
  void on_ready(Stream& stream) override;
  std::span<std::byte> read_buffer(Stream& stream) override;

  std::string received;
  int data_calls = 0;
  int writable_calls = 0;
  int eofs = 0;
  int errors = 0;
  int readies = 0;
  CloseReason reason = CloseReason::kError;
  int os_error = 0;
  // Replace what happens; by default all bytes are used.
  std::function<std::size_t(Stream&, std::string_view)> data;
  std::function<void(Stream&)> writable;
  std::function<void(Stream&)> eof;
  std::function<void(Stream&)> error;
  std::function<void(Stream&)> ready;
  std::function<std::span<std::byte>(Stream&)> buffer;
};

// Fails the calls of one kind from the Nth (0 is the first) on, `times` times, with an errno.
// Puts the table back when it goes. One at a time.
class FailCalls {
 public:
  enum class Call { kReceive, kSend, kAccept4, kConnect, kSocket };
  FailCalls(Call call, int nth, int os_error, int times = 1);
  FailCalls(const FailCalls&) = delete;
  FailCalls& operator=(const FailCalls&) = delete;
  ~FailCalls();
  // Whether a call was failed: false says that the operation makes fewer calls than N.
  bool failed() const;

 private:
  Syscalls saved_;
};

}  // namespace encore::net
