// Files of certificates: read whole, checked, and errors that say which file it is. For net/ only.
// Functions without a state, thread-safe.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/time.h"
#include "proxy/net/openssl_types.h"

namespace encore::net {

inline constexpr std::size_t kFileBytesMax = 1024UL * 1024;

// Errors: not to be read, larger than kFileBytesMax.
Result<std::string> read_small_file(const std::string& path);
// Borrows the bytes.
OpenSsl<BIO> reading(const std::string& bytes);
// For OpenSSL's readers of PEM: what is locked is not asked for at the terminal.
int no_password(char*, int, int, void*);

// Returns the name of the certificate at this place, from 1, for errors: "2 of the file".
std::string ordinal(std::size_t place);
// All certificates of a PEM file, at least one and at most 16, in their order.
Result<std::vector<OpenSsl<X509>>> read_certificates(const std::string& file);
// The key of a PEM file that is for this user alone (base/secret_file.h).
Result<OpenSsl<EVP_PKEY>> read_private_key(const std::string& file);
// Leaf first, each followed by who has signed it, and all valid at `now`.
Result<void> check_chain(const std::vector<OpenSsl<X509>>& chain, WallTime now);

// The text is: WHAT "FILE": WHY
std::unexpected<Error> in_file(std::string_view what, const std::string& file,
                               const std::string& why);

}  // namespace encore::net
