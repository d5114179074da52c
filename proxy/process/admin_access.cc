#include "proxy/process/admin_access.h"

#include <algorithm>
#include <string>

#include "proxy/http/list.h"
#include "proxy/http/uri.h"

namespace encore::server {

bool AdminAccess::names_us(const AdminRequest& request) const {
  if (request.field_count("Host") != 1) return false;
  http::Authority authority;
  if (!http::parse_authority(request.field("Host"), authority)) return false;
  if (http::equals_ignoring_case(authority.host, "localhost")) return true;
  if (const auto ip = net::Address::parse_ip(authority.host, 0)) {
    if (ip->is_loopback()) return true;
    if (request.over_socket) return false;
    // Addresses are no names: a page cannot make one of its own point here. With a listener on
    // every address, any of them is ours.
    return request.listener.is_unspecified() || request.listener.same_ip(*ip);
  }
  return std::ranges::any_of(admin.allow_hosts, [&](const std::string& host) {
    return http::equals_ignoring_case(host, authority.host);
  });
}

bool AdminAccess::allows_client(const AdminRequest& request) const {
  if (request.over_socket) return true;  // its client has no address
  const auto client = request.peer.mapped_bytes();
  return std::ranges::any_of(
      admin.allow_clients, [&](const config::CidrText& block) { return block->contains(client); });
}

bool AdminAccess::has_token(const AdminRequest& request) const {
  return token != nullptr && request.field_count("Authorization") == 1 &&
         token->authorizes(request.field("Authorization"));
}

bool AdminAccess::needs_token(const AdminRequest& request) {
  return !request.over_socket && !request.listener.is_loopback();
}

AdminAccess::Verdict AdminAccess::may_change(const AdminRequest& request) const {
  if (!needs_token(request)) return Verdict::kAllowed;
  if (token == nullptr) return Verdict::kNoToken;
  return has_token(request) ? Verdict::kAllowed : Verdict::kWrongToken;
}

bool is_same_origin(const AdminRequest& request) {
  const std::string_view site = request.field("Sec-Fetch-Site");
  if (!site.empty() && site != "same-origin" && site != "none") return false;
  const std::string_view origin = request.field("Origin");
  if (origin.empty()) return true;
  return origin == "http://" + std::string(request.field("Host"));
}

}  // namespace encore::server
