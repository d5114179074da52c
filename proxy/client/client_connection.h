// ClientConnection: one connection of a client, whatever protocol it speaks, as those see it who
// keep connections and look after all of them. Confined to its worker.
#pragma once

#include <cstdint>
#include <optional>

#include "base/time.h"
#include "proxy/client/unfinished_heads.h"
#include "proxy/exchange/client_stream.h"
#include "proxy/intake/client_counter.h"
#include "proxy/net/deferred_deleter.h"
#include "proxy/net/stream.h"
#include "proxy/observe/request_counts.h"

namespace encore::server {

// True if `time` has reached `limit`; a limit of 0 is none.
inline bool has_passed(Nanoseconds time, Nanoseconds limit) {
  return limit.count() != 0 && time >= limit;
}

struct ListenerContext;

// A reader that is behind, as the last look found it.
struct SlowReader {
  std::uint64_t bytes_per_second = 0;
  std::uint64_t held_bytes = 0;
  bool over_share = false;  // its client holds more than its share
};

class ClientConnection : public net::DeferredDeletable {
 public:
  virtual net::Stream& stream() = 0;
  // Begins to read.
  virtual void begin() = 0;

  // For a sweep: closes what has been silent too long.
  virtual void check_timeouts(MonotonicTime now) = 0;
  // The process wants to end: closes if idle, else after the response in progress.
  virtual void drain() = 0;
  // The same where another process has the listeners and there is time: HTTP/1 says so with its
  // next response, so that no request meets a closed connection; HTTP/2 says so now.
  virtual void announce_drain() { drain(); }
  // It is a tunnel, or speaks another protocol by now.
  virtual bool is_tunnel() const { return false; }
  // A check of it in a drain, of which there are four: closes in the middle of what is in progress
  // if nothing has moved, either way, since the check before the last.
  virtual void end_if_quiet() = 0;
  // The configuration has changed: closes if idle where it no longer allows the client, its login
  // or what it has asked for. True if something is in progress that it does not allow: no further
  // request is read.
  virtual bool revoke() = 0;
  // The last revoke() has found something in progress.
  virtual bool is_revoked() const = 0;
  // Ends that, and what is allowed goes on where the protocol has several things in progress.
  virtual void cut_revoked(const ClientGone& why) { cut(why); }
  // A drain is over: closes in the middle of what is in progress, so that none of it looks whole.
  void cut() { cut({.outcome = Outcome::kDrained}); }
  virtual void cut(const ClientGone& why) = 0;

  // Nothing is in progress, and nothing has begun to come.
  virtual bool may_be_given_up() const = 0;
  // Closes immediately: its descriptor is needed. REQUIRES: may_be_given_up().
  virtual void give_up() = 0;
  // There are too many heads that do not end; this one is refused. REQUIRES: it stands in
  // head_place.
  virtual void refuse_unfinished_head() = 0;

  // Measures how fast the client takes what there is, and cuts it where that is less than it must
  // be.
  virtual void check_read_rate(MonotonicTime now) = 0;
  // Returns the reader if the last check found it so slow that its memory stays held.
  virtual std::optional<SlowReader> slow_reader() const = 0;
  // Ends it with a reset.
  virtual void cut_reader() = 0;

  // For the keeper of the connections: the list of them, its listener, its seat among its client's
  // connections, and its place among the unfinished heads.
  ClientConnection* previous = nullptr;
  ClientConnection* next = nullptr;
  const ListenerContext* let_in_by = nullptr;
  ClientCounter::Seat seat;  // not taken: it is not counted
  ListenerSeatCount listed;  // with its listener's
  UnfinishedHeads::Place head_place;
};

// Keeper of the connections of a worker.
class ConnectionKeeper : public ConnectionsAllowed {
 public:
  // The connection has ended: destroys it at the end of the turn.
  virtual void retire(ClientConnection& connection) = 0;
  // `made` goes on with what `connection` was, with its seat and its place among the others;
  // `connection` is destroyed at the end of the turn.
  virtual void replace(ClientConnection& connection, ClientConnection& made) = 0;
  // It keeps so many bytes of a head that has not ended; whichever came first where there are too
  // many of them is refused at the end of the turn.
  virtual void note_unfinished_head(ClientConnection& connection, std::size_t bytes) = 0;
  virtual void drop_unfinished_head(ClientConnection& connection) = 0;
  virtual bool is_draining() const = 0;
  // Connections that are idle in a drain are closed, announced or not.
  virtual bool closes_untold() const { return is_draining(); }

 protected:
  ~ConnectionKeeper() = default;
};

}  // namespace encore::server
