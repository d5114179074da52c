// A self-signed certificate in memory, for a server that has none yet. For net/ only. A function
// without a state, thread-safe.
#pragma once

#include <string>
#include <vector>

#include "base/error.h"
#include "base/time.h"
#include "proxy/net/tls_identity.h"

namespace encore::net {

// Makes a key on the curve P-256 and a certificate for these DNS names (lower case, also
// "*.example.com"), which is good for ten years and for servers alone. Nothing of it is written to
// a file. Errors: memory or randomness is out, or a text that is no name. REQUIRES: a name.
Result<TlsIdentity> make_self_signed(const std::vector<std::string>& names, WallTime now);

}  // namespace encore::net
