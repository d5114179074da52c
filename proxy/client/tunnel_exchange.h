// TunnelExchange: a CONNECT request, from the check of its destination to the end of the tunnel; or
// a connection that has gone over to another protocol, from the origin's 101 to its end. Confined
// to its connection's worker.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "proxy/client/http1_stream.h"
#include "proxy/client/http1_writer.h"
#include "proxy/client/tunnel_origin.h"
#include "proxy/net/tunnel.h"
#include "proxy/request/request_context.h"

namespace encore::server {

class TunnelExchange {
 public:
  // `services` and `carrier` are borrowed and outlive it.
  TunnelExchange(const TunnelServices& services, Http1Carrier& carrier,
                 std::shared_ptr<const RequestContext> request);
  ~TunnelExchange();
  TunnelExchange(const TunnelExchange&) = delete;
  TunnelExchange& operator=(const TunnelExchange&) = delete;

  // One of these, once.
  void start();
  // The client has its answer, of so many bytes; what it sent since is kept by its stream.
  void start_answered(std::uint64_t answer_bytes);
  // `writer` may still have something to send before the 101.
  void start_switched(Http1Writer writer, SwitchedConnection switched);
  void check_timeouts(MonotonicTime now);
  // Between us and the origin, as net::moved_bytes() counts them.
  std::uint64_t moved_bytes() const;
  // The client's connection takes more.
  void on_writable();
  // How to end the client's connection before the tunnel has ended.
  Http1Carrier::After after_cut() const;
  const RequestContext& request() const { return *request_; }
  // The connection to the origin; null: there is none yet.
  const net::Stream* origin() const { return origin_.get(); }
  // The client's connection ends: what the origin still brings is for nobody.
  void on_gone(const ClientGone& why);

 private:
  std::unique_ptr<TunnelOrigin> make_connector();
  void on_connected(TunnelOrigin::Connected connected);
  void pump_head();
  void open();
  void on_ended(net::TunnelOutcome outcome);
  void refuse(const TunnelRefusal& refusal);
  void record(Outcome outcome, int status, std::uint64_t bytes, std::string_view detail = {});
  void count_passed();
  std::uint64_t sent_bytes() const;
  bool is_switched() const { return place_ != nullptr; }
  Counter& open_count();

  const TunnelServices& services_;
  Http1Carrier& carrier_;
  const std::shared_ptr<const RequestContext> request_;
  const MonotonicTime started_;
  // Bytes of the replies in front of its answer, among those that were written to the client.
  // Nothing: they are being written yet.
  std::optional<std::uint64_t> replies_bytes_;
  std::unique_ptr<TunnelOrigin> connector_;  // null: there is none, or no more
  std::shared_ptr<void> place_;              // held once a connection went over; null: CONNECT
  std::unique_ptr<net::Stream> origin_;
  // The answer. Replies to what the client pipelined in front of it may still fill its connection.
  Http1Writer head_;
  std::unique_ptr<net::Tunnel> tunnel_;
  OriginVisit visit_;
  std::uint64_t origin_bytes_ = 0;   // written to the origin before the client's
  std::uint64_t client_bytes_ = 0;   // written to the client before the origin's
  std::uint64_t refusal_bytes_ = 0;  // of the content of our own response
  Nanoseconds first_byte_{-1};
  enum class Answer : std::uint8_t { kDue, kGiven } answer_ = Answer::kDue;
  enum class Record : std::uint8_t { kDue, kMade } record_ = Record::kDue;
};

}  // namespace encore::server
