// ClientStream: one request of a client and the path of its response, as the request's exchange
// sees it: no connection, no framing, no other request. HTTP/1 has one of them at a time on a
// connection (client/http1_stream), another protocol may have many.
//
// Lifetimes: the stream owns the exchange and calls it; the exchange calls the stream. No function
// of the stream calls the exchange back before it returns, and none destroys it: what follows from
// a call comes from the loop. After end() the exchange is called no more; it is destroyed at the
// end of the turn.
//
// Confined to its worker.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/time.h"
#include "proxy/exchange/body_reader.h"
#include "proxy/observe/outcome.h"
#include "proxy/transfer/switched_connection.h"

namespace encore::server {

// Why a client's connection ends before its response has.
struct ClientGone {
  // The fate of bytes that this machine has not sent yet.
  enum class Unsent : std::uint8_t {
    kLost,  // a reset discards them
    kSent,  // the connection ends behind them
  };
  Outcome outcome = Outcome::kClientAborted;
  std::string_view detail = {};  // a constant; empty: the outcome says it all
  Unsent unsent = Unsent::kLost;
};

class ClientStream {
 public:
  enum class Framing : std::uint8_t {
    kNone,    // no content: the response ends with its head
    kLength,  // as much as the head's Content-Length says
    kOpen,    // until the reader's end, however the protocol shows that
  };
  enum class Further : std::uint8_t {
    kAsAgreed,  // as the client and the protocol agree
    // The same, though the request's content has not ended: the rest is still taken.
    kBehindContent,
    kNone,  // in protocols with one request at a time: none follows this one
  };
  struct Response {
    // Status line as HTTP/1.1 writes it, and fields, each line with CRLF, without the empty line,
    // Connection and Transfer-Encoding.
    std::string head;
    Framing framing = Framing::kNone;
    // Field lines to be sent behind open content, read when that has ended; borrowed until end();
    // null: none.
    const std::string* trailers = nullptr;
    Further further = Further::kAsAgreed;
  };

  enum class Status : std::uint8_t {
    kDone,     // all that was given is on its way, and much of it has left
    kBlocked,  // the client takes no more now: on_writable will come
    kWaiting,  // the content has no more now
    kMore,     // this turn's share is sent, or others wait: pump again with the next share
    kBroken,   // the content ended early
    kDead,     // the client is not there any more
  };

  enum class End : std::uint8_t {
    kDone,    // the response is whole
    kBroken,  // it ends here: the client must see that some of it is missing
    kReset,   // the same immediately, with what is on its way to the client
  };

  // Sends an interim response if the client's protocol has them; nothing is sent before pump().
  // `head` has its empty line. REQUIRES: no begin() yet.
  virtual void send_interim(std::string_view head) = 0;
  // The final response. `content` is borrowed until end(). Nothing is sent before pump().
  // REQUIRES: no begin() yet.
  virtual void begin(Response response, BodyReader& content) = 0;
  // Sends what it may. To be called after each of these, when there is more content, and in
  // on_writable.
  virtual Status pump() = 0;
  // The last call: the exchange needs no more. REQUIRES: not ended; with kDone, pump() has said so.
  virtual void end(End how) = 0;

  // In place of begin() and end(), and the last call like that one: the connection goes over to
  // another protocol and is the origin's from here on. REQUIRES: the request asked for that.
  virtual void switch_protocol(SwitchedConnection switched) = 0;

  // The exchange takes more of the request's content now: it comes, from the loop.
  virtual void want_content() = 0;

  // Bytes of the response that were sent, framing included.
  virtual std::uint64_t sent_bytes() const = 0;
  // Sent bytes that have arrived at the client. May ask the kernel.
  virtual std::uint64_t taken_bytes() const = 0;
  // True if all sent bytes have arrived there. Asks the kernel.
  virtual bool has_taken_all() const = 0;
  // Round trip of the client's connection; 0: not known. Asks the kernel.
  virtual Nanoseconds round_trip() const = 0;
  // Bytes among these that have not left this machine; a reset discards them. Asks the kernel.
  virtual std::uint64_t unsent_bytes() const = 0;
  // True if another request may follow behind the response, as it was begun.
  virtual bool is_kept() const = 0;
  // True if the client, over all that it has requested, holds more than its share of memory by not
  // taking it.
  virtual bool is_over_share() const = 0;

 protected:
  ~ClientStream() = default;
};

}  // namespace encore::server
