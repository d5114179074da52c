// Decides about a CONNECT that a forward listener allows: decrypted, or why not. Thread-safe.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/time.h"
#include "proxy/net/address.h"
#include "proxy/settings/intercept_rules.h"
#include "proxy/settings/runtime.h"

namespace encore::server {

// `host` is in lower case, an IPv6 address without brackets. Nothing: nothing is decrypted, or the
// host or its port is refused.
std::optional<Splice> splice_of(const Runtime& runtime, const net::Address& client,
                                const std::string& host, std::uint16_t port, MonotonicTime now);

}  // namespace encore::server
