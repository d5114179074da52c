// The part of a link that takes a stream of a connection that other requests use as well, in place
// of a connection.
#include <utility>

#include "base/check.h"
#include "proxy/origin/origin_link.h"

namespace encore::server {

// True if it has a stream, or asks for the name of the connection that has room.
bool OriginLink::take_stream() {
  const OriginHttp2Choice::FoundConnection found = http2_.find(*server_);
  if (found.connection == nullptr) {
    if (!found.is_unsure || need_ != Need::kAny) return false;
    resolve(Lookup::kToConfirm);
    return true;
  }
  services_.stats.origin_reuses.add();
  connect_time_ = Nanoseconds(-1);
  open_stream(*found.connection);
  return true;
}

void OriginLink::open_stream(OriginHttp2Connection& connection) {
  ++opened_;
  slot_.reset();  // the connection has its own
  http2_.end_attempt();
  auto stream = connection.open();
  const bool is_reused = stream->is_reused();
  state_ = Open{.stream = nullptr,
                .reused = is_reused,
                .http2 = std::move(stream),
                .count = {},
                .made = connection.made(),
                .named_until = connection.named_until()};
  // One that is not for requests of other settings is for this alone.
  const bool is_shared = request_.runtime.get() == &services_.worker.present_runtime() &&
                         !services_.worker.is_draining() &&
                         request_.runtime->config.upstream.pool_per_server != 0;
  if (!is_shared) connection.retire();
}

}  // namespace encore::server
