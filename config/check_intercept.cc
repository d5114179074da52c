// Checks which keys of [intercept] go together, and what they need of the rest.
#include <algorithm>

#include "config/draft.h"

namespace encore::config {

void Draft::check_intercept() {
  const Intercept& intercept = config.intercept;
  if (intercept.ca_certificate.empty() != intercept.ca_key.empty()) {
    const bool has_key = intercept.ca_certificate.empty();
    fault_at(has_key ? "intercept.ca_key" : "intercept.ca_certificate",
             std::string("without intercept.") + (has_key ? "ca_certificate" : "ca_key") +
                 "; accepted: both or none");
  }
  if (std::ranges::find(intercept.hosts, "*") != intercept.hosts.end() && !intercept.any_host) {
    fault_at("intercept.hosts",
             "\"*\" decrypts all https traffic; accepted: names, or \"*\" with intercept.any_host");
  }
  if (!intercept.is_on()) return;
  for (const std::uint64_t port : intercept.ports) {
    const auto& allowed = config.forward.connect_ports;
    if (std::ranges::find(allowed, port) != allowed.end()) continue;
    fault_at("intercept.ports",
             std::to_string(port) + "; accepted: ports of forward.connect_ports");
  }
  // Clients see our certificate alone: that the origin's is good is ours to find out.
  if (!config.upstream.tls_verify) {
    fault_at("upstream.tls_verify", "false, but intercept.hosts is not empty; accepted: true");
  }
  const bool forward = std::ranges::any_of(
      config.listen, [](const Listen& listen) { return listen.mode == Mode::kForward; });
  if (!forward) {
    fault_at("intercept.hosts", "without a forward listener; accepted: with one, or []");
  }
}

}  // namespace encore::config
