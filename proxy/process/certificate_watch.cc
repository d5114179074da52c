#include "proxy/process/certificate_watch.h"

#include <string>
#include <utility>

#include "proxy/observe/log.h"

namespace encore::server {

void CertificateWatch::begin(const Runtime& runtime, MonotonicTime now) {
  checked_.assign(runtime.config.listen.size(), now);
  warn(runtime, runtime.tls, now);
}

std::shared_ptr<const TlsListeners> CertificateWatch::tick(const Runtime& runtime,
                                                           const TlsListeners& tls,
                                                           MonotonicTime now) {
  if (now - warned_ >= kDay) warn(runtime, tls, now);
  const auto& listeners = runtime.config.listen;
  checked_.resize(listeners.size(), now);
  std::vector<bool> is_due(listeners.size());
  bool any = false;
  for (std::size_t i = 0; i < listeners.size(); ++i) {
    const Nanoseconds interval = listeners[i].tls_check_interval;
    is_due[i] = interval.count() != 0 && tls.of(i) != nullptr && now - checked_[i] >= interval;
    if (!is_due[i]) continue;
    checked_[i] = now;
    any = true;
  }
  if (!any) return nullptr;
  auto renewal = tls.renew(runtime.config, is_due);
  for (const std::string& sentence : renewal.taken) log::info("{}", sentence);
  for (const std::string& sentence : renewal.faults) log::warn("{}", sentence);
  return std::move(renewal.listeners);
}

void CertificateWatch::warn(const Runtime& runtime, const TlsListeners& tls, MonotonicTime now) {
  warned_ = now;
  for (const CertificateReport& each : known_certificates(runtime.config, tls, wall_now())) {
    if (each.is_stand_in) {
      log::warn("listen {}: {}", each.listener, stand_in_text(each));
    } else if (is_renewal_due(each)) {
      log::warn("listen {}: {}", each.listener, renewal_text(each));
    }
  }
  if (runtime.interception == nullptr) return;
  const CertificateReport authority =
      authority_report(runtime.config.intercept, *runtime.interception, wall_now());
  if (is_renewal_due(authority)) log::warn("{}", renewal_text(authority));
}

}  // namespace encore::server
