#include "proxy/net/stream.h"

#include <event2/event.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <cstring>
#include <utility>

#include "base/check.h"
#include "proxy/net/destruction.h"
#include "proxy/net/linger.h"
#include "proxy/net/syscalls.h"
#include "proxy/net/tls_session.h"

namespace encore::net {
namespace {

// Room for the next read behind kept bytes: what comes is the rest of a head, as a rule.
constexpr std::size_t kKeptRoomBytes = 4096;
// Records of one turn, so that one fast peer does not hold the loop: 8 x 16 KiB.
constexpr int kRecordsPerTurn = 8;
// Behind a read of so much, as one TLS record carries, the next one waits for its share.
constexpr std::size_t kMuchBytes = std::size_t{16} << 10;
// The largest total of several parts that are sent in one piece.
constexpr std::size_t kGatheredBytesMax = 4096;

CloseReason reason_of(int os_error) {
  switch (os_error) {
    case ECONNRESET:
    case EPIPE:
      return CloseReason::kReset;
    case ETIMEDOUT:
      return CloseReason::kTimeout;
    default:
      return CloseReason::kError;
  }
}

CloseReason reason_of(const TlsResult& result, const TlsSession& tls) {
  switch (result.status) {
    case TlsStatus::kSystem:
      return reason_of(result.os_error);
    case TlsStatus::kTruncated:
      return CloseReason::kTlsTruncated;
    default:
      return tls.got_plain_http() ? CloseReason::kTlsPlainHttp : CloseReason::kTlsError;
  }
}

std::uint64_t cost(const TlsSessionPointer& tls) { return tls ? TurnShares::kTlsCost : 1; }

std::size_t total_bytes(std::span<const iovec> parts) {
  std::size_t total = 0;
  for (const iovec& part : parts) total += part.iov_len;
  return total;
}

template <typename Call>
ssize_t uninterrupted(Call call) {
  ssize_t sent;
  do {
    sent = call();
  } while (sent < 0 && errno == EINTR);
  return sent;
}

ssize_t send_bytes(int descriptor, const void* bytes, std::size_t size) {
  return uninterrupted([&] { return syscalls.send(descriptor, bytes, size, MSG_NOSIGNAL); });
}

// Small parts are sent in one piece: a copy costs less than the kernel's handling of parts.
ssize_t send_parts(int descriptor, std::span<const iovec> parts, std::size_t total) {
  if (parts.size() == 1) return send_bytes(descriptor, parts[0].iov_base, total);
  if (total <= kGatheredBytesMax) {
    std::array<std::byte, kGatheredBytesMax> room;
    std::size_t used = 0;
    for (const iovec& part : parts) {
      if (part.iov_len == 0) continue;
      std::memcpy(room.data() + used, part.iov_base, part.iov_len);
      used += part.iov_len;
    }
    return send_bytes(descriptor, room.data(), total);
  }
  msghdr message{};
  message.msg_iov = const_cast<iovec*>(parts.data());
  message.msg_iovlen = std::min<std::size_t>(parts.size(), IOV_MAX);
  return uninterrupted([&] { return syscalls.sendmsg(descriptor, &message, MSG_NOSIGNAL); });
}

}  // namespace

std::string_view to_string(CloseReason reason) {
  switch (reason) {
    case CloseReason::kReset:
      return "reset";
    case CloseReason::kTimeout:
      return "timeout";
    case CloseReason::kError:
      return "error";
    case CloseReason::kTlsError:
      return "tls-error";
    case CloseReason::kTlsTruncated:
      return "tls-truncated";
    case CloseReason::kTlsPlainHttp:
      return "tls-plain-http";
  }
  return "unknown";
}

// Bytes that the handler did not use, with room for those that follow.
class Stream::Kept {
 public:
  std::span<const std::byte> bytes() const { return {room_.get() + begin_, end_ - begin_}; }
  std::size_t size() const { return end_ - begin_; }

  void append(std::span<const std::byte> bytes) {
    reserve(bytes.size());
    std::memcpy(room_.get() + end_, bytes.data(), bytes.size());
    end_ += bytes.size();
  }
  void drop_front(std::size_t bytes) { begin_ += bytes; }

  // The buffer for the next read; `grow` then adds the number of bytes read.
  std::span<std::byte> tail() {
    reserve(kKeptRoomBytes);
    return {room_.get() + end_, capacity_ - end_};
  }
  void grow(std::size_t bytes) { end_ += bytes; }

 private:
  void reserve(std::size_t more) {
    if (capacity_ - end_ >= more) return;
    const std::size_t size = end_ - begin_;
    const std::size_t capacity = std::max(kKeptRoomBytes, 2 * size) + more;
    auto room = std::make_unique_for_overwrite<std::byte[]>(capacity);
    if (size > 0) std::memcpy(room.get(), room_.get() + begin_, size);
    room_ = std::move(room);
    capacity_ = capacity;
    begin_ = 0;
    end_ = size;
  }

  std::unique_ptr<std::byte[]> room_;
  std::size_t capacity_ = 0;
  std::size_t begin_ = 0;
  std::size_t end_ = 0;
};

Stream::Stream(Loop& loop, Socket socket, const Address& peer, StreamHandler* handler)
    : Stream(loop, std::move(socket), peer, handler, nullptr) {}

Stream::Stream(Loop& loop, Socket socket, const Address& peer, StreamHandler* handler,
               TlsSessionPointer tls)
    : loop_(loop),
      handler_(handler),
      tls_(std::move(tls)),
      last_activity_(loop.now()),
      peer_(peer),
      socket_(std::move(socket)),
      ready_(tls_ == nullptr) {
  ENCORE_CHECK(socket_, "a stream takes over an open socket");
  if (tls_ != nullptr) {
    ENCORE_CHECK(tls_->attach(socket_.get()), "there is memory for a TLS connection");
  }
  read_event_.assign(loop_.base(), socket_.get(), EV_READ | EV_PERSIST, &Stream::on_read_event,
                     this);
}

Stream::~Stream() {
  close();
  DestructionWatch::tell(watched_);
}

// ---- calling the handler

template <typename Call>
bool Stream::call_handler(Call call) {
  const DestructionWatch watch(watched_);
  call();
  return !watch.destroyed() && is_open();
}

bool Stream::deliver(std::span<const std::byte> bytes) {
  std::size_t used = 0;
  if (!call_handler([&] { used = handler_->on_data(*this, bytes); })) return false;
  ENCORE_CHECK(used <= bytes.size(), "a handler uses no more bytes than it was given");
  if (used < bytes.size()) keep(bytes.subspan(used));
  return true;
}

// Keeps the bytes that the handler has not used; if it has begun TLS with this call, they are TLS.
void Stream::keep(std::span<const std::byte> bytes) {
  if (!ready_) {
    tls_->feed(bytes);
    return;
  }
  kept_ = std::make_unique<Kept>();
  kept_->append(bytes);
}

bool Stream::deliver_kept() {
  // Held here during the call: the bytes stay valid if the handler closes the stream.
  auto kept = std::move(kept_);
  std::size_t used = 0;
  if (!call_handler([&] { used = handler_->on_data(*this, kept->bytes()); })) return false;
  ENCORE_CHECK(used <= kept->size(), "a handler uses no more bytes than it was given");
  kept->drop_front(used);
  if (kept->size() == 0) return true;
  if (ready_) {
    kept_ = std::move(kept);
  } else {
    tls_->feed(kept->bytes());
  }
  return true;
}

bool Stream::end(CloseReason reason, int os_error) {
  detach();
  health_ = Health::kFailed;
  return call_handler([&] { handler_->on_error(*this, reason, os_error); });
}

bool Stream::end_of_bytes() {
  eof_ = true;
  update_read_event();
  return call_handler([&] { handler_->on_eof(*this); });
}

// ---- reading

bool Stream::wants_to_read() const {
  return !paused_ && !eof_ && !is_dead() && (kept_ == nullptr || kept_->size() < kept_bytes_max_);
}

void Stream::update_read_event() {
  const bool wanted = wants_to_read();
  if (wanted == read_event_.is_added()) return;
  if (wanted) {
    // epoll refuses only where memory is out; then the stream is silent and its owner's sweep
    // ends it.
    (void)read_event_.add();
  } else {
    read_event_.remove();
  }
}

void Stream::pause_reading() {
  if (!is_open()) return;
  paused_ = true;
  loop_.unschedule(*this);
  update_read_event();
}

void Stream::resume_reading() {
  ENCORE_CHECK(handler_ != nullptr, "a stream that reads has a handler");
  if (!is_open() || is_dead()) return;
  paused_ = false;
  update_read_event();
  // A client begins with its hello, and nothing is to be done before it is there.
  const bool awaits_hello = !ready_ && tls_->is_server() && !tls_->has_fed();
  if (kept_ != nullptr || watched_ != nullptr || (tls_ != nullptr && !awaits_hello)) {
    loop_.schedule(*this, &Stream::on_resumed);
  }
}

bool Stream::start_tls(TlsSessionPointer tls) {
  ENCORE_CHECK(is_open() && tls_ == nullptr && health_ == Health::kWell &&
                   owed_ == PendingWritable::kNothing,
               "a plain stream with nothing unsent goes over to TLS");
  if (!tls->attach(socket_.get())) return false;
  tls_ = std::move(tls);
  ready_ = false;
  if (const auto kept = std::move(kept_)) tls_->feed(kept->bytes());
  if (!paused_) loop_.schedule(*this, &Stream::on_resumed);
  return true;
}

void Stream::on_resumed(DeferredNode& node) {
  auto& stream = static_cast<Stream&>(node);
  if (stream.kept_ != nullptr) {
    if (!stream.deliver_kept() || stream.paused_) return;
    stream.update_read_event();
  }
  // Bytes that OpenSSL has read already do not make the descriptor readable.
  if (stream.tls_ != nullptr && (!stream.ready_ || stream.tls_->has_pending())) {
    stream.read_ready();
  }
}

void Stream::on_read_event(int, short, void* context) {
  auto& stream = *static_cast<Stream*>(context);
  if (stream.run == nullptr && stream.last_read_bytes_ < kMuchBytes) return stream.read_ready();
  if (stream.waits_for_share) return;
  if (stream.run != nullptr) {
    // Kept bytes are due: they go before what the kernel has, and before an end.
    stream.loop_.unschedule(stream);
    return on_resumed(stream);
  }
  if (stream.loop_.shares().allowance() != 0) return stream.read_ready();
  stream.loop_.wait_for_share(stream, &Stream::on_share);
}

void Stream::on_share(DeferredNode& node) {
  auto& stream = static_cast<Stream&>(node);
  if (stream.kept_ != nullptr && (!stream.deliver_kept() || stream.paused_)) return;
  stream.update_read_event();
  stream.read_ready();
}

void Stream::read_ready() {
  if (!ready_ && !drive_handshake()) return;
  if (tls_ == nullptr) {
    if (wants_to_read() && read_once()) update_read_event();
    return;
  }
  for (int record = 0; record < kRecordsPerTurn; ++record) {
    if (!wants_to_read()) return update_read_event();
    if (!read_once()) return;
    if (!tls_->has_pending()) return update_read_event();
  }
  if (last_read_bytes_ < kMuchBytes) return loop_.schedule(*this, &Stream::on_resumed);
  loop_.wait_for_share(*this, &Stream::on_share);
}

// Reads once and tells the handler what came. False where the stream is closed or destroyed, or
// nothing came.
bool Stream::read_once() {
  std::span<std::byte> target;
  if (kept_ != nullptr) {
    target = kept_->tail();
  } else {
    target = handler_->read_buffer(*this);
    if (target.empty()) target = loop_.scratch();
  }
  if (last_read_bytes_ >= kMuchBytes) {
    const std::size_t share = std::max(loop_.shares().allowance(), TurnShares::kShareMin);
    target = target.first(std::min(target.size(), share));
  }
  std::size_t bytes = 0;
  if (tls_ == nullptr) {
    const ssize_t got = syscalls.recv(socket_.get(), target.data(), target.size(), 0);
    if (got < 0) {
      const int os_error = errno;
      return !is_transient(os_error) && end(reason_of(os_error), os_error);
    }
    if (got == 0) return end_of_bytes();
    bytes = static_cast<std::size_t>(got);
  } else {
    const TlsResult got = tls_->read(target);
    if (got.status == TlsStatus::kWantRead) return false;
    if (got.status == TlsStatus::kWantWrite) {
      // A change of keys that the peer has requested goes first. Later bytes may be in OpenSSL
      // already, and no event would trigger their read.
      read_awaits_room_ = true;
      arm_write_event();
      return false;
    }
    if (got.status == TlsStatus::kEnd) return end_of_bytes();
    if (got.status != TlsStatus::kOk) return end(reason_of(got, *tls_), got.os_error);
    bytes = got.bytes;
  }
  bytes_read_ += bytes;
  last_read_bytes_ = static_cast<std::uint32_t>(bytes);
  last_read_room_ = static_cast<std::uint32_t>(
      tls_ == nullptr ? target.size() : std::min(target.size(), kMuchBytes));
  if (bytes >= kMuchBytes) loop_.shares().count_read(*this, bytes, cost(tls_));
  last_activity_ = loop_.now();
  if (kept_ == nullptr) return deliver(target.first(bytes));
  kept_->grow(bytes);
  return deliver_kept();
}

bool Stream::drive_handshake() {
  if (tls_->is_server() && !loop_.take_handshake()) {
    // The loop tells again that the descriptor is ready; of what lies here it knows nothing.
    if (tls_->has_fed()) loop_.schedule(*this, &Stream::on_resumed);
    return false;
  }
  const TlsResult result = tls_->handshake();
  switch (result.status) {
    case TlsStatus::kOk:
      break;
    case TlsStatus::kWantRead:
      disarm_write_event();
      return false;
    case TlsStatus::kWantWrite:
      arm_write_event();
      return false;
    default:
      end(reason_of(result, *tls_), result.os_error);
      return false;
  }
  ready_ = true;
  disarm_write_event();
  last_activity_ = loop_.now();
  return call_handler([&] { handler_->on_ready(*this); });
}

std::size_t Stream::kept_bytes() const { return kept_ == nullptr ? 0 : kept_->size(); }

// ---- writing

WriteResult Stream::write(std::string_view bytes) {
  const iovec part{.iov_base = const_cast<char*>(bytes.data()), .iov_len = bytes.size()};
  return write(std::span(&part, 1));
}

WriteResult Stream::write(std::span<const iovec> parts) {
  ENCORE_CHECK(is_open() && ready_, "a stream is written to while it is open and ready");
  if (health_ != Health::kWell) return {.status = WriteStatus::kError};
  const std::size_t asked = total_bytes(parts);
  if (asked == 0) return {};
  if (tls_ != nullptr) return write_tls(parts, asked);
  const ssize_t sent = send_parts(socket_.get(), parts, asked);
  if (sent < 0 && errno != EAGAIN) return write_failed(reason_of(errno), errno);
  return taken(static_cast<std::size_t>(std::max<ssize_t>(sent, 0)), asked);
}

WriteResult Stream::write_tls(std::span<const iovec> parts, std::size_t asked) {
  const TlsResult sent = tls_->write(parts, loop_.record_scratch());
  if (sent.status != TlsStatus::kOk && sent.status != TlsStatus::kWantWrite) {
    WriteResult failed = write_failed(reason_of(sent, *tls_), sent.os_error);
    failed.bytes = sent.bytes;  // bytes of the records before the failed one
    bytes_written_ += sent.bytes;
    return failed;
  }
  return taken(sent.bytes, asked);
}

WriteResult Stream::taken(std::size_t bytes, std::size_t asked) {
  if (owed_ == PendingWritable::kSent) set_awaits_sent(false);
  if (bytes > 0) {
    bytes_written_ += bytes;
    loop_.shares().count_written(*this, bytes, cost(tls_));
    last_activity_ = loop_.now();
  }
  owed_ = bytes < asked ? PendingWritable::kRoom : PendingWritable::kNothing;
  if (owed_ == PendingWritable::kRoom) {
    arm_write_event();
    return {.status = WriteStatus::kBlocked, .bytes = bytes};
  }
  if (!read_awaits_room_) disarm_write_event();
  return {.status = WriteStatus::kAll, .bytes = bytes};
}

WriteResult Stream::write_failed(CloseReason reason, int os_error) {
  detach();
  health_ = Health::kUnwritable;
  return {.status = WriteStatus::kError, .reason = reason, .os_error = os_error};
}

bool Stream::read_rest() {
  if (!is_open() || health_ != Health::kUnwritable || eof_ || tls_ != nullptr) return false;
  health_ = Health::kReadingRest;
  update_read_event();
  if (kept_ != nullptr && !paused_) loop_.schedule(*this, &Stream::on_resumed);
  return true;
}

void Stream::arm_write_event() {
  if (write_event_ == nullptr) {
    write_event_ = std::make_unique<Event>();
    write_event_->assign(loop_.base(), socket_.get(), EV_WRITE | EV_PERSIST,
                         &Stream::on_write_event, this);
  }
  if (!write_event_->is_added()) (void)write_event_->add();
}

void Stream::disarm_write_event() {
  if (write_event_ != nullptr && write_event_->is_added()) write_event_->remove();
}

void Stream::on_write_event(int, short, void* context) {
  static_cast<Stream*>(context)->write_ready();
}

void Stream::write_ready() {
  if (!ready_) {
    if (drive_handshake()) loop_.schedule(*this, &Stream::on_resumed);
    return;
  }
  if (tls_ != nullptr) {
    const TlsResult flushed = tls_->flush();
    if (flushed.status == TlsStatus::kWantWrite) return;
    if (flushed.status != TlsStatus::kOk) {
      end(reason_of(flushed, *tls_), flushed.os_error);
      return;
    }
    if (shutdown_due_) finish_shutdown();
  }
  if (std::exchange(read_awaits_room_, false) && !paused_) {
    loop_.schedule(*this, &Stream::on_resumed);
  }
  const bool is_owed = owed_ != PendingWritable::kNothing;
  if (owed_ == PendingWritable::kSent) set_awaits_sent(false);
  owed_ = PendingWritable::kNothing;
  if (is_owed && !call_handler([&] { handler_->on_writable(*this); })) return;
  if (owed_ != PendingWritable::kNothing || read_awaits_room_) return;
  if (tls_ == nullptr || !tls_->has_unsent()) disarm_write_event();
}

// ---- closing

void Stream::shutdown_write() {
  if (!is_open() || health_ != Health::kWell) return;
  if (tls_ != nullptr && tls_->has_unsent()) {
    shutdown_due_ = true;
    return;
  }
  finish_shutdown();
}

void Stream::finish_shutdown() {
  if (tls_ != nullptr && ready_) tls_->shutdown();
  shutdown_due_ = tls_ != nullptr && tls_->has_unsent();
  if (shutdown_due_) return arm_write_event();
  ::shutdown(socket_.get(), SHUT_WR);
}

// Takes the stream out of the loop: no callback comes any more.
void Stream::detach() {
  loop_.unschedule(*this);
  read_event_.remove();
  write_event_.reset();
  owed_ = PendingWritable::kNothing;
}

void Stream::close_gracefully() {
  if (!is_open()) return;
  kept_.reset();
  // With nothing more to come, or nothing that could be sent, there is nothing to wait for.
  // A client that ended its side before still is to know that ours is whole.
  if (tls_ != nullptr && ready_ && health_ == Health::kWell && !tls_->has_unsent()) {
    tls_->shutdown();
  }
  const bool is_unsent = tls_ != nullptr && tls_->has_unsent();
  if (health_ != Health::kWell || (eof_ && !is_unsent)) return close();
  Lingering::of(loop_).take(std::move(socket_), ready_ ? std::move(tls_) : TlsSessionPointer(),
                            &read_event_);
  detach();
}

void Stream::abort() {
  if (!is_open()) return;
  const linger reset{.l_onoff = 1, .l_linger = 0};
  ::setsockopt(socket_.get(), SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
  ready_ = false;  // no close_notify: the peer must not take this for an end
  close();
}

void Stream::refuse_plain(std::string_view answer) {
  ENCORE_CHECK(is_open() && tls_ != nullptr && !ready_, "a handshake has failed");
  (void)send_bytes(socket_.get(), answer.data(), answer.size());
  tls_.reset();
  Lingering::of(loop_).take(std::move(socket_), {});
}

void Stream::close() {
  if (!is_open()) return;
  detach();
  kept_.reset();
  if (tls_ != nullptr && ready_ && !is_dead() && !tls_->has_unsent()) tls_->shutdown();
  socket_.reset();
}

}  // namespace encore::net
