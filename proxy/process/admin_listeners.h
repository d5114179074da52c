// AdminListeners: the admin listeners of a configuration, one for each of its addresses. Confined
// to the main thread.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "base/error.h"
#include "config/config.h"
#include "proxy/admin/admin_server.h"
#include "proxy/net/loop.h"

namespace encore::server {

class AdminListeners {
 public:
  // Opens all. `options` are those of each but its address, `loop` is borrowed. Errors show the
  // address.
  Result<void> open(net::Loop& loop, const config::Admin& admin, const AdminOptions& options,
                    const AdminServer::Handler& handler);
  // Closes all, and their connections.
  void close() { servers_.clear(); }

  // The bound addresses; Unix sockets have none.
  std::vector<net::Address> addresses() const;
  // The same and the files, as text.
  std::vector<std::string> names() const;
  // Requests whose head has come and whose response is not written yet.
  std::size_t under_way() const;

 private:
  struct Open {
    std::string socket;  // empty: an address
    std::unique_ptr<AdminServer> server;
  };
  std::vector<Open> servers_;
};

}  // namespace encore::server
