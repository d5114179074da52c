// The chain that a server shows with what an authority of its own signs. Thread-safe.
#pragma once

#include <string>
#include <vector>

#include "base/error.h"
#include "base/time.h"

namespace encore::net {

// Returns the certificates to send behind one that the first certificate of this file has signed
// (each DER): that one and its issuers, without a root; nothing if it is the root. Errors as for a
// pair's certificate file.
Result<std::vector<std::string>> issuing_chain(const std::string& file, WallTime now);

}  // namespace encore::net
