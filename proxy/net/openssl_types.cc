#include "proxy/net/openssl_types.h"

#include <openssl/asn1.h>
#include <openssl/x509.h>

#include <algorithm>
#include <ctime>

namespace encore::net {
namespace {

constexpr std::size_t kNameBytesMax = 1024;

}  // namespace

WallTime time_of(const ASN1_TIME* time) {
  std::tm parts{};
  if (ASN1_TIME_to_tm(time, &parts) != 1) return {};
  return WallTime(std::chrono::seconds(::timegm(&parts)));
}

std::string name_text(const X509_NAME* name) {
  const OpenSsl<BIO> bio(BIO_new(BIO_s_mem()));
  if (bio == nullptr || X509_NAME_print_ex(bio.get(), name, 0, XN_FLAG_RFC2253) < 0) return {};
  char* text = nullptr;
  const long size = BIO_get_mem_data(bio.get(), &text);
  if (size <= 0) return {};
  return {text, std::min(static_cast<std::size_t>(size), kNameBytesMax)};
}

}  // namespace encore::net
