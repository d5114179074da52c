// The part of an exchange that asks the origin whether a client may have what is stored.
#include <algorithm>
#include <memory>
#include <utility>

#include "base/recycled.h"
#include "proxy/exchange/exchange.h"
#include "proxy/http/digest_path.h"
#include "proxy/http/list.h"
#include "proxy/request/sent_head.h"

namespace encore::server {
namespace {

// The value of the first field with this name (in lower case) of a head; empty: there is none.
std::string_view value_in(std::string_view head, std::string_view name) {
  while (!head.empty()) {
    const std::size_t end = std::min(head.find("\r\n"), head.size());
    const std::string_view line = head.substr(0, end);
    head.remove_prefix(std::min(end + 2, head.size()));
    const std::size_t colon = line.find(':');
    if (colon == std::string_view::npos || !http::equals_lower(line.substr(0, colon), name)) {
      continue;
    }
    return http::trim_ows(line.substr(colon + 1));
  }
  return {};
}

// True for a registry that sends this client to a signed URL of the blob, instead of answering
// itself: that is its yes. The blob is held to its digest, so that a page to log in at, which may
// be where a redirection leads as well, is never taken for it; and such a page is told by its URL:
// it is the registry's own, and does not name the digest.
bool leads_to_signed(const std::shared_ptr<const RequestContext>& request,
                     const SharedResponse& response) {
  const int status = response.meta.status;
  const bool is_redirect = status == 302 || status == 303 || status == 307 || status == 308;
  const Rule& rule = *request->rule;
  if (!is_redirect || !rule.follows_redirects() || !rule.by_digest() || !rule.verifies()) {
    return false;
  }
  const auto digest = http::sha256_in_path(request->path_text());
  const std::string_view location = value_in(response.head, "location");
  if (!digest || location.empty()) return false;
  const auto redirected = RequestContext::redirected(request, location);
  if (redirected.request == nullptr) return false;
  return location.find(*digest) != std::string_view::npos ||
         (redirected.request->is_elsewhere && location.find('?') != std::string_view::npos);
}

}  // namespace

// Asks by a HEAD with the client's own fields. False where that is not needed.
bool Exchange::ask_permission() {
  if (request_->rule == nullptr || !request_->rule->rechecks() || is_permitted_ ||
      services_.rechecks.is_allowed(services_.rechecks.name(access_text(*request_)),
                                    services_.loop.now())) {
    return false;
  }
  if (request_->directives.only_if_cached) {
    respond_failure(504, Outcome::kOnlyIfCached, "only-if-cached");
    return true;
  }
  go(Step::kAsk);
  auto transfer = make_recycled<Transfer>(services_.home, request_->hash, nullptr, asked_by_);
  go(Step::kWait);
  asks_permission_ = true;
  transfer_ = transfer;
  role_ = Role::kAsked;
  transfer_->add_first_reader(*this);
  services_.stats.rechecks.add();
  services_.origins.ask_origin(std::move(transfer), RequestContext::permission_for(request_), {});
  return true;
}

void Exchange::on_permission() {
  constexpr int kSuccess = 2;
  const SharedResponse& response = transfer_->response();
  const bool allowed =
      response.meta.status / 100 == kSuccess || leads_to_signed(request_, response);
  asks_permission_ = false;
  if (allowed) {
    is_permitted_ = true;
    services_.rechecks.allow(services_.rechecks.name(access_text(*request_)), services_.loop.now());
    ask_again();
    return;
  }
  // What the origin says to the request itself is what the client gets, and nobody else.
  ask_alone(http::Forwarded::kRequest);
}

}  // namespace encore::server
