// TlsIdentity: a certificate with its chain and key, as a server shows it. For net/ only. Immutable
// once made, thread-safe.
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/time.h"
#include "proxy/net/file_mark.h"
#include "proxy/net/openssl_types.h"

namespace encore::net {

struct TlsIdentity {
  struct Files {
    std::string certificate;  // PEM, leaf first, then the chain
    std::string key;          // PEM
    std::string ocsp;         // DER; empty: none
    friend bool operator==(const Files&, const Files&) = default;
  };
  // The present state of the files; files that are none exist and never change.
  using Marks = std::array<FileMark, 3>;  // in the order of Files
  static Marks marks_of(const Files& files);
  // Reads and checks the files of a pair. Errors show the file and the fault: unreadable, not PEM,
  // a key that is not the certificate's or that others can read, not valid at `now`. Also a chain
  // that is not in order, and a staple of another certificate.
  static Result<TlsIdentity> load(const Files& files, WallTime now);

  Files files;
  Marks marks{};             // from before they were read
  bool is_stand_in = false;  // self-signed here, because a file is missing
  OpenSsl<X509> certificate;
  OpenSsl<STACK_OF(X509)> chain;  // the certificates above it
  OpenSsl<EVP_PKEY> key;
  int key_type = 0;                // EVP_PKEY_base_id
  std::vector<std::string> names;  // lower case, as the certificate has them: also "*.example.com"
  WallTime not_before{};
  WallTime not_after{};
  std::string staple;       // DER; empty: none
  WallTime staple_until{};  // shown no longer
};

}  // namespace encore::net
