// Checks which keys for TLS to clients go together.
#include <string>

#include "config/draft.h"

namespace encore::config {
void Draft::check_listen_tls(std::size_t index) {
  const Listen& listen = config.listen[index];
  const auto at = [index](std::string_view key) {
    return "listen." + std::to_string(index) + "." + std::string(key);
  };
  const Listen usual;
  const auto needs_tls = [&](std::string_view key, bool is_said) {
    if (is_said) fault_at(at(key), "without tls; accepted: with certificates");
  };
  if (listen.tls.empty()) {
    needs_tls("tls_check_interval", listen.tls_check_interval != usual.tls_check_interval);
    needs_tls("tls_unknown_name", listen.tls_unknown_name != usual.tls_unknown_name);
    needs_tls("tls_min_version", listen.tls_min_version != usual.tls_min_version);
    needs_tls("tls_alpn", listen.tls_alpn != usual.tls_alpn);
    needs_tls("tls_ticket_file", !listen.tls_ticket_file.empty());
    needs_tls("tls_client_verify", listen.tls_client_verify != usual.tls_client_verify);
    needs_tls("tls_client_ca", !listen.tls_client_ca.empty());
    needs_tls("tls_client_field", !listen.tls_client_field.empty());
  }
  const bool asks = listen.tls_client_verify != ClientVerify::kOff;
  if (asks && listen.tls_client_ca.empty()) {
    fault_at(at("tls_client_verify"),
             "without tls_client_ca; accepted: with a file of authorities");
  }
  if (!asks && !listen.tls_client_ca.empty()) {
    fault_at(at("tls_client_ca"),
             "without tls_client_verify; accepted: with \"request\" or \"require\"");
  }
  if (!asks && !listen.tls_client_field.empty()) {
    fault_at(at("tls_client_field"),
             "without tls_client_verify; accepted: with \"request\" or \"require\"");
  }
  if (!listen.redirect_https) return;
  if (!listen.tls.empty()) {
    fault_at(at("redirect_https"), "of a listener with tls; accepted: of one without");
  }
  if (listen.mode != Mode::kReverse) {
    fault_at(at("redirect_https"), "of a forward listener; accepted: of a reverse one");
  }
}

}  // namespace encore::config
