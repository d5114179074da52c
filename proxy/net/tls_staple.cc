#include "proxy/net/tls_staple.h"

#include <openssl/asn1.h>
#include <openssl/ocsp.h>

#include <memory>

#include "proxy/net/openssl_types.h"

namespace encore::net {
namespace {

using Response = std::unique_ptr<OCSP_RESPONSE, decltype(&OCSP_RESPONSE_free)>;
using Basic = std::unique_ptr<OCSP_BASICRESP, decltype(&OCSP_BASICRESP_free)>;

// The answer for the certificate of that number; null: none.
OCSP_SINGLERESP* find_single(OCSP_BASICRESP* basic, const ASN1_INTEGER* serial) {
  for (int i = 0; i < OCSP_resp_count(basic); ++i) {
    OCSP_SINGLERESP* single = OCSP_resp_get0(basic, i);
    ASN1_INTEGER* number = nullptr;
    auto* id = const_cast<OCSP_CERTID*>(OCSP_SINGLERESP_get0_id(single));
    OCSP_id_get0_info(nullptr, nullptr, nullptr, &number, id);
    if (number != nullptr && ASN1_INTEGER_cmp(number, serial) == 0) return single;
  }
  return nullptr;
}

}  // namespace

Result<WallTime> staple_end(const std::string& der, const X509* certificate, WallTime now) {
  const auto* at = reinterpret_cast<const unsigned char*>(der.data());
  const Response response(d2i_OCSP_RESPONSE(nullptr, &at, static_cast<long>(der.size())),
                          &OCSP_RESPONSE_free);
  if (response == nullptr) return fail("not an OCSP response, accepted: DER");
  if (OCSP_response_status(response.get()) != OCSP_RESPONSE_STATUS_SUCCESSFUL) {
    return fail("an OCSP response without a status");
  }
  const Basic basic(OCSP_response_get1_basic(response.get()), &OCSP_BASICRESP_free);
  OCSP_SINGLERESP* const single =
      basic == nullptr ? nullptr : find_single(basic.get(), X509_get0_serialNumber(certificate));
  if (single == nullptr) return fail("an OCSP response for another certificate");
  ASN1_GENERALIZEDTIME* next = nullptr;
  const int status = OCSP_single_get0_status(single, nullptr, nullptr, nullptr, &next);
  if (status != V_OCSP_CERTSTATUS_GOOD) {
    return fail("an OCSP response that does not say that the certificate is good");
  }
  if (next == nullptr) return fail("an OCSP response without an end (nextUpdate)");
  const WallTime until = time_of(next);
  if (until <= now) return fail("an OCSP response that is over");
  return until;
}

}  // namespace encore::net
