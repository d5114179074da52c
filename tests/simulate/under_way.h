// Requests in progress on the proxy's connections to clients, whatever protocol they speak. To be
// included by sources that are compiled without access control (CMakeLists.txt).
#pragma once

#include "proxy/client/http1_connection.h"
#include "proxy/client/http2_connection.h"
#include "proxy/client/http2_reply.h"
#include "proxy/client/http2_stream.h"
#include "proxy/client/http2_tunnel.h"
#include "proxy/process/proxy.h"
#include "proxy/process/worker.h"

namespace encore::simulate {

// One request, or a connection without any. All are borrowed.
struct UnderWay {
  const server::Exchange* exchange = nullptr;     // null: it is a plain hit, or a tunnel
  const server::RequestContext* reply = nullptr;  // a plain hit that its client does not take
  bool has_reply = false;                         // the same, and others that are not recorded
  bool has_tunnel = false;
  bool is_kept = false;  // nothing is in progress
};

inline UnderWay under_way(const server::Http1Connection& connection) {
  UnderWay out;
  if (connection.request_ != nullptr) out.exchange = &connection.request_->exchange_;
  out.has_reply = connection.replies_.is_pending();
  out.reply = connection.replies_.request();
  out.has_tunnel = connection.tunnel_ != nullptr;
  out.is_kept = out.exchange == nullptr && !out.has_reply && !out.has_tunnel &&
                connection.handshake_ == nullptr && connection.interceptor_ == nullptr;
  return out;
}

inline UnderWay under_way(const server::Http2Responder& work) {
  UnderWay out;
  if (const auto* stream = dynamic_cast<const server::Http2Stream*>(&work)) {
    out.exchange = &stream->exchange_;
  } else if (const auto* reply = dynamic_cast<const server::Http2Reply*>(&work)) {
    out.has_reply = true;
    out.reply = reply->request_.get();
  } else {
    out.has_tunnel = dynamic_cast<const server::Http2Tunnel*>(&work) != nullptr;
  }
  return out;
}

// Calls for each connection.
template <typename Look>
void each_connection(server::Proxy& proxy, Look&& look) {
  for (const auto& worker : proxy.workers()) {
    for (const server::ClientConnection* at = worker->connections(); at != nullptr; at = at->next) {
      look(*at);
    }
  }
}

// Calls for each request, and for each connection that has none.
template <typename Look>
void each_under_way(server::Proxy& proxy, Look&& look) {
  each_connection(proxy, [&](const server::ClientConnection& connection) {
    if (const auto* http1 = dynamic_cast<const server::Http1Connection*>(&connection)) {
      return look(under_way(*http1));
    }
    const auto& http2 = dynamic_cast<const server::Http2Connection&>(connection);
    if (http2.works_.empty()) look(UnderWay{.is_kept = true});
    for (const auto& work : http2.works_.works_) look(under_way(*work));
  });
}

}  // namespace encore::simulate
