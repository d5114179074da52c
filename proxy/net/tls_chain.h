// The chain that a server shows with what an authority of its own signs. Thread-safe.
#pragma once

#include <string>
#include <vector>

#include "base/error.h"
#include "base/time.h"

namespace encore::net {

// What is shown behind a certificate that the first one of this file has signed (each DER): that
// one and those of its issuers, without a root; nothing where it is the root. Errors as of a pair's
// certificate file.
Result<std::vector<std::string>> issuing_chain(const std::string& file, WallTime now);

}  // namespace encore::net
