// Decides whether a new configuration still allows a connection that began under another one: its
// client, its login and its destination. Pure, thread-safe.
#pragma once

#include <string>
#include <string_view>

#include "proxy/net/address.h"
#include "proxy/request/request_context.h"
#include "proxy/request/view_maker.h"
#include "proxy/settings/runtime.h"

namespace encore::server {

// The present purpose of a connection. All are borrowed.
struct Activity {
  const RequestContext* request = nullptr;  // under way: a request, a tunnel or a CONNECT
  const net::Address* origin = nullptr;     // that a tunnel is connected to; null: not known
  const Inside* inside = nullptr;           // the decrypted CONNECT that it is; null: none
  net::Address client = {};                 // whose connection it is, where nothing is under way
  bool is_client_known = true;              // no PROXY header will name another one
  std::string_view login = {};              // with its last request, where nothing is under way
};
// Why the configuration no longer allows it, as "login-revoked"; empty: it does.
std::string why_revoked(const Runtime& runtime, const ListenerContext& listener,
                        const Activity& activity);

}  // namespace encore::server
