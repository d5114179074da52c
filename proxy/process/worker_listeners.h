// WorkerListeners: the listeners of one worker, and what their connections know of them. Confined
// to the worker.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "proxy/client/client_connection.h"
#include "proxy/net/listener.h"
#include "proxy/net/loop.h"
#include "proxy/process/listeners.h"
#include "proxy/request/request_view_builder.h"

namespace encore::server {

class WorkerListeners {
 public:
  using OnAccept = std::function<void(net::Socket socket, const net::Address& peer,
                                      const ListenerContext& context)>;
  // `loop` is borrowed. The context that a connection comes with stays until forget_unused() finds
  // it without one.
  WorkerListeners(net::Loop& loop, OnAccept on_accept, std::function<void(int)> on_overload)
      : loop_(loop), on_accept_(std::move(on_accept)), on_overload_(std::move(on_overload)) {}
  WorkerListeners(const WorkerListeners&) = delete;
  WorkerListeners& operator=(const WorkerListeners&) = delete;

  // Sets these and no others: new ones begin to accept, the others accept the clients that wait,
  // and are closed. Their clients are closed with them, or are those of their successor.
  void set(std::vector<WorkerListener> seats);
  // TLS of new connections to the listeners, by their places in the present configuration.
  void set_tls(const TlsListeners& tls);
  // One more socket of that listener, which may have gone in the meantime.
  void add(std::uint64_t id, net::Socket socket);
  // All sockets that accept, with the listeners' ids, for another process.
  struct Duplicate {
    std::uint64_t id = 0;
    net::Socket socket;
  };
  std::vector<Duplicate> duplicates() const;
  // The process wants to end.
  void stop();
  // The same when those that wait have been accepted: another process has the sockets, or none.
  void stop_behind_waiting();
  // Lets go of what nobody needs of those that were closed. `connections` are all that there are,
  // an intrusive list; nobody else keeps a context.
  void forget_unused(const ClientConnection* connections);

 private:
  struct Open {
    std::uint64_t id = 0;
    std::unique_ptr<ListenerContext> context;
    std::vector<std::unique_ptr<net::Listener>> listeners;  // those of one address
  };
  // Knowledge of the clients of a listener that has gone.
  struct Left {
    std::uint64_t id = 0;  // present owner of its clients
    std::unique_ptr<ListenerContext> context;
  };
  void open(WorkerListener seat);
  void listen(Open& open, net::Socket socket);

  net::Loop& loop_;
  OnAccept on_accept_;
  std::function<void(int)> on_overload_;
  std::vector<Open> open_;
  std::vector<Left> left_;
};

}  // namespace encore::server
