// Rules of [[rule]]s in addition to RFC 9111 (docs/RULES.md), and of listeners (docs/CONFIG.md).
#include "tests/fuzz/proxy/judged_fields.h"
#include "tests/fuzz/proxy/oracle.h"

namespace encore::proxyfuzz {

// Refused by its listener, or answered by its rule. False: neither.
bool Oracle::judge_own_by_rule(const Case& at) {
  const Request& request = at.request;
  const Rule* const rule = request.rule;
  const bool by_rule = rule != nullptr && rule->answers();
  if (!request.is_refused && !by_rule) return false;
  const int status = at.answer.status;
  if (request.is_refused && status == 403) {
    world_.count("answer: refused by the listener");
    return true;
  }
  if (!by_rule || status != rule->deny + rule->redirect_status + rule->static_status) {
    fault(at, "denied", "another answer than the one that a rule or the listener has for it");
    return true;
  }
  world_.count("answer: by a rule");
  if (rule->redirect_status == 0) return true;
  const Field* const location = find(at.answer.head.fields, "Location");
  const std::string expected = rule->location(world_.host, request.url->path, request.query);
  if (location == nullptr || location->value != expected) {
    fault(at, "redirect", "it should lead to " + expected);
  }
  return true;
}

void Oracle::judge_own_end(const Case& at) {
  const Rule* const rule = at.request.rule;
  if (rule == nullptr || rule->static_status == 0 || at.answer.status != rule->static_status ||
      at.request.is_refused) {
    return;
  }
  const std::string expected = at.request.method == "HEAD" ? std::string() : rule->static_body;
  if (at.answer.kept != expected) fault(at, "static", "another body than the rule's");
}

// "Those that clients get: from the store, too, as the rule says at that time."
void Oracle::judge_edits(const Case& at) {
  const Rule* const rule = at.request.rule;
  const Fields& fields = at.answer.head.fields;
  // It says nothing of the representation but its length.
  if (rule == nullptr || at.answer.status == 416) return;
  for (const Fields* const lines : {&rule->response_set, &rule->response_add}) {
    for (const Field& line : *lines) {
      if (std::ranges::find(fields, line) == fields.end()) {
        fault(at, "edits", "a line of the rule is missing: " + quoted(line));
      }
    }
  }
  for (const Field& line : rule->response_set) {
    if (count(fields, line.name) != 1) fault(at, "edits", "a field was set beside another");
  }
  for (const std::string& name : rule->response_remove) {
    if (count(fields, name) != 0) fault(at, "edits", "a field that the rule removes: " + name);
  }
}

// `via` and `cache_status`, which listener 1 does without.
void Oracle::judge_listener(const Case& at) {
  if (at.request.client.empty()) return;
  for (const std::string_view name : {"Via", "Cache-Status"}) {
    if ((count(at.answer.head.fields, name) == 0) != (at.request.listener == 1)) {
      fault(at, "listener",
            "a field that should not be there, or is missing: " + std::string(name));
    }
  }
}

bool Oracle::shares_digest(const Case& at) {
  const auto keys_so = [](const Request* request) {
    return request != nullptr && request->rule != nullptr &&
           request->rule->keys_by_digest(request->url->path);
  };
  const Event& event = *at.answer.event;
  return keys_so(&at.request) && keys_so(event.request.get()) &&
         at.request.url->has_blob_of(*event.url);
}

bool Oracle::is_wrong(const Case& at) {
  const Rule* const rule = at.request.rule;
  const Url& url = *at.request.url;
  return rule != nullptr && url.blob != nullptr && rule->keys_by_digest(url.path) &&
         at.request.method == "GET" && at.answer.content->name.number != url.blob->name.number;
}

bool Oracle::may_be_wrong(const Case& at) const {
  constexpr double kUnderWay = 10;
  const Rule* const rule = at.request.rule;
  return rule != nullptr && rule->keys_by_digest(at.request.url->path) &&
         world_.last_wrong + kUnderWay >= at.request.started;
}

// `verify = "sha256"`: what is not as its digest says is not stored.
void Oracle::judge_digest(const Case& at) {
  if (at.direct()) return;
  if (at.answer.event->url != at.request.url) world_.count("reused: by its digest");
  const bool is_hit = our_status(at.answer.head.fields).find("; hit") != std::string_view::npos;
  const bool is_good = at.answer.event->status == 200 || at.answer.event->status == 206;
  if (is_hit && is_good && is_wrong(at)) {
    fault(at, "digest", "a hit that is not what its digest says");
  }
}

// `authorization = "recheck"`: a client that gets a stored response was allowed it lately, and
// nobody gets it whose permission is not asked. An answer to a client that was refused is for
// nobody else.
void Oracle::judge_permission(const Case& at) {
  const Event& event = *at.answer.event;
  const Request& request = at.request;
  const bool asks = request.rule != nullptr && request.rule->rechecks;
  const bool wants = event.request->rule != nullptr && event.request->rule->rechecks;
  if (wants && !asks) fault(at, "recheck", "what a rule keeps for those who are asked about");
  if (wants && !event.is_update && event.status / 100 != 2) {
    fault(at, "recheck", "what an origin said to one whom it refused");
  }
  if (!asks) return;
  constexpr double kHolds = 60;
  const auto yes = request.url->allowed.find(world_.asker_of(request));
  if (yes == request.url->allowed.end() ||
      yes->second + kHolds + world_.slack + world_.way < request.started) {
    fault(at, "recheck", "what the origin has not allowed this client");
  }
}

// Objects stored before a reload stay, though the rule that holds now asks in another way.
bool Oracle::is_asked_otherwise(const Case& at) {
  static const Rule kNone;
  const auto asks = [](const Request& request) {
    return (request.rule == nullptr ? kNone : *request.rule).asks();
  };
  const auto& cause = at.answer.event->request;
  return cause != nullptr && cause->rules_before != at.request.rules_before &&
         asks(*cause) != asks(at.request);
}

// Judges that a stored response is for the same object, and that rules let it be stored.
void Oracle::judge_key(const Case& at) {
  const Event& event = *at.answer.event;
  if (event.request == nullptr) return;
  const Request& cause = *event.request;
  const Request& request = at.request;
  const auto is_uncached = [](const Request& one) {
    const bool has_cookie = find(one.fields, "Cookie") != nullptr;
    return one.rule != nullptr && one.rule->is_uncached(has_cookie);
  };
  if (is_uncached(request)) fault(at, "rule-cache", "another's response where nothing is cached");
  if (is_uncached(cause)) fault(at, "rule-cache", "what was not to be stored");
  judge_permission(at);
  if (cause.object != request.object) {
    fault(at, "key", "another object of the URL: \"" + cause.object + "\"");
  }
  if (event.rule != nullptr && !event.rule->is_cached && !event.is_update) {
    fault(at, "rule-cache", "what was not to be stored by its media type");
  }
  if (cause.rule == nullptr || is_asked_otherwise(at)) return;
  if (!cause.rule->key_field.empty() && cause.tenant != request.tenant) {
    fault(at, "key", "what was made for another X-Tenant");
  }
  if (cause.rule->keys_by_cookie() && cause.selecting.cookie != request.selecting.cookie) {
    fault(at, "key", "what was made for another Cookie");
  }
}

// A hit is possible only if the rules admit something, and its body is no larger than those by
// which it was sent allow. A part of a body that is too large may be stored.
void Oracle::judge_limits(const Case& at) {
  const Content& content = *at.answer.content;
  if (content.sent == 0) return;
  if (at.answer.status != 200 || at.request.method != "GET") return;
  if (!at.request.url->may_be_admitted && !at.answer.event->url->may_be_admitted) {
    fault(at, "admission", "a hit that a rule keeps out of the cache");
  }
  std::uint64_t most = content.object_max;
  if (content.has_configured_max) {
    most = std::max(most, world_.object_max.most_since(content.made, UINT64_MAX));
  }
  if (content.bytes > most) {
    fault(at, "max-object", "a hit that was larger than what may be stored");
  }
}

bool Oracle::says_lifetime(const Case& at) const {
  const Rule* const rule = at.maker();
  if (rule == nullptr) return false;
  const Event& event = *at.answer.event;
  const auto is_named = [&event](const Rule::Negative& one) {
    return event.is_update || (event.status >= one.first && event.status <= one.last);
  };
  return (rule->fresh && (event.status < 400 || event.is_update)) ||
         std::ranges::any_of(rule->negative, is_named);
}

// Applies the lifetime that a rule gives a response. True if the rule's own value holds.
bool Oracle::apply_lifetime(const Case& at, double& lifetime) const {
  const Rule* const rule = at.maker();
  if (rule == nullptr) return false;
  const Event& event = *at.answer.event;
  // A 304 tells of what may have any status.
  const bool may_be_error = event.status >= 400 || event.is_update;
  const bool may_be_good = event.status < 400 || event.is_update;
  std::optional<std::int64_t> said;
  const auto add = [&said](std::int64_t seconds) { said = std::max(said.value_or(0), seconds); };
  for (const Rule::Negative& one : rule->negative) {
    const bool named = event.status >= one.first && event.status <= one.last;
    if (may_be_error && (named || event.is_update)) add(one.seconds);
  }
  if (rule->fresh && may_be_good) add(*rule->fresh);
  if (said && (!event.is_update || rule->fresh)) {
    lifetime = static_cast<double>(*said);
    return true;
  }
  if (said) lifetime = std::max(lifetime, static_cast<double>(*said));
  if (rule->fresh_min && may_be_good && lifetime <= static_cast<double>(*rule->fresh_min)) {
    lifetime = static_cast<double>(*rule->fresh_min);
    return true;
  }
  if (rule->fresh_max && may_be_good && !may_be_error) {
    lifetime = std::min(lifetime, static_cast<double>(*rule->fresh_max));
  }
  return false;
}

}  // namespace encore::proxyfuzz
