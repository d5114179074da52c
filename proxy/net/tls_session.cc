#include "proxy/net/tls_session.h"

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509_vfy.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/check.h"
#include "proxy/net/tls_bio.h"
#include "proxy/net/tls_internal.h"

namespace encore::net {
namespace {

// Reads of the socket in one call: enough for a record that lies there. OpenSSL reads a peer's
// messages other than data (KeyUpdate, RFC 8446 4.6.3) for as long as there are more, while others
// wait.
constexpr int kReadsPerCall = 2;
constexpr std::size_t kRecordBytes = 16 * 1024;
// OpenSSL reads only the length of an encrypted record that waits, once more. If it ever read the
// rest, it would find these zeros.
constexpr std::array<std::byte, kRecordBytes> kNothing{};
// Limit of one write(): a fast peer's socket accepts bytes for ever, while others wait.
constexpr std::size_t kTurnBytes = 1024 * 1024;

// Copies from the front of `parts` behind `skip` bytes until `into` is full.
std::size_t gather(std::span<const iovec> parts, std::size_t skip, std::span<std::byte> into) {
  std::size_t filled = 0;
  for (const iovec& part : parts) {
    if (skip >= part.iov_len) {
      skip -= part.iov_len;
      continue;
    }
    const std::size_t size = std::min(part.iov_len - skip, into.size() - filled);
    std::memcpy(into.data() + filled, static_cast<const std::byte*>(part.iov_base) + skip, size);
    filled += size;
    skip = 0;
    if (filled == into.size()) break;
  }
  return filled;
}

// Returns the bytes for the next record: in place, if one part is enough for it.
std::span<const std::byte> next_record(std::span<const iovec> parts, std::size_t skip,
                                       std::span<std::byte> room) {
  for (std::size_t i = 0, before = skip; i < parts.size(); ++i) {
    const std::size_t size = parts[i].iov_len;
    if (before >= size) {
      before -= size;
      continue;
    }
    const std::size_t left = size - before;
    if (left < room.size() && i + 1 < parts.size()) break;
    return {static_cast<const std::byte*>(parts[i].iov_base) + before, std::min(left, room.size())};
  }
  return room.first(gather(parts, skip, room));
}

bool is_plain_http(int reason) {
  return reason == SSL_R_HTTP_REQUEST || reason == SSL_R_HTTPS_PROXY_REQUEST;
}

bool is_for_want_of_common_ground(unsigned long error) {
  if (ERR_GET_LIB(error) != ERR_LIB_SSL) return false;
  switch (ERR_GET_REASON(error)) {
    case SSL_R_UNSUPPORTED_PROTOCOL:
    case SSL_R_NO_SHARED_CIPHER:
    case SSL_R_NO_SHARED_GROUPS:
    case SSL_R_NO_SUITABLE_GROUPS:
    case SSL_R_NO_SUITABLE_KEY_SHARE:
    case SSL_R_NO_SHARED_SIGNATURE_ALGORITHMS:
    case SSL_R_NO_SUITABLE_SIGNATURE_ALGORITHM:
      return true;
    default:
      return false;
  }
}

}  // namespace

TlsSession::TlsSession(std::shared_ptr<const void> shared, ssl_st* ssl, Side side,
                       std::string session_key)
    : shared_(std::move(shared)), ssl_(ssl), side_(side), session_key_(std::move(session_key)) {
  SSL_set_app_data(ssl_, this);
  if (is_server()) {
    SSL_set_accept_state(ssl_);
  } else {
    SSL_set_connect_state(ssl_);
  }
}

TlsSession::~TlsSession() { SSL_free(ssl_); }

bool TlsSession::attach(int descriptor) {
  BIO* bio = new_descriptor_bio(descriptor);
  if (bio == nullptr) return false;
  SSL_set_bio(ssl_, bio, bio);
  return true;
}

void TlsSession::feed(std::span<const std::byte> bytes) { feed_bio(SSL_get_rbio(ssl_), bytes); }

bool TlsSession::has_fed() const { return has_fed_bio(SSL_get_rbio(ssl_)); }

TlsResult TlsSession::handshake() {
  ERR_clear_error();
  allow_reads(SSL_get_rbio(ssl_), kReadsPerCall);
  const int result = SSL_do_handshake(ssl_);
  if (result == 1) {
    // A peer may have asked for records that are shorter (RFC 6066 4).
    const unsigned mode = SSL_SESSION_get_max_fragment_length(SSL_get_session(ssl_));
    record_bytes_max_ =
        TLSEXT_max_fragment_length_512 <= mode && mode <= TLSEXT_max_fragment_length_4096
            ? std::size_t{256} << mode
            : kRecordBytes;
    return {};
  }
  const TlsResult failed = outcome(result);
  refused_by_peer_ |= failed.status == TlsStatus::kEnd;  // an alert says that, too
  if (failed.status == TlsStatus::kEnd) {
    error_ = "the peer ended the connection during the handshake";
    return {.status = TlsStatus::kFailed};
  }
  if (failed.status == TlsStatus::kTruncated) {
    peer_left_ = true;
    error_ = "the peer closed the connection during the handshake";
    return {.status = TlsStatus::kFailed};
  }
  return failed;
}

TlsResult TlsSession::read(std::span<std::byte> into) {
  ERR_clear_error();
  std::size_t bytes = 0;
  allow_reads(SSL_get_rbio(ssl_), kReadsPerCall);
  const int result = SSL_read_ex(ssl_, into.data(), into.size(), &bytes);
  if (result == 1) return {.bytes = bytes};
  return outcome(result);
}

bool TlsSession::has_pending() const { return SSL_has_pending(ssl_) == 1 || has_fed(); }

TlsResult TlsSession::write_record(const void* bytes, std::size_t size) {
  ERR_clear_error();
  std::size_t written = 0;
  const int result = SSL_write_ex(ssl_, bytes, size, &written);
  if (result == 1) return {.bytes = written};
  TlsResult failed = outcome(result);
  // With renegotiation off a write never waits for a read.
  if (failed.status == TlsStatus::kWantRead) failed.status = TlsStatus::kFailed;
  return failed;
}

TlsResult TlsSession::flush() {
  if (owes_end_) return send_end();
  if (unsent_ == 0) return {};
  const TlsResult result = write_record(kNothing.data(), unsent_);
  if (result.status == TlsStatus::kOk) unsent_ = 0;
  return {.status = result.status, .os_error = result.os_error};
}

TlsResult TlsSession::write(std::span<const iovec> parts, std::span<std::byte> record) {
  ENCORE_CHECK(record_bytes_max_ != 0, "records are sent when hands are shaken");
  TlsResult result = flush();
  if (result.status == TlsStatus::kOk) result.bytes = std::exchange(held_back_, 0);
  const std::span<std::byte> room = record.first(std::min(record.size(), record_bytes_max_));
  while (result.status == TlsStatus::kOk) {
    if (result.bytes >= kTurnBytes) {
      result.status = TlsStatus::kWantWrite;
      break;
    }
    const std::span<const std::byte> next = next_record(parts, result.bytes, room);
    const std::size_t size = next.size();
    if (size == 0) break;
    const TlsResult sent = write_record(next.data(), size);
    result.status = sent.status;
    result.os_error = sent.os_error;
    if (sent.status == TlsStatus::kOk) {
      result.bytes += sent.bytes;
    } else if (sent.status == TlsStatus::kWantWrite && SSL_in_init(ssl_) == 0) {
      // Else a change of keys that the peer has asked for waits in front, and no record is made.
      unsent_ = size;
      held_back_ = 1;
      result.bytes += size - held_back_;
    }
  }
  return result;
}

void TlsSession::shutdown() {
  // A second call would wait for the peer's.
  if ((SSL_get_shutdown(ssl_) & SSL_SENT_SHUTDOWN) == 0) (void)send_end();
}

TlsResult TlsSession::send_end() {
  ERR_clear_error();
  const int result = SSL_shutdown(ssl_);
  const TlsResult done = result >= 0 ? TlsResult{} : outcome(result);
  owes_end_ = done.status == TlsStatus::kWantWrite;
  ERR_clear_error();
  return done;
}

bool TlsSession::is_resumed() const { return SSL_session_reused(ssl_) == 1; }

TlsResult TlsSession::outcome(int result) {
  const int os_error = errno;
  switch (SSL_get_error(ssl_, result)) {
    case SSL_ERROR_WANT_READ:
      return {.status = TlsStatus::kWantRead};
    case SSL_ERROR_WANT_WRITE:
      return {.status = TlsStatus::kWantWrite};
    case SSL_ERROR_ZERO_RETURN:
      return {.status = TlsStatus::kEnd};
    case SSL_ERROR_SYSCALL:
      if (os_error == 0) return {.status = TlsStatus::kTruncated};
      return {.status = TlsStatus::kSystem, .os_error = os_error};
    default:
      break;
  }
  const unsigned long code = ERR_peek_error();
  if (ERR_GET_REASON(code) == SSL_R_UNEXPECTED_EOF_WHILE_READING) {
    ERR_clear_error();
    return {.status = TlsStatus::kTruncated};
  }
  got_plain_http_ = is_plain_http(ERR_GET_REASON(code));
  // A reason that is beyond OpenSSL's own is the number of the alert that came.
  refused_by_peer_ |=
      ERR_GET_LIB(code) == ERR_LIB_SSL && ERR_GET_REASON(code) >= SSL_AD_REASON_OFFSET;
  nothing_in_common_ = is_for_want_of_common_ground(code);
  const long verified = SSL_get_verify_result(ssl_);
  if (verified != X509_V_OK) certificate_fault_ = X509_verify_cert_error_string(verified);
  error_ = verified == X509_V_OK ? openssl_error()
                                 : "certificate refused: " + std::string(certificate_fault_);
  if (!unknown_name_.empty()) error_ = unknown_name_;
  ERR_clear_error();
  return {.status = TlsStatus::kFailed};
}

void TlsSession::note_unknown_name(std::string_view name) {
  if (name.empty()) {
    unknown_name_ = "no certificate for a client that names no host";
    return;
  }
  // A client says whatever it likes, and a log has lines.
  std::string shown(name);
  std::ranges::replace_if(shown, [](char c) { return c <= ' ' || c == '"' || c > '~'; }, '?');
  unknown_name_ = "no certificate for \"" + shown + '"';
}

}  // namespace encore::net
