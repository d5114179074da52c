// Shared parts of the makers of certificates: names, serial numbers, times, extensions. For
// proxy/ca only; functions of any one thread.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>

#include "base/time.h"
#include "proxy/ca/handles.h"

namespace encore::ca {

// Each is false where memory or randomness is out, or the value cannot be written.
bool set_random_serial(X509& certificate);
bool set_times(X509& certificate, WallTime not_before, WallTime not_after);
bool add_extension(X509& certificate, int nid, bool critical, void* value);
// subjectAltName, the only name that it has: a subject that is empty makes it critical (RFC 5280
// 4.2.1.6).
bool add_host(X509& certificate, std::string_view host);
// basicConstraints: of an authority that signs for servers alone, or of none.
bool add_basic_constraints(X509& certificate, bool is_authority);
// Bits of keyUsage (RFC 5280 4.2.1.3).
inline constexpr int kDigitalSignature = 0;
inline constexpr int kKeyCertSign = 5;
inline constexpr int kCrlSign = 6;
bool add_key_usage(X509& certificate, std::initializer_list<int> bits);
bool add_subject_key(X509& certificate);
// That of the signer, by its own subjectKeyIdentifier; nothing where it has none.
bool add_authority_key(X509& certificate, const X509& signer);
bool sign(X509& certificate, EVP_PKEY& key);

}  // namespace encore::ca
