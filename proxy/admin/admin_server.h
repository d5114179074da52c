// AdminServer: the admin listener and its connections. Gives whole requests to a handler, and sends
// its responses, immediately or later. Not for the hot path: it lives on the main thread's loop.
// Confined to its loop's thread.
//
// It checks sizes and times only. The handler decides who may ask (Host, Origin, peer).
#pragma once

#include <cstddef>
#include <functional>
#include <list>
#include <memory>
#include <optional>

#include "base/error.h"
#include "proxy/admin/admin_connection.h"
#include "proxy/admin/admin_message.h"
#include "proxy/net/deferred_deleter.h"
#include "proxy/net/listener.h"
#include "proxy/net/listening.h"
#include "proxy/net/loop.h"
#include "proxy/net/timer.h"

namespace encore::server {

class AdminServer final : private AdminConnection::Owner {
 public:
  using Handler = std::function<void(AdminRequest&&, AdminReply)>;
  using Options = AdminOptions;

  // `loop` is borrowed. `inherited`: its socket, where another process has opened it. Errors show
  // the address.
  static Result<std::unique_ptr<AdminServer>> create(net::Loop& loop, const Options& options,
                                                     Handler handler, net::Socket inherited = {});
  AdminServer(const AdminServer&) = delete;
  AdminServer& operator=(const AdminServer&) = delete;
  // Closes all connections, and tells nobody.
  ~AdminServer() = default;

  // The address that is bound, with the true port; 0.0.0.0:0 for a Unix socket.
  const net::Address& address() const { return address_; }
  // For another process, which then accepts from the same queue. None with errno.
  net::Socket duplicate_socket() const { return listener_->duplicate(); }
  // The inherited listener is this process' own.
  void take_over() {
    if (file_) file_->own();
  }
  // Another process has the listener: accepts no more, and closes each connection behind its
  // response.
  void hand_over();
  // Requests whose head has come and whose response is not written yet.
  std::size_t under_way() const;

 private:
  AdminServer(net::Loop& loop, const Options& options, Handler handler);
  Result<void> listen(net::Socket socket);
  void accept(net::Socket socket, const net::Address& peer);
  bool give_up_idle();
  void sweep();

  const AdminOptions& options() const override { return options_; }
  void handle(AdminRequest&& request, AdminReply to) override;
  void on_request_end() override;
  void retire(AdminConnection& connection) override;

  net::Loop& loop_;
  AdminOptions options_;
  Handler handler_;
  net::Address address_;
  std::optional<net::SocketFile> file_;  // removed with the listener
  net::DeferredDeleter retired_;
  net::Timer sweep_;
  std::list<std::unique_ptr<AdminConnection>> connections_;
  std::unique_ptr<net::Listener> listener_;
};

}  // namespace encore::server
