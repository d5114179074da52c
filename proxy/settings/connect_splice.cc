#include "proxy/settings/connect_splice.h"

namespace encore::server {

std::optional<Splice> splice_of(const Runtime& runtime, const net::Address& client,
                                const std::string& host, std::uint16_t port, MonotonicTime now) {
  if (runtime.interception == nullptr) return {};
  if (!runtime.destinations.is_connect_port(port)) return {};
  const auto verdict = runtime.destinations.check_host(client, host, port);
  const bool is_own = verdict == DestinationVerdict::kOwnListener;
  if (verdict != DestinationVerdict::kAllowed && !is_own) return {};
  return runtime.interception->at_connect(client, host, port, is_own, now);
}

}  // namespace encore::server
