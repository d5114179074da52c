// The PROXY header, versions 1 and 2 (HAProxy, The PROXY protocol, 2020/03/05): what a proxy of the
// transport layer says of a connection in front of its first byte. Pure, thread-safe.
//
// Strict, for there is one writer of each and none of them is a person: whatever is not to the
// letter is refused.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "proxy/net/address.h"

namespace encore::net {

struct ProxyHeader {
  // The client that has connected to the proxy. Nothing: the proxy speaks for itself (LOCAL), or
  // does not say (UNKNOWN, another family than those of IP).
  std::optional<Address> source;
  // The client has spoken TLS to it (PP2_TYPE_SSL).
  bool secure = false;
  std::size_t size = 0;  // bytes of the header
};

enum class ProxyHeaderStatus : std::uint8_t {
  kIncomplete,  // it may become one
  kComplete,
  kBad,
};

// Version 2 says itself how long it is. Longer ones, with whole certificates in them, are refused.
inline constexpr std::size_t kProxyHeaderBytesMax = 4096;

// Reads the header at the beginning of `input`. Says kBad as soon as no continuation could make it
// good. `header` is set where it is complete.
ProxyHeaderStatus parse_proxy_header(std::string_view input, ProxyHeader& header);

}  // namespace encore::net
