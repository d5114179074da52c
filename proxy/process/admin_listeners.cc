#include "proxy/process/admin_listeners.h"

#include <string_view>
#include <utility>

#include "config/derive.h"
#include "config/network.h"
#include "proxy/net/listening.h"
#include "proxy/observe/log.h"
#include "proxy/settings/names.h"

namespace encore::server {

Result<void> AdminListeners::open(net::Loop& loop, const config::Admin& admin,
                                  const AdminOptions& options, const AdminServer::Handler& handler,
                                  Inherited inherited) {
  for (const config::Endpoint& endpoint : config::admin_endpoints(admin)) {
    AdminOptions own = options;
    if (endpoint.socket.empty()) {
      own.address = to_address(endpoint);
    } else {
      own.socket_file = endpoint.socket;
      own.socket_mode = *admin.socket_mode;
    }
    const std::string where = config::to_string(endpoint);
    auto given = inherited.extract(where);
    auto server =
        AdminServer::create(loop, own, handler, given ? std::move(given.mapped()) : net::Socket());
    if (!server) return std::unexpected(server.error());
    servers_.push_back({where, endpoint.socket, std::move(*server)});
  }
  left_ = std::move(inherited);
  return {};
}

std::vector<net::Address> AdminListeners::addresses() const {
  std::vector<net::Address> addresses;
  for (const auto& [where, socket, server] : servers_) {
    if (socket.empty()) addresses.push_back(server->address());
  }
  return addresses;
}

std::vector<std::string> AdminListeners::names() const {
  std::vector<std::string> names;
  for (const auto& [where, socket, server] : servers_) {
    names.push_back(socket.empty() ? server->address().to_string() : "unix:" + socket);
  }
  return names;
}

std::size_t AdminListeners::under_way() const {
  std::size_t sum = 0;
  for (const Open& each : servers_) sum += each.server->under_way();
  return sum;
}

AdminListeners::Inherited AdminListeners::duplicate_sockets() const {
  Inherited sockets;
  for (const Open& each : servers_) sockets[each.where] = each.server->duplicate_socket();
  return sockets;
}

void AdminListeners::take_over() {
  for (const auto& [where, socket] : std::exchange(left_, {})) {
    log::info("no longer listening on {} (admin)", where);
    constexpr std::string_view kUnix = "unix:";
    if (!where.starts_with(kUnix)) continue;
    // The file goes with the object.
    if (auto file = net::SocketFile::of(where.substr(kUnix.size()))) file->own();
  }
  for (const Open& each : servers_) each.server->take_over();
}

void AdminListeners::hand_over() {
  for (const Open& each : servers_) each.server->hand_over();
}

}  // namespace encore::server
