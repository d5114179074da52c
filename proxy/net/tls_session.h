// TlsSession: the TLS state of one connection, on its descriptor. For net/ only: Stream drives it.
// Confined to its stream's thread.
#pragma once

#include <sys/uio.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

struct ssl_st;

namespace encore::net {

enum class TlsStatus : std::uint8_t {
  kOk,
  kWantRead,   // the descriptor must become readable
  kWantWrite,  // the descriptor must become writable
  kEnd,        // close_notify came
  kTruncated,  // the connection ended without it
  kSystem,     // os_error
  kFailed,     // error()
};

struct TlsResult {
  TlsStatus status = TlsStatus::kOk;
  std::size_t bytes = 0;
  int os_error = 0;
};

class TlsSession {
 public:
  enum class Side : std::uint8_t { kClient, kServer };
  // Takes `ssl` over, and keeps what its context belongs to. `session_key` is for the client's
  // store of sessions.
  TlsSession(std::shared_ptr<const void> shared, ssl_st* ssl, Side side,
             std::string session_key = {});
  TlsSession(const TlsSession&) = delete;
  TlsSession& operator=(const TlsSession&) = delete;
  ~TlsSession();

  // Uses this descriptor from now on. False where memory is out.
  bool attach(int descriptor);
  // Bytes that were read of it already, which go before those that it has. REQUIRES: attached.
  void feed(std::span<const std::byte> bytes);
  // True if there are such that were not looked at yet.
  bool has_fed() const;
  TlsResult handshake();
  // One record's bytes at most.
  TlsResult read(std::span<std::byte> into);
  // True if read() would get bytes without the descriptor's being readable.
  bool has_pending() const;
  // Takes bytes from the front of `parts` until the socket takes no more (kWantWrite) or all are
  // taken (kOk). If a record is made and not wholly sent, flush() sends the rest, and all its bytes
  // except the last count as taken: with that one the caller knows that the socket has them. The
  // call after a kWantWrite begins with the bytes that were not taken. REQUIRES: `parts` are not
  // empty.
  TlsResult write(std::span<const iovec> parts, std::span<std::byte> record);
  // A record or a close_notify that the socket has not taken yet.
  bool has_unsent() const { return unsent_ > 0 || owes_end_; }
  TlsResult flush();
  // Sends close_notify, once however often it is called: what the socket does not take is unsent.
  // REQUIRES: nothing else is.
  void shutdown();

  bool is_server() const { return side_ == Side::kServer; }
  bool is_resumed() const;
  const ssl_st* ssl() const { return ssl_; }
  // The client has asked for a host that there is no certificate of; empty: it named none.
  void note_unknown_name(std::string_view name);
  // Why kFailed; one line.
  const std::string& error() const { return error_; }
  // After kFailed: the peer has refused to go on, by an alert.
  bool is_refused_by_peer() const { return refused_by_peer_; }
  // After kFailed: it has closed the connection during the handshake, and said no more.
  bool has_peer_left() const { return peer_left_; }
  // After kFailed: the peer offers nothing that we speak, be it versions, suites, groups or
  // signatures.
  bool has_nothing_in_common() const { return nothing_in_common_; }
  // After kFailed: why its certificate is not good; empty: it was not that.
  std::string_view certificate_fault() const { return certificate_fault_; }
  // After kFailed: what came is not TLS but a request of HTTP.
  bool got_plain_http() const { return got_plain_http_; }
  const std::string& session_key() const { return session_key_; }

 private:
  TlsResult outcome(int result);
  TlsResult send_end();
  TlsResult write_record(const void* bytes, std::size_t size);

  std::shared_ptr<const void> shared_;
  ssl_st* ssl_;
  Side side_;
  bool got_plain_http_ = false;
  bool refused_by_peer_ = false;
  bool peer_left_ = false;
  bool nothing_in_common_ = false;
  std::string_view certificate_fault_;  // a text of OpenSSL's
  std::string session_key_;
  std::size_t record_bytes_max_ = 0;  // plain bytes of a record of ours; 0: not known yet
  std::size_t unsent_ = 0;            // plain bytes of the record that is not wholly sent
  std::size_t held_back_ = 0;         // bytes of it, or of the one before: not counted as taken yet
  bool owes_end_ = false;             // a close_notify is due
  std::string unknown_name_;          // why its handshake fails; empty: it was not that
  std::string error_;
};

}  // namespace encore::net
