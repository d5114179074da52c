#include "proxy/net/tls_chain.h"

#include <openssl/x509.h>
#include <openssl/x509v3.h>

#include "proxy/net/certificate_file.h"

namespace encore::net {

Result<std::vector<std::string>> issuing_chain(const std::string& file, WallTime now) {
  const auto read = read_certificates(file);
  if (!read) return in_file("certificate", file, read.error().message);
  const auto is_root = [](const OpenSsl<X509>& each) {
    return (X509_get_extension_flags(each.get()) & EXFLAG_SS) != 0;
  };
  std::vector<std::string> chain;
  // A chain that begins with a root has no issuers: certificates behind it are of no use.
  if (is_root(read->front())) return chain;
  if (auto good = check_chain(*read, now); !good) {
    return in_file("certificate", file, good.error().message);
  }
  for (const OpenSsl<X509>& each : *read) {
    if (is_root(each)) break;
    unsigned char* bytes = nullptr;
    const int size = i2d_X509(each.get(), &bytes);
    if (size <= 0) return fail("no memory for a certificate");
    chain.emplace_back(reinterpret_cast<const char*>(bytes), static_cast<std::size_t>(size));
    OPENSSL_free(bytes);
  }
  return chain;
}

}  // namespace encore::net
