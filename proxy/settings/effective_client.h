// The sender of a request: the peer of its connection or, if that is a trusted proxy, the client
// that it names (RFC 7239). Pure, thread-safe.
//
// The field is read from its end, where the proxy next to us has written: each address that is no
// trusted proxy's is the client, and what stands in front of it is its own word. A client that a
// trusted proxy does not name, or not so that it can be believed, is nobody: 0.0.0.0, who is in no
// list of those who may, and never loopback. Why one field is read, and why nobody is not the proxy
// itself: docs/decisions/0210.
#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

#include "proxy/http/message.h"
#include "proxy/net/address.h"
#include "proxy/settings/listener_policy.h"

namespace encore::server {

struct EffectiveClient {
  net::Address client;
  bool through_proxy = false;  // a trusted proxy's word was taken for it
  bool secure = false;         // and that its client speaks TLS to it
};

// More hops than that are nobody's.
inline constexpr std::size_t kHopsMax = 64;

// True if it is nobody.
inline bool is_unidentified(const net::Address& client) { return client.is_unspecified(); }

// `from` is the peer, or whom a PROXY header has named in its stead. `hops`, if not null, gets the
// trusted proxies between the client and us, the nearest to us last.
EffectiveClient find_effective_client(const ListenerPolicy& policy, const net::Address& from,
                                      const http::Fields& fields,
                                      std::vector<net::Address>* hops = nullptr);

// Returns the client that `speaker` may name: a loopback address of another machine is not one of
// ours, and an address of no single machine belongs to nobody.
net::Address believed(const net::Address& named, const net::Address& speaker);

}  // namespace encore::server
