// Listener: accepts connections on one address for one loop. Confined to the loop's thread.
// Several workers listen on the same address with SO_REUSEPORT; the kernel spreads connections.
#pragma once

#include <functional>
#include <memory>

#include "base/error.h"
#include "proxy/net/address.h"
#include "proxy/net/event.h"
#include "proxy/net/loop.h"
#include "proxy/net/socket.h"
#include "proxy/net/timer.h"

namespace encore::net {

class Listener {
 public:
  // The socket is connected, non-blocking, without Nagle's delay, with keepalive. The callback may
  // destroy the listener.
  using OnAccept = std::move_only_function<void(Socket socket, const Address& peer)>;
  // Told each time a connection cannot be had: `os_error` is EMFILE, ENFILE, ENOBUFS, ENOMEM.
  // With no descriptor left one connection is taken by a spare one and closed, so that its client
  // learns it; then the listener rests for a tenth of a second. It must not destroy the listener.
  using OnOverload = std::move_only_function<void(int os_error)>;

  // On a socket that listens already (listening.h).
  static std::unique_ptr<Listener> take(Loop& loop, Socket socket, OnAccept on_accept,
                                        OnOverload on_overload = nullptr);
  // An error where another listener has this address, even one that would share it: two processes
  // of one user would otherwise get half of the connections each. Ask before the first of one's
  // own.
  static Result<void> check_unused(const Address& address);
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;
  ~Listener();

  // The bound address, with the true port.
  const Address& address() const { return address_; }
  // For another process, which then accepts from the same queue. None with errno.
  Socket duplicate() const;
  // Closes the listening socket; connections not yet accepted are reset by the kernel.
  void stop();
  // The same when those that wait have been accepted. The callback must not destroy the listener.
  void stop_behind_waiting();
  // Stops accepting for a while without closing; connections wait in the backlog.
  void pause();
  void resume();

 private:
  Listener(Loop& loop, Socket socket, OnAccept on_accept, OnOverload on_overload);
  static void on_event(int descriptor, short what, void* context);
  void accept_ready();
  bool accept_one();
  void overloaded(int os_error);

  Socket socket_;
  Socket spare_;
  Address address_;
  OnAccept on_accept_;
  OnOverload on_overload_;
  bool paused_ = true;
  bool* watched_ = nullptr;
  Event event_;
  Timer retry_;
};

}  // namespace encore::net
