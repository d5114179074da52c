// The part of an exchange that asks the origin whether a client may have what is stored.
#include <memory>
#include <utility>

#include "base/recycled.h"
#include "proxy/exchange/exchange.h"
#include "proxy/http/digest_path.h"
#include "proxy/http/stored_head.h"
#include "proxy/request/sent_head.h"

namespace encore::server {
namespace {

// True for a registry that sends this client to a signed URL of the blob, instead of answering
// itself: that is its yes. A redirection to a page to log in at is none, and often has the blob's
// URL in its query: only a host counts that the rule names in follow_hosts.
bool leads_to_signed(const std::shared_ptr<const RequestContext>& request,
                     const SharedResponse& response) {
  const int status = response.meta.status;
  const bool is_redirect = status == 302 || status == 303 || status == 307 || status == 308;
  const Rule& rule = *request->rule;
  if (!is_redirect || !rule.follows_redirects() || !rule.by_digest() || !rule.verifies()) {
    return false;
  }
  const auto digest = http::sha256_in_path(request->path_text());
  http::ResponseHead head;
  http::read_stored_head(response.head, head);
  if (!digest || head.fields.count(http::FieldId::kLocation) != 1) return false;
  const std::string_view location = head.fields.value(http::FieldId::kLocation);
  const auto redirected = RequestContext::redirected(request, location);
  return redirected.request != nullptr && redirected.request->is_elsewhere &&
         any_glob_matches(rule.follow_hosts(),
                          plain_host(redirected.request->target.authority.host)) &&
         (location.find(*digest) != std::string_view::npos ||
          location.find('?') != std::string_view::npos);
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
