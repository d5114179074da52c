// ClientHandshake: the TLS handshake of a client's connection, from when it may begin to its end:
// bounded in number, counted, and looked after by the keeper of the connections among the heads
// that have not ended. Confined to its worker.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "base/time.h"
#include "proxy/client/client_connection.h"
#include "proxy/intake/client_counter.h"
#include "proxy/net/stream.h"
#include "proxy/observe/client_tls.h"
#include "proxy/observe/stats.h"

namespace encore::server {

class ClientHandshake final : private net::StreamHandler {
 public:
  // All are borrowed.
  struct Parts {
    WorkerStats& stats;
    ClientCounter& handshakes;  // by client
    ConnectionKeeper& keeper;
    ClientConnection& connection;
    net::StreamHandler& handler;  // the stream's, before and after the handshake
  };
  // `on_end` is called from the loop, and may destroy this; `done`: else the stream is dead, or
  // closed with an answer to who has begun with plain HTTP.
  using OnEnd = std::move_only_function<void(bool done)>;
  ClientHandshake(const Parts& parts, OnEnd on_end) : parts_(parts), on_end_(std::move(on_end)) {}
  ClientHandshake(const ClientHandshake&) = delete;
  ClientHandshake& operator=(const ClientHandshake&) = delete;
  ~ClientHandshake();

  // False: the client has `limit` (0: none) of them in progress already. REQUIRES: the stream is of
  // TLS; once.
  bool begin(const net::Address& client, std::uint32_t limit, MonotonicTime now);
  bool is_under_way() const { return since_ != MonotonicTime{}; }
  // REQUIRES: is_under_way().
  Nanoseconds lasts(MonotonicTime now) const { return now - since_; }
  // It is aborted from outside.
  void count_failure() { parts_.stats.tls_failures.add(); }

 private:
  // net::StreamHandler
  std::size_t on_data(net::Stream& stream, std::span<const std::byte> bytes) override;
  void on_writable(net::Stream& stream) override;
  void on_eof(net::Stream& stream) override;
  void on_error(net::Stream& stream, net::CloseReason reason, int os_error) override;
  void on_ready(net::Stream& stream) override;
  void leave();

  Parts parts_;
  OnEnd on_end_;
  ClientCounter::Seat seat_;
  MonotonicTime since_{};  // zero: not in progress
};

// Returns what requests need to know of a handshake that is done.
std::shared_ptr<const ClientTls> client_tls_of(const net::Stream& stream);

}  // namespace encore::server
