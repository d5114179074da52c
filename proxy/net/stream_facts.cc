// Stream: its accessors, and whether the bytes that were written have left.
#include <linux/sockios.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include "proxy/net/socket_options.h"
#include "proxy/net/stream.h"
#include "proxy/net/tls_facts.h"
#include "proxy/net/tls_session.h"

namespace encore::net {
namespace {

// True if neither side can send any more.
bool is_over(const Socket& socket) {
  // The first byte of tcp_info is the state.
  std::uint8_t state = 0;
  socklen_t size = sizeof state;
  return ::getsockopt(socket.get(), IPPROTO_TCP, TCP_INFO, &state, &size) == 0 &&
         state == TCP_CLOSE;
}

}  // namespace

Address Stream::local() const { return bound_address(socket_).canonical(); }

bool Stream::has_unread() const {
  int bytes = 0;
  return is_open() && ::ioctl(socket_.get(), FIONREAD, &bytes) == 0 && bytes > 0;
}

bool Stream::has_more() const {
  if (tls_ != nullptr && tls_->has_pending()) return true;
  return last_read_bytes_ >= last_read_room_ && has_unread();
}

bool Stream::was_reset() const {
  int os_error = 0;
  socklen_t size = sizeof os_error;
  return is_open() && ::getsockopt(socket_.get(), SOL_SOCKET, SO_ERROR, &os_error, &size) == 0 &&
         os_error != 0;
}

std::uint64_t Stream::bytes_in_kernel() const {
  int bytes = 0;
  if (!is_open() || ::ioctl(socket_.get(), SIOCOUTQ, &bytes) != 0 || bytes < 0) return 0;
  return static_cast<std::uint64_t>(bytes);
}

std::uint64_t Stream::bytes_unsent() const {
  int bytes = 0;
  if (!is_open() || ::ioctl(socket_.get(), SIOCOUTQNSD, &bytes) != 0 || bytes < 0) return 0;
  return static_cast<std::uint64_t>(bytes);
}

Nanoseconds Stream::round_trip() const {
  tcp_info info{};
  socklen_t size = sizeof info;
  if (!is_open() || ::getsockopt(socket_.get(), IPPROTO_TCP, TCP_INFO, &info, &size) != 0) {
    return {};
  }
  return std::chrono::microseconds(info.tcpi_rtt);
}

void Stream::set_awaits_sent(bool awaits) {
  // The socket is writable when less than this is unsent; 0 is the system's value.
  const int unsent_max = awaits ? 1 : 0;
  ::setsockopt(socket_.get(), IPPROTO_TCP, TCP_NOTSENT_LOWAT, &unsent_max, sizeof unsent_max);
  owed_ = awaits ? PendingWritable::kSent : PendingWritable::kNothing;
}

Stream::Sent Stream::await_sent() {
  if (health_ != Health::kWell) return Sent::kNever;
  const bool is_in_tls = tls_ != nullptr && tls_->has_unsent();
  if (!is_in_tls && bytes_unsent() == 0) {
    if (owed_ == PendingWritable::kSent) set_awaits_sent(false);
    return Sent::kAll;
  }
  // A socket that has ended is writable, again and again.
  if (is_over(socket_)) return Sent::kNever;
  if (owed_ != PendingWritable::kSent) set_awaits_sent(true);
  arm_write_event();
  return Sent::kNotYet;
}

std::string Stream::tls_error() const { return tls_ == nullptr ? std::string() : tls_->error(); }

bool Stream::is_tls_refused_by_peer() const {
  return tls_ != nullptr && tls_->is_refused_by_peer();
}

bool Stream::has_tls_peer_left() const { return tls_ != nullptr && tls_->has_peer_left(); }

bool Stream::has_tls_nothing_in_common() const {
  return tls_ != nullptr && tls_->has_nothing_in_common();
}

std::string_view Stream::certificate_fault() const {
  return tls_ == nullptr ? std::string_view() : tls_->certificate_fault();
}

TlsFacts Stream::tls_facts() const { return facts_of(tls_->ssl()); }

bool Stream::is_tls_resumed() const { return tls_ != nullptr && tls_->is_resumed(); }

void Stream::touch() { last_activity_ = loop_.now(); }

}  // namespace encore::net
