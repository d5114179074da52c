// Requests and responses of the admin listener, and its limits. Nothing here knows how they are
// framed. Thread-compatible.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/time.h"
#include "proxy/net/address.h"

namespace encore::server {

struct AdminRequest {
  std::string method;  // one that HTTP knows; others are refused with 501
  std::string path;    // as it came, still percent-encoded, without the query
  std::string query;   // behind the "?", without it
  std::vector<std::pair<std::string, std::string>> fields;
  std::string body;
  // The stated length of a body above its limit (UINT64_MAX: it comes in chunks). Such a body is
  // not read, `body` is empty, and the connection ends with the answer.
  std::uint64_t body_left_out = 0;
  net::Address peer;  // the loopback address for a Unix socket
  // The listener that it came by: its configured address, or a Unix socket.
  net::Address listener;
  bool over_socket = false;
  // The first field of that name, in any case; empty if there is none.
  std::string_view field(std::string_view name) const;
  std::size_t field_count(std::string_view name) const;
};

struct AdminResponse {
  int status = 200;
  std::string content_type = "text/plain; charset=utf-8";  // empty: none
  std::vector<std::pair<std::string, std::string>> fields;
  std::string body;  // left out of the answer to HEAD, counted in its Content-Length
  // Sent instead of `body` if there is one, without a copy, and held until it is sent.
  std::shared_ptr<const std::string> shared_body = nullptr;

  const std::string& content() const { return shared_body != nullptr ? *shared_body : body; }
};

// Owes one request its response. It may be kept until the response is known, and outlive the client
// and the server: then the response goes nowhere. Dropped without one, it sends 500. Move-only;
// call and drop it on the loop's thread.
class AdminReply {
 public:
  // Frames the response and sends it, or drops it if the client has gone.
  using Send = std::move_only_function<void(AdminResponse&&)>;
  explicit AdminReply(Send send) : send_(std::move(send)) {}
  AdminReply(AdminReply&& other) noexcept : send_(std::exchange(other.send_, nullptr)) {}
  AdminReply& operator=(AdminReply&&) = delete;
  ~AdminReply();
  // REQUIRES: called once.
  void send(AdminResponse response);

 private:
  Send send_;  // null: the response was sent
};

// Returns the bytes of body that a request may bring, given all of it but its body.
using AdminBodyLimit = std::function<std::size_t(const AdminRequest& head)>;

inline constexpr std::size_t kAdminBodyBytes = 1024 * 1024;

struct AdminOptions {
  net::Address address = {};  // port 0: the kernel chooses
  // File of a Unix socket, used instead of the address; empty: none.
  std::string socket_file = {};
  unsigned socket_mode = 0660;
  // At the limit the connection that has been idle for longest gives way to a new one. If all have
  // a request in progress, the new one is closed.
  std::size_t connections_max = 256;
  std::size_t head_bytes_max = 16 * 1024;
  std::size_t body_bytes_max = kAdminBodyBytes;
  // A connection on which nothing moves is closed, unless its client waits for an answer.
  Nanoseconds idle_timeout = std::chrono::seconds(30);
  // False: each response says that the connection ends with it.
  bool keeps_alive = true;
  // Without one, body_bytes_max holds.
  AdminBodyLimit body_bytes_max_for = nullptr;
  // A head may take this long. A body or a response that takes longer than this and its size at the
  // least rate is cut within a second.
  Nanoseconds transfer_grace = std::chrono::seconds(30);
  std::uint64_t bytes_per_second_min = 128 * 1024;
  std::function<void()> on_cut = nullptr;  // a transfer was too slow
  std::function<void()> on_end = nullptr;  // a request is answered, or its client gone
};

}  // namespace encore::server
