#include "proxy/intake/purge_refusal.h"

#include <algorithm>
#include <string>

#include "proxy/observe/log.h"
#include "proxy/observe/log_once_filter.h"

namespace encore::server {
namespace {

constexpr std::string_view kCounted = "encore_purges_refused_total counts further ones";

bool is_named(const config::Listen& listen, const net::Address& client) {
  const auto bytes = client.mapped_bytes();
  return std::ranges::any_of(listen.purge_clients,
                             [&](const config::CidrText& block) { return block->contains(bytes); });
}

}  // namespace

void note_refused_purge(const Runtime& runtime, WorkerStats& stats, const ListenerContext& listener,
                        const http::RequestHead& head, const net::Address& client,
                        std::string_view detail) {
  if (listener.index >= runtime.config.listen.size()) return;
  const config::Listen& listen = runtime.config.listen[listener.index];
  LogOnceFilter& told = *runtime.told_once;
  const std::string& name = listener.name;
  if (detail == kPurgeNotAllowed) {
    stats.purges_refused.add();
    const bool is_closed = listen.purge_clients.empty();
    if (!told.is_first(name + (is_closed ? " purge" : " purge-client"))) return;
    log::warn("listen {}: {} of {} was refused with 403, nothing was purged: {}; {}", name,
              head.method_text, client.to_string(),
              is_closed ? "listen.purge_clients names nobody (listen.purge_to_origin passes purges "
                          "on to the origin)"
                        : "listen.purge_clients does not name this address",
              kCounted);
    return;
  }
  if (detail != kConnectOnReverse) return;
  // Strangers send CONNECT in search of open proxies; they must not use up the warning of one that
  // may purge.
  const bool may_purge = is_named(listen, client);
  if (may_purge) stats.purges_refused.add();
  if (!told.is_first(name + (may_purge ? " connect-purge" : " connect"))) return;
  log::warn(
      "listen {}: CONNECT {} of {} is refused with 405: a reverse listener opens no tunnels. An "
      "application that purges https URLs through this listener sends it in place of each PURGE, "
      "and nothing is purged: let it purge by http (MediaWiki: an http URL in $wgInternalServer)",
      name, head.target.substr(0, 256), client.to_string());
}

}  // namespace encore::server
