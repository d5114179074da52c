#include "proxy/settings/intercept_rules.h"

#include <algorithm>

#include "base/check.h"
#include "proxy/settings/glob.h"

namespace encore::server {
namespace {

bool is_one_of(const std::vector<std::string>& patterns, std::string_view host) {
  return std::ranges::any_of(
      patterns, [host](const std::string& pattern) { return host_matches(pattern, host); });
}

}  // namespace

InterceptRules::InterceptRules(const config::Intercept& intercept)
    : hosts_(intercept.hosts), never_(intercept.never), ports_(intercept.ports) {}

Splice InterceptRules::at_connect(const ConnectFacts& connect) const {
  if (std::ranges::find(ports_, connect.port) == ports_.end()) return Splice::kPort;
  // A host that no client could name in a ClientHello is an address, or as good as one.
  if (!tls::is_server_name(connect.host)) return Splice::kAddress;
  if (connect.is_own) return Splice::kOwn;
  if (is_one_of(never_, connect.host)) return Splice::kNever;
  if (!is_one_of(hosts_, connect.host)) return Splice::kNotNamed;
  return connect.is_rejected ? Splice::kRejected : Splice::kNone;
}

Splice InterceptRules::at_hello(std::string_view connected, tls::HelloStatus status,
                                const tls::ClientHello& hello) {
  ENCORE_CHECK(status != tls::HelloStatus::kIncomplete, "what is not all there is waited for");
  if (status == tls::HelloStatus::kNotTls) return Splice::kNotTls;
  if (status == tls::HelloStatus::kMalformed) return Splice::kMalformed;
  if (hello.server_name.empty()) return Splice::kNoName;
  if (hello.server_name != connected) return Splice::kOtherName;
  if (!hello.speaks(tls::kTls12) && !hello.speaks(tls::kTls13)) return Splice::kOldVersion;
  // As TLS listeners have it: who understands the one version understands the other.
  const bool speaks_http =
      hello.protocols.empty() || hello.offers("http/1.1") || hello.offers("http/1.0");
  return speaks_http ? Splice::kNone : Splice::kOtherProtocol;
}

}  // namespace encore::server
