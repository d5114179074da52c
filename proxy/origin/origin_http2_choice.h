// OriginHttp2Choice: which connection of HTTP/2 the requests of one link go on, and whether they go
// on one at all. Confined to its worker.
#pragma once

#include <expected>
#include <memory>
#include <utility>

#include "proxy/net/resolver.h"
#include "proxy/net/stream.h"
#include "proxy/origin/origin_http2_pool.h"
#include "proxy/origin/services.h"
#include "proxy/request/request_context.h"
#include "proxy/settings/server_group.h"

namespace encore::server {

class OriginHttp2Choice {
 public:
  // All is borrowed.
  OriginHttp2Choice(OriginServices& services, const RequestContext& request)
      : services_(services), request_(request) {}

  // True if this server (null: none of an origin's) is asked over HTTP/2, as far as is known.
  bool is_for(const OriginServer* server) const {
    return server != nullptr && server->http2 && !services_.pool.http2().is_http1(server->pool_key);
  }
  struct FoundConnection {
    OriginHttp2Connection* connection = nullptr;  // with room; null: there is none now
    bool is_unsure = false;   // there is one, if its host's name still has its address
    bool is_awaited = false;  // somebody makes one
  };
  // REQUIRES, as all below: is_for(&server), but where something else is said.
  FoundConnection find(const OriginServer& server) const;
  // One with an address of those that the name has; any, if the name servers do not tell. Null:
  // there is none.
  OriginHttp2Connection* find_confirmed(
      const OriginServer& server,
      const std::expected<net::Resolved, net::ResolveFailure>& result) const;
  // Waits for nobody's connection from now on; whether it did.
  bool stop_waiting() { return std::exchange(waits_, false); }

  // A connection is looked for: others wait for it until end_attempt(). Any server.
  void begin_attempt(const OriginServer* server) {
    if (!is_for(server)) return;
    attempt_ = services_.pool.http2().begin_attempt(server->pool_key, services_.lines);
  }
  void end_attempt() { attempt_.end(); }
  // True if a new connection to a server of any kind speaks HTTP/2.
  bool is_chosen_by(const OriginServer* server, const net::Stream& stream) const;
  // Keeps one that was made.
  OriginHttp2Connection& add(const OriginServer& server, OriginHttp2Connection::Parts parts) const;

 private:
  bool is_of_present_settings() const {
    return request_.runtime.get() == &services_.worker.present_runtime();
  }

  OriginServices& services_;
  const RequestContext& request_;
  OriginHttp2Pool::Attempt attempt_;
  bool waits_ = true;
};

}  // namespace encore::server
