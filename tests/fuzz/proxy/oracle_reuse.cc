// What was made for one request: may it be given to another? By RFC 9111, and by what a rule
// overrides of that (docs/RULES.md).
#include <cmath>

#include "tests/fuzz/proxy/judged_fields.h"
#include "tests/fuzz/proxy/loop.h"
#include "tests/fuzz/proxy/oracle.h"

namespace encore::proxyfuzz {

// The answer was made for another request: may it be given to this one?
void Oracle::judge_reuse(const Case& at) {
  const Event& event = *at.answer.event;
  world_.count("reused");
  if (event.method != "GET" && event.method != "HEAD") {
    fault(at, "method", "the response to a " + event.method);
    return;
  }
  if (event.method == "HEAD" && event.status != 200 && event.status != 304) {
    // 4.3.5: a HEAD with another status updates nothing that is stored for GET.
    fault(at, "head", "by a HEAD that was answered with " + std::to_string(event.status));
  }
  if (at.request.method != "GET" && at.request.method != "HEAD") {
    fault(at, "method", "a " + at.request.method + " that the origin did not get");
    return;
  }
  // A thin 304 leaves the stored fields as they were: they are in the answer.
  const Directives merged =
      event.is_update ? directives_of(at.answer.head.fields) : event.directives;
  judge_key(at);
  judge_storing(at, merged);
  judge_selection(at);
  judge_freshness(at, merged);
  if (event.received < at.request.not_before) {
    // RFC 9111 4.4, and what a purge promises.
    fault(at, "invalidated", "what was asked for before it was invalidated");
  }
  const Content& content = *at.answer.content;
  if (content.gone && event.request && at.request.started > content.gone_since &&
      at.request.object == content.gone->object && at.request.rule == content.gone->rule &&
      event.request->rule == content.gone->rule && at.request.tenant == content.gone->tenant &&
      event.request->whole < content.gone->started &&
      at.request.selecting == content.gone->selecting &&
      encodings_of(at.request) == encodings_of(*content.gone)) {
    fault(at, "gone", "what a later answer to its validation should have removed");
  }
}

// RFC 9111 4.3.3: a full response takes the place of what was to be validated; where it is not
// stored, for what it says and not for how it was asked for, nothing does.
void Oracle::note_gone(const Case& at) {
  const Event& event = *at.answer.event;
  Content* gone = event.validated;
  if (gone == nullptr || event.is_update || event.status >= 500 || gone == event.content) return;
  world_.note_change(
      {.url = *event.url, .path = event.url->path, .since = event.decided, .certain = true});
  const std::string_view status = our_status(at.answer.head.fields);
  const auto is_reason = [&](std::string_view reason) {
    return status.find("; detail=" + std::string(reason)) != std::string_view::npos;
  };
  static constexpr std::array<std::string_view, 4> kOfTheResponse = {"private", "no-store",
                                                                     "vary-star", "status"};
  if (std::ranges::none_of(kOfTheResponse, is_reason)) return;
  gone->gone = event.request;
  gone->gone_since = at.answer.head_at;
  world_.count("validated: gone");
}

// RFC 9110 6.5: content with a chunked body's trailers is sent with them again. If it was ever sent
// in another way, the stored one may be that.
void Oracle::judge_trailers(const Case& at) {
  const Content& content = *at.answer.content;
  // If a rule removes or sets fields there are none.
  const Rule* const rule = at.request.rule;
  if (rule != nullptr && rule->edits_answers()) return;
  if (!at.request.takes_trailers || at.request.http10 || at.request.method != "GET") return;
  if (at.answer.status != 200 || !at.answer.body.trailers().empty()) return;
  if (content.sent == 0 || content.sent_without_trailers != 0) return;
  fault(at, "trailers", "the trailers of the origin are lost");
}

// RFC 9111 3: might it have been stored, or be shared as if it were?
void Oracle::judge_storing(const Case& at, const Directives& merged) {
  const Event& event = *at.answer.event;
  const auto ignored = [&at](std::string_view what) { return at.ignores(what); };
  if (merged.no_store && !ignored("no-store")) {
    fault(at, "no-store", "another's response with no-store (5.2.2.5)");
  }
  if (merged.is_private && !ignored("private")) {
    fault(at, "private", "another's response with private (5.2.2.7)");
  }
  if (!event.request) return;
  const Request& cause = *event.request;
  if (cause.directives.no_store && !event.is_update) {
    fault(at, "no-store", "the response to a request with no-store (5.2.1.5)");
  }
  const bool rechecked = cause.rule != nullptr && cause.rule->rechecks;
  if (cause.authorized && !rechecked && !merged.is_public && !merged.must_revalidate &&
      !merged.s_maxage && !ignored("authorization")) {
    fault(at, "authorization", "the response to a request with Authorization (3.5)");
  }
  for (const Field& field : at.answer.head.fields) {
    // 5.2.2.4 and 5.2.2.7: these fields are for who asked.
    const bool is_rules = at.request.rule != nullptr && at.request.rule->says(field);
    if (is_rules) continue;
    if ((is_listed(merged.private_fields, field.name) && !ignored("private")) ||
        (is_listed(merged.no_cache_fields, field.name) && !ignored("no-cache"))) {
      fault(at, "qualified", "a field that Cache-Control keeps from others: " + quoted(field));
    }
  }
  // Another host got no Cookie, and its Set-Cookie is left out.
  const bool sets = find(event.fields, "Set-Cookie") != nullptr && !event.is_foreign;
  if (!event.is_update && sets && cause.selecting.cookie && !ignored("set-cookie")) {
    // [cache] set_cookie = "strip": a Set-Cookie in answer to a Cookie is a session's.
    fault(at, "set-cookie", "a response with Set-Cookie to a request with Cookie was kept");
  }
}

// RFC 9111 4.1.
void Oracle::judge_selection(const Case& at) {
  const Event& event = *at.answer.event;
  // The response's Vary is read by the rule of its request, whatever its type.
  const Rule* const asked_by = event.request == nullptr ? nullptr : event.request->rule;
  if (asked_by != nullptr && asked_by->ignores("vary")) return;
  if (is_asked_otherwise(at)) return;
  std::vector<std::string> names = members(event.fields, "Vary");
  if (event.is_update) names = members(at.answer.head.fields, "Vary");
  for (const std::string& name : names) {
    if (event.request && same_selecting(event.request->selecting, at.request.selecting, name)) {
      continue;
    }
    // A 304 confirms what was made for an earlier request.
    if (event.is_update &&
        same_selecting(at.answer.content->selecting, at.request.selecting, name)) {
      continue;
    }
    fault(at, "vary", "a variant for another " + name);
  }
}

// A guess of ours is for what no Cookie has made, and bodies that came with one alone are never
// guessed of again (docs/CACHING.md).
bool Oracle::is_guess_barred(const Case& at, const Fields& fields) const {
  const Event& event = *at.answer.event;
  if (find(fields, "Pragma") != nullptr && find(fields, "Cache-Control") == nullptr) return true;
  if (event.request == nullptr) return false;
  const Rule* const rule = at.maker();
  const bool is_allowed =
      rule != nullptr && rule->heuristic_with_cookie
          ? *rule->heuristic_with_cookie
          : world_.heuristic_with_cookie.most_since(event.request->started - 1, 0) != 0;
  if (is_allowed) return false;
  if (event.request->selecting.cookie) return true;
  return event.is_update && at.answer.content->sent_without_cookie == 0;
}

// RFC 9111 4.2.1 and 4.2.2, in seconds: at most so long. Zero: it was never fresh.
double Oracle::lifetime_by_origin(const Case& at, const Directives& merged) const {
  const Event& event = *at.answer.event;
  const Content& content = *at.answer.content;
  if (merged.s_maxage) return static_cast<double>(*merged.s_maxage);
  if (merged.max_age) return static_cast<double>(*merged.max_age);
  const Fields& fields = event.is_update ? at.answer.head.fields : event.fields;
  const Rule* const rule = at.request.rule;
  // As author.cc writes it, and a second for its rounding.
  const double in_future = 2 + 1 + world_.clock_error;
  if (const Field* const expires = find(fields, "Expires")) {
    const bool is_past =
        expires->value.size() <= 2 || expires->value.ends_with("1970 00:00:00 GMT");
    return is_past ? 0 : in_future;
  }
  if (event.is_update && rule != nullptr && rule->takes("Expires")) return in_future;
  if (content.last_modified == 0 || is_guess_barred(at, fields)) return 0;
  // A tenth of what it has been unchanged, in whole seconds.
  const double guess = std::floor(
      0.1 * (static_cast<double>(wall_seconds() - content.last_modified) + 1 + world_.clock_error));
  return guess > static_cast<double>(event.age) ? guess : 0;
}

// Stale by `beyond` seconds: does somebody who may allow that? A response that was never fresh is
// validated before every use, unless its origin itself allows more. Neither a request nor a window
// of the configuration or of a rule does, unless a rule has said how long it is fresh.
bool Oracle::is_staleness_allowed(const Case& at, const Directives& merged,
                                  const Staleness& staleness) const {
  const Rule* const rule = at.maker();
  const Directives& asked = at.request.directives;
  const bool once_fresh = staleness.lifetime > 0;
  const auto window = [&](std::optional<std::int64_t> Rule::* of_rule,
                          const std::optional<std::int64_t>& own, const Limit& configured) {
    const bool has_rule = rule != nullptr && rule->*of_rule;
    if (!once_fresh && !says_lifetime(at)) {
      return has_rule ? std::min(own.value_or(0), *(rule->*of_rule)) : own.value_or(0);
    }
    if (has_rule) return *(rule->*of_rule);
    // By the configuration that its request met, or one since.
    const double since = at.answer.event->request ? at.answer.event->request->started - 1 : 0;
    return own ? *own : static_cast<std::int64_t>(configured.most_since(since, 0));
  };
  const auto within = [&](std::int64_t seconds) {
    return seconds > 0 && staleness.beyond < static_cast<double>(seconds) + world_.slack;
  };
  if (once_fresh && asked.max_stale && within(*asked.max_stale)) return true;
  if (within(window(&Rule::swr, merged.swr, world_.stale_while_revalidate))) return true;
  if (!staleness.met_error) return false;
  if (once_fresh && (staleness.met_failure || (asked.sie && within(*asked.sie)))) return true;
  return within(window(&Rule::sie, merged.sie, world_.stale_if_error));
}

// RFC 9111 4.2: fresh, or stale where that is allowed (4.2.4, RFC 5861), and as the request wants
// it (5.2.1). A validation made for another request counts like any other response: what is not
// reusable without validation is for who asked alone (5.2.2.4).
void Oracle::judge_freshness(const Case& at, const Directives& merged) {
  const Event& event = *at.answer.event;
  const Request& request = at.request;
  const bool unasked = merged.no_cache && !at.ignores("no-cache");
  if (unasked) fault(at, "no-cache", "another's response with no-cache (5.2.2.4)");
  const double understated = world_.understated_since(event.decided);
  const double elapsed = std::max(0.0, request.started - event.decided - understated);
  double age = elapsed + static_cast<double>(event.age);
  double lifetime = lifetime_by_origin(at, merged);
  if (apply_lifetime(at, lifetime)) age = elapsed;
  const bool obeys = request.rule == nullptr || !request.rule->ignores("client-no-cache");
  const double since = request.started - world_.slack;
  const double sent = since - world_.way;
  const bool failed = request.url->last_drop >= sent || had_trouble(since) || may_be_wrong(at);
  const bool error = request.url->last_error >= sent || failed;
  if (obeys && request.no_cache && event.decided < since) {
    fault(at, "reload", "an older answer to a request with no-cache (5.2.1.4)");
  }
  // If the origin fails, a stored response may stand in for it (4.3.3).
  if (obeys && request.directives.max_age && !error &&
      age > static_cast<double>(*request.directives.max_age) + world_.slack) {
    fault(at, "request-max-age", "an answer older than the request's max-age (5.2.1.1)");
  }
  if (obeys && request.directives.min_fresh && !error &&
      lifetime - age + world_.slack < static_cast<double>(*request.directives.min_fresh)) {
    fault(at, "min-fresh", "an answer that is not fresh for as long as min-fresh (5.2.1.3)");
  }
  const double slack = lifetime > 0 ? 0.1 : 0;
  const bool soft = event.received < request.stale_before;
  if (age < lifetime + slack && !soft) return;
  world_.count(lifetime > 0 ? "stale" : "stale, and never fresh");
  const bool never =
      merged.must_revalidate || merged.proxy_revalidate || merged.s_maxage || unasked;
  const Staleness staleness{.lifetime = lifetime,
                            .beyond = soft ? 0 : age - lifetime,
                            .met_error = error,
                            .met_failure = failed};
  if (!never && is_staleness_allowed(at, merged, staleness)) return;
  const std::string by = std::to_string(staleness.beyond) + " s, with a lifetime of " +
                         std::to_string(lifetime) + " s (4.2.4)";
  if (lifetime > 0) return fault(at, "stale", "stale by " + by);
  fault(at, "never-fresh", "used without its origin, though it was never fresh: stale by " + by);
}

// RFC 9111 4.2.3 and 5.1. The age is counted in whole seconds, and the response was on its way for
// a while.
void Oracle::judge_age(const Case& at) {
  const Event& event = *at.answer.event;
  const Field* field = find(at.answer.head.fields, "Age");
  const auto said = field == nullptr ? std::optional<std::int64_t>(0) : number(field->value);
  if (!said) {
    fault(at, "age", "no number");
    return;
  }
  const bool joined = event.decided > at.request.started - world_.slack;
  const double understated = world_.understated_since(event.decided);
  const double low = std::floor(std::max(0.0, at.request.started - event.decided - understated)) +
                     static_cast<double>(event.age);
  const double high =
      at.answer.head_at - event.received + static_cast<double>(event.age) + 2 + world_.clock_error;
  const auto age = static_cast<double>(*said);
  // A 304 of ours to a condition on what the origin has just sent tells no age.
  if (field == nullptr && at.answer.status == 304 && (at.direct() || joined)) return;
  if (age < low - (field == nullptr ? 1 : 0)) {
    fault(at, "age", "younger than it is: at least " + std::to_string(low) + " s");
  }
  if (age > high) fault(at, "age", "older than it is: at most " + std::to_string(high) + " s");
}

}  // namespace encore::proxyfuzz
