// A stapled OCSP response (RFC 6960, RFC 6066 8): what an authority says of a certificate, which
// the server shows with it. For net/ only. Pure but for OpenSSL's clock-free parsing, thread-safe.
#pragma once

#include <openssl/x509.h>

#include <string>
#include <string_view>

#include "base/error.h"
#include "base/time.h"

namespace encore::net {

// When a response in DER ends to be valid. Its signature is the clients' to check. Errors, without
// the file's name: no successful response, none of this certificate, one that says that it is
// revoked, or over at `now`.
Result<WallTime> staple_end(const std::string& der, const X509* certificate, WallTime now);

}  // namespace encore::net
