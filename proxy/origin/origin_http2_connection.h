// OriginHttp2Connection: a connection to an origin that speaks HTTP/2, and carries several
// concurrent requests. It is kept as long as it has requests, or waits for some as those of HTTP/1
// do. Confined to its worker.
#pragma once

#include <cstddef>
#include <memory>
#include <string_view>
#include <vector>

#include "base/time.h"
#include "proxy/h2/client_session.h"
#include "proxy/net/stream.h"
#include "proxy/net/timer.h"
#include "proxy/observe/stats.h"
#include "proxy/origin/connection_count.h"
#include "proxy/origin/origin_http2_stream.h"
#include "proxy/origin/origin_queues.h"

namespace encore::server {

class OriginHttp2Connection;

// Keeper of connections, which is notified that one has ended: it destroys that later than in this
// call.
class OriginHttp2Keeper {
 public:
  virtual void on_end(OriginHttp2Connection& connection) = 0;

 protected:
  ~OriginHttp2Keeper() = default;
};

class OriginHttp2Connection final : private net::StreamHandler,
                                    private h2::ClientHandler,
                                    private OriginHttp2Carrier {
 public:
  struct Parts {
    std::unique_ptr<net::Stream> stream;
    OriginQueues::Slot slot;
    ConnectionCount count;
    MonotonicTime made{};
    MonotonicTime named_until{};  // until then its host's name has its address
  };
  // `counters`, `stats` and `keeper` are borrowed and outlive it.
  OriginHttp2Connection(Parts parts, const h2::Options& options, h2::Counters& counters,
                        WorkerStats& stats, OriginHttp2Keeper& keeper);
  // REQUIRES: all of its streams are released.
  ~OriginHttp2Connection();
  OriginHttp2Connection(const OriginHttp2Connection&) = delete;
  OriginHttp2Connection& operator=(const OriginHttp2Connection&) = delete;

  // True if it takes one more request now.
  bool has_room() const;
  // A stream for one request, to be sent in this call's turn. REQUIRES: has_room().
  std::unique_ptr<OriginHttp2Stream> open();
  const net::Address& peer() const override { return stream_->peer(); }
  net::Loop& loop() const { return stream_->loop(); }
  MonotonicTime made() const { return made_; }
  MonotonicTime named_until() const { return named_until_; }
  void set_named_until(MonotonicTime time) { named_until_ = time; }

  // Without requests, so that it may be closed.
  bool is_idle() const { return streams_.empty() && !is_closed_ && !is_called_; }
  MonotonicTime idle_since() const { return idle_since_; }
  // Takes no more requests; ends with the last that it has.
  void retire() override;
  // Says goodbye and ends. REQUIRES: is_idle().
  void close_idle();
  // For a sweep.
  void check_timeouts(MonotonicTime now);

 private:
  // net::StreamHandler
  std::size_t on_data(net::Stream& stream, std::span<const std::byte> bytes) override;
  void on_writable(net::Stream& stream) override;
  void on_eof(net::Stream& stream) override;
  void on_error(net::Stream& stream, net::CloseReason reason, int os_error) override;
  // h2::ClientHandler
  void on_interim(h2::StreamId stream, const h2::Response& response) override;
  void on_response(h2::StreamId stream, const h2::Response& response) override;
  void on_connection_end(const h2::ConnectionEnd& end) override;
  // OriginHttp2Carrier
  h2::ClientSession& session() override { return session_; }
  std::string_view scheme() const override { return stream_->is_tls() ? "https" : "http"; }
  std::uint64_t bytes_read() const override { return stream_->bytes_read(); }
  void flush_later() override { later_.schedule(); }
  void deliver_later(OriginHttp2Stream& stream) override;
  StreamFailure failure() const override;
  void on_released(OriginHttp2Stream& stream) override;

  OriginHttp2Stream* find(h2::StreamId id) const;
  void on_later();
  void flush();
  bool is_over() const;
  void close(std::string_view why);

  std::unique_ptr<net::Stream> stream_;
  OriginQueues::Slot slot_;
  ConnectionCount count_;
  const MonotonicTime made_;
  MonotonicTime named_until_;
  h2::Counters& counters_;
  WorkerStats& stats_;
  OriginHttp2Keeper& keeper_;
  h2::ClientSession session_;
  std::vector<OriginHttp2Stream*> streams_;  // not released
  std::vector<OriginHttp2Stream*> resumed_;  // those whose handlers go on
  net::Deferred later_;
  MonotonicTime idle_since_;
  std::string_view why_closed_;  // a constant
  bool has_carried_ = false;     // a request
  bool is_retired_ = false;
  bool is_closed_ = false;
  bool is_blocked_ = false;  // the socket takes nothing now
  bool is_called_ = false;   // the session is on the stack
};

}  // namespace encore::server
