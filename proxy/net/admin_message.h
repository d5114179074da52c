// What goes in and out of the admin listener, and what it is bounded by. Thread-compatible.
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

namespace encore::net {

struct AdminRequest {
  std::string method;  // GET HEAD POST PUT DELETE; others are refused with 501 or 405
  std::string path;    // as it came, still percent-encoded, without the query
  std::string query;   // behind the "?", without it
  std::vector<std::pair<std::string, std::string>> fields;
  std::string body;
  // The stated length of a body that was more than it may be (UINT64_MAX: it comes in chunks): it
  // was not read, `body` is empty, and the connection ends with the answer.
  std::uint64_t body_left_out = 0;
  Address peer;  // 0.0.0.0 where it came over a Unix socket
  // The first field of that name, whatever its case; empty where there is none.
  std::string_view field(std::string_view name) const;
  std::size_t field_count(std::string_view name) const;
};

struct AdminResponse {
  int status = 200;
  std::string content_type = "text/plain; charset=utf-8";  // empty: none
  std::vector<std::pair<std::string, std::string>> fields;
  std::string body;  // left out of the answer to HEAD, counted in its Content-Length
  // Sent instead of `body` where there is one, without a copy, and held until it has gone.
  std::shared_ptr<const std::string> shared_body = nullptr;
};

// What a request without its body may bring, in bytes.
using AdminBodyLimit = std::function<std::size_t(const AdminRequest& head)>;

inline constexpr std::size_t kAdminBodyBytes = 1024 * 1024;

struct AdminOptions {
  Address address = {};  // port 0: the kernel chooses
  // Of a Unix socket, in place of the address; empty: none.
  std::string socket_file = {};
  unsigned socket_mode = 0660;
  std::size_t head_bytes_max = 16 * 1024;
  std::size_t body_bytes_max = kAdminBodyBytes;
  Nanoseconds idle_timeout = std::chrono::seconds(30);
  // Where there is none, body_bytes_max.
  AdminBodyLimit body_bytes_max_for = nullptr;
  // A body or a response that takes longer than this, and what it takes at so many bytes a
  // second, is cut within a second.
  Nanoseconds transfer_grace = std::chrono::seconds(30);
  std::uint64_t bytes_per_second_min = 128 * 1024;
  std::function<void()> on_cut = nullptr;  // when that happens
  std::function<void()> on_end = nullptr;  // when a request is answered, or its client gone
};

}  // namespace encore::net
