#include "tests/fuzz/proxy/arrived.h"

#include <algorithm>
#include <array>

namespace encore::proxyfuzz {
namespace {

bool is_by_rule(const Rule& rule, const Field& field) {
  if (same_name(field.name, "Cookie")) return rule.keys_by_cookie();
  const auto is_line = [&](const Field& line) { return line == field; };
  return std::ranges::any_of(rule.request_set, is_line) ||
         std::ranges::any_of(rule.request_add, is_line);
}

}  // namespace

std::string text_of(const Head& head) {
  std::string out = head.start + "\n";
  for (const Field& field : head.fields) out += field.name + ": " + field.value + "\n";
  return out;
}

// The request must arrive as its client sent it, but for what a proxy adds.
void ArrivedRequest::check(const Request& cause, const std::string& method) const {
  const auto wrong = [&](const std::string& what) {
    world_.report("origin-request", what, &cause, text_of(head_));
  };
  const bool asks_permission =
      cause.rule != nullptr && cause.rule->rechecks && cause.method == "GET" && method == "HEAD";
  if (asks_permission) world_.count("origin: asked for permission");
  if (cause.method != method && !asks_permission) wrong("the origin got another method");
  if (const auto offer = taken_offer(cause)) {
    world_.count("origin: a redirection was followed");
    if (const std::string bad = look_at_offer(cause, *offer); !bad.empty()) wrong(bad);
    if (!offer->host.empty()) return;
  }
  const bool unsafe = method != "GET" && method != "HEAD";
  // RFC 9110 9.2.2: a proxy must not repeat what is not idempotent.
  if (method == "POST" && cause.asked_origin != 0) wrong("a POST arrived twice");
  if (unsafe && body_ != std::string(cause.body_bytes, 'x')) {
    wrong("the origin got another request body, of " + std::to_string(body_.size()) + " bytes");
  }
  if (selecting_of(head_.fields).lang != cause.selecting.lang) {
    wrong("the origin should have got the X-Lang \"" + cause.selecting.lang.value_or("") + "\"");
  }
  for (const Field& field : cause.fields) {
    const bool passes = same_name(field.name, "Authorization") || same_name(field.name, "X-Tenant");
    if (passes && !has(field)) wrong("the origin did not get " + field.name + ": " + field.value);
  }
  if (const std::string by_rule = look_at_rule(cause); !by_rule.empty()) wrong(by_rule);
  static constexpr std::array<std::string_view, 16> kOfProxies = {"Via",
                                                                  "Host",
                                                                  "Forwarded",
                                                                  "X-Forwarded-For",
                                                                  "X-Forwarded-Host",
                                                                  "X-Forwarded-Proto",
                                                                  "If-None-Match",
                                                                  "If-Modified-Since",
                                                                  "If-Range",
                                                                  "Range",
                                                                  "Connection",
                                                                  "Accept-Encoding",
                                                                  "TE",
                                                                  "Content-Length",
                                                                  "Transfer-Encoding",
                                                                  "X-Request-Id"};
  for (const Field& field : head_.fields) {
    const bool own = std::ranges::any_of(
        kOfProxies, [&](std::string_view name) { return same_name(field.name, name); });
    const bool sent = std::ranges::find(cause.fields, field) != cause.fields.end();
    const bool judged = cause.rule != nullptr && is_by_rule(*cause.rule, field);
    if (!own && !sent && !judged)
      wrong("the origin got a field that its client never sent: " + field.name);
  }
}

void ArrivedRequest::check_trailers(const Request& cause, const Fields& trailers) const {
  if (cause.trailers.size() == trailers.size() &&
      std::ranges::equal(cause.trailers, trailers, [](const Field& sent, const Field& got) {
        return same_name(sent.name, got.name) && sent.value == got.value;
      })) {
    if (!trailers.empty()) world_.count("origin: trailers of a request");
    return;
  }
  world_.report("origin-request",
                "the origin got " + std::to_string(trailers.size()) + " trailers, and " +
                    std::to_string(cause.trailers.size()) + " were sent",
                &cause, text_of(head_));
}

std::string ArrivedRequest::target() const {
  const std::size_t space = head_.start.find(' ');
  return head_.start.substr(space + 1, head_.start.rfind(' ') - space - 1);
}

// The redirection of its client's that this request follows.
std::optional<Request::Offer> ArrivedRequest::taken_offer(const Request& cause) const {
  const std::string path = target();
  const auto found = std::ranges::find(cause.offers, path, &Request::Offer::path);
  if (found == cause.offers.end()) return std::nullopt;
  Request::Offer taken = *found;
  // Behind another host's no path of its own is the first's.
  const Field* const host = find(head_.fields, "Host");
  if (host != nullptr && host->value == world_.other_host) taken.host = host->value;
  return taken;
}

// docs/RULES.md, `follow_redirects`. Returns the fault; empty: none.
std::string ArrivedRequest::look_at_offer(const Request& cause, const Request::Offer& offer) const {
  const Rule* const rule = cause.rule;
  constexpr int kRedirectionsMax = 5;
  if (rule == nullptr || !rule->follows) return "a redirection is followed without a rule";
  if (offer.number > kRedirectionsMax) return "too many redirections are followed";
  if (cause.selecting.cookie && !rule->keys_by_cookie() && !offer.states_lifetime) {
    return "a redirection that a Cookie may have chosen is followed for all";
  }
  if (offer.host.empty()) return {};
  if (!rule->follows_to(offer.host.substr(0, offer.host.find(':')))) {
    return "a redirection is followed to " + offer.host;
  }
  for (const std::string_view name : {"Authorization", "Cookie", "X-Forwarded-For"}) {
    if (count(head_.fields, name) != 0) return "another host got the " + std::string(name);
  }
  world_.count("origin: followed to another host");
  if (cause.selecting.cookie) world_.count("origin: followed to another host, with a Cookie");
  return {};
}

bool ArrivedRequest::has(const Field& field) const {
  return std::ranges::find(head_.fields, field) != head_.fields.end();
}

// Checks what a rule, or the listener, sends to the origin (docs/RULES.md). Returns the fault;
// empty: none.
std::string ArrivedRequest::look_at_rule(const Request& cause) const {
  const Rule* const rule = cause.rule;
  if (rule != nullptr && rule->answers()) return "the origin was asked for what a rule answers";
  if (cause.is_refused) return "the origin was asked for what a listener refuses";
  std::string wanted = cause.url->path;
  std::string query = cause.query;
  if (rule != nullptr) {
    wanted = rule->sent_path(wanted);
    query = rule->sent_query(query);
  }
  if (!query.empty()) wanted += "?" + query;
  if (target() != wanted && !taken_offer(cause)) {
    return "the origin should have been asked for " + wanted;
  }
  if (const std::string wrong = look_at_cookies(cause); !wrong.empty()) return wrong;
  if (const std::string wrong = look_at_id(); !wrong.empty()) return wrong;
  if (rule != nullptr) {
    for (const Fields* const lines : {&rule->request_set, &rule->request_add}) {
      for (const Field& line : *lines) {
        if (!has(line)) return "a rule's line is missing: " + line.name + ": " + line.value;
      }
    }
    for (const Field& line : rule->request_set) {
      if (count(head_.fields, line.name) != 1) return "a field was set beside another " + line.name;
    }
    for (const std::string& name : rule->request_remove) {
      if (count(head_.fields, name) != 0)
        return "the origin got " + name + ", which a rule removes";
    }
  }
  return look_at_sender(cause);
}

std::string ArrivedRequest::look_at_cookies(const Request& cause) const {
  std::optional<std::string> sent;
  if (const Field* const cookie = find(head_.fields, "Cookie")) sent = sorted_cookie(cookie->value);
  if (sent == cause.selecting.cookie && count(head_.fields, "Cookie") == (sent ? 1 : 0)) return {};
  return "the origin should have got the cookies \"" + cause.selecting.cookie.value_or("") + "\"";
}

// docs/CONFIG.md, `trusted_proxies`, `forwarded` and `via` of [[listen]].
std::string ArrivedRequest::look_at_sender(const Request& cause) const {
  if (cause.client.empty()) return {};
  const std::vector<std::string> named = members(head_.fields, "X-Forwarded-For");
  const bool told = world_.is_told(cause);
  if (told && (named.empty() || named.front() != cause.client)) {
    return "the origin should have been told of " + cause.client;
  }
  if (!told && !named.empty()) return "the origin was told of a client of a forward proxy";
  if ((count(head_.fields, "Via") == 0) != (cause.listener == 1)) {
    return "a Via that should not be there, or none that should";
  }
  return {};
}

// docs/CONFIG.md, `log.request_id`: 128 bits of the proxy's own, for the operator's servers
// alone.
std::string ArrivedRequest::look_at_id() const {
  const Field* const id = find(head_.fields, "X-Request-Id");
  if (count(head_.fields, "X-Request-Id") != (world_.is_reverse() ? 1 : 0)) {
    return "an X-Request-Id that should not be there, or none that should";
  }
  const bool is_good =
      id == nullptr || (id->value.size() == 32 &&
                        id->value.find_first_not_of("0123456789abcdef") == std::string::npos);
  return is_good ? std::string() : "the origin got an X-Request-Id that is none of ours";
}

}  // namespace encore::proxyfuzz
