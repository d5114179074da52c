#include "proxy/request/request_view_builder.h"

#include <algorithm>
#include <cstring>
#include <span>

#include "base/text.h"
#include "proxy/http/digest_path.h"
#include "proxy/http/framing.h"
#include "proxy/http/sent_fields.h"
#include "proxy/http/uri.h"
#include "proxy/settings/path_readings.h"

namespace encore::server {

namespace {

// The methods that caches before web sites are emptied with.
bool is_purge(const http::RequestHead& head) {
  const std::string_view name = head.method_text;
  return head.method == http::Method::kOther &&
         (name == "PURGE" || name == "BAN" || name == "PURGEKEYS" || name == "PURGETAGS");
}

bool may_purge(const std::vector<config::CidrText>& named, const net::Address& client) {
  const auto bytes = client.mapped_bytes();
  return std::ranges::any_of(named,
                             [&](const config::CidrText& block) { return block->contains(bytes); });
}

// True if the URI's host is this proxy: an address and port of a listener, or a name that is said
// to be ours. A page may have any other name point here (docs/decisions/0313).
bool names_us(const Runtime& runtime, const http::Target& target) {
  const std::string host = plain_host(target.authority.host);
  const auto address = DestinationPolicy::known_address(host, target.port());
  if (address) return runtime.destinations.is_own(*address);
  return std::ranges::any_of(runtime.config.admin.allow_hosts,
                             [&](const std::string& own) { return plain_host(own) == host; });
}

// True if the request is for a resource that a forward listener itself publishes. The same path at
// another host belongs to that host. The authority's certificate is no secret, and its users may
// know us by any name.
bool asks_for_published(const Runtime& runtime, const RequestView& view) {
  const http::Target& target = view.target;
  if (view.inside != nullptr || !runtime.is_published(target.path)) return false;
  if (target.form == http::TargetForm::kOrigin) {
    return target.path == kAuthorityPath || names_us(runtime, target);
  }
  return target.form == http::TargetForm::kAbsolute && target.scheme == http::Scheme::kHttp &&
         names_us(runtime, target);
}

}  // namespace

ViewFault RequestViewBuilder::make(const http::RequestHead& head, const ListenerContext& listener,
                                   const net::Address& client, RequestView& view) {
  view.head = &head;
  view.listener_index = listener.index;
  if (listener.closed) return {503, Outcome::kDenied, "listener-closed"};
  view.framing = http::request_framing(head);
  if (view.framing.kind == http::BodyKind::kError) {
    return {view.framing.status, Outcome::kBadRequest, "framing"};
  }
  const http::Scheme scheme = view.inside == nullptr ? http::Scheme::kHttp : http::Scheme::kHttps;
  const auto resolved = http::resolve_target(head, scheme, view.target);
  if (resolved != http::TargetStatus::kOk) {
    return {400, Outcome::kBadRequest, http::to_string(resolved)};
  }
  if (view.inside != nullptr) [[unlikely]] {
    if (const ViewFault fault = look_inside(head, listener, view); fault.status != 0) return fault;
  }
  const bool forward = listener.mode == config::Mode::kForward;
  if (forward && !runtime_->destinations.is_client_allowed(client)) {
    return {403, Outcome::kDenied, "client-not-allowed"};
  }
  if (is_purge(head) && listener.index < runtime_->config.listen.size()) {
    const config::Listen& listen = runtime_->config.listen[listener.index];
    // Origins answer a PURGE that does nothing with 200: docs/decisions/0380.
    const bool passes_on = listen.purge_clients.empty() && listen.purge_to_origin;
    if (!passes_on && !may_purge(listen.purge_clients, client)) {
      return {403, Outcome::kDenied, kPurgeNotAllowed};
    }
    view.purges = !passes_on;
  }
  if (head.method == http::Method::kConnect) {
    return look_at_connect(head, listener, client, view);
  }
  // Asked itself, it answers with what it publishes: without a key, for that is never stored.
  if (forward && asks_for_published(*runtime_, view)) {
    view.target.form = http::TargetForm::kOrigin;
    return {};
  }
  if (forward && view.target.form != http::TargetForm::kAbsolute) {
    return {400, Outcome::kBadRequest, "forward-proxy-needs-absolute-form"};
  }
  if (view.target.form == http::TargetForm::kAsterisk) {
    view.route = runtime_->router.match("", "/");
    if (view.route == nullptr) return {404, Outcome::kNoRoute, "no-route"};
    return {};
  }
  // The key has the scheme that the listener stands for, so that a purge and a write find it.
  if (!forward) http::set_scheme(view.target, kReverseScheme);
  view.request_policy = forward ? &runtime_->forward : &runtime_->reverse;
  write_key(view);
  activity_.client_port = client.port();
  if (const ViewFault fault = find_route(forward, view); fault.status != 0) return fault;
  view.hash = filter::hash_key(filter::HashFamily::kXxh3, identity_seed_, view.key);
  if (!runtime_->rules.empty()) [[unlikely]] {
    view.listener = listener.name;
    if (const ViewFault fault = find_rule(head, listener, client, view); fault.status != 0) {
      return fault;
    }
    if (view.rule != nullptr) apply_rule(head, forward, view);
  }
  return {};
}

// A request inside a CONNECT is for the host of the CONNECT, and goes on as if a client had sent
// its absolute form. Why targets become absolute: docs/decisions/0262.
ViewFault RequestViewBuilder::look_inside(const http::RequestHead& head,
                                          const ListenerContext& listener, RequestView& view) {
  if (listener.mode != config::Mode::kForward) return {503, Outcome::kDenied, "listener-changed"};
  if (head.method == http::Method::kConnect) return {405, Outcome::kDenied, "connect-inside"};
  http::Target& target = view.target;
  const bool names_uri =
      target.form == http::TargetForm::kOrigin ||
      (target.form == http::TargetForm::kAbsolute && target.scheme == http::Scheme::kHttps);
  if (!names_uri) return {400, Outcome::kBadRequest, "target"};
  const InterceptedConnect& inside = *view.inside;
  if (lower_ascii(target.authority.host) != inside.host || target.port() != inside.port) {
    return {421, Outcome::kDenied, "misdirected"};
  }
  target.form = http::TargetForm::kAbsolute;
  return {};
}

ViewFault RequestViewBuilder::look_at_connect(const http::RequestHead& head,
                                              const ListenerContext& listener,
                                              const net::Address& client, const RequestView& view) {
  if (listener.mode != config::Mode::kForward) {
    return {405, Outcome::kDenied, kConnectOnReverse};
  }
  if (runtime_->rules.empty()) return {};
  const std::string host = lower_ascii(view.target.authority.host);
  const Rule* const rule = runtime_->rules
                               .find({.host = host,
                                      .path = {},
                                      .method = head.method_text,
                                      .listener = listener.name,
                                      .client = &client})
                               .rule;
  if (rule == nullptr || !rule->answer() || !rule->answer()->is_refusal) return {};
  return {rule->answer()->status, Outcome::kDenied, rule->detail(), rule};
}

// By the treatment that the view has.
void RequestViewBuilder::write_key(RequestView& view) {
  const std::size_t needed = kRealmBytes + http::key_bytes_max(view.target);
  if (key_buffer_.size() < needed) {
    activity_.key = {};
    key_buffer_.resize(needed * 2);
  }
  view.uri = http::write_key(view.target, view.request_policy->keys,
                             std::span(key_buffer_).subspan(kRealmBytes));
  view.key = std::string_view(key_buffer_.data(), kRealmBytes + view.uri.bytes);
  activity_.key = view.key.substr(kRealmBytes);
}

// The route is chosen by what is cached.
ViewFault RequestViewBuilder::find_route(bool forward, RequestView& view) {
  std::string_view realm = kForwardRealm;
  if (!forward) {
    view.route = runtime_->router.match_uri(view.key.substr(kRealmBytes), view.uri);
    if (view.route == nullptr) return {404, Outcome::kNoRoute, "no-route"};
    if (runtime_->router.has_paths() && !is_route_of_all_readings(view)) {
      return {400, Outcome::kBadRequest, kAmbiguousPath};
    }
    realm = view.secure ? view.route->secure_realm() : view.route->realm();
  }
  std::memcpy(key_buffer_.data(), realm.data(), kRealmBytes);
  return {};
}

bool RequestViewBuilder::is_route_of_all_readings(const RequestView& view) const {
  const std::string_view uri = view.key.substr(kRealmBytes);
  const std::string_view path = uri.substr(view.uri.path);
  return runtime_->router.is_route_of_all_readings(
      view.route, http::host_of(uri, view.uri), path.substr(0, path.find('?')), view.target.path);
}

ViewFault RequestViewBuilder::find_rule(const http::RequestHead& head,
                                        const ListenerContext& listener, const net::Address& client,
                                        RequestView& view) {
  if (remembered_of_ != runtime_->number) {
    remembered_.assign(kRemembered, {});
    remembered_of_ = runtime_->number;
  }
  Remembered& remembered = remembered_[view.hash.lo & (kRemembered - 1)];
  // Paths that were sent in another form may have the same key.
  const bool is_usual =
      head.method == http::Method::kGet && !has_readings_as_sent(view.target.path);
  if (is_usual && remembered.key == view.hash && remembered.listener == &listener) {
    view.rule = remembered.rule;
    return {};
  }
  const std::string_view uri = view.key.substr(kRealmBytes);
  const std::string_view path = uri.substr(view.uri.path);
  const auto found = runtime_->rules.find({.host = http::host_of(uri, view.uri),
                                           .path = path.substr(0, path.find('?')),
                                           .method = head.method_text,
                                           .listener = listener.name,
                                           .client = &client,
                                           .path_as_sent = view.target.path});
  if (found.is_ambiguous) return {400, Outcome::kBadRequest, kAmbiguousPath};
  if (is_usual && !found.by_client) remembered = {view.hash, &listener, found.rule};
  view.rule = found.rule;
  return {};
}

void RequestViewBuilder::apply_rule(const http::RequestHead& head, bool forward,
                                    RequestView& view) {
  const Rule& rule = *view.rule;
  view.request_policy = &rule.request_policy(forward);
  if (rule.changes_key()) {
    write_key(view);
    if (rule.by_digest()) key_by_digest(view);
    if (!rule.key_suffix().empty()) {
      if (view.asked.empty()) view.asked = view.key.substr(kRealmBytes);
      other_key_ = std::string(view.key) + rule.key_suffix();
      view.key = other_key_;
    }
    view.hash = filter::hash_key(filter::HashFamily::kXxh3, identity_seed_, view.key);
  }
  const http::VaryOptions& vary = view.request_policy->vary;
  const bool bypasses =
      rule.bypasses_cookies() && head.fields.has(http::FieldId::kCookie) &&
      (vary.cookies == http::CookieUse::kAll || http::SentFields(head.fields, vary).sends_cookie());
  if (!bypasses && view.request_policy->is_cached) return;
  if (view.asked.empty()) view.asked = view.key.substr(kRealmBytes);
  view.key = {};
}

// Resources with the same digest are one object, whatever their host and path.
void RequestViewBuilder::key_by_digest(RequestView& view) {
  const std::string_view uri = view.key.substr(kRealmBytes);
  const std::string_view path = uri.substr(view.uri.path);
  const auto digest = http::sha256_in_path(path.substr(0, path.find('?')));
  if (!digest) return;
  other_key_ = view.key.substr(0, kRealmBytes);
  other_key_ += http::kDigestKey;
  other_key_ += *digest;
  // Its own host decides who may have it.
  if (view.rule->rechecks()) {
    other_key_ += '@';
    other_key_ += uri.substr(0, view.uri.path);
  }
  view.asked = uri;
  view.key = other_key_;
}

}  // namespace encore::server
