// The way of OpenSSL's bytes to and from a descriptor: through net/'s table of system calls. For
// tls_session.cc only.
#pragma once

#include <openssl/bio.h>

namespace encore::net {

// A BIO on a descriptor that it does not own. Null where memory is out.
BIO* new_descriptor_bio(int descriptor);

}  // namespace encore::net
