#include "proxy/process/explain_client.h"

#include <utility>

#include "base/units.h"
#include "proxy/process/explain_page.h"
#include "proxy/process/form.h"
#include "proxy/process/neighbour.h"
#include "proxy/process/status_text.h"
#include "proxy/process/token.h"
#include "proxy/settings/names.h"

namespace encore::server {

namespace {

Result<std::string> ask(const config::Config& config, std::string method, std::string target) {
  const std::optional<config::Endpoint>& endpoint = *config.admin.address;
  if (!endpoint) return fail("admin.address is \"\": there is no admin listener to ask");
  Neighbour proxy{
      .url = {.host = endpoint->address, .port = endpoint->port, .socket = endpoint->socket},
      .method = std::move(method),
      .target = std::move(target),
      .names = resolver_options(config.upstream),
      // Enough for the variants of a key.
      .bytes_max = 4 * kMiB,
      .time_max = std::chrono::seconds(10)};
  if (endpoint->socket.empty() && to_address(*endpoint).is_unspecified()) {
    const bool is_ipv4 = endpoint->address.find(':') == std::string::npos;
    proxy.url.host = std::string(is_ipv4 ? "127.0.0.1" : "::1");
  }
  if (!config.admin.token_file.empty()) {
    const auto token = Token::read(config.admin.token_file);
    if (!token) return std::unexpected(token.error());
    proxy.authorization = token->field();
  }
  return fetch(proxy);
}

}  // namespace

Result<std::string> ask_running(const config::Config& config, const Explained& asked) {
  std::string target(kExplainApi);
  target += "?format=text&";
  target += explain_query(asked);
  return ask(config, "GET", target);
}

Result<std::string> ask_status(const config::Config& config) {
  return ask(config, "GET", std::string(kStatusApi));
}

Result<std::string> list_rejected(const config::Config& config) {
  return ask(config, "GET", "/api/intercept?format=text");
}

Result<std::string> clear_rejected(const config::Config& config, const std::string& client,
                                   const std::string& host) {
  std::string query;
  if (!client.empty()) append_form("client", client, query);
  if (!host.empty()) append_form("host", host, query);
  return ask(config, "POST", "/intercept/clear?" + query);
}

}  // namespace encore::server
