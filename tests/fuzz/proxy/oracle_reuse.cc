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

// RFC 9110 6.5: what has a chunked body's trailers is asked for with them again. Of one that was
// ever sent in another way the stored one may be that.
void Oracle::judge_trailers(const Case& at) {
  const Content& content = *at.answer.content;
  // Where a rule removes or sets fields there are none.
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
  if (cause.authorized && !merged.is_public && !merged.must_revalidate && !merged.s_maxage &&
      !ignored("authorization")) {
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
  if (!event.is_update && find(event.fields, "Set-Cookie") != nullptr && cause.selecting.cookie &&
      !ignored("set-cookie")) {
    // [cache] set_cookie = "strip": a Set-Cookie in answer to a Cookie is a session's.
    fault(at, "set-cookie", "a response with Set-Cookie to a request with Cookie was kept");
  }
}

// RFC 9111 4.1.
void Oracle::judge_selection(const Case& at) {
  const Event& event = *at.answer.event;
  if (at.ignores("vary")) return;
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

// RFC 9111 4.2: fresh, or stale where that is allowed (4.2.4, RFC 5861), and as the request wants
// it (5.2.1). A validation made for another request counts like any other response: what is not
// reusable without validation is for who asked alone (5.2.2.4).
void Oracle::judge_freshness(const Case& at, const Directives& merged) {
  const Event& event = *at.answer.event;
  const Request& request = at.request;
  const bool unasked = merged.no_cache && !at.ignores("no-cache");
  if (unasked) fault(at, "no-cache", "another's response with no-cache (5.2.2.4)");
  const double elapsed = std::max(0.0, request.started - event.decided);
  double age = elapsed + static_cast<double>(event.age);
  double lifetime = 0;
  const Fields& fields = event.is_update ? at.answer.head.fields : event.fields;
  if (merged.s_maxage) {
    lifetime = static_cast<double>(*merged.s_maxage);
  } else if (merged.max_age) {
    lifetime = static_cast<double>(*merged.max_age);
  } else if (find(fields, "Expires") != nullptr) {
    // What author.cc writes, and a second for its rounding.
    lifetime = 2 + 1 + world_.clock_error;
  } else if (at.answer.content->last_modified != 0) {
    // 4.2.2: a tenth of what it has been unchanged.
    lifetime = 0.1 * (static_cast<double>(wall_seconds() - at.answer.content->last_modified) + 1 +
                      world_.clock_error);
  }
  if (apply_lifetime(at, lifetime)) age = elapsed;
  const bool obeys = request.rule == nullptr || !request.rule->ignores("client-no-cache");
  const double since = request.started - world_.slack;
  const double sent = since - world_.way;
  const bool failed = request.url->last_drop >= sent || had_trouble(since);
  const bool error = request.url->last_error >= sent || failed;
  if (obeys && request.no_cache && event.decided < since) {
    fault(at, "reload", "an older answer to a request with no-cache (5.2.1.4)");
  }
  // Where the origin fails, what is stored may stand in for it (4.3.3).
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
  world_.count("stale");
  const bool never =
      merged.must_revalidate || merged.proxy_revalidate || merged.s_maxage || unasked;
  const double beyond = soft ? 0 : age - lifetime;
  const auto within = [&](const std::optional<std::int64_t>& window) {
    return window && beyond < static_cast<double>(*window) + world_.slack;
  };
  const bool once_fresh = lifetime > 0 || merged.sie.value_or(0) > 0;
  const auto by_rule = [&](std::optional<std::int64_t> Rule::* window,
                           const std::optional<std::int64_t>& said) {
    const Rule* const rule = at.maker();
    return rule != nullptr && rule->*window ? rule->*window : said;
  };
  const auto swr = by_rule(&Rule::swr, merged.swr);
  if (!never && (within(request.directives.max_stale) || within(swr))) return;
  if (!never && error && within(by_rule(&Rule::sie, merged.sie))) return;
  if (!never && failed && once_fresh) return;
  fault(at, "stale",
        "stale by " + std::to_string(beyond) + " s, with a lifetime of " +
            std::to_string(lifetime) + " s (4.2.4)");
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
  const double low = std::floor(std::max(0.0, at.request.started - event.decided)) +
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
