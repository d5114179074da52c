// Checks that connections of HTTP/2 hold no more than they should, and that nobody waits for one in
// vain. Compiled as held.cc is.
#include <string>
#include <string_view>

#include "proxy/client/http2_connection.h"
#include "proxy/origin/origin_http2_connection.h"
#include "proxy/origin/origin_link.h"
#include "proxy/process/worker.h"
#include "tests/simulate/held.h"

namespace encore::simulate {
namespace {

using Streams = server::OriginHttp2Stream;

// True if its sender knows that nothing more comes, or there is none.
bool knows_its_end(const Streams& stream) {
  return stream.end_ != Streams::End::kNotYet || stream.id_ == 0 || stream.is_gone_;
}

}  // namespace

void Held::look_at_client_streams() const {
  for (const auto& worker : proxy_.workers()) {
    std::uint64_t open = 0;
    std::uint64_t streams = 0;
    for (const server::ClientConnection* at = worker->connections_; at != nullptr; at = at->next) {
      const auto* const connection = dynamic_cast<const server::Http2Connection*>(at);
      if (connection == nullptr || connection->is_closed_) continue;
      ++open;
      streams += connection->told_streams_;
      same(connection->head_place ? 1 : 0, connection->session_.is_within_block() ? 1 : 0,
           "unfinished heads of a connection of HTTP/2");
      if (!connection->has_peer_ended_) continue;
      for (const auto& work : connection->works_.works_) {
        if (connection->session_.is_received(work->id())) continue;
        on_fault_("a client of HTTP/2 has ended its side, and the rest of a request is awaited");
      }
    }
    same(worker->stats().http2_open.get(), open, "connections of HTTP/2, counted");
    same(worker->stats().http2_streams_open.get(), streams, "streams of clients, counted");
  }
}

void Held::look_at_origin_streams() const {
  for (const auto& worker : proxy_.workers()) {
    std::uint64_t open = 0;
    std::uint64_t streams = 0;
    for (const auto& [key, server] : worker->pool_.http2_.servers_) {
      for (const auto& connection : server.connections) {
        streams += connection->streams_.size();
        if (!connection->is_closed_) {
          ++open;
          continue;
        }
        for (const Streams* const stream : connection->streams_) {
          if (knows_its_end(*stream)) continue;
          on_fault_("a connection to an origin has ended, and a stream of it does not know");
        }
        if (connection->streams_.empty() && !connection->later_.is_scheduled()) {
          on_fault_("a connection to an origin that has ended, and is of no use, is kept");
        }
      }
    }
    same(worker->stats().origin_http2_open.get(), open,
         "connections of HTTP/2 to origins, counted");
    same(worker->stats().origin_http2_streams_open.get(), streams, "streams to origins, counted");
  }
}

// The first in line finds nothing that it may have: else it would have left the line.
void Held::look_at_lines() const {
  for (const auto& worker : proxy_.workers()) {
    if (worker->wake_origin_lines_->is_scheduled()) continue;
    const server::OriginQueues& lines = worker->origin_lines_;
    for (const auto& [key, server] : lines.servers_) {
      if (server.turns.empty() || server.is_ready) continue;
      // Only this cast reaches a base that is private.
      const auto& link = (const server::OriginLink&)server.turns.front()->line.front()->owner_;
      if (link.http2_.is_for(link.server_)) {
        const auto found = link.http2_.find(*link.server_);
        if (found.connection != nullptr) {
          on_fault_("a request waits for a connection of HTTP/2, and there is room on one");
        }
      }
      // The end of the attempt wakes it, whichever protocol its server has chosen by then.
      if (worker->pool_.http2_.has_attempt(key)) continue;
      if (server.connections < lines.limits_.connections) {
        on_fault_("a request waits in line, and there may be one connection more");
      }
    }
  }
}

}  // namespace encore::simulate
