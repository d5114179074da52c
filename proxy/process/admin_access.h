// AdminAccess: whom the admin listener answers, and what takes the token. Pure but for the token
// that it is given. Any thread. Why no token on loopback, and none for reading:
// docs/decisions/0281.
#pragma once

#include <cstdint>

#include "config/config.h"
#include "proxy/admin/admin_message.h"
#include "proxy/process/token.h"

namespace encore::server {

struct AdminAccess {
  const config::Admin& admin;
  const Token* token = nullptr;  // null: there is none

  // True if Host is one of the names of the request's listener: loopback names and addresses, its
  // own address, allow_hosts. A name that a page of another site could have pointed at this machine
  // is not.
  bool names_us(const AdminRequest& request) const;
  // True if the client is one of allow_clients, or came over the listener's Unix socket.
  bool allows_client(const AdminRequest& request) const;
  // True if the request has the token. False where there is none.
  bool has_token(const AdminRequest& request) const;
  // True if a change by the listener of this request takes the token.
  static bool needs_token(const AdminRequest& request);
  // Decides if it may change something, or read what is for operators alone. kNoToken: it would
  // take one, and none is configured.
  enum class Verdict : std::uint8_t { kAllowed, kNoToken, kWrongToken };
  Verdict may_change(const AdminRequest& request) const;
};

// True if a request that changes something comes from a page of ours, or from no page at all.
bool is_same_origin(const AdminRequest& request);

}  // namespace encore::server
