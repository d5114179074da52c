// ClientGate: what the requests of a connection pass where their listener has something of its own
// (ListenerPolicy): the PROXY header in front of them, and who sends them. One a connection, made
// when it is first needed. Confined to its worker.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/time.h"
#include "proxy/http/message.h"
#include "proxy/net/address.h"
#include "proxy/observe/outcome.h"
#include "proxy/observe/stats.h"
#include "proxy/request/request_view.h"
#include "proxy/settings/listener_policy.h"
#include "proxy/settings/sender.h"

namespace encore::server {

// A request that is answered by the connection itself, which then ends.
struct Refusal {
  int status = 0;  // 0: it is not refused
  Outcome outcome = Outcome::kBadRequest;
  std::string_view detail = {};
  std::string_view text = {};
  std::string fields = {};  // further field lines
};
// Of those that come too often; it may be tried again after `wait`.
Refusal too_many(std::string_view detail, Nanoseconds wait);

class ClientGate {
 public:
  explicit ClientGate(const net::Address& peer) : from_(peer) {}

  // A PROXY header must come first.
  void await_header() { awaits_header_ = true; }
  bool awaits_header() const { return awaits_header_; }
  enum class Header : std::uint8_t { kIncomplete, kTaken, kRefused };
  struct Intake {
    Header header = Header::kRefused;
    std::size_t used = 0;  // bytes of the header, where it is taken
  };
  // REQUIRES: it is awaited.
  Intake take_header(const ListenerPolicy& policy, std::string_view input);

  // Whose connection it is: the peer's, or of whom a PROXY header has named.
  const net::Address& from() const { return from_; }
  // Who sends this request. Says so in the view as well. `policy` may be null.
  net::Address identify(const ListenerPolicy* policy, const http::Fields& fields,
                        RequestView& view) const;
  // Whether the request may go on, by what it names. REQUIRES: `view` is made.
  static Refusal check(const ListenerPolicy& policy, const http::RequestHead& head,
                       const RequestView& view, const net::Address& client, MonotonicTime now,
                       WorkerStats& stats);

 private:
  net::Address from_;
  bool awaits_header_ = false;
  bool secure_ = false;  // by the PROXY header
};

}  // namespace encore::server
