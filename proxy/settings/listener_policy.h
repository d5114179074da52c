// ListenerPolicy: what a listener has settings of its own for: whom it believes, and what is said
// of its clients. A listener with none of them has no policy, and its requests cost nothing here.
// Immutable once made, thread-safe.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "config/config.h"
#include "config/network.h"
#include "proxy/net/address.h"

namespace encore::server {

// Addresses, as blocks. Of a client that nobody knows (Sender) it is not known whether it is one.
class AddressBlocks {
 public:
  AddressBlocks() = default;
  explicit AddressBlocks(const std::vector<config::CidrText>& texts);
  bool empty() const { return blocks_.empty(); }
  bool contains(const net::Address& address) const;

 private:
  std::vector<config::Cidr> blocks_;
};

// What is said of clients to origins.
struct ToldOrigins {
  bool x_forwarded = false;
  bool forwarded = false;
};
ToldOrigins told_origins(config::ForwardedFields fields, config::Mode mode);

struct ListenerPolicy {
  // Null: the listener has nothing of its own.
  static std::unique_ptr<const ListenerPolicy> make(const config::Listen& listen);

  bool trusts(const net::Address& address) const { return trusted.contains(address); }

  AddressBlocks trusted;
  config::TrustedField trusted_field = config::TrustedField::kXForwardedFor;
  bool proxy_protocol = false;
  ToldOrigins told;
  bool via = true;
  bool cache_status = true;
};

}  // namespace encore::server
