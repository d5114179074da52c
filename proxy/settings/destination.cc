#include "proxy/settings/destination.h"

#include <ifaddrs.h>

#include <algorithm>

namespace encore::server {

std::string_view to_string(DestinationVerdict verdict) {
  switch (verdict) {
    case DestinationVerdict::kAllowed:
      return "allowed";
    case DestinationVerdict::kPrivate:
      return "private-destination";
    case DestinationVerdict::kOwnListener:
      return "own-listener";
    case DestinationVerdict::kNotUnicast:
      return "not-a-destination";
  }
  return "unknown";
}

DestinationPolicy::DestinationPolicy(const config::Forward& forward, std::vector<net::Address> own,
                                     std::vector<net::Address> local)
    : private_destinations_(forward.private_destinations),
      connect_ports_(forward.connect_ports),
      own_(std::move(own)),
      local_(std::move(local)) {
  for (const config::CidrText& block : forward.allow_clients) allow_clients_.push_back(*block);
  for (const config::PortRangeText& range : forward.safe_ports) safe_ports_.push_back(*range);
}

bool DestinationPolicy::is_client_allowed(const net::Address& client) const {
  const auto bytes = client.mapped_bytes();
  return std::ranges::any_of(allow_clients_,
                             [&](const config::Cidr& cidr) { return cidr.contains(bytes); });
}

bool DestinationPolicy::is_safe_port(std::uint16_t port) const {
  return std::ranges::any_of(safe_ports_,
                             [port](const auto& range) { return range.contains(port); });
}

bool DestinationPolicy::is_connect_port(std::uint16_t port) const {
  return std::ranges::find(connect_ports_, port) != connect_ports_.end();
}

bool DestinationPolicy::is_own(const net::Address& target) const {
  // An address that carries an IPv4 address is judged by both: a translator on the way may turn
  // one into the other.
  const auto embedded = target.embedded_v4();
  const auto leads_to = [&](const net::Address& own, const net::Address& address) {
    if (own.port() != address.port()) return false;
    return own.same_ip(address) || (own.is_unspecified() && is_here(address));
  };
  return std::ranges::any_of(own_, [&](const net::Address& own) {
    return leads_to(own, target) || (embedded && leads_to(own, *embedded));
  });
}

bool DestinationPolicy::is_here(const net::Address& address) const {
  return address.is_loopback() || address.is_unspecified() ||
         std::ranges::any_of(local_, [&](const auto& local) { return local.same_ip(address); });
}

bool DestinationPolicy::is_own_port_here(const net::Address& target) const {
  if (std::ranges::none_of(own_, [&](const auto& own) { return own.port() == target.port(); })) {
    return false;
  }
  const auto embedded = target.embedded_v4();
  return is_own(target) || is_here(target) || (embedded && is_here(*embedded));
}

std::optional<net::Address> DestinationPolicy::known_address(const std::string& host,
                                                             std::uint16_t port) {
  if (auto address = net::Address::parse_ip(host, port)) return address;
  const std::string_view name =
      std::string_view(host).substr(0, host.size() - (host.ends_with('.') ? 1 : 0));
  if (name == "localhost" || name.ends_with(".localhost")) return net::Address::loopback_v4(port);
  return std::nullopt;
}

DestinationVerdict DestinationPolicy::check_host(const net::Address& client,
                                                 const std::string& host,
                                                 std::uint16_t port) const {
  const auto address = known_address(host, port);
  return address ? check(client, *address) : DestinationVerdict::kAllowed;
}

DestinationVerdict DestinationPolicy::check(const net::Address& client,
                                            const net::Address& target) const {
  if (target.port() == 0) return DestinationVerdict::kNotUnicast;
  if (is_own(target)) return DestinationVerdict::kOwnListener;
  switch (target.scope()) {
    case net::Scope::kGlobal:
      return DestinationVerdict::kAllowed;
    case net::Scope::kUnspecified:
    case net::Scope::kMulticast:
      return DestinationVerdict::kNotUnicast;
    case net::Scope::kLoopback:
    case net::Scope::kPrivate:
    case net::Scope::kLinkLocal:
    case net::Scope::kReserved:
      break;
  }
  return may_reach_private(client) ? DestinationVerdict::kAllowed : DestinationVerdict::kPrivate;
}

bool DestinationPolicy::may_reach_private(const net::Address& client) const {
  return private_destinations_ == config::PrivateDestinations::kAlways ||
         (private_destinations_ == config::PrivateDestinations::kLoopbackClients &&
          client.is_loopback());
}

DestinationVerdict DestinationPolicy::restrict_to_allowed(
    const net::Address& client, std::vector<net::Address>& addresses) const {
  DestinationVerdict refused = DestinationVerdict::kNotUnicast;
  bool own = false;
  std::erase_if(addresses, [&](const net::Address& address) {
    const DestinationVerdict verdict = check(client, address);
    if (verdict == DestinationVerdict::kAllowed) return false;
    refused = verdict;
    own = own || verdict == DestinationVerdict::kOwnListener;
    return true;
  });
  if (own) return DestinationVerdict::kOwnListener;
  return addresses.empty() ? refused : DestinationVerdict::kAllowed;
}

std::vector<net::Address> interface_addresses() {
  std::vector<net::Address> addresses;
  ifaddrs* list = nullptr;
  if (::getifaddrs(&list) != 0) return addresses;
  for (const ifaddrs* entry = list; entry != nullptr; entry = entry->ifa_next) {
    if (entry->ifa_addr == nullptr) continue;
    if (auto address = net::Address::from_sockaddr(entry->ifa_addr, sizeof(sockaddr_in6))) {
      addresses.push_back(*address);
    }
  }
  ::freeifaddrs(list);
  return addresses;
}

}  // namespace encore::server
