// TunnelOrigin: the way of a CONNECT to its destination, whatever protocol it came by: is it
// allowed, where is it, and the connection there. Confined to its worker.
#pragma once

#include <expected>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "base/time.h"
#include "proxy/exchange/request_log.h"
#include "proxy/http/reply_text.h"
#include "proxy/net/connector.h"
#include "proxy/net/resolver.h"
#include "proxy/observe/origin_warnings.h"
#include "proxy/observe/outcome.h"
#include "proxy/request/request_context.h"

namespace encore::server {

// The parts of their worker that tunnels use. All are borrowed and outlive them.
struct TunnelServices {
  net::Loop& loop;
  net::Resolver& resolver;
  WorkerStats& stats;
  RequestLog& log;
  OriginWarnings& warnings;
};

// Why there is no tunnel.
struct TunnelRefusal {
  int status = 0;
  Outcome outcome = Outcome::kDenied;
  std::string detail;
};
// The answer to its client, without the lines that frame it.
http::SyntheticReply reply_to(const TunnelRefusal& refusal, const RequestContext& request,
                              std::string_view http_date);

class TunnelOrigin {
 public:
  using Connected = std::expected<std::unique_ptr<net::Stream>, TunnelRefusal>;
  // `services` and `request` are borrowed and outlive it. `on_end` is called from the loop, and may
  // destroy this.
  TunnelOrigin(const TunnelServices& services, const RequestContext& request,
               std::function<void(Connected)> on_end)
      : services_(services), request_(request), on_end_(std::move(on_end)) {}
  TunnelOrigin(const TunnelOrigin&) = delete;
  TunnelOrigin& operator=(const TunnelOrigin&) = delete;

  // The refusal before anybody is asked; status 0: none.
  TunnelRefusal check() const;
  // Once.
  void connect();
  // How long it has taken.
  Nanoseconds lasts() const { return services_.loop.now() - asked_; }
  // Ends a look-up that takes too long.
  void check_timeouts(MonotonicTime now);

 private:
  void on_resolved(std::expected<net::Resolved, net::ResolveFailure> result);
  void on_connected(std::expected<std::unique_ptr<net::Stream>, net::ConnectFailure> result);
  void warn(std::string_view why);
  void refuse(int status, Outcome outcome, std::string_view detail);

  const TunnelServices& services_;
  const RequestContext& request_;
  std::function<void(Connected)> on_end_;
  MonotonicTime asked_{};  // since then
  std::unique_ptr<net::Resolver::Query> query_;
  std::unique_ptr<net::Connector> connector_;
};

}  // namespace encore::server
