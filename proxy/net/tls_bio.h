// The way of OpenSSL's bytes to and from a descriptor: through net/'s table of system calls. For
// tls_session.cc only.
#pragma once

#include <openssl/bio.h>

#include <cstddef>
#include <span>

namespace encore::net {

// A BIO on a descriptor that it does not own. Null where memory is out.
BIO* new_descriptor_bio(int descriptor);
// How often it asks the descriptor from now on; then it is as if that had nothing more.
void allow_reads(BIO* bio, int reads);
// Has it give these bytes, which are copied, before those of the descriptor.
void feed_bio(BIO* bio, std::span<const std::byte> bytes);
// True if it has not given all of them yet.
bool has_fed_bio(BIO* bio);

}  // namespace encore::net
