// AdminServer: a small HTTP server (libevent's evhttp) for the admin listener: whole requests in,
// whole responses out, nothing streamed; a response may come later than its request. Not for the
// hot path. Confined to its loop's thread.
//
// It checks sizes only. Who may ask (Host, Origin, peer) is the handler's to decide.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/time.h"
#include "proxy/net/address.h"

namespace encore::net {

class Loop;

struct AdminRequest {
  std::string method;  // GET HEAD POST PUT DELETE; others are refused with 501 or 405
  std::string path;    // as it came, still percent-encoded, without the query
  std::string query;   // behind the "?", without it
  std::vector<std::pair<std::string, std::string>> fields;
  std::string body;
  Address peer;
  // The first field of that name, whatever its case; empty where there is none.
  std::string_view field(std::string_view name) const;
  std::size_t field_count(std::string_view name) const;
};

struct AdminResponse {
  int status = 200;
  std::string content_type = "text/plain; charset=utf-8";
  std::vector<std::pair<std::string, std::string>> fields;
  std::string body;  // left out of the answer to HEAD, counted in its Content-Length
};

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
  using Handler = std::function<void(const AdminRequest&, AdminReply)>;

  struct Options {
    Address address = {};  // port 0: the kernel chooses
    std::size_t head_bytes_max = 16 * 1024;
    std::size_t body_bytes_max = 1024 * 1024;
    Nanoseconds idle_timeout = std::chrono::seconds(30);
  };

  // Errors show the address.
  static Result<std::unique_ptr<AdminServer>> create(Loop& loop, const Options& options,
                                                     Handler handler);
  virtual ~AdminServer() = default;
  // What is bound, with the true port.
  virtual const Address& address() const = 0;
};

}  // namespace encore::net
