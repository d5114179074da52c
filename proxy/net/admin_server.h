// AdminServer: a small HTTP server (libevent's evhttp) for the admin listener: whole requests in,
// whole responses out, nothing streamed; a response may come later than its request. Not for the
// hot path. Confined to its loop's thread.
//
// It checks sizes only. Who may ask (Host, Origin, peer) is the handler's to decide; how much may
// follow a head is asked of `body_bytes_max_for` when that is there, however many reads it took.
// A request whose stated body is more than that is answered at once.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <utility>

#include "base/error.h"
#include "proxy/net/address.h"
#include "proxy/net/admin_message.h"

namespace encore::net {

class Loop;

// Owes one request its response. It may be kept until the response is known, and outlive the client
// and the server: then the response goes nowhere. Dropped without one, it says 500. Move-only, to
// be called and dropped on the loop's thread.
class AdminReply {
 public:
  struct Pending;
  explicit AdminReply(std::shared_ptr<Pending> pending) : pending_(std::move(pending)) {}
  AdminReply(AdminReply&&) = default;
  AdminReply& operator=(AdminReply&&) = delete;
  ~AdminReply();
  // REQUIRES: called once.
  void send(const AdminResponse& response);

 private:
  std::shared_ptr<Pending> pending_;
};

class AdminServer {
 public:
  using Handler = std::function<void(AdminRequest&&, AdminReply)>;
  using Options = AdminOptions;

  // Errors show the address.
  static Result<std::unique_ptr<AdminServer>> create(Loop& loop, const Options& options,
                                                     Handler handler);
  virtual ~AdminServer() = default;
  // What is bound, with the true port; 0.0.0.0:0 for a Unix socket.
  virtual const Address& address() const = 0;
  // Requests whose head has come and whose answer has not gone.
  virtual std::size_t under_way() const = 0;
};

}  // namespace encore::net
