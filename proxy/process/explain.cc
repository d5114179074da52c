#include "proxy/process/explain.h"

#include <fmt/core.h>

#include <algorithm>

#include "base/readable.h"
#include "base/text.h"
#include "base/units.h"
#include "cache/options.h"
#include "proxy/exchange/decide.h"
#include "proxy/http/parser.h"
#include "proxy/intake/access_check.h"
#include "proxy/intake/challenge_files.h"
#include "proxy/origin/origin_request.h"
#include "proxy/request/request_context.h"
#include "proxy/request/request_view_builder.h"
#include "proxy/settings/connect_splice.h"

namespace encore::server {
namespace {

std::string seconds_text(std::uint32_t seconds) {
  return about_duration(std::chrono::seconds(seconds));
}

std::string freshness_text(const http::StoreOptions& store) {
  const http::LifetimeRule& rule = store.freshness.rule;
  std::string text;
  if (rule.seconds) {
    text = seconds_text(*rule.seconds) + ", by the rule";
  } else {
    text = "as its origin states; without a stated lifetime " +
           plain_number(store.freshness.heuristic_fraction, 6) +
           " of the time since Last-Modified, up to " +
           seconds_text(store.freshness.heuristic_seconds_max);
    if (!store.freshness.heuristic_with_cookie) text += ", but none for requests with Cookie";
    if (rule.seconds_min) text += "; at least " + seconds_text(*rule.seconds_min);
    if (rule.seconds_max) text += "; at most " + seconds_text(*rule.seconds_max);
  }
  for (const auto& error : rule.errors) {
    text += fmt::format("; {}", error.first);
    if (error.last != error.first) text += fmt::format("-{}", error.last);
    text += ": " + seconds_text(error.seconds);
  }
  return text;
}

std::string admission_text(const cache::AdmissionRule& rule, const config::Admission& all) {
  using Kind = cache::AdmissionRule::Kind;
  switch (rule.kind) {
    case Kind::kPolicy:
      return std::string(to_string(all.policy));
    case Kind::kAlways:
      return "always, by the rule";
    case Kind::kNever:
      return "never, by the rule";
    case Kind::kNthHit:
      return fmt::format("at request {}, by the rule", rule.parameter);
    case Kind::kProbability:
      return fmt::format("with probability {}, by the rule",
                         plain_number(static_cast<double>(rule.parameter) / 4294967296.0, 6));
    case Kind::kSizeThreshold:
      return "up to " + format_bytes(rule.parameter) + ", by the rule";
  }
  return {};
}

std::string ignored_text(const RequestPolicy& request_policy) {
  const http::Ignored& ignored = request_policy.store.ignored;
  std::string text;
  const auto add = [&text](bool is_ignored, std::string_view name) {
    if (!is_ignored) return;
    if (!text.empty()) text += ", ";
    text += name;
  };
  add(ignored.no_store, "no-store");
  add(ignored.is_private, "private");
  add(ignored.no_cache, "no-cache");
  add(request_policy.reuse.ignore_client_reload, "client-no-cache");
  add(ignored.set_cookie, "set-cookie");
  add(ignored.authorization, "authorization");
  add(request_policy.store.ignores_vary, "vary");
  return text.empty() ? "nothing" : text;
}

std::string conditions_of_type(const config::Config& config) {
  std::string text;
  for (std::size_t i = 0; i < config.rule.size(); ++i) {
    const config::Rule& rule = config.rule[i];
    if (rule.content_type.empty()) continue;
    text += text.empty() ? "" : ", ";
    text += rule.name.empty() ? "rule-" + std::to_string(i) : rule.name;
  }
  return text;
}

// Fails if a text of it would make another request of it.
Result<void> check_texts(const Explained& asked) {
  const auto ends_a_line = [](char c) { return c == '\r' || c == '\n' || c == '\0'; };
  if (asked.method.empty() ||
      std::ranges::any_of(asked.method, [&](char c) { return c == ' ' || ends_a_line(c); })) {
    return fail("\"" + asked.method + "\" is not a method");
  }
  for (const std::string& field : asked.fields) {
    if (field.find(':') == std::string::npos || std::ranges::any_of(field, ends_a_line)) {
      return fail("\"" + field + "\" is not a field; write \"Name: value\"");
    }
  }
  return {};
}

// The head of the request, as the listener would get it.
Result<std::string> head_text(const Explained& asked, bool is_forward) {
  std::string storage;
  http::Target target;
  if (!http::resolve_reference(asked.url, {}, storage, target) || target.authority.host.empty()) {
    return fail("\"" + asked.url + "\" is not an http(s) URL");
  }
  std::string host(http::kHostTextBytesMax, '\0');
  host.resize(http::write_host(target, host));
  std::string path(target.path.empty() ? "/" : target.path);
  if (target.has_query) path.append("?").append(target.query);
  std::string text = asked.method + " ";
  if (is_forward) text.append(to_string(target.scheme)).append("://").append(host);
  text += path + " HTTP/1.1\r\nHost: " + host + "\r\n";
  for (const std::string& field : asked.fields) text += field + "\r\n";
  return text + "\r\n";
}

void add_origin(const RequestContext& request, Explanation& lines) {
  if (request.is_forward()) {
    lines.add("origin", "as requested");
  } else {
    std::string servers;
    for (const OriginServer& server : request.route->group().servers()) {
      servers +=
          (servers.empty() ? "" : ", ") + server.pool_key.substr(0, server.pool_key.find('|'));
    }
    lines.add("origin", request.route->host() + " " + request.route->path() + " -> " + servers);
  }
  std::string head;
  const OriginServer* const server =
      request.is_forward() ? nullptr : &request.route->group().servers().front();
  build_origin_request(request, server, {}, head);
  std::string_view rest = head;
  std::string_view label = "is asked";
  while (!rest.empty() && !rest.starts_with("\r\n")) {
    const std::size_t end = rest.find("\r\n");
    lines.add(label, rest.substr(0, end));
    rest.remove_prefix(end + 2);
    label = "";
  }
}

void add_treatment(const RequestContext& request, Explanation& lines) {
  const RequestPolicy& request_policy = *request.request_policy;
  lines.add("key", request.key.empty() ? "none: not cached" : request.key.substr(kRealmBytes));
  if (request.key.empty()) return;
  std::string apart;
  for (const std::string& name : request_policy.vary.further_names) {
    apart += (apart.empty() ? "" : ", ") + name;
  }
  lines.add("told apart by",
            (request_policy.store.ignores_vary ? std::string("not Vary") : std::string("Vary")) +
                (apart.empty() ? "" : ", " + apart));
  lines.add("admission",
            admission_text(request_policy.admission, request.runtime->config.admission));
  lines.add("fresh", freshness_text(request_policy.store));
  lines.add("ignored", ignored_text(request_policy));
  lines.add("max_object", format_bytes(request_policy.max_object_bytes));
  lines.add("collapse", request_policy.collapse ? "yes" : "no");
  if (request.rule != nullptr && request.rule->follows_redirects()) {
    std::string hosts = "followed to the same host";
    for (const std::string& host : request.rule->follow_hosts()) hosts += ", to " + host;
    lines.add("redirections", hosts);
  }
  if (request_policy.swr_seconds)
    lines.add("stale while", seconds_text(*request_policy.swr_seconds));
  if (request_policy.sie_seconds)
    lines.add("stale if error", seconds_text(*request_policy.sie_seconds));
}

// Adds the refusals of the listener's own lists, and its other demands on clients.
std::string_view add_policy(const RequestContext& request, const RequestView& view,
                            const net::Address& client, Explanation& lines) {
  if (request.policy == nullptr) return {};
  const std::string_view refused =
      AccessCheck(*request.policy, request.head, view, client).refused_by_lists();
  if (!refused.empty()) return refused;
  if (request.policy->credentials != nullptr) lines.add("", "login required");
  if (request.policy->rates != nullptr) lines.add("", "rate limits apply");
  return {};
}

// A client of a forward listener, at a time.
struct Asking {
  const ListenerContext& listener;
  const net::Address& client;
  bool by_tls = false;
  MonotonicTime now{};
  WallTime wall{};
};

// Why a CONNECT is refused that the request could come in; empty: it is not.
std::string refusal_of_connect(const Asking& asking, const RequestContext& request,
                               const std::string& authority) {
  const std::string text = "CONNECT " + authority + " HTTP/1.1\r\nHost: " + authority + "\r\n\r\n";
  http::RequestHead head;
  http::ParseError error;
  if (http::parse_request(text, request.runtime->head_limits, head, error) !=
      http::ParseStatus::kComplete) {
    return std::string(http::to_string(error.reason));
  }
  ThreadActivity activity;
  const filter::Seed seed{};
  RequestViewBuilder views(request.runtime, seed, activity);
  RequestView view;
  view.policy = request.policy;
  const ViewFault fault = views.make(head, asking.listener, asking.client, view);
  if (fault.status != 0) return std::string(fault.detail);
  if (view.policy == nullptr) return {};
  return std::string(AccessCheck(*view.policy, head, view, asking.client).refused_by_lists());
}

// Why it goes through unread; empty: it is decrypted.
std::string_view why_unread(const Asking& asking, const Interception* interception,
                            std::optional<Splice> splice) {
  if (interception == nullptr) return "[intercept] has no hosts";
  if (asking.by_tls) return "the listener has TLS";
  if (splice != Splice::kNone) return to_string(splice.value_or(Splice::kNone));
  if (!interception->authority().is_valid(asking.wall)) return to_string(Splice::kNoCertificate);
  return {};
}

// By which way clients ask for an https URL: inside of a CONNECT, or unread through one.
void add_connect(const Asking& asking, const RequestContext& request, Explanation& lines) {
  const std::string host = lower_ascii(request.target.authority.host);
  const std::uint16_t port = request.target.port();
  const bool is_v6 = host.contains(':');
  const std::string authority =
      fmt::format("{}{}{}:{}", is_v6 ? "[" : "", host, is_v6 ? "]" : "", port);
  const Interception* const interception = request.runtime->interception.get();
  const std::string refusal = refusal_of_connect(asking, request, authority);
  const auto splice = splice_of(*request.runtime, asking.client, host, port, asking.now);
  if (!refusal.empty()) {
    lines.add("connect", authority + " is refused: " + refusal);
  } else if (!request.runtime->destinations.is_connect_port(port) ||
             (interception != nullptr && !splice)) {
    lines.add("connect", authority + " is refused by its port or destination");
  } else if (const auto why = why_unread(asking, interception, splice); !why.empty()) {
    lines.add("connect", fmt::format("{} passes unread: {}", authority, why));
  } else {
    lines.add("connect", authority + " is decrypted: the request arrives inside it");
    return;
  }
  lines.add("", "the following is for requests of the whole URL");
}

// The knowledge that explains a request. `running`: null where no proxy runs.
struct Known {
  const std::shared_ptr<const Runtime>& runtime;
  const filter::Seed& seed;
  const Running* running = nullptr;
};

void add_request(const Known& known, const std::shared_ptr<const RequestContext>& request,
                 Explanation& lines) {
  lines.add("rule", request->rule == nullptr ? "none holds" : request->rule->name());
  if (const std::string waiting = conditions_of_type(known.runtime->config); !waiting.empty()) {
    lines.add("", "but for " + waiting + ", which need the response's content_type");
  }
  if (const auto answer = answer_locally(*request)) {
    lines.add("answer", fmt::format("{} here: {}", answer->status, answer->detail));
  } else {
    add_treatment(*request, lines);
    add_origin(*request, lines);
    if (known.running != nullptr) lines.state = explain_state(*known.running, *request);
  }
}

Result<Explanation> explain_by(const Known& known, const Explained& asked) {
  const config::Config& config = known.runtime->config;
  const auto listen = std::ranges::find_if(config.listen, [&](const config::Listen& each) {
    return asked.listener.empty() || each.address.text() == asked.listener;
  });
  if (listen == config.listen.end()) {
    return fail("\"" + asked.listener + "\" is not the address of a [[listen]]");
  }
  const auto client = net::Address::parse_ip(asked.client, 1);
  if (!client) return fail("\"" + asked.client + "\" is not an address");
  if (auto fine = check_texts(asked); !fine) return std::unexpected(fine.error());
  const bool is_forward = listen->mode == config::Mode::kForward;
  const auto text = head_text(asked, is_forward);
  if (!text) return std::unexpected(text.error());
  http::RequestHead head;
  http::ParseError error;
  if (http::parse_request(*text, known.runtime->head_limits, head, error) !=
      http::ParseStatus::kComplete) {
    return fail("cannot build a request: " + std::string(http::to_string(error.reason)));
  }
  ThreadActivity activity;
  RequestViewBuilder views(known.runtime, known.seed, activity);
  const ListenerContext context{.mode = listen->mode,
                                .index = static_cast<std::size_t>(listen - config.listen.begin()),
                                .name = listen->address.text()};
  RequestView view;
  view.secure = !is_forward && !listen->tls.empty();
  view.policy = known.runtime->policy(context.index);
  const ViewFault fault = views.make(head, context, *client, view);
  Explanation lines;
  lines.add("request", asked.method + " " + asked.url + " of " + asked.client);
  lines.add("listener", listen->address.text() + (is_forward ? " forward" : " reverse") +
                            (listen->tls.empty() ? "" : " by TLS"));
  if (!known.runtime->challenge_directory.empty() && listen->tls.empty() &&
      challenge_name(head, listen->mode)) {
    lines.add("answer", "200 or 404 here: acme");
    return lines;
  }
  if (fault.status != 0) {
    lines.add("answer", fmt::format("{} here: {}", fault.status, fault.detail));
    return lines;
  }
  if (listen->redirect_https) {
    lines.add("answer", "301 here: redirect-https");
    return lines;
  }
  const auto request = RequestContext::make(known.runtime, view, *text, *client);
  if (is_forward && request->target.scheme == http::Scheme::kHttps) {
    add_connect({.listener = context,
                 .client = *client,
                 .by_tls = !listen->tls.empty(),
                 .now = known.running == nullptr ? MonotonicTime{} : known.running->now,
                 .wall = known.running == nullptr ? wall_now() : known.running->wall},
                *request, lines);
  }
  if (const auto refused = add_policy(*request, view, *client, lines); !refused.empty()) {
    lines.add("answer", fmt::format("{} here: {}", status_of_refusal(refused), refused));
    return lines;
  }
  add_request(known, request, lines);
  return lines;
}

}  // namespace

Result<std::string> explain(const config::Config& config, const Explained& asked) {
  const auto runtime = Runtime::create(config, {}, "explain");
  if (!runtime) return std::unexpected(runtime.error());
  const filter::Seed seed{};
  const auto explained = explain_by({.runtime = *runtime, .seed = seed}, asked);
  if (!explained) return std::unexpected(explained.error());
  return text_of(*explained);
}

Result<Explanation> explain(const Running& running, const Explained& asked) {
  return explain_by(
      {.runtime = running.runtime, .seed = running.identity_seed, .running = &running}, asked);
}

}  // namespace encore::server
