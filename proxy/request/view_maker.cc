#include "proxy/request/view_maker.h"

#include <algorithm>
#include <span>

#include "proxy/http/framing.h"
#include "proxy/http/uri.h"

namespace encore::server {

ViewFault ViewMaker::make(const http::RequestHead& head, const ListenerContext& listener,
                          const net::Address& client, RequestView& view) {
  view.head = &head;
  view.framing = http::request_framing(head);
  if (view.framing.kind == http::BodyKind::kError) {
    return {view.framing.status, Outcome::kBadRequest, "framing"};
  }
  const auto resolved = http::resolve_target(head, http::Scheme::kHttp, view.target);
  if (resolved != http::TargetStatus::kOk) {
    return {400, Outcome::kBadRequest, http::to_string(resolved)};
  }
  const bool forward = listener.mode == config::Mode::kForward;
  if (forward && !runtime_->destinations.is_client_allowed(client)) {
    return {403, Outcome::kDenied, "client-not-allowed"};
  }
  if (head.method == http::Method::kConnect) {
    if (!forward) return {405, Outcome::kDenied, "connect-on-reverse-listener"};
    return {};
  }
  if (forward && view.target.form != http::TargetForm::kAbsolute) {
    // Asked itself, it answers with what it publishes: without a key, for that is never stored.
    if (view.target.form == http::TargetForm::kOrigin && runtime_->is_published(view.target.path)) {
      return {};
    }
    return {400, Outcome::kBadRequest, "forward-proxy-needs-absolute-form"};
  }
  if (view.target.form == http::TargetForm::kAsterisk) {
    view.route = runtime_->router.match("", "/");
    if (view.route == nullptr) return {404, Outcome::kNoRoute, "no-route"};
    return {};
  }
  // What is asked for is what the listener answers for, so that a purge and a write find it.
  if (!forward) http::set_scheme(view.target, kReverseScheme);
  const std::size_t needed = kRealmBytes + http::key_bytes_max(view.target);
  if (key_buffer_.size() < needed) {
    doing_.key = {};
    key_buffer_.resize(needed * 2);
  }
  const http::KeyOptions& options = forward ? runtime_->forward_keys : runtime_->reverse_keys;
  view.uri = http::write_key(view.target, options, std::span(key_buffer_).subspan(kRealmBytes));
  view.key = std::string_view(key_buffer_.data(), kRealmBytes + view.uri.bytes);
  const std::string_view uri = view.key.substr(kRealmBytes);
  doing_.key = uri;
  doing_.client_port = client.port();
  std::string_view realm = kForwardRealm;
  if (!forward) {
    // The route is chosen by what is cached.
    view.route = runtime_->router.match_uri(uri, view.uri);
    if (view.route == nullptr) return {404, Outcome::kNoRoute, "no-route"};
    realm = view.secure ? view.route->secure_realm() : view.route->realm();
  }
  std::ranges::copy(realm, key_buffer_.begin());
  view.hash = filter::hash_key(filter::HashFamily::kXxh3, identity_seed_, view.key);
  return {};
}

}  // namespace encore::server
