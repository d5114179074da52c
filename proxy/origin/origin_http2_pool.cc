#include "proxy/origin/origin_http2_pool.h"

#include <algorithm>

#include "base/check.h"

namespace encore::server {

OriginHttp2Pool::Attempt::Attempt(Server& server, OriginQueues& lines)
    : server_(&server), lines_(&lines) {
  ++server.attempts;
}

OriginHttp2Pool::Attempt& OriginHttp2Pool::Attempt::operator=(Attempt&& other) noexcept {
  if (this == &other) return *this;
  end();
  server_ = std::exchange(other.server_, nullptr);
  lines_ = other.lines_;
  return *this;
}

void OriginHttp2Pool::Attempt::finish() {
  Server& server = *std::exchange(server_, nullptr);
  ENCORE_CHECK(server.attempts != 0, "an attempt ends once");
  --server.attempts;
  lines_->look_again(server.key);
}

OriginHttp2Pool::~OriginHttp2Pool() = default;

OriginHttp2Pool::Server& OriginHttp2Pool::server_of(const std::string& key) {
  const auto at = servers_.try_emplace(key).first;
  at->second.key = at->first;
  return at->second;
}

const OriginHttp2Pool::Server* OriginHttp2Pool::find_server(std::string_view key) const {
  const auto found = servers_.find(key);
  return found == servers_.end() ? nullptr : &found->second;
}

// Connections may leave within `call`, in a later turn.
template <typename Call>
void OriginHttp2Pool::for_each(Call call) {
  for (auto& [key, server] : servers_) {
    for (const auto& connection : server.connections) call(*connection);
  }
}

OriginHttp2Connection* OriginHttp2Pool::find(
    std::string_view key, const std::function<bool(const OriginHttp2Connection&)>& accept) {
  const Server* const server = find_server(key);
  if (server == nullptr) return nullptr;
  for (const auto& connection : server->connections) {
    if (connection->has_room() && accept(*connection)) return connection.get();
  }
  return nullptr;
}

OriginHttp2Connection& OriginHttp2Pool::add(const std::string& key,
                                            OriginHttp2Connection::Parts parts,
                                            const h2::Options& options, WorkerStats& stats) {
  auto& connections = server_of(key).connections;
  OriginHttp2Keeper& keeper = *this;
  connections.push_back(
      std::make_unique<OriginHttp2Connection>(std::move(parts), options, counters_, stats, keeper));
  return *connections.back();
}

OriginHttp2Pool::Attempt OriginHttp2Pool::begin_attempt(const std::string& key,
                                                        OriginQueues& lines) {
  return {server_of(key), lines};
}

bool OriginHttp2Pool::has_attempt(std::string_view key) const {
  const Server* const server = find_server(key);
  return server != nullptr && server->attempts != 0;
}

void OriginHttp2Pool::note_http1(const std::string& key, bool is_http1) {
  server_of(key).is_http1 = is_http1;
}

bool OriginHttp2Pool::is_http1(std::string_view key) const {
  const Server* const server = find_server(key);
  return server != nullptr && server->is_http1;
}

void OriginHttp2Pool::on_end(OriginHttp2Connection& connection) {
  for (auto& [key, server] : servers_) {
    const auto found = std::ranges::find(server.connections, &connection,
                                         &std::unique_ptr<OriginHttp2Connection>::get);
    if (found == server.connections.end()) continue;
    // It is what calls.
    net::Loop& loop = connection.loop();
    loop.defer([gone = std::move(*found)] {});
    server.connections.erase(found);
    return;
  }
}

bool OriginHttp2Pool::give_up(std::string_view key) {
  const Server* const server = find_server(key);
  if (server == nullptr) return false;
  for (const auto& connection : server->connections) {
    if (!connection->is_idle()) continue;
    connection->close_idle();
    return true;
  }
  return false;
}

void OriginHttp2Pool::close_idle_since(MonotonicTime time) {
  for_each([time](OriginHttp2Connection& connection) {
    if (connection.is_idle() && connection.idle_since() < time) connection.close_idle();
  });
}

void OriginHttp2Pool::close_made_before(MonotonicTime time) {
  for_each([time](OriginHttp2Connection& connection) {
    if (connection.made() < time) connection.retire();
  });
}

void OriginHttp2Pool::close_beyond(std::size_t count) {
  std::size_t idle = idle_count();
  for_each([&](OriginHttp2Connection& connection) {
    if (idle <= count || !connection.is_idle()) return;
    connection.close_idle();
    --idle;
  });
}

void OriginHttp2Pool::close_all() {
  for_each([](OriginHttp2Connection& connection) {
    connection.retire();
    if (connection.is_idle()) connection.close_idle();
  });
}

std::size_t OriginHttp2Pool::idle_count() const {
  std::size_t idle = 0;
  for (const auto& [key, server] : servers_) {
    idle += static_cast<std::size_t>(std::ranges::count_if(
        server.connections, [](const auto& each) { return each->is_idle(); }));
  }
  return idle;
}

void OriginHttp2Pool::check_timeouts(MonotonicTime now) {
  for_each([now](OriginHttp2Connection& connection) { connection.check_timeouts(now); });
}

}  // namespace encore::server
