// SyntheticOrigin: an HTTP server on a thread of its own that answers for every DrivenObject, with
// 304 where the client's If-None-Match names it, and 404 for all other paths. Thread-safe.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

#include "base/error.h"

namespace encore::sim {

class SyntheticOrigin {
 public:
  // Listens on "ADDRESS:PORT"; port 0 takes a free one. Errors: no such address, or in use.
  static Result<std::unique_ptr<SyntheticOrigin>> start(const std::string& address);
  // Closes all connections and ends the thread.
  ~SyntheticOrigin();
  SyntheticOrigin(const SyntheticOrigin&) = delete;
  SyntheticOrigin& operator=(const SyntheticOrigin&) = delete;

  // "127.0.0.1:8000": as it stands in a URL.
  const std::string& authority() const { return authority_; }

  // Requests answered so far, and of these those with 304; bytes of bodies.
  std::uint64_t requests() const { return requests_.load(std::memory_order_relaxed); }
  std::uint64_t validations() const { return validations_.load(std::memory_order_relaxed); }
  std::uint64_t body_bytes() const { return body_bytes_.load(std::memory_order_relaxed); }

 private:
  class Server;  // the part that uses libevent
  SyntheticOrigin();

  std::string authority_;
  std::atomic<std::uint64_t> requests_{0};
  std::atomic<std::uint64_t> validations_{0};
  std::atomic<std::uint64_t> body_bytes_{0};
  std::unique_ptr<Server> server_;
};

}  // namespace encore::sim
