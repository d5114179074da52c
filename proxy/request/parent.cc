#include "proxy/request/parent.h"

#include <algorithm>

namespace encore::server {

const config::ServerUrl* parent_of(const RequestContext& request) {
  if (!request.is_forward()) return nullptr;
  const auto& parent = *request.runtime->config.forward.parent;
  return parent ? &*parent : nullptr;
}

std::string authority_text(const std::string& host, std::uint16_t port) {
  const bool v6 = host.find(':') != std::string::npos;
  return (v6 ? "[" + host + "]" : host) + ":" + std::to_string(port);
}

DestinationVerdict check_destination(const RequestContext& request, const std::string& host,
                                     std::uint16_t port, std::vector<net::Address>& addresses) {
  const DestinationPolicy& policy = request.runtime->destinations;
  if (parent_of(request) == nullptr) {
    // A redirection of an origin, which the client has not named, may lead to no port of ours at
    // all.
    const bool ours =
        request.is_cross_origin && std::ranges::any_of(addresses, [&](const auto& each) {
          return policy.is_own_port_here(each);
        });
    if (ours) return DestinationVerdict::kOwnListener;
    return policy.restrict_to_allowed(request.client, addresses);
  }
  const bool own = std::ranges::any_of(
      addresses, [&](const net::Address& address) { return policy.is_own(address); });
  if (own) return DestinationVerdict::kOwnListener;
  return policy.check_host(request.client, host, port);
}

void write_via(const RequestContext& request, http::HeadWriter& out) {
  const std::string_view own = request.via_field(request.head.version);
  if (own.empty()) {
    request.head.fields.for_each(http::FieldId::kVia,
                                 [&](const http::Field& field) { out.field("Via", field.value); });
    return;
  }
  const std::size_t name = std::string_view("Via: ").size();
  out.text(own.substr(0, name));
  request.head.fields.for_each(http::FieldId::kVia, [&](const http::Field& field) {
    if (field.value.empty()) return;
    out.texts(field.value, ", ");
  });
  out.text(own.substr(name));
}

std::string tunnel_via(const RequestContext& request) {
  constexpr std::size_t kViaBytes = 256;
  std::string line;
  {
    http::HeadWriter out(line, kViaBytes);
    write_via(request, out);
  }
  return line;
}

}  // namespace encore::server
