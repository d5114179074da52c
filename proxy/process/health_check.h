// HealthCheck: asks one server of an origin, again and again, whether it is well, over a connection
// of its own for each check, and tells its group what follows (health_path of [[origin]]).
// Confined to its loop's thread; destroying it ends it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <expected>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "config/config.h"
#include "proxy/net/connector.h"
#include "proxy/net/loop.h"
#include "proxy/net/resolver.h"
#include "proxy/net/stream.h"
#include "proxy/net/timer.h"
#include "proxy/observe/stats.h"
#include "proxy/process/check_count.h"
#include "proxy/process/health_http2.h"
#include "proxy/settings/router.h"

namespace encore::server {

// Returns the request of a check. `origin` has a health_path.
std::string health_request(const config::Origin& origin, const OriginServer& server);
// True if such a status is that of a server that is well.
bool is_healthy(const config::Origin& origin, int status);

class HealthCheck final : private net::StreamHandler {
 public:
  // All is borrowed. Begins immediately.
  struct Parts {
    net::Loop& loop;
    net::Resolver& resolver;
    WorkerStats& stats;
    const config::Origin& origin;
    const ServerGroup& group;
    const OriginServer& server;
    bool is_down = false;  // as the group knows it
  };
  explicit HealthCheck(const Parts& parts);
  HealthCheck(const HealthCheck&) = delete;
  HealthCheck& operator=(const HealthCheck&) = delete;

 private:
  std::size_t on_data(net::Stream& stream, std::span<const std::byte> bytes) override;
  void on_writable(net::Stream& stream) override;
  void on_eof(net::Stream& stream) override;
  void on_error(net::Stream& stream, net::CloseReason reason, int os_error) override;

  void begin();
  void on_resolved(std::expected<net::Resolved, net::ResolveFailure> result);
  void connect(std::vector<net::Address> addresses);
  void on_connected(std::expected<std::unique_ptr<net::Stream>, net::ConnectFailure> result);
  void write();
  std::size_t on_http2(std::string_view bytes);
  void end(bool is_good, std::string_view why);

  const Parts parts_;
  const std::string request_;
  CheckCount count_;
  std::size_t sent_ = 0;
  std::unique_ptr<net::Resolver::Query> query_;
  std::unique_ptr<net::Connector> connector_;
  std::unique_ptr<net::Stream> stream_;
  std::unique_ptr<HealthHttp2> http2_;  // null: HTTP/1.1 is spoken
  net::Timer next_;
  net::Timer limit_;
};

}  // namespace encore::server
