#include "proxy/settings/refusal_keys.h"

#include <algorithm>
#include <array>

namespace encore::server {
namespace {

struct Refusal {
  std::string_view detail;
  std::string_view keys;
};

constexpr std::string_view kPurgeNotAllowed = "purge-not-allowed";

constexpr std::array kRefusals = {
    Refusal{"forward-proxy-needs-absolute-form", "listen.mode"},
    Refusal{"client-not-allowed",
            "forward.allow_clients, listen.allow_clients, listen.deny_clients"},
    Refusal{"connect-port", "forward.connect_ports"},
    Refusal{"unsafe-port", "forward.safe_ports"},
    Refusal{"private-destination", "forward.private_destinations"},
    Refusal{"host-not-allowed", "listen.allow_hosts, listen.deny_hosts"},
    Refusal{"path-not-allowed", "listen.allow_paths, listen.deny_paths"},
    Refusal{"method-not-allowed", "listen.allow_methods"},
    Refusal{"port-not-allowed", "listen.allow_ports"},
    Refusal{kPurgeNotAllowed, "listen.purge_clients, listen.purge_to_origin"},
    Refusal{"rate-limit", "limit.rate, limit.burst"},
    Refusal{"transfers-per-client", "limits.transfers_per_client"},
    Refusal{"failed-logins", "limits.failed_logins_per_client"},
    Refusal{"unfinished-heads", "limits.unfinished_heads, limits.unfinished_head_bytes"},
    Refusal{"head-too-large", "limits.head"},
    Refusal{"target-too-long", "limits.uri"},
    Refusal{"too-many-fields", "limits.fields"},
    Refusal{"request-body-too-large", "limits.request_body"},
    Refusal{"request-too-slow", "limits.client_body_rate_min"},
    Refusal{"dns-limit", "upstream.dns_lookups, upstream.dns_lookups_per_client"},
    Refusal{"origin-busy", "upstream.connections_per_server"},
    Refusal{"origin-share", "upstream.connections_per_client"},
};

}  // namespace

std::string_view keys_of_refusal(std::string_view detail) {
  const auto* const found = std::ranges::find(kRefusals, detail, &Refusal::detail);
  return found == kRefusals.end() ? std::string_view() : found->keys;
}

std::string named_keys(config::Mode mode, std::string_view detail) {
  const std::string_view keys = keys_of_refusal(detail);
  // A purge's author is no stranger, and reads the response once, when the purge does nothing.
  const bool is_told = mode == config::Mode::kForward || detail == kPurgeNotAllowed;
  if (!is_told || keys.empty()) return {};
  return " (by the proxy's configuration: " + std::string(keys) + ")";
}

}  // namespace encore::server
