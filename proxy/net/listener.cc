#include "proxy/net/listener.h"

#include <event2/event.h>
#include <fcntl.h>
#include <sys/socket.h>

#include <cerrno>

#include "proxy/net/destruction.h"
#include "proxy/net/listening.h"
#include "proxy/net/socket_options.h"
#include "proxy/net/syscalls.h"

namespace encore::net {
namespace {

// How long a listener rests that got no connection for want of memory or descriptors.
constexpr Nanoseconds kRest = std::chrono::milliseconds(100);

// So that a flood of connections does not starve those that are in.
constexpr int kAcceptsPerTurn = 64;

// A spare descriptor: closing it allows one accept, whose connection can then be closed.
Socket open_spare() { return Socket(::open("/dev/null", O_RDONLY | O_CLOEXEC)); }

// Errors of the one connection that was to be accepted: it is gone, others may wait behind it
// (accept(2) lists what the network may pass up here).
bool is_of_connection(int os_error) {
  switch (os_error) {
    case ECONNABORTED:
    case EINTR:
    case EPROTO:
    case EPERM:
    case ENOPROTOOPT:
    case EOPNOTSUPP:
    case ENETDOWN:
    case ENETUNREACH:
    case EHOSTDOWN:
    case EHOSTUNREACH:
    case ENONET:
      return true;
    default:
      return false;
  }
}

}  // namespace

std::unique_ptr<Listener> Listener::take(Loop& loop, Socket socket, OnAccept on_accept,
                                         OnOverload on_overload) {
  return std::unique_ptr<Listener>(
      new Listener(loop, std::move(socket), std::move(on_accept), std::move(on_overload)));
}

Result<void> Listener::check_unused(const Address& address) { return net::check_unused(address); }

Listener::Listener(Loop& loop, Socket socket, OnAccept on_accept, OnOverload on_overload)
    : socket_(std::move(socket)),
      spare_(open_spare()),
      address_(bound_address(socket_)),
      on_accept_(std::move(on_accept)),
      on_overload_(std::move(on_overload)),
      retry_(loop, [this] { resume(); }) {
  event_.assign(loop.base(), socket_.get(), EV_READ | EV_PERSIST, &Listener::on_event, this);
  resume();
}

Listener::~Listener() {
  stop();
  DestructionWatch::tell(watched_);
}

Socket Listener::duplicate() const { return net::duplicate(socket_); }

void Listener::stop() {
  pause();
  socket_.reset();
}

void Listener::stop_behind_waiting() {
  // New connections could arrive for ever: accepts no more than the backlog has.
  int left = kListenBacklog;
  while (socket_ && left-- > 0 && accept_one()) {
  }
  stop();
}

void Listener::pause() {
  retry_.cancel();
  event_.remove();
  paused_ = true;
}

void Listener::resume() {
  if (!socket_ || !paused_) return;
  retry_.cancel();
  paused_ = !event_.add();
}

void Listener::on_event(int, short, void* context) {
  static_cast<Listener*>(context)->accept_ready();
}

void Listener::accept_ready() {
  const DestructionWatch watch(watched_);
  int left = kAcceptsPerTurn;
  while (left-- > 0 && accept_one()) {
    if (watch.destroyed() || paused_) return;
  }
}

// False if no other connection is available now. If it is true the callback may have destroyed the
// listener.
bool Listener::accept_one() {
  sockaddr_storage storage;
  socklen_t size = sizeof storage;
  auto* any = reinterpret_cast<sockaddr*>(&storage);
  Socket accepted(syscalls.accept4(socket_.get(), any, &size, SOCK_NONBLOCK | SOCK_CLOEXEC));
  if (accepted) {
    // A client that may open the file of a Unix socket is on this machine (docs/decisions/0222).
    const bool local = storage.ss_family == AF_UNIX;
    const auto peer =
        Address::from_sockaddr(any, size).value_or(local ? Address::loopback_v4(0) : Address());
    on_accept_(std::move(accepted), peer.canonical());
    return true;
  }
  const int os_error = errno;
  if (is_of_connection(os_error)) return true;
  if (os_error != EAGAIN) overloaded(os_error);
  return false;
}

void Listener::overloaded(int os_error) {
  if (spare_ && (os_error == EMFILE || os_error == ENFILE)) {
    spare_.reset();
    Socket refused(syscalls.accept4(socket_.get(), nullptr, nullptr, SOCK_CLOEXEC));
    refused.reset();
    spare_ = open_spare();
  }
  // Connections wait in the backlog meanwhile: an immediate retry would only burn time.
  pause();
  retry_.start(kRest);
  if (on_overload_) on_overload_(os_error);
}

}  // namespace encore::net
