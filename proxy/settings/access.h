// Access: which requests a listener takes, by who sends them and what they name. Immutable,
// thread-safe.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "config/config.h"
#include "config/network.h"
#include "proxy/net/address.h"

namespace encore::server {

// Addresses, as blocks.
class AddressBlocks {
 public:
  AddressBlocks() = default;
  explicit AddressBlocks(const std::vector<config::CidrText>& texts);
  bool empty() const { return blocks_.empty(); }
  bool contains(const net::Address& address) const;

 private:
  std::vector<config::Cidr> blocks_;
};

// The parts of a request that rules match.
struct Named {
  std::string_view method = {};
  std::string_view host = {};  // in lower case, without a port
  std::string_view path = {};  // without a query; empty: CONNECT has none
  std::uint16_t port = 0;
  std::string_view path_as_sent = {};  // before it was normalised; empty: not known
};

class Access {
 public:
  Access() = default;
  explicit Access(const config::Listen& listen);

  // A client without an identity (effective_client.h) may do what all may.
  bool allows_client(const net::Address& client) const;
  // Empty: it may be asked for; else what is not allowed, as "host-not-allowed"; kAmbiguousPath:
  // the path may be asked for by one of its readings and not by another.
  std::string_view refusal(const Named& named) const;

 private:
  AddressBlocks allow_clients_;
  AddressBlocks deny_clients_;
  std::vector<std::string> allow_hosts_;
  std::vector<std::string> deny_hosts_;
  std::vector<std::string> allow_paths_;
  std::vector<std::string> deny_paths_;
  std::vector<std::string> allow_methods_;
  std::vector<config::PortRange> allow_ports_;
};

// True if any of the globs describes the text.
bool any_glob_matches(const std::vector<std::string>& globs, std::string_view text);

// With which status a request is answered that refusal() says `why` of.
int status_of_refusal(std::string_view why);

// A host as globs are compared with: in lower case, without brackets and the dot that ends a whole
// name.
std::string plain_host(std::string_view host);

}  // namespace encore::server
