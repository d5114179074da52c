#include "proxy/settings/listener_policy.h"

#include <utility>

namespace encore::server {

namespace {

std::string challenge_of(const config::Listen& listen) {
  const std::string name =
      listen.mode == config::Mode::kForward ? "Proxy-Authenticate: " : "WWW-Authenticate: ";
  const std::string realm = "realm=\"" + listen.realm + "\"";
  std::string lines;
  if (!listen.users_file.empty() || !listen.users_helper.empty())
    lines += name + "Basic " + realm + ", charset=\"UTF-8\"\r\n";
  if (!listen.tokens_file.empty()) lines += name + "Bearer " + realm + "\r\n";
  return lines;
}

}  // namespace

ForwardingFields forwarding_fields(config::ForwardedFields fields, config::Mode mode) {
  using config::ForwardedFields;
  if (fields == ForwardedFields::kAuto) {
    const bool reverse = mode == config::Mode::kReverse;
    return {.x_forwarded = reverse, .forwarded = reverse};
  }
  const bool both = fields == ForwardedFields::kBoth;
  return {.x_forwarded = both || fields == ForwardedFields::kXForwarded,
          .forwarded = both || fields == ForwardedFields::kForwarded};
}

Result<std::unique_ptr<const ListenerPolicy>> ListenerPolicy::make(
    const config::Listen& listen, std::shared_ptr<const RateLimits> rates) {
  if (rates != nullptr && !rates->concern(listen.address.text())) rates = nullptr;
  config::Listen plain;
  plain.address = listen.address;
  plain.mode = listen.mode;
  // Keys that apply before the first request do not matter to requests.
  plain.http2 = listen.http2;
  plain.tls = listen.tls;
  plain.tls_check_interval = listen.tls_check_interval;
  plain.tls_unknown_name = listen.tls_unknown_name;
  plain.tls_min_version = listen.tls_min_version;
  plain.tls_alpn = listen.tls_alpn;
  plain.tls_ticket_file = listen.tls_ticket_file;
  plain.tls_client_verify = listen.tls_client_verify;
  plain.tls_client_ca = listen.tls_client_ca;
  if (listen == plain && rates == nullptr) return std::unique_ptr<const ListenerPolicy>();
  auto policy = std::make_unique<ListenerPolicy>();
  policy->trusted = AddressBlocks(listen.trusted_proxies);
  policy->trusted_field = listen.trusted_field;
  policy->proxy_protocol = listen.proxy_protocol;
  policy->told = forwarding_fields(listen.forwarded, listen.mode);
  policy->client_field = listen.tls_client_field;
  if (listen.redirect_https) policy->https_port = listen.redirect_https_port;
  policy->via = listen.via;
  policy->cache_status = listen.cache_status;
  policy->access = Access(listen);
  policy->name = listen.address.text();
  policy->rates = std::move(rates);
  if (!listen.users_file.empty() || !listen.users_helper.empty() || !listen.tokens_file.empty()) {
    auto credentials =
        Credentials::load(listen.users_file, listen.tokens_file, listen.users_helper);
    if (!credentials) return std::unexpected(credentials.error());
    policy->credentials = std::move(*credentials);
    policy->challenge = challenge_of(listen);
  }
  return policy;
}

}  // namespace encore::server
