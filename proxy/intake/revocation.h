// Decides whether a new configuration still allows a connection that began under another one: its
// client, its login and its destination. Pure, thread-safe.
#pragma once

#include <string>
#include <string_view>

#include "proxy/intake/client_identity.h"
#include "proxy/net/address.h"
#include "proxy/request/request_context.h"
#include "proxy/request/request_view_builder.h"
#include "proxy/settings/runtime.h"

namespace encore::server {

// The present purpose of a connection. All are borrowed.
struct Activity {
  const ClientIdentity& identity;
  const RequestContext* request = nullptr;  // in progress: a request, a tunnel or a CONNECT
  const net::Address* origin = nullptr;     // that a tunnel is connected to; null: not known
};
// Why the configuration no longer allows it, as "login-revoked"; empty: it does.
std::string why_revoked(const Runtime& runtime, const ListenerContext& listener,
                        const Activity& activity);

}  // namespace encore::server
