// TunnelExchange: a CONNECT request, from the check of its destination to the end of the tunnel.
// Confined to its connection's worker.
#pragma once

#include <expected>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "proxy/net/connector.h"
#include "proxy/net/resolver.h"
#include "proxy/net/tunnel.h"
#include "proxy/server/request_context.h"
#include "proxy/server/worker.h"

namespace encore::server {

class ClientConnection;

class TunnelExchange {
 public:
  // `connection` outlives it.
  TunnelExchange(ClientConnection& connection, std::shared_ptr<const RequestContext> request);
  ~TunnelExchange();
  TunnelExchange(const TunnelExchange&) = delete;
  TunnelExchange& operator=(const TunnelExchange&) = delete;

  void start();
  void check_timeouts(MonotonicTime now);

 private:
  void on_resolved(std::expected<net::Resolved, net::ResolveFailure> result);
  void on_connected(std::expected<std::unique_ptr<net::Stream>, net::ConnectFailure> result);
  void on_ended(net::TunnelOutcome outcome);
  void refuse(int status, Outcome outcome, std::string_view detail);
  void record(Outcome outcome, int status, std::uint64_t bytes);

  ClientConnection& connection_;
  const std::shared_ptr<const RequestContext> request_;
  const MonotonicTime started_;
  std::unique_ptr<net::Resolver::Query> query_;
  std::unique_ptr<net::Connector> connector_;
  std::unique_ptr<net::Stream> origin_;
  std::unique_ptr<net::Tunnel> tunnel_;
  std::string origin_text_;
  bool recorded_ = false;
};

}  // namespace encore::server
