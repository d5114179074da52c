// Which addresses a forward proxy's client may be connected to. The check is made on the resolved
// address that is connected to, never on a name. Immutable after construction, thread-safe.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "config/config.h"
#include "config/network.h"
#include "proxy/net/address.h"

namespace encore::server {

enum class DestinationVerdict : std::uint8_t {
  kAllowed,
  kPrivate,      // loopback, private or link-local, and this client may not
  kOwnListener,  // the proxy's own listener or admin address
  kNotUnicast,   // unspecified, multicast or broadcast: nobody's destination
};
std::string_view to_string(DestinationVerdict verdict);

class DestinationPolicy {
 public:
  // `own` are the bound addresses of all listeners and of the admin server; `local` the addresses
  // of this machine's interfaces, for listeners that are bound to every address.
  DestinationPolicy(const config::Forward& forward, std::vector<net::Address> own,
                    std::vector<net::Address> local);

  // True if a client may use the forward proxy at all.
  bool is_client_allowed(const net::Address& client) const;
  // True if any other request may name the port.
  bool is_safe_port(std::uint16_t port) const;
  // True if CONNECT may name the port.
  bool is_connect_port(std::uint16_t port) const;
  // As far as a host (lower case, without brackets) tells by itself, for who leaves its name to
  // another proxy: of an address all, of a name that it is not this machine's.
  DestinationVerdict check_host(const net::Address& client, const std::string& host,
                                std::uint16_t port) const;
  // Checks if `client` may be connected to `target`.
  DestinationVerdict check(const net::Address& client, const net::Address& target) const;
  // True if `client` may be connected to loopback and private addresses, and so receive objects
  // stored from there.
  bool may_reach_private(const net::Address& client) const;
  // Leaves of what a name resolved to the addresses that `client` may be connected to. Not kAllowed
  // where none is left; kOwnListener where any is ours, for the name then means us.
  DestinationVerdict restrict_to_allowed(const net::Address& client,
                                         std::vector<net::Address>& addresses) const;
  // True if the address is one of our own listeners.
  bool is_own(const net::Address& target) const;
  // True if it is this machine's, with the port of a listener of ours, whichever of its addresses
  // that has.
  bool is_own_port_here(const net::Address& target) const;
  // The address of a host (lower case, without brackets) that needs no lookup: of an address, and
  // of names for this machine. Nothing: it needs one.
  static std::optional<net::Address> known_address(const std::string& host, std::uint16_t port);

 private:
  bool is_here(const net::Address& address) const;

  config::PrivateDestinations private_destinations_;
  std::vector<config::Cidr> allow_clients_;
  std::vector<std::uint64_t> connect_ports_;
  std::vector<config::PortRange> safe_ports_;
  std::vector<net::Address> own_;
  std::vector<net::Address> local_;
};

// The addresses of this machine's interfaces; empty where the system does not tell.
std::vector<net::Address> interface_addresses();

}  // namespace encore::server
