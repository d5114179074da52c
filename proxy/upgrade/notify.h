// Notices to a service manager, and its sockets: the protocol of systemd's sd_notify() and of its
// socket activation, without its library. All of it does nothing where no manager asks.
// Thread-compatible.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/time.h"
#include "proxy/net/socket.h"

namespace encore::upgrade {

class ServiceManager {
 public:
  // By NOTIFY_SOCKET, WATCHDOG_USEC and LISTEN_FDS, which programs that this process starts do not
  // see of the latter.
  static ServiceManager of_environment();
  // Its socket's address, as NOTIFY_SOCKET has it; empty: there is none.
  explicit ServiceManager(std::string address) : address_(std::move(address)) {}

  bool is_there() const { return !address_.empty(); }
  // Lines as "READY=1\nMAINPID=7". A manager that does not listen is no error.
  void tell(std::string_view lines, const std::vector<int>& descriptors = {}) const;
  // How often it wants to hear "WATCHDOG=1"; nothing: never.
  std::optional<Nanoseconds> watchdog() const { return watchdog_; }
  // Sockets that it has opened, or kept from a process before.
  std::vector<net::Socket> take_sockets() { return std::move(sockets_); }

 private:
  std::string address_;
  std::optional<Nanoseconds> watchdog_;
  std::vector<net::Socket> sockets_;
};

}  // namespace encore::upgrade
