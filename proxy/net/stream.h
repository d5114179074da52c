// Stream: one TCP connection, plain or under TLS, of a client or to an origin. Bytes come as spans
// through a StreamHandler and go by write(). Confined to its loop's thread.
//
// It costs about 300 bytes and a registration in the kernel while idle: no buffers, no timer. The
// owner checks last_activity() in a sweep of its own.
//
// Why libevent's raw events and none of its streams: docs/decisions/0020.
// Lifetime: the owner embeds it or holds it by unique_ptr, and may destroy it at any time, also
// from inside a callback of its own handler; no callback comes after that. A handler must outlive
// its stream or be replaced by set_handler. No function of Stream calls the handler before it
// returns: callbacks come from the loop only.
#pragma once

#include <sys/uio.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "base/time.h"
#include "proxy/net/address.h"
#include "proxy/net/event.h"
#include "proxy/net/loop.h"
#include "proxy/net/socket.h"
#include "proxy/net/tls.h"

namespace encore::net {

class Stream;

// Why a stream cannot go on.
enum class CloseReason : std::uint8_t {
  kReset,         // the peer reset the connection (ECONNRESET, EPIPE)
  kTimeout,       // the kernel gave up on an unanswered peer (ETIMEDOUT, keepalive)
  kError,         // another error of the system; os_error says which
  kTlsError,      // handshake or record refused; tls_error() says why
  kTlsTruncated,  // under TLS: the peer ended the connection without saying so (no close_notify)
  kTlsPlainHttp,  // a request of HTTP came where a TLS client was to begin; see refuse_plain()
};
std::string_view to_string(CloseReason reason);

// Events of a stream for its owner.
class StreamHandler {
 public:
  // Handles received bytes. Returns how many of them were used; the rest is kept by the stream and
  // presented again, in front of what comes next, or when resume_reading() is called. `bytes` is
  // valid until the call returns. A stream that keeps Stream::kKeptBytesMax (or what its handler
  // has set) reads no more until kept bytes are used. The result is ignored if the stream was
  // closed or destroyed.
  virtual std::size_t on_data(Stream& stream, std::span<const std::byte> bytes) = 0;
  // After a write that took less than all: the socket takes more now.
  virtual void on_writable(Stream& stream) = 0;
  // The peer will send no more; writing may go on. Kept bytes, if any, stay kept.
  virtual void on_eof(Stream& stream) = 0;
  // The stream is dead; destroy it. Errors of write() are returned there and not told here too.
  virtual void on_error(Stream& stream, CloseReason reason, int os_error) = 0;
  // TLS only: the handshake is done, before any on_data. Writing may start.
  virtual void on_ready(Stream&) {}
  // Returns the buffer of the next read; empty: the loop's scratch. Called right before a read
  // while no bytes are kept; on_data follows with the received bytes, a prefix of it. It must not
  // close or destroy the stream.
  virtual std::span<std::byte> read_buffer(Stream&) { return {}; }

 protected:
  ~StreamHandler() = default;
};

enum class WriteStatus : std::uint8_t {
  kAll,      // everything was taken
  kBlocked,  // a part (or nothing) was taken: bytes < asked; on_writable will be called
  kError,    // the stream is dead; destroy it, or see read_rest()
};
struct WriteResult {
  WriteStatus status = WriteStatus::kAll;
  std::size_t bytes = 0;                     // taken, from the front
  CloseReason reason = CloseReason::kError;  // with kError
  int os_error = 0;                          // with kError; 0 where TLS failed
};

class Stream : private DeferredNode {
 public:
  // Kept bytes at which reading stops by itself until resume_reading().
  static constexpr std::size_t kKeptBytesMax = 64 * 1024;

  // Takes over a connected, non-blocking socket. `handler` may be null until set_handler; reading
  // is paused until resume_reading(). `loop` is borrowed.
  Stream(Loop& loop, Socket socket, const Address& peer, StreamHandler* handler);
  // The same under TLS: the handshake starts when reading is resumed. See TlsContext::session and
  // TlsServer::session.
  Stream(Loop& loop, Socket socket, const Address& peer, StreamHandler* handler,
         TlsSessionPointer tls);
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;
  // Closes immediately. The kernel still sends bytes taken by write(), with two exceptions: the
  // peer has sent bytes that were not read (then the connection is reset), or the last write() did
  // not take all: under TLS a part of the taken bytes waits in a record then. close_gracefully
  // handles both.
  ~Stream();

  void set_handler(StreamHandler* handler) { handler_ = handler; }

  // Switches to TLS, as if it had been made so: on_ready comes when the handshake is done. Bytes
  // that were read and not used are its beginning: in on_data, those that the call leaves unused.
  // False if memory is out; the stream is unchanged then. REQUIRES: open, plain, well, with nothing
  // unsent; `tls` is a server's.
  bool start_tls(TlsSessionPointer tls);

  // Writes as much as the socket takes now: one system call (under TLS: records of at most 16 KiB,
  // several parts in one record). Copies nothing that it does not take: the caller keeps the rest,
  // offset by `bytes`, and goes on in on_writable. At most IOV_MAX parts are sent in one call.
  // Empty input is kAll. REQUIRES: open, shutdown_write not called; under TLS, on_ready has come.
  WriteResult write(std::span<const iovec> parts);
  WriteResult write(std::string_view bytes);
  // After write() returned kError: continues reading unchanged, for bytes that the peer sent before
  // it closed or reset the connection (a response to a request that it did not want to read).
  // on_eof or on_error follows, and the end is no proof that all has come. False if nothing can be
  // read any more: under TLS, or at the end.
  bool read_rest();

  // Stops and starts reading. After resume_reading() kept bytes are presented first, from the
  // loop, in this turn; also where reading was not paused. Paused streams do not see that the
  // peer has gone. Both do nothing on a stream that is closed or dead. REQUIRES: a handler.
  void pause_reading();
  void resume_reading();
  bool is_reading_paused() const { return paused_; }

  // Sends the end of our bytes (under TLS close_notify first). Nothing on a closed stream.
  void shutdown_write();
  // Closes so that what was written arrives even if the peer is still sending: ends our side,
  // reads and drops what comes, for at most a few seconds and a few hundred KiB, in the care of
  // the loop. The stream is closed for its owner, who destroys it when he likes.
  void close_gracefully();
  // Closes with a reset, so that the peer sees a truncated message as an error.
  void abort();
  // In on_error, after kTlsPlainHttp: says this as it is, and closes gracefully.
  void refuse_plain(std::string_view answer);
  // Closes immediately, as destruction does.
  void close();
  bool is_open() const { return static_cast<bool>(socket_); }
  // Read to the end (on_eof was called or is due).
  bool is_eof() const { return eof_; }
  // True if bytes of the peer wait to be read. Asks the kernel.
  bool has_unread() const;
  // True if bytes wait behind those of the last read. Asks the kernel only if that read ended for
  // want of room, or of a TLS record's end, and not of bytes.
  bool has_more() const;
  // True if the connection has been reset meanwhile: behind the end of what it sent nothing is read
  // from a peer, so that nothing else tells. Asks the kernel; the answer comes true once.
  bool was_reset() const;

  // Bytes kept because on_data did not use them; 0 while they are being presented.
  std::size_t kept_bytes() const;
  // Keeps up to `bytes` (and one read more) where kKeptBytesMax is less: for a handler that uses
  // nothing of a longer head before its end.
  void keep_at_least(std::size_t bytes) { kept_bytes_max_ = std::max(kKeptBytesMax, bytes); }

  Loop& loop() const { return loop_; }
  const Address& peer() const { return peer_; }
  // Asks the kernel. 0.0.0.0:0 where the stream is closed.
  Address local() const;
  bool is_tls() const { return tls_ != nullptr; }
  // A handshake is not done yet.
  bool is_shaking_hands() const { return !ready_; }
  // REQUIRES: is_tls(), and on_ready has come. Valid as long as the stream.
  TlsFacts tls_facts() const;
  // True if the handshake took up an earlier session.
  bool is_tls_resumed() const;
  // OpenSSL's or the verification's reason after kTlsError; empty without.
  std::string tls_error() const;
  // After kTlsError: the peer has refused to go on, by an alert.
  bool is_tls_refused_by_peer() const;
  // After kTlsError: it has closed the connection during the handshake, and said no more.
  bool has_tls_peer_left() const;
  // After kTlsError: the peer offers nothing that we speak.
  bool has_tls_nothing_in_common() const;
  // After kTlsError: why its certificate is not good; empty: it was not that.
  std::string_view certificate_fault() const;
  std::uint64_t bytes_read() const { return bytes_read_; }
  std::uint64_t bytes_written() const { return bytes_written_; }
  // The written bytes that have not arrived at the peer (SIOCOUTQ). Asks the kernel, which takes
  // far more than it sends and takes more only when a good part has gone: bytes_written() alone
  // does not tell a slow peer from one that takes nothing. 0 on a closed stream.
  std::uint64_t bytes_in_kernel() const;
  // Bytes that the kernel has taken and that have not left this machine (SIOCOUTQNSD). 0 for
  // AF_UNIX, where the kernel does not tell, and on a closed stream.
  std::uint64_t bytes_unsent() const;
  // Whether all that was written has left this machine. kNotYet: on_writable comes when that has
  // changed, unless more is written before; ask again then. kNever: the connection has ended.
  // AF_UNIX: kAll, for the kernel does not tell. REQUIRES: open and ready. Why a response ends only
  // then: docs/decisions/0336.
  enum class Sent : std::uint8_t { kAll, kNotYet, kNever };
  Sent await_sent();
  // Bytes that have arrived at the peer. Asks the kernel.
  std::uint64_t bytes_taken() const {
    return bytes_written_ - std::min(bytes_written_, bytes_in_kernel());
  }
  // The kernel's smoothed measure of the round trip to the peer (TCP_INFO). 0 where there is none:
  // AF_UNIX, a closed stream.
  Nanoseconds round_trip() const;
  // The turn of the last byte read or written, or of the creation.
  MonotonicTime last_activity() const { return last_activity_; }
  // A stream taken from a pool starts a new life.
  void touch();

 private:
  class Kept;
  enum class Health : std::uint8_t {
    kWell,
    kUnwritable,   // write() returned kError; nothing is read unless it is asked for
    kReadingRest,  // the same, and it was asked for
    kFailed,       // on_error was called
  };
  // Why on_writable is to come.
  enum class PendingWritable : std::uint8_t {
    kNothing,
    kRoom,  // a write took less than all
    kSent,  // all written bytes are to be sent: the kernel was notified
  };
  static void on_read_event(int descriptor, short what, void* context);
  static void on_write_event(int descriptor, short what, void* context);
  static void on_resumed(DeferredNode& node);
  static void on_share(DeferredNode& node);

  // Calls the handler. Returns false if the stream is closed or destroyed afterwards.
  template <typename Call>
  bool call_handler(Call call);
  bool drive_handshake();
  void read_ready();
  bool read_once();
  void keep(std::span<const std::byte> bytes);
  bool deliver(std::span<const std::byte> bytes);
  bool deliver_kept();
  bool end(CloseReason reason, int os_error);
  bool end_of_bytes();
  void write_ready();
  void finish_shutdown();

  // Neither read nor written any more.
  bool is_dead() const { return health_ == Health::kUnwritable || health_ == Health::kFailed; }
  bool wants_to_read() const;
  void update_read_event();
  void arm_write_event();
  void disarm_write_event();
  void detach();
  void set_awaits_sent(bool awaits);
  WriteResult taken(std::size_t bytes, std::size_t asked);
  WriteResult write_failed(CloseReason reason, int os_error);
  WriteResult write_tls(std::span<const iovec> parts, std::size_t asked);

  Loop& loop_;
  StreamHandler* handler_;
  TlsSessionPointer tls_;
  std::unique_ptr<Kept> kept_;          // none while idle
  std::unique_ptr<Event> write_event_;  // made by the first short write
  bool* watched_ = nullptr;             // set while a callback runs
  std::size_t kept_bytes_max_ = kKeptBytesMax;
  std::uint64_t bytes_read_ = 0;
  std::uint64_t bytes_written_ = 0;
  MonotonicTime last_activity_;
  std::uint32_t last_read_room_ = 0;   // bytes that end a read for want of room, not of bytes
  std::uint32_t last_read_bytes_ = 0;  // behind a read of much the next one waits for its share
  Address peer_;
  Socket socket_;
  Health health_ = Health::kWell;
  bool paused_ = true;
  bool eof_ = false;
  bool ready_ = true;  // false until a TLS handshake is done
  PendingWritable owed_ = PendingWritable::kNothing;
  bool shutdown_due_ = false;      // once TLS has sent what it holds
  bool read_awaits_room_ = false;  // TLS has something to send before it reads on
  Event read_event_;
};

}  // namespace encore::net
