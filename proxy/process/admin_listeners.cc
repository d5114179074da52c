#include "proxy/process/admin_listeners.h"

#include <utility>

#include "config/derive.h"
#include "proxy/settings/names.h"

namespace encore::server {

Result<void> AdminListeners::open(net::Loop& loop, const config::Admin& admin,
                                  const AdminOptions& options,
                                  const AdminServer::Handler& handler) {
  for (const config::Endpoint& endpoint : config::admin_endpoints(admin)) {
    AdminOptions own = options;
    if (endpoint.socket.empty()) {
      own.address = to_address(endpoint);
    } else {
      own.socket_file = endpoint.socket;
      own.socket_mode = *admin.socket_mode;
    }
    auto server = AdminServer::create(loop, own, handler);
    if (!server) return std::unexpected(server.error());
    servers_.push_back({endpoint.socket, std::move(*server)});
  }
  return {};
}

std::vector<net::Address> AdminListeners::addresses() const {
  std::vector<net::Address> addresses;
  for (const auto& [socket, server] : servers_) {
    if (socket.empty()) addresses.push_back(server->address());
  }
  return addresses;
}

std::vector<std::string> AdminListeners::names() const {
  std::vector<std::string> names;
  for (const auto& [socket, server] : servers_) {
    names.push_back(socket.empty() ? server->address().to_string() : "unix:" + socket);
  }
  return names;
}

std::size_t AdminListeners::under_way() const {
  std::size_t sum = 0;
  for (const auto& [socket, server] : servers_) sum += server->under_way();
  return sum;
}

}  // namespace encore::server
