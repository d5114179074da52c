// Http2Responder: what answers one stream of an HTTP/2 connection: an exchange, a reply, a tunnel,
// or a wait. And the connection, as its streams see it. Confined to its worker.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/time.h"
#include "proxy/client/http1_services.h"
#include "proxy/exchange/body_reader.h"
#include "proxy/exchange/client_stream.h"
#include "proxy/h2/server_session.h"
#include "proxy/net/deferred_deleter.h"
#include "proxy/request/request_context.h"
#include "proxy/transfer/read_rate.h"
#include "proxy/transfer/switched_connection.h"
#include "proxy/transfer/transfer_memory.h"

namespace encore::server {

class Http2Stream;
class Http2PendingStream;
class Http2Responder;

class Http2Carrier {
 public:
  // The parts of their connection that streams use. All are borrowed.
  struct Parts {
    const ClientServices& services;
    const ListenerContext& listener;
    const ClientIdentity& identity;
    h2::ServerSession& session;
    net::Stream& stream;
  };
  virtual const Parts& parts() const = 0;
  const ClientServices& services() const { return parts().services; }
  const ListenerContext& listener() const { return parts().listener; }
  const ClientIdentity& identity() const { return parts().identity; }
  h2::ServerSession& session() const { return parts().session; }
  net::Stream& connection_stream() const { return parts().stream; }
  // The socket takes no more now.
  virtual bool is_blocked() const = 0;
  // Output of the session is written at the end of the turn.
  virtual void flush_later() = 0;
  // The work is resumed from the loop.
  virtual void resume_later(Http2Responder& work) = 0;
  // Why streams are gone that the session ends.
  virtual ClientGone gone() const = 0;
  // The stream has its answer, or never will: the session calls the work no more. It is destroyed
  // at the end of the turn.
  virtual void on_responder_end(Http2Responder& work) = 0;
  // The same of an exchange whose stream goes over to another protocol. Bytes of the stream that
  // have come are with the work still.
  virtual void on_switched(Http2Stream& work, SwitchedConnection switched) = 0;
  // The login that the stream has waited for is known.
  virtual void on_login(Http2PendingStream& work) = 0;
  // Tells by on_writable() when the response is delivered. REQUIRES: the caller flushes.
  virtual void await_delivery() = 0;

 protected:
  ~Http2Carrier() = default;
};

class Http2Responder : public h2::StreamHandler, public net::DeferredDeletable {
 public:
  // `carrier` is borrowed and outlives it.
  Http2Responder(Http2Carrier& carrier, h2::StreamId id) : carrier_(carrier), id_(id) {}
  Http2Responder(const Http2Responder&) = delete;
  Http2Responder& operator=(const Http2Responder&) = delete;
  ~Http2Responder() override = default;

  // --- from the connection ---
  virtual void resume() {}
  virtual void check_timeouts(MonotonicTime /*now*/) {}
  // The request in progress; null: none.
  virtual const RequestContext* request() const { return nullptr; }
  virtual bool is_origin_active() const { return false; }
  // The server that a tunnel is connected to; null: none.
  virtual const net::Address* origin_address() const { return nullptr; }
  // Bytes that it keeps in memory because the client does not take them.
  virtual std::uint64_t held_bytes() const { return 0; }
  // Ends the stream, whose client takes it too slowly.
  virtual void cut() = 0;
  // Ends it with a reset, for this reason.
  virtual void end_by(const ClientGone& why) = 0;

  // Measures how fast the client takes the content, and ends the stream where that is less than it
  // must be.
  void check_read_rate(MonotonicTime now);
  // Counts the bytes that the proxy holds because the client does not take them.
  void account_held() { account(client()); }
  const ReadRateMeter& pace() const { return pace_; }
  // Its client, over all that it has asked for, holds more than its share of memory.
  bool is_over_share() const;
  // The last look has found the client so slow that what it holds will be held on.
  bool is_slow() const;
  // All of the response has been written, and it is known when.
  bool is_written() const { return end_position_ != 0; }
  h2::StreamId id() const { return id_; }

  // Facts of the connection: its place among the others, what stands in front of it as the
  // session's handler (null: nothing), and whether the configuration does not allow it any more.
  std::size_t place = 0;
  Http2PendingStream* front = nullptr;
  bool is_revoked = false;

 protected:
  h2::ServerSession& session() const { return carrier_.session(); }
  // Counts what the client makes it hold.
  void account(const net::Address& client);
  // Bytes of the response that have left. Stays as it was when the stream is gone.
  std::uint64_t sent_bytes() const;
  std::uint64_t unsent_bytes() const;
  std::uint64_t taken_bytes() const;
  // True if the response, whose last byte has been written, has left this machine, as far as that
  // is waited for: of a little nobody asks. If not, on_writable() comes when it has.
  bool await_delivery();
  virtual const net::Address& client() const = 0;

  Http2Carrier& carrier_;
  const h2::StreamId id_;

 private:
  ReadRateMeter pace_;
  TransferMemory::Holding holding_;
  mutable std::uint64_t sent_bytes_ = 0;
  mutable std::uint64_t taken_bytes_ = 0;
  // The end of the response among the bytes of the connection; 0: that is not known yet.
  std::uint64_t end_position_ = 0;
};

// Bytes of a body that goes out in one frame. The head of an empty one ends the stream itself.
std::uint64_t framed_bytes(std::uint64_t body_bytes);

// The states of a reader, as the session knows them.
h2::ContentSource::Peeked peek_for_http2(BodyReader& reader, std::span<iovec> room,
                                         std::size_t bytes_max);

}  // namespace encore::server
