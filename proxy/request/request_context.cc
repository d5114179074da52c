#include "proxy/request/request_context.h"

#include <array>
#include <memory>
#include <utility>

#include "base/recycled.h"
#include "base/text.h"
#include "proxy/http/digest_path.h"
#include "proxy/http/hop_by_hop.h"

namespace encore::server {
namespace {

// More is not kept for the next request.
constexpr std::size_t kKeptFieldsMax = 64;

}  // namespace

std::shared_ptr<const RequestContext> RequestContext::make(std::shared_ptr<const Runtime> runtime,
                                                           const RequestView& view,
                                                           std::string_view head_bytes,
                                                           const net::Address& client,
                                                           const net::Address& from) {
  auto request = make_reused<RequestContext>();
  request->runtime = std::move(runtime);
  request->bytes = head_bytes;
  request->head = *view.head;
  request->target = view.target;
  const http::Rebase rebase{head_bytes, request->bytes};
  request->head.rebase(rebase);
  request->target.rebase(rebase);
  request->directives = http::parse_request_directives(request->head.fields);
  request->framing = view.framing;
  request->route = view.route;
  request->client = client;
  if (request->head.fields.has(http::FieldId::kUpgrade)) {
    request->upgrade = http::asked_upgrade(request->head);
  }
  request->from = from;
  request->policy = view.policy;
  request->through_proxy = view.through_proxy;
  request->secure = view.secure;
  request->tls = view.tls == nullptr ? nullptr : *view.tls;
  request->ingress = view.inside == nullptr ? Ingress::kAsItIs : Ingress::kInside;
  request->rule = view.rule;
  request->request_policy = view.request_policy;
  if (request->request_policy == nullptr) {
    request->request_policy =
        view.route == nullptr ? &request->runtime->forward : &request->runtime->reverse;
  }
  if (request->runtime->rules.wait_for_content_types()) request->listener = view.listener;
  request->key = view.key;
  if (!view.asked.empty()) request->asked = view.asked;
  request->uri = view.uri;
  if (request->rule != nullptr && request->rule->verifies() && request->has_uri()) {
    request->digest = http::sha256_in_path(request->path_text()).value_or("");
  }
  request->hash = view.hash;
  request->listener_index = view.listener_index;
  request->request_id = view.request_id;
  if (!view.user.empty()) request->user = view.user;
  if (!view.login.empty()) request->login = view.login;
  request->purges = view.purges;
  request->counts = view.counts == nullptr ? nullptr : *view.counts;
  return request;
}

std::uint64_t RequestContext::credentials() const {
  if (!head.fields.has_any({http::FieldId::kCookie, http::FieldId::kAuthorization})) return 0;
  const std::string text = http::SentFields(head.fields, vary()).credentials();
  if (text.empty()) return 0;
  // The hash of the key was made with a secret seed.
  const filter::Seed seed{.lo = hash.lo, .hi = hash.hi};
  const std::uint64_t number = filter::hash_key(filter::HashFamily::kSiphash, seed, text).lo;
  return number == 0 ? 1 : number;
}

std::string_view RequestContext::host_text() const { return http::host_of(uri_text(), uri); }

std::string_view RequestContext::path_text() const {
  const std::string_view path = uri_text().substr(uri.path);
  return path.substr(0, path.find('?'));
}

const Rule* RequestContext::rule_of(std::string_view content_type) const {
  if (!runtime->rules.wait_for_content_types() || !has_uri()) return rule;
  return runtime->rules.find(rule_query(listener), media_type(content_type));
}

RuleQuery RequestContext::rule_query(std::string_view of_listener) const {
  const std::string_view uri_asked = was_redirected ? std::string_view(first_asked) : uri_text();
  const http::KeyText& parts = was_redirected ? first_uri : uri;
  const std::string_view path = uri_asked.substr(parts.path);
  return {.host = http::host_of(uri_asked, parts),
          .path = path.substr(0, path.find('?')),
          .method = head.method_text,
          .listener = of_listener,
          .client = &client};
}

const RequestPolicy& RequestContext::policy_for_content_type(std::string_view content_type) const {
  return policy_by_rule(rule_of(content_type));
}

const RequestPolicy& RequestContext::policy_by_rule(const Rule* found) const {
  if (found == rule) return *request_policy;
  if (found != nullptr) return found->request_policy(is_forward());
  return is_forward() ? runtime->forward : runtime->reverse;
}

std::shared_ptr<RequestContext> RequestContext::copy_of(const RequestContext& other) {
  auto made = make_reused<RequestContext>();
  *made = other;
  const http::Rebase rebase{other.bytes, made->bytes};
  made->head.rebase(rebase);
  made->target.rebase(rebase);
  return made;
}

std::shared_ptr<const RequestContext> RequestContext::permission_for(
    const std::shared_ptr<const RequestContext>& request) {
  auto made = copy_of(*request);
  made->head.method = http::Method::kHead;
  made->head.method_text = "HEAD";
  made->asked = request->uri_text();
  made->key.clear();
  return made;
}

std::shared_ptr<const RequestContext> RequestContext::part_of(
    const std::shared_ptr<const RequestContext>& request, const PartOnly& part) {
  auto made = make_reused<RequestContext>();
  *made = *request;
  made->bytes.append(part.range).append(part.if_range);
  const http::Rebase rebase{request->bytes, made->bytes};
  made->head.rebase(rebase);
  made->target.rebase(rebase);
  for (const http::FieldId id : {http::FieldId::kRange, http::FieldId::kIfRange,
                                 http::FieldId::kIfNoneMatch, http::FieldId::kIfModifiedSince,
                                 http::FieldId::kIfMatch, http::FieldId::kIfUnmodifiedSince}) {
    made->head.fields.remove(id);
  }
  const std::string_view added = std::string_view(made->bytes).substr(request->bytes.size());
  made->head.fields.add("Range", added.substr(0, part.range.size()));
  made->head.fields.add("If-Range", added.substr(part.range.size()));
  made->asked = request->uri_text();
  made->key.clear();
  return made;
}

namespace {

// True if neither the client's listener nor a rule for anybody would refuse a direct request for
// it.
bool may_be_rechecked(const RequestContext& to, std::uint16_t port, std::string_view path_as_sent) {
  const std::string host = plain_host(to.host_text());
  const Named named{.method = to.head.method_text,
                    .host = host,
                    .path = to.path_text(),
                    .port = port,
                    .path_as_sent = path_as_sent};
  if (to.policy != nullptr && !to.policy->access.refusal(named).empty()) return false;
  // The target's response is stored for all who may request the first URL.
  const std::string_view path = std::string_view(to.first_asked).substr(to.first_uri.path);
  return !to.runtime->rules.may_answer({.host = to.host_text(),
                                        .path = to.path_text(),
                                        .method = to.head.method_text,
                                        .path_as_sent = path_as_sent},
                                       {.host = http::host_of(to.first_asked, to.first_uri),
                                        .path = path.substr(0, path.find('?')),
                                        .method = to.head.method_text});
}

// The host that the client has asked for.
std::string_view first_host(const RequestContext& request) {
  return request.was_redirected ? http::host_of(request.first_asked, request.first_uri)
                                : request.host_text();
}

// Another origin's answer would be the first one's: only where the rule trusts it with that. Why
// not all hosts of its domain: docs/decisions/0310.
bool may_lead_to_host(const RequestContext& request, std::string_view host) {
  const std::string to = plain_host(host);
  return to == plain_host(first_host(request)) ||
         any_glob_matches(request.rule->follow_hosts(), to);
}

// Returns the reason for which [forward] denies it, as far as it is known without a lookup.
RedirectRefusal denied_destination(const RequestContext& to, const http::Target& target) {
  const DestinationPolicy& policy = to.runtime->destinations;
  // Inside a CONNECT its client gets to no others.
  if (!policy.is_safe_port(target.port()) ||
      (to.is_intercepted() && !policy.is_connect_port(target.port()))) {
    return RedirectRefusal::kPort;
  }
  const auto address =
      DestinationPolicy::known_address(lower_ascii(target.authority.host), target.port());
  if (!address) return RedirectRefusal::kNone;
  if (policy.is_own_port_here(*address)) return RedirectRefusal::kOwnListener;
  return redirect_refusal_by(policy.check(to.client, *address));
}

// Not to what would be refused, or answered by a rule or another origin, were it asked for.
RedirectRefusal why_not_followed(const RequestContext& to, std::string_view path_as_sent) {
  http::Target target;
  std::string storage;
  if (!http::resolve_reference(to.asked, {}, storage, target)) return RedirectRefusal::kLocation;
  if (!may_be_rechecked(to, target.port(), path_as_sent)) return RedirectRefusal::kDenied;
  if (to.is_cross_origin) return denied_destination(to, target);
  if (to.is_forward()) return RedirectRefusal::kNone;
  const Router& router = to.runtime->router;
  const bool is_same =
      router.match(to.host_text(), to.path_text()) == to.route &&
      router.is_route_of_all_readings(to.route, to.host_text(), to.path_text(), path_as_sent);
  return is_same ? RedirectRefusal::kNone : RedirectRefusal::kOrigin;
}

}  // namespace

RequestContext::Redirected RequestContext::redirected(
    const std::shared_ptr<const RequestContext>& request, std::string_view location) {
  std::string storage;
  http::Target to;
  if (!http::resolve_reference(location, request->target, storage, to) ||
      to.authority.host.empty()) {
    return {nullptr, RedirectRefusal::kLocation};
  }
  if (!may_lead_to_host(*request, to.authority.host)) return {nullptr, RedirectRefusal::kHost};
  // A reverse proxy's own URLs are those of plain http within, whichever way the client came.
  const bool is_reverse = request->route != nullptr;
  if (is_reverse && request->secure) {
    http::Target within = to;
    http::set_scheme(within, kReverseScheme);
    if (http::same_origin(request->target, within)) to = within;
  }
  const bool is_cross_origin = !http::same_origin(request->target, to);
  // A request by TLS is not fetched in the clear.
  const bool was_secure = request->secure || request->target.scheme == http::Scheme::kHttps;
  if (is_cross_origin && was_secure && to.scheme == http::Scheme::kHttp) {
    return {nullptr, RedirectRefusal::kClear};
  }
  auto made = copy_of(*request);
  if (!request->was_redirected) {
    made->first_asked = request->uri_text();
    made->first_uri = request->uri;
  }
  if (is_cross_origin) {
    made->is_cross_origin = true;
    made->route = nullptr;
  }
  std::string text(http::key_bytes_max(to), '\0');
  made->uri = http::write_key(to, {}, text);
  text.resize(made->uri.bytes);
  made->asked = std::move(text);
  made->was_redirected = true;
  if (const RedirectRefusal why = why_not_followed(*made, to.path); why != RedirectRefusal::kNone) {
    return {nullptr, why};
  }
  // Views into what stays.
  storage.clear();
  if (!http::resolve_reference(made->asked, {}, storage, made->target)) {
    return {nullptr, RedirectRefusal::kLocation};
  }
  return {std::move(made), RedirectRefusal::kNone};
}

namespace {

// Room that is worth keeping, without what it held. An empty text that is assigned would leave the
// room where it is.
void keep_room(std::string& text) {
  if (text.capacity() > kReusedTextMax) std::string().swap(text);
  text.clear();
}

}  // namespace

void RequestContext::clear() {
  // The texts that every request has.
  std::array<std::string, 3> rooms = {std::move(bytes), std::move(key), std::move(request_id)};
  http::Fields fields;
  if (head.fields.size() <= kKeptFieldsMax) fields = std::move(head.fields);
  std::destroy_at(this);
  std::construct_at(this);
  for (std::string& room : rooms) keep_room(room);
  bytes = std::move(rooms[0]);
  key = std::move(rooms[1]);
  request_id = std::move(rooms[2]);
  fields.clear();
  head.fields = std::move(fields);
}

RedirectRefusal redirect_refusal_by(DestinationVerdict verdict) {
  switch (verdict) {
    case DestinationVerdict::kAllowed:
      return RedirectRefusal::kNone;
    case DestinationVerdict::kPrivate:
      return RedirectRefusal::kPrivate;
    case DestinationVerdict::kOwnListener:
      return RedirectRefusal::kOwnListener;
    case DestinationVerdict::kNotUnicast:
      break;
  }
  return RedirectRefusal::kNotUnicast;
}

ThreadActivity doing_for(const RequestContext& request, std::string_view who,
                         std::string_view step) {
  ThreadActivity activity{.who = who, .step = step, .request = request.bytes};
  if (request.has_uri()) activity.key = request.uri_text();
  activity.client_port = request.client.port();
  return activity;
}

}  // namespace encore::server
