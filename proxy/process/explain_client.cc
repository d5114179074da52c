#include "proxy/process/explain_client.h"

#include <utility>

#include "base/units.h"
#include "proxy/process/explain_page.h"
#include "proxy/process/neighbour.h"
#include "proxy/process/token.h"
#include "proxy/settings/names.h"

namespace encore::server {

Result<std::string> ask_running(const config::Config& config, const Explained& asked) {
  const std::optional<config::Endpoint>& endpoint = *config.admin.address;
  if (!endpoint) return fail("admin.address is \"\": there is no admin listener to be asked");
  std::string target(kExplainApi);
  target += "?format=text&";
  target += explain_query(asked);
  Neighbour proxy{.url = {.host = endpoint->address, .port = endpoint->port},
                  .target = std::move(target),
                  .names = resolver_options(config.upstream),
                  // As much as the variants of a key can come to.
                  .bytes_max = 4 * kMiB,
                  .time_max = std::chrono::seconds(10)};
  if (to_address(*endpoint).is_unspecified()) {
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

}  // namespace encore::server
