// TlsSession: the TLS state of one connection, on its descriptor. For net/ only: Stream drives it.
// Confined to its stream's thread.
#pragma once

#include <sys/uio.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

struct ssl_st;

namespace encore::net {

// What a TlsSession's owner shares; see tls.cc.
struct TlsShared;

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
  // Takes `ssl` over. `session_key` is for the client's store of sessions.
  TlsSession(std::shared_ptr<TlsShared> shared, ssl_st* ssl, std::string session_key);
  TlsSession(const TlsSession&) = delete;
  TlsSession& operator=(const TlsSession&) = delete;
  ~TlsSession();

  // Uses this descriptor from now on. False where memory is out.
  bool attach(int descriptor);
  TlsResult handshake();
  // One record's bytes at most.
  TlsResult read(std::span<std::byte> into);
  // Whether read() would get bytes without the descriptor's being readable.
  bool has_pending() const;
  // Takes bytes from the front of `parts` until the socket takes no more (kWantWrite) or all are
  // taken (kOk). A record that is made and not wholly sent counts as taken; flush() sends it.
  TlsResult write(std::span<const iovec> parts, std::span<std::byte> record);
  bool has_unsent() const { return unsent_ > 0; }
  TlsResult flush(std::span<std::byte> record);
  // Sends close_notify, if the socket takes it.
  void shutdown();

  bool is_resumed() const;
  // Why kFailed; one line.
  const std::string& error() const { return error_; }
  const std::string& session_key() const { return session_key_; }
  TlsShared& shared() const { return *shared_; }

 private:
  TlsResult outcome(int result);
  TlsResult write_record(const void* bytes, std::size_t size);

  std::shared_ptr<TlsShared> shared_;
  ssl_st* ssl_;
  std::string session_key_;
  std::size_t unsent_ = 0;  // plain bytes of the record that is not wholly sent
  std::string error_;
};

}  // namespace encore::net
