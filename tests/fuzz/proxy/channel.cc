#include "tests/fuzz/proxy/channel.h"

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

namespace encore::proxyfuzz {
namespace {

constexpr std::size_t kRecordBytes = 16384;

ssize_t send_parts(int descriptor, std::string_view first, std::string_view second) {
  std::array<iovec, 2> parts{
      {{.iov_base = const_cast<char*>(first.data()), .iov_len = first.size()},
       {.iov_base = const_cast<char*>(second.data()), .iov_len = second.size()}}};
  msghdr message{};
  message.msg_iov = parts.data();
  message.msg_iovlen = parts.size();
  return ::sendmsg(descriptor, &message, MSG_NOSIGNAL);
}

std::string openssl_fault() {
  std::array<char, 200> text{};
  ERR_error_string_n(ERR_peek_error(), text.data(), text.size());
  return text.data();
}

}  // namespace

// Most connections go as they would; some are cut finely, some stall now and then, some do both.
Layer Layer::draw(Random& random) {
  Layer out;
  out.split = random.pick({0.0, 0.0, 5.0, 30.0, 80.0});
  out.stall = random.pick({0.0, 0.0, 0.5, 5.0});
  return out;
}

struct Channel::Secured {
  Ssl ssl;
  Layer layer;
  Random random{0};
  BIO* in = nullptr;  // the SSL's
  BIO* out = nullptr;
  std::string outbox;    // encrypted
  std::size_t sent = 0;  // bytes of it
  std::uint64_t sent_before = 0;
  std::uint32_t watched = 0;  // events that the loop is asked for
  bool ready = false;         // the handshake is done
  bool stalled = false;
  bool stopped = false;
  bool has_said_end = false;
  bool shuts_down = false;  // once all is sent
  int send_error = 0;       // from now on
  int read_error = 0;
  std::size_t reads = 0;
  std::string fault;
  std::string record;  // bytes of the next one
  Loop::Timer pause{};
  Loop::Timer soon{};

  std::size_t left() const { return outbox.size() - sent; }
};

Channel::Channel(Loop& loop) : loop_(loop) {}

Channel::~Channel() { close(Close::kLeave); }

void Channel::open(int descriptor, Handler& handler, std::uint32_t events) {
  descriptor_ = descriptor;
  handler_ = &handler;
  ++opened_;
  loop_.add(descriptor, handler, events);
}

void Channel::open_secured(int descriptor, Handler& handler, std::uint32_t events, Ssl ssl,
                           const Layer& layer, Random random) {
  descriptor_ = descriptor;
  handler_ = &handler;
  wants_ = events;
  ++opened_;
  secured_ = std::make_unique<Secured>();
  Secured& at = *secured_;
  at.ssl = std::move(ssl);
  at.layer = layer;
  at.random = random;
  at.in = BIO_new(BIO_s_mem());
  at.out = BIO_new(BIO_s_mem());
  BIO_set_mem_eof_return(at.in, -1);
  SSL_set_bio(at.ssl.get(), at.in, at.out);
  at.watched = EPOLLIN | EPOLLOUT;
  loop_.add(descriptor, *this, at.watched);
}

void Channel::set_handler(Handler& handler) {
  handler_ = &handler;
  if (secured_ != nullptr) return want(EPOLLIN);
  loop_.remove(descriptor_);
  loop_.add(descriptor_, handler, EPOLLIN);
}

void Channel::want(std::uint32_t events) {
  if (secured_ == nullptr) return loop_.modify(descriptor_, events);
  wants_ = events;
  arm();
}

ssize_t Channel::send(std::string_view first, std::string_view second) {
  if (secured_ == nullptr) return send_parts(descriptor_, first, second);
  Secured& at = *secured_;
  if (at.send_error == 0 && shake()) pump();
  const int error = at.send_error != 0 ? at.send_error : at.read_error;
  if (error != 0 || !at.ready || at.left() != 0) {
    errno = error != 0 ? error : EAGAIN;
    return -1;
  }
  std::size_t size = std::min(first.size() + second.size(), kRecordBytes);
  if (at.random.percent(20)) size = at.random.between(1, std::min<std::size_t>(size, 3000));
  at.record = first.substr(0, size);
  at.record += second.substr(0, size - at.record.size());
  // Either side is to use another key from the next record on (RFC 8446 4.6.3).
  if (at.random.percent(0.5) && SSL_is_server(at.ssl.get()) == 0) change_keys(1);
  ERR_clear_error();
  std::size_t taken = 0;
  if (SSL_write_ex(at.ssl.get(), at.record.data(), at.record.size(), &taken) != 1) {
    fail(at.send_error);
    errno = at.send_error;
    return -1;
  }
  collect();
  pump();
  arm();
  return static_cast<ssize_t>(taken);
}

ssize_t Channel::recv(std::span<char> into) {
  if (secured_ == nullptr) return ::recv(descriptor_, into.data(), into.size(), 0);
  Secured& at = *secured_;
  if (at.read_error == 0 && shake()) {
    while (true) {
      ERR_clear_error();
      std::size_t came = 0;
      const int result = SSL_read_ex(at.ssl.get(), into.data(), into.size(), &came);
      const int error = SSL_get_error(at.ssl.get(), result);
      if (result != 1 && error != SSL_ERROR_WANT_READ && error != SSL_ERROR_ZERO_RETURN) {
        fail(at.read_error);
      }
      collect();
      pump();
      if (result == 1) {
        arm();
        return static_cast<ssize_t>(came);
      }
      if (error == SSL_ERROR_ZERO_RETURN) return 0;
      if (at.read_error != 0 || !fill()) break;
    }
  }
  errno = at.read_error != 0 ? at.read_error : EAGAIN;
  return -1;
}

// False: it is not done, or has failed.
bool Channel::shake() {
  Secured& at = *secured_;
  while (!at.ready && at.read_error == 0) {
    ERR_clear_error();
    const int result = SSL_do_handshake(at.ssl.get());
    const int error = SSL_get_error(at.ssl.get(), result);
    if (result != 1 && error != SSL_ERROR_WANT_READ) fail(at.read_error);
    at.ready = result == 1;
    collect();
    pump();
    if (result != 1 && at.read_error == 0 && !fill()) break;
  }
  return at.ready && at.read_error == 0;
}

void Channel::fail(int& error) {
  error = EPROTO;
  if (secured_->fault.empty()) secured_->fault = openssl_fault();
}

// False: nothing has come.
bool Channel::fill() {
  Secured& at = *secured_;
  std::array<char, 16384> bytes;
  const ssize_t size = ::recv(descriptor_, bytes.data(), bytes.size(), 0);
  if (size > 0) {
    ++at.reads;
    BIO_write(at.in, bytes.data(), static_cast<int>(size));
    return true;
  }
  if (size == 0) {
    at.read_error = ECONNRESET;  // no close_notify was in front of it
  } else if (errno != EAGAIN && errno != EINTR && errno != ENOTCONN) {
    at.read_error = errno;
  }
  return false;
}

// Moves OpenSSL's output to the outbox.
void Channel::collect() {
  Secured& at = *secured_;
  const std::size_t size = BIO_ctrl_pending(at.out);
  if (size == 0) return;
  if (at.left() == 0) {
    at.outbox.clear();
    at.sent = 0;
  }
  const std::size_t before = at.outbox.size();
  at.outbox.resize(before + size);
  BIO_read(at.out, at.outbox.data() + before, static_cast<int>(size));
  const std::uint64_t begin = at.sent_before + before - at.sent;
  if (at.layer.damages_at >= begin && at.layer.damages_at < begin + size) {
    at.outbox[before + at.layer.damages_at - begin] ^= 4;
  }
}

void Channel::pump() {
  Secured& at = *secured_;
  while (at.left() != 0 && !at.stalled && !at.stopped && at.send_error == 0) {
    if (!send_piece()) return;
  }
  if (at.left() == 0 && std::exchange(at.shuts_down, false)) ::shutdown(descriptor_, SHUT_WR);
}

// False: the system takes none now.
bool Channel::send_piece() {
  Secured& at = *secured_;
  std::size_t size = at.left();
  if (at.random.percent(at.layer.split)) {
    const auto most = at.random.pick<std::size_t>({1, 4, 6, 60, 2000});
    size = at.random.between(1, std::min(size, most));
  }
  size = std::min<std::uint64_t>(size, at.layer.stops_at - at.sent_before);
  const ssize_t taken = ::send(descriptor_, at.outbox.data() + at.sent, size, MSG_NOSIGNAL);
  if (taken < 0) {
    if (errno == EAGAIN || errno == ENOTCONN || errno == EINTR) return false;
    at.send_error = errno;
    return false;
  }
  at.sent += static_cast<std::size_t>(taken);
  at.sent_before += static_cast<std::size_t>(taken);
  at.stopped = at.sent_before >= at.layer.stops_at;
  if (!at.random.percent(at.layer.stall)) return true;
  at.stalled = true;
  const double seconds = 0.0001 * static_cast<double>(at.random.pick<std::uint64_t>({1, 10, 100}));
  at.pause = loop_.after(seconds, [this] {
    secured_->pause = {};
    secured_->stalled = false;
    pump();
    deliver(0);
  });
  return true;
}

void Channel::shut_down() {
  if (secured_ == nullptr) {
    ::shutdown(descriptor_, SHUT_WR);
    return;
  }
  secured_->shuts_down = secured_->random.percent(60);  // else the close_notify is all there is
  (void)say_end();
  arm();
}

bool Channel::say_end() {
  if (secured_ == nullptr) return true;
  Secured& at = *secured_;
  if (!std::exchange(at.has_said_end, true)) {
    ERR_clear_error();
    SSL_shutdown(at.ssl.get());
    collect();
  }
  pump();
  return has_sent_all();
}

bool Channel::has_sent_all() const {
  return secured_ == nullptr || secured_->left() == 0 || secured_->send_error != 0;
}

void Channel::close(Close how) {
  if (descriptor_ < 0) return;
  bool resets = how != Close::kLeave;
  if (secured_ != nullptr) {
    Secured& at = *secured_;
    loop_.cancel(at.pause);
    loop_.cancel(at.soon);
    if (how == Close::kCut) resets = at.random.percent(50);
    if (how == Close::kLeave && at.ready && at.left() == 0 && !at.stopped &&
        at.random.percent(50)) {
      (void)say_end();
      loop_.cancel(at.pause);
    }
  }
  loop_.remove(descriptor_);
  if (resets) {
    close_with_reset(descriptor_);
  } else {
    ::close(descriptor_);
  }
  descriptor_ = -1;
  secured_.reset();
  ++opened_;
}

int Channel::release() {
  loop_.remove(descriptor_);
  ++opened_;
  return std::exchange(descriptor_, -1);
}

bool Channel::was_heard() const {
  return proxyfuzz::was_heard(descriptor_) && (secured_ == nullptr || secured_->left() == 0);
}

bool Channel::was_broken() const { return proxyfuzz::was_broken(descriptor_); }

bool Channel::had_read_all() const { return proxyfuzz::had_read_all(descriptor_); }

std::size_t Channel::take_reads() { return std::exchange(secured_->reads, 0); }

std::string Channel::fault() const { return secured_ == nullptr ? std::string() : secured_->fault; }

std::string_view Channel::protocol() const {
  if (secured_ == nullptr) return {};
  const unsigned char* name = nullptr;
  unsigned size = 0;
  SSL_get0_alpn_selected(secured_->ssl.get(), &name, &size);
  return {reinterpret_cast<const char*>(name), size};
}

bool Channel::has_stopped() const { return secured_ != nullptr && secured_->stopped; }

void Channel::change_keys(int times) {
  SSL* const ssl = secured_->ssl.get();
  if (!secured_->ready || SSL_version(ssl) != TLS1_3_VERSION) return;
  for (; times > 0; --times) {
    SSL_key_update(ssl, SSL_KEY_UPDATE_REQUESTED);
    SSL_do_handshake(ssl);
    collect();
  }
  pump();
}

bool Channel::is_writable() const {
  const Secured& at = *secured_;
  return at.send_error != 0 || at.read_error != 0 || (at.ready && at.left() == 0);
}

// True if there is something to read that the system does not tell of.
bool Channel::is_readable() const {
  const Secured& at = *secured_;
  return at.read_error != 0 || SSL_pending(at.ssl.get()) > 0 || BIO_ctrl_pending(at.in) > 0;
}

// Asks the loop for what is to come.
void Channel::arm() {
  Secured& at = *secured_;
  std::uint32_t watched = 0;
  if ((!at.ready || (wants_ & EPOLLIN) != 0) && at.read_error == 0) watched |= EPOLLIN;
  if (at.left() != 0 && !at.stalled && !at.stopped && at.send_error == 0) watched |= EPOLLOUT;
  if (watched != at.watched) loop_.modify(descriptor_, watched);
  at.watched = watched;
  const bool due =
      ((wants_ & EPOLLIN) != 0 && is_readable()) || ((wants_ & EPOLLOUT) != 0 && is_writable());
  if (!due || at.soon.second != 0) return;
  at.soon = loop_.after(0, [this] {
    secured_->soon = {};
    deliver(0);
  });
}

void Channel::deliver(std::uint32_t events) {
  std::uint32_t due = 0;
  if ((wants_ & EPOLLOUT) != 0 && is_writable()) due |= EPOLLOUT;
  const bool comes = secured_->ready && (events & (EPOLLIN | EPOLLHUP | EPOLLERR)) != 0;
  if ((wants_ & EPOLLIN) != 0 && (comes || is_readable())) due |= EPOLLIN;
  const std::uint64_t opened = opened_;
  if (due != 0) handler_->on_ready(due);
  if (opened == opened_) arm();
}

void Channel::on_ready(std::uint32_t events) {
  if ((events & EPOLLOUT) != 0) pump();
  (void)shake();
  deliver(events);
}

}  // namespace encore::proxyfuzz
