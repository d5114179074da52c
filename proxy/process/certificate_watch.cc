#include "proxy/process/certificate_watch.h"

#include "proxy/observe/log.h"

namespace encore::server {

void CertificateWatch::begin(const Runtime& runtime, MonotonicTime now) {
  looked_ = now;
  for (const CertificateReport& each :
       known_certificates(runtime.config, runtime.tls, wall_now())) {
    if (!is_renewal_due(each)) continue;
    log::warn("listen {}: {}", each.listener, renewal_text(each));
  }
  if (runtime.interception == nullptr) return;
  const CertificateReport authority =
      authority_report(runtime.config.intercept, *runtime.interception, wall_now());
  if (is_renewal_due(authority)) log::warn("{}", renewal_text(authority));
}

}  // namespace encore::server
