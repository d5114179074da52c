// The part of an exchange that asks the origin whether a client may have what is stored.
#include <utility>

#include "base/recycled.h"
#include "proxy/exchange/exchange.h"

namespace encore::server {
namespace {

// With the realm, and the query as it came: what the origin sees of it may be more than the key.
// And with what we tell it of who asks, and what the rule makes of the request.
std::string asked_whole(const RequestContext& request) {
  std::string text(request.is_forward() ? kForwardRealm : std::string_view(request.route->realm()));
  text += request.rule->asks();
  text += request.uri_text();
  text += '\n';
  text += request.target.query;
  const ToldOrigins told = request.told_origins();
  text += '\n';
  if (told.x_forwarded || told.forwarded) text += request.client.ip_string();
  text += '\n';
  if (request.policy != nullptr && !request.policy->client_field.empty() &&
      request.tls != nullptr) {
    text += request.tls->subject;
  }
  text += request.secure ? "\nhttps" : "\nhttp";
  return text;
}

}  // namespace

// Asks by a HEAD with the client's own fields. False where that is not needed.
bool Exchange::ask_permission() {
  if (request_->rule == nullptr || !request_->rule->rechecks() || is_permitted_ ||
      services_.rechecks.is_allowed(
          services_.rechecks.name(request_->head.fields, asked_whole(*request_)),
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
  const bool allowed = transfer_->response().meta.status / 100 == kSuccess;
  asks_permission_ = false;
  if (allowed) {
    is_permitted_ = true;
    services_.rechecks.allow(services_.rechecks.name(request_->head.fields, asked_whole(*request_)),
                             services_.loop.now());
    ask_again();
    return;
  }
  // What the origin says to the request itself is what the client gets, and nobody else.
  ask_alone(http::Forwarded::kRequest);
}

}  // namespace encore::server
