// ListenerPolicy: what a listener has settings of its own for: whom it believes, what is said of
// its clients, and which requests it takes. A listener with none of them has no policy, and its
// requests cost nothing here. Immutable once made, thread-safe.
#pragma once

#include <memory>
#include <string>

#include "base/error.h"
#include "config/config.h"
#include "proxy/net/address.h"
#include "proxy/settings/access.h"
#include "proxy/settings/credentials.h"
#include "proxy/settings/rate_limits.h"

namespace encore::server {

// Fields about clients that origins receive.
struct ForwardingFields {
  bool x_forwarded = false;
  bool forwarded = false;
};
ForwardingFields forwarding_fields(config::ForwardedFields fields, config::Mode mode);

struct ListenerPolicy {
  // Null: the listener has nothing of its own. `rates` may be null, and is of all listeners; it is
  // let go where none of them concerns this one.
  // Errors: a file of credentials that cannot be used.
  static Result<std::unique_ptr<const ListenerPolicy>> make(
      const config::Listen& listen, std::shared_ptr<const RateLimits> rates = {});

  bool trusts(const net::Address& address) const { return trusted.contains(address); }

  AddressBlocks trusted;
  config::TrustedField trusted_field = config::TrustedField::kXForwardedFor;
  bool proxy_protocol = false;
  ForwardingFields told;
  bool via = true;
  bool cache_status = true;
  Access access;
  std::string name;                                // the listener's address, as the config has it
  std::shared_ptr<const RateLimits> rates;         // null: none
  std::shared_ptr<const Credentials> credentials;  // null: nobody has to log in
  std::string client_field;      // the field that gives origins a client's identity; empty: none
  std::uint32_t https_port = 0;  // that requests by http are redirected to; 0: they are served
  std::string challenge;         // to those who have to, as field lines
};

}  // namespace encore::server
