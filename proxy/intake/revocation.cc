#include "proxy/intake/revocation.h"

#include <cstdint>
#include <optional>
#include <string_view>

#include "base/text.h"
#include "proxy/request/parent.h"
#include "proxy/settings/path_readings.h"

namespace encore::server {
namespace {

// The client, as the new configuration sees it. All are borrowed.
struct Revision {
  const Runtime& runtime;
  const ListenerContext& listener;
  const net::Address& client;
};

constexpr std::string_view kConnect = "CONNECT";

// Returns why a connection may not be there at all; empty: it may.
std::string revoked_client(const Revision& revision) {
  const bool is_forward = revision.listener.mode == config::Mode::kForward;
  const bool may_use =
      !is_forward || revision.runtime.destinations.is_client_allowed(revision.client);
  const ListenerPolicy* const policy = revision.runtime.policy(revision.listener.index);
  const bool allows_client = policy == nullptr || policy->access.allows_client(revision.client);
  return may_use && allows_client ? std::string() : "client-not-allowed";
}

// By the lists of the listener, and by its files of logins.
std::string revoked_by_listener(const Revision& revision, const Named& named,
                                std::string_view login) {
  const ListenerPolicy* const policy = revision.runtime.policy(revision.listener.index);
  if (policy == nullptr) return {};
  if (!policy->access.allows_client(revision.client)) return "client-not-allowed";
  if (policy->credentials != nullptr && !policy->credentials->is_current(login)) {
    return "login-revoked";
  }
  return std::string(policy->access.refusal(named));
}

std::string revoked_by_rule(const Revision& revision, const Named& named) {
  if (revision.runtime.rules.empty()) return {};
  const auto found = revision.runtime.rules.find({.host = named.host,
                                                  .path = named.path,
                                                  .method = named.method,
                                                  .listener = revision.listener.name,
                                                  .client = &revision.client,
                                                  .path_as_sent = named.path_as_sent});
  if (found.is_ambiguous) return std::string(kAmbiguousPath);
  const Rule* const rule = found.rule;
  const bool refuses = rule != nullptr && rule->answer() && rule->answer()->is_refusal;
  return refuses ? rule->detail() : std::string();
}

// By [forward], for what clients of forward listeners name.
std::string revoked_destination(const Revision& revision, const Named& named,
                                const net::Address* origin) {
  const DestinationPolicy& policy = revision.runtime.destinations;
  const bool is_connect = named.method == kConnect;
  if (is_connect && !policy.is_connect_port(named.port)) return "connect-port";
  if (!is_connect && !policy.is_safe_port(named.port)) return "unsafe-port";
  const auto verdict = origin == nullptr
                           ? policy.check_host(revision.client, std::string(named.host), named.port)
                           : policy.check(revision.client, *origin);
  return verdict == DestinationVerdict::kAllowed ? std::string() : std::string(to_string(verdict));
}

std::string revoked(const Revision& revision, const Named& named, std::string_view login,
                    const net::Address* origin) {
  if (auto why = revoked_client(revision); !why.empty()) return why;
  if (auto why = revoked_by_listener(revision, named, login); !why.empty()) return why;
  if (auto why = revoked_by_rule(revision, named); !why.empty()) return why;
  if (revision.listener.mode != config::Mode::kForward) return {};
  return revoked_destination(revision, named, origin);
}

std::string revoked_inside(const Revision& revision, const InterceptedConnect& inside) {
  const std::string host = plain_host(inside.host);
  const Named named{.method = kConnect, .host = host, .path = {}, .port = inside.port};
  return revoked(revision, named, inside.login, nullptr);
}

std::string revoked_request(const Revision& revision, const RequestContext& request,
                            const net::Address* origin, const InterceptedConnect* inside) {
  const std::string host =
      plain_host(request.has_uri() ? request.host_text() : request.target.authority.host);
  const Named named{.method = request.head.method_text,
                    .host = host,
                    .path = request.has_uri() ? request.path_text() : std::string_view(),
                    .port = request.target.port(),
                    .path_as_sent = request.target.path};
  // A parent, if there is one, is connected to instead.
  const bool is_direct = parent_of(request) == nullptr;
  if (inside == nullptr) {
    return revoked(revision, named, request.login, is_direct ? origin : nullptr);
  }
  if (auto why = revoked_inside(revision, *inside); !why.empty()) return why;
  return revoked(revision, named, inside->login, nullptr);
}

}  // namespace

std::string why_revoked(const Runtime& runtime, const ListenerContext& listener,
                        const Activity& activity) {
  const auto by = [&](const net::Address& client) {
    return Revision{.runtime = runtime, .listener = listener, .client = client};
  };
  if (activity.request != nullptr) {
    return revoked_request(by(activity.request->client), *activity.request, activity.origin,
                           activity.identity.inside());
  }
  const ClientIdentity& identity = activity.identity;
  if (identity.inside() != nullptr) {
    return revoked_inside(by(identity.client()), *identity.inside());
  }
  const net::Address& client = identity.from();
  // A trusted proxy may bring an allowed client next.
  const ListenerPolicy* const policy = runtime.policy(listener.index);
  const bool is_own = !identity.awaits_header() && (policy == nullptr || !policy->trusts(client));
  if (!is_own) return {};
  if (auto why = revoked_client(by(client)); !why.empty()) return why;
  const Credentials* const credentials = policy == nullptr ? nullptr : policy->credentials.get();
  const bool is_gone = credentials != nullptr && !identity.login().empty() &&
                       !credentials->is_current(identity.login());
  return is_gone ? "login-revoked" : std::string();
}

}  // namespace encore::server
