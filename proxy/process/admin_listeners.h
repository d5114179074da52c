// AdminListeners: the admin listeners of a configuration, one for each of its addresses. Confined
// to the main thread.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/error.h"
#include "config/config.h"
#include "proxy/admin/admin_server.h"
#include "proxy/net/loop.h"
#include "proxy/net/socket.h"

namespace encore::server {

class AdminListeners {
 public:
  // Sockets that another process has opened, by their addresses in its configuration.
  using Inherited = std::map<std::string, net::Socket>;

  // Opens all, but takes sockets of `inherited` for the same addresses. `options` are those of each
  // but its address, `loop` is borrowed. Errors show the address.
  Result<void> open(net::Loop& loop, const config::Admin& admin, const AdminOptions& options,
                    const AdminServer::Handler& handler, Inherited inherited = {});
  // Closes all, and their connections.
  void close() { servers_.clear(); }

  // The bound addresses; Unix sockets have none.
  std::vector<net::Address> addresses() const;
  // The same and the files, as text.
  std::vector<std::string> names() const;
  // Requests whose head has come and whose response is not written yet.
  std::size_t under_way() const;

  // Copies for another process, by their addresses in the configuration.
  Inherited duplicate_sockets() const;
  // The inherited listeners are this process' own. Those without a place in its configuration are
  // closed, and their files removed.
  void take_over();
  // Another process has the listeners: each accepts no more, and closes its connections behind
  // their responses.
  void hand_over();

 private:
  struct Open {
    std::string where;   // its address in the configuration
    std::string socket;  // empty: an address
    std::unique_ptr<AdminServer> server;
  };
  std::vector<Open> servers_;
  Inherited left_;  // until take_over()
};

}  // namespace encore::server
