// Listeners: the listening sockets of all workers, from one configuration to the next. New
// listeners of a config are opened before anything of the present one is touched; those that stay
// keep their sockets, so that no connection is lost. Confined to the main thread. Why listeners are
// known by their address, and new ones open first: docs/decisions/0223.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/error.h"
#include "config/config.h"
#include "proxy/net/address.h"
#include "proxy/net/listening.h"
#include "proxy/net/socket.h"
#include "proxy/observe/request_counts.h"
#include "proxy/observe/series.h"
#include "proxy/settings/tls_listeners.h"

namespace encore::server {

// One listener as one worker has it.
struct WorkerListener {
  std::uint64_t id = 0;  // each that was ever opened has another one
  config::Mode mode = config::Mode::kForward;
  std::size_t index = 0;                           // its place in the config
  std::string name = {};                           // its address as the config has it
  std::shared_ptr<const net::TlsServer> tls = {};  // null: plain HTTP
  bool is_new = false;                             // it was opened now; else it is there already
  std::vector<net::Socket> sockets = {};           // of a new one; none: other workers accept
  // Listeners that go, for whose addresses this one answers from now on.
  std::vector<std::uint64_t> succeeds = {};
  ListenerPart counts = std::make_shared<ListenerCounts>();  // this worker's counts of it
  // Kept until this worker has closed those that go; null: there are none.
  std::shared_ptr<const void> closing = {};
};

class Listeners {
 public:
  explicit Listeners(std::size_t workers) : workers_(workers) {}

  // Sockets of one address that another process has opened, whatever number of workers it has.
  struct Inherited {
    std::string where;  // its address as the other's config has it
    net::Address bound;
    std::vector<net::Socket> sockets;
  };
  // For listeners of plan() with these addresses. Sockets that no plan has taken by complete() are
  // closed.
  void inherit(std::vector<Inherited> inherited) { inherited_ = std::move(inherited); }
  // This process serves: opens sockets for workers that have none of their own. A list for each
  // worker. Failures are logged: others accept at that address.
  struct Added {
    std::uint64_t id = 0;
    net::Socket socket;
  };
  std::vector<std::vector<Added>> complete();
  // Another process serves: files of Unix sockets stay.
  void leave_files();

  struct Entry {
    std::uint64_t id = 0;
    unsigned socket_mode = 0;
    config::EndpointText where = {"127.0.0.1:0"};
    config::Mode mode = config::Mode::kForward;
    net::Address bound = {};                     // 0.0.0.0:0 for a Unix socket
    std::shared_ptr<net::SocketFile> file = {};  // for a Unix socket; null: an address
    // Those of each worker; empty: they were given out.
    std::vector<std::vector<net::Socket>> sockets = {};
  };
  using Plan = std::vector<Entry>;  // in the config's order

  // Returns the listeners that `config` wants, with those of the present that stay. Nothing is
  // changed. Errors: an address or a file that cannot be had.
  Result<Plan> plan(const config::Config& config);
  // Addresses of the plan, Unix sockets left out.
  static std::vector<net::Address> addresses(const Plan& plan);
  // Makes it the present one. `tls` and `counts`, by address, are of the same config. A seat for
  // each listener, worker by worker; listeners that are not among them are closed. Files of those
  // that are gone go with them.
  std::vector<std::vector<WorkerListener>> adopt(Plan plan, const TlsListeners& tls,
                                                 const SeriesTable<ListenerCounts>& counts);

  const Plan& present() const { return present_; }

 private:
  Result<Entry> open(const config::Listen& listen);
  Result<Entry> open_unix(Entry entry, const config::Listen& listen);
  Result<Entry> take_inherited(Entry entry, Inherited inherited);
  bool has_port(std::uint16_t port);
  std::shared_ptr<const void> note_leaving(const Plan& plan);

  std::size_t workers_;
  std::uint64_t ids_ = 0;
  Plan present_;
  // Ports of listeners that went, until all workers have closed their sockets.
  struct Leaving {
    std::uint16_t port = 0;
    std::weak_ptr<const void> closing;
  };
  std::vector<Leaving> leaving_;
  std::vector<Inherited> inherited_;
  struct Lacking {
    std::uint64_t id = 0;
    net::Address bound;
    std::size_t worker = 0;
  };
  std::vector<Lacking> lacking_;  // workers without a socket of their own
};

}  // namespace encore::server
