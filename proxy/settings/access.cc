#include "proxy/settings/access.h"

#include <algorithm>

#include "base/text.h"
#include "proxy/settings/glob.h"
#include "proxy/settings/path_readings.h"

namespace encore::server {
namespace {

std::vector<std::string> plain_hosts(const std::vector<std::string>& globs) {
  std::vector<std::string> hosts;
  for (const std::string& glob : globs) hosts.push_back(plain_host(glob));
  return hosts;
}

}  // namespace

AddressBlocks::AddressBlocks(const std::vector<config::CidrText>& texts) {
  for (const config::CidrText& text : texts) blocks_.push_back(*text);
}

bool AddressBlocks::contains(const net::Address& address) const {
  const auto bytes = address.mapped_bytes();
  return std::ranges::any_of(blocks_,
                             [&](const config::Cidr& block) { return block.contains(bytes); });
}

bool any_glob_matches(const std::vector<std::string>& globs, std::string_view text) {
  return std::ranges::any_of(globs, [text](const auto& glob) { return glob_matches(glob, text); });
}

std::string plain_host(std::string_view host) {
  if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
  if (host.size() > 1 && host.ends_with('.')) host.remove_suffix(1);
  if (host.empty()) return {};
  // An address has many spellings.
  if (const auto address = net::Address::parse_ip(host, 0)) {
    return address->canonical().ip_string();
  }
  return lower_ascii(host);
}

Access::Access(const config::Listen& listen)
    : allow_clients_(listen.allow_clients),
      deny_clients_(listen.deny_clients),
      allow_hosts_(plain_hosts(listen.allow_hosts)),
      deny_hosts_(plain_hosts(listen.deny_hosts)),
      allow_paths_(normal_globs(listen.allow_paths)),
      deny_paths_(normal_globs(listen.deny_paths)),
      allow_methods_(listen.allow_methods) {
  for (const config::PortRangeText& range : listen.allow_ports) allow_ports_.push_back(*range);
}

bool Access::allows_client(const net::Address& client) const {
  const bool nobody = client.is_unspecified();
  if (nobody && !(allow_clients_.empty() && deny_clients_.empty())) return false;
  if (deny_clients_.contains(client)) return false;
  return allow_clients_.empty() || allow_clients_.contains(client);
}

std::string_view Access::refusal(const Named& named) const {
  if (!allow_methods_.empty() &&
      std::ranges::find(allow_methods_, named.method) == allow_methods_.end()) {
    return "method-not-allowed";
  }
  if (!allow_ports_.empty() && std::ranges::none_of(allow_ports_, [&](const auto& range) {
        return range.contains(named.port);
      })) {
    return "port-not-allowed";
  }
  if (any_glob_matches(deny_hosts_, named.host) ||
      (!allow_hosts_.empty() && !any_glob_matches(allow_hosts_, named.host))) {
    return "host-not-allowed";
  }
  if (deny_paths_.empty() && allow_paths_.empty()) return {};
  const auto is_denied = [this](std::string_view path) {
    return any_glob_matches(deny_paths_, path) ||
           (!allow_paths_.empty() && !any_glob_matches(allow_paths_, path));
  };
  if (!all_readings_agree(named.path, named.path_as_sent, is_denied)) return kAmbiguousPath;
  return is_denied(named.path) ? "path-not-allowed" : std::string_view();
}

int status_of_refusal(std::string_view why) { return why == kAmbiguousPath ? 400 : 403; }

}  // namespace encore::server
