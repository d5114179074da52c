// The proxy that forward listeners ask instead of the origins (forward.parent). Pure, thread-safe.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "config/network.h"
#include "proxy/http/head_writer.h"
#include "proxy/net/address.h"
#include "proxy/request/request_context.h"
#include "proxy/settings/destination.h"

namespace encore::server {

// Returns the parent that a request is sent to instead of its target; null: none.
const config::ServerUrl* parent_of(const RequestContext& request);

// "host:port", with brackets where they are needed, as CONNECT has it.
std::string authority_text(const std::string& host, std::uint16_t port);

// Decides whether a forward request may go to its destination by these addresses, and removes those
// that it may not be sent to. For a request to a parent only the host is checked, and that the
// parent is not this proxy. Why names are not resolved for it: docs/decisions/0202.
DestinationVerdict check_destination(const RequestContext& request, const std::string& host,
                                     std::uint16_t port, std::vector<net::Address>& addresses);

// Writes Via, one field, hop after hop (RFC 9110 7.6.3).
void write_via(const RequestContext& request, http::HeadWriter& out);

// The Via of a CONNECT that asks a parent for a tunnel: one line with CRLF, the members that came
// with the request before our own. Empty where the listener says none and none came. Why a tunnel
// has one: docs/decisions/0370.
std::string tunnel_via(const RequestContext& request);

}  // namespace encore::server
