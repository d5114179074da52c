#include "tests/fuzz/proxy/oracle.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>

#include "tests/fuzz/proxy/loop.h"

namespace encore::proxyfuzz {
namespace {

// Fields that belong to one connection, or that every proxy writes anew.
bool is_connections(std::string_view name) {
  static constexpr std::array<std::string_view, 6> kNames = {
      "Connection", "Keep-Alive", "Transfer-Encoding", "X-Hop", "Trailer", "Proxy-Connection"};
  return std::ranges::any_of(kNames,
                             [&](std::string_view other) { return same_name(name, other); });
}

bool is_of_proxy(std::string_view name) {
  static constexpr std::array<std::string_view, 6> kNames = {
      "Via", "Cache-Status", "Age", "Date", "Content-Length", "Content-Range"};
  return is_connections(name) || std::ranges::any_of(kNames, [&](std::string_view other) {
           return same_name(name, other);
         });
}

// RFC 9111 3.2: a 304 does not change what describes the body as it was stored.
bool is_of_body(std::string_view name) {
  static constexpr std::array<std::string_view, 5> kNames = {
      "Content-Encoding", "ETag", "Content-Length", "Content-Range", "Trailer"};
  return std::ranges::any_of(kNames,
                             [&](std::string_view other) { return same_name(name, other); });
}

std::string quoted(const Field& field) { return "\"" + field.name + ": " + field.value + "\""; }

bool is_listed(const std::vector<std::string>& names, std::string_view name) {
  return std::ranges::any_of(names, [&](const std::string& one) { return same_name(one, name); });
}

// As they were sent: what means the same may still be another variant.
std::string_view encodings_of(const Request& request) {
  const Field* const field = find(request.fields, "Accept-Encoding");
  return field == nullptr ? std::string_view() : std::string_view(field->value);
}

std::string_view our_status(const Fields& fields) {
  for (const Field& field : fields) {
    if (!same_name(field.name, "Cache-Status")) continue;
    const std::size_t at = field.value.find("encore");
    if (at != std::string::npos) return std::string_view(field.value).substr(at + 6);
  }
  return {};
}

}  // namespace

struct Oracle::Case {
  const Request& request;
  Answer& answer;
  // Whether the response was made for this very request.
  bool direct() const { return answer.event->request.get() == &request; }
};

void Oracle::fault(const Case& at, std::string_view kind, const std::string& what) {
  std::string text = at.answer.raw;
  text += "(" + std::to_string(at.answer.content_bytes) + " bytes of content so far)\n";
  text += "--- with it on the connection:" + at.request.batch + "\n";
  world_.report(kind, what, &at.request, text);
}

void Oracle::judge_interim(const Request& request, const Head& head) {
  const Field* field = find(head.fields, "X-Interim");
  const Event* event =
      field == nullptr ? nullptr
                       : world_.event(static_cast<std::uint64_t>(number(field->value).value_or(0)));
  // What comes before a final response is of no use, and nobody else's business, than who asked.
  if (event == nullptr || event->request.get() != &request) {
    world_.report("interim", "an interim response that was not made for this request", &request,
                  head.start + (field ? "\nX-Interim: " + field->value + "\n" : "\n"));
  }
  world_.count("answer: 1xx");
}

bool Oracle::judge_head(const Request& request, Answer& answer) {
  const Fields& fields = answer.head.fields;
  const Case at{request, answer};
  answer.own = !request.own_path.empty();
  if (answer.own) return true;
  for (const std::string_view name : {"X-Head", "X-Body", "Content-Location", "Content-Length",
                                      "Date", "ETag", "Cache-Control", "Age"}) {
    if (count(fields, name) > 1) fault(at, "fields", "two lines " + std::string(name));
  }
  const Field* head = find(fields, "X-Head");
  const Field* location = find(fields, "Content-Location");
  if (head == nullptr && location == nullptr) {
    judge_own(at);
    return true;
  }
  const std::string serial = head != nullptr ? head->value : location->value.substr(3);
  answer.event = world_.event(static_cast<std::uint64_t>(number(serial).value_or(0)));
  if (answer.event == nullptr) {
    fault(at, "fields", "a response that the origin never made: " + serial);
    return false;
  }
  // A POST's body made for a POST; a GET's for a GET; all of the URL that was asked for.
  if (answer.event->url != request.url) {
    fault(at, "url", "an answer for another URL: " + answer.event->url->path);
    return false;
  }
  answer.content = answer.event->content;
  if (const Field* body = find(fields, "X-Body")) {
    answer.content = world_.content(static_cast<std::uint64_t>(number(body->value).value_or(0)));
    if (answer.content == nullptr || answer.content->url != request.url) {
      fault(at, "url", "content that the origin never made for this URL: " + body->value);
      return false;
    }
  }
  judge_status(at);
  judge_fields(at);
  judge_cookies(at);
  if (at.direct()) {
    note_gone(at);
  } else {
    judge_reuse(at);
  }
  judge_age(at);
  set_bounds(at);
  return true;
}

// An answer that the proxy made without a response of the origin's.
void Oracle::judge_own(const Case& at) {
  Answer& answer = at.answer;
  answer.own = true;
  const int status = answer.status;
  const Url& url = *at.request.url;
  for (const Field& field : answer.head.fields) {
    if (field.name.starts_with("X-") || same_name(field.name, "Set-Cookie")) {
      fault(at, "fields", "an answer of the proxy's own with " + quoted(field));
    }
  }
  if (status == 416 || status == 304) return;  // 416 names validators alone
  // Each has a cause that we know: the origin failed while somebody waited for it, or it was asked
  // for what is not there.
  const double since = at.request.started - world_.slack;
  const double sent = since - world_.way;
  const bool failed = url.last_drop >= sent || url.last_cut >= sent || had_trouble(since);
  if (status == 504 && at.request.directives.only_if_cached) return;
  if ((status == 502 || status == 503 || status == 504) && failed) return;
  fault(at, "error", "an error of the proxy's own without a cause: " + std::to_string(status));
}

void Oracle::judge_status(const Case& at) {
  const Request& request = at.request;
  const Event& event = *at.answer.event;
  const int status = at.answer.status;
  const bool of_update = event.is_update;
  const int base = event.status;
  if (status == base) {
    if (status == 206 && request.range.empty()) fault(at, "status", "a 206 that nobody asked for");
    if (status == 416 && request.range.empty()) fault(at, "status", "a 416 that nobody asked for");
    if (status == 304 && !request.conditional) fault(at, "status", "a 304 that nobody asked for");
    return;
  }
  const bool good = base == 200 || base == 206 || base == 304;
  if (status == 304 && request.conditional && good) return;
  if (status == 206 && !request.range.empty() && good) return;
  if (status == 416 && !request.range.empty() && good) return;
  if (status == 200 && (base == 304 || base == 206)) return;
  if (of_update && good) return;  // it confirmed a stored error, say
  fault(at, "status", "a " + std::to_string(status) + " out of a " + std::to_string(base));
}

// Every line of the answer was sent by the origin with this content, the lines of the newest head
// come first (RFC 9111 3.2), and none is lost.
void Oracle::judge_fields(const Case& at) {
  const Event& event = *at.answer.event;
  const Fields& fields = at.answer.head.fields;
  const bool selective = at.answer.status == 304 || at.answer.status == 416;
  // RFC 9111 4.3.5: where a HEAD has no validator, the length alone says that it is the same.
  const bool by_length = event.method == "HEAD" && !event.content->has_validator() &&
                         event.content->bytes == at.answer.content->bytes;
  if (at.answer.content != event.content && !by_length) {
    fault(at, "fields", "the head of one content with the body of another");
  }
  const auto& by_lengths = at.request.url->lines_by_length;
  const auto updates = by_lengths.find(at.answer.content->bytes);
  for (const Field& field : fields) {
    if (is_of_proxy(field.name)) continue;
    const bool in_event = std::ranges::find(event.fields, field) != event.fields.end();
    if (in_event) continue;
    const bool replaced = count(event.fields, field.name) != 0 && !is_of_body(field.name) &&
                          !same_name(field.name, "Set-Cookie");
    const bool multipart = same_name(field.name, "Content-Type") && at.answer.status == 206;
    // Parts are joined as a 304 updates (3.4), so that lines of an earlier part stay.
    const bool adds = event.is_update || event.status == 206;
    const bool known =
        adds && (at.answer.content->lines.contains(field) || event.content->lines.contains(field) ||
                 (updates != by_lengths.end() && updates->second.contains(field)));
    if (multipart) continue;
    if (!known) fault(at, "fields", "the origin never sent this line: " + quoted(field));
    if (known && replaced)
      fault(at, "fields", "an old line in place of a new one: " + quoted(field));
  }
  if (at.request.method == "HEAD" && at.direct() && at.answer.status == 200 &&
      event.status == 200) {
    // RFC 9110 9.3.2: what a HEAD was told of the length reaches who asked.
    const Field* told = find(event.fields, "Content-Length");
    if (told != nullptr && std::ranges::find(fields, *told) == fields.end()) {
      fault(at, "fields", "this line of the origin is lost: " + quoted(*told));
    }
  }
  if (selective) return;
  for (const Field& field : event.fields) {
    if (is_of_proxy(field.name) || is_of_body(field.name)) continue;
    if (same_name(field.name, "Set-Cookie") && (!at.direct() || event.is_update)) continue;
    if (same_name(field.name, "X-Foo") && (!at.direct() || event.is_update)) continue;
    if (same_name(field.name, "Content-Type") && at.answer.status == 206) continue;
    if (std::ranges::find(fields, field) == fields.end()) {
      fault(at, "fields", "this line of the origin is lost: " + quoted(field));
    }
  }
}

// Set-Cookie reaches who caused it; another only where the origin marked the response for shared
// caches and the request that it was made for carried no Cookie ([cache] set_cookie = "strip").
// Never that of a 304 or of a HEAD, whose fields go into what is stored (RFC 9111 3.2).
void Oracle::judge_cookies(const Case& at) {
  for (const Field& field : at.answer.head.fields) {
    if (!same_name(field.name, "Set-Cookie")) continue;
    const std::size_t equals = field.value.find('=');
    const std::string serial = field.value.substr(equals + 1, field.value.find('.') - equals - 1);
    const Event* source = world_.event(static_cast<std::uint64_t>(number(serial).value_or(0)));
    if (source == nullptr || source->request.get() == &at.request) continue;
    const bool marked = source->directives.is_public || source->directives.s_maxage;
    const bool anonymous = source->request && !source->request->selecting.cookie;
    if (!marked || !anonymous || source->is_update) {
      fault(at, "set-cookie", "another's " + quoted(field));
    }
  }
}

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
  judge_storing(at, merged);
  judge_selection(at);
  judge_freshness(at, merged);
  if (event.received < at.request.not_before) {
    // RFC 9111 4.4, and what a purge promises.
    fault(at, "invalidated", "what was asked for before it was invalidated");
  }
  const Content& content = *at.answer.content;
  if (content.gone && event.request && at.request.started > content.gone_since &&
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
  if (!at.request.takes_trailers || at.request.http10 || at.request.method != "GET") return;
  if (at.answer.status != 200 || !at.answer.body.trailers().empty()) return;
  if (content.sent == 0 || content.sent_without_trailers != 0) return;
  fault(at, "trailers", "the trailers of the origin are lost");
}

// RFC 9111 3: might it have been stored, or be shared as if it were?
void Oracle::judge_storing(const Case& at, const Directives& merged) {
  const Event& event = *at.answer.event;
  if (merged.no_store) fault(at, "no-store", "another's response with no-store (5.2.2.5)");
  if (merged.is_private) fault(at, "private", "another's response with private (5.2.2.7)");
  if (!event.request) return;
  const Request& cause = *event.request;
  if (cause.directives.no_store && !event.is_update) {
    fault(at, "no-store", "the response to a request with no-store (5.2.1.5)");
  }
  if (cause.authorized && !merged.is_public && !merged.must_revalidate && !merged.s_maxage) {
    fault(at, "authorization", "the response to a request with Authorization (3.5)");
  }
  for (const Field& field : at.answer.head.fields) {
    // 5.2.2.4 and 5.2.2.7: these fields are for who asked.
    if (is_listed(merged.private_fields, field.name) ||
        is_listed(merged.no_cache_fields, field.name)) {
      fault(at, "qualified", "a field that Cache-Control keeps from others: " + quoted(field));
    }
  }
  if (!event.is_update && find(event.fields, "Set-Cookie") != nullptr && cause.selecting.cookie) {
    // [cache] set_cookie = "strip": a Set-Cookie in answer to a Cookie is a session's.
    fault(at, "set-cookie", "a response with Set-Cookie to a request with Cookie was kept");
  }
}

// RFC 9111 4.1.
void Oracle::judge_selection(const Case& at) {
  const Event& event = *at.answer.event;
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
  if (merged.no_cache) fault(at, "no-cache", "another's response with no-cache (5.2.2.4)");
  const double elapsed = std::max(0.0, request.started - event.decided);
  const double age = elapsed + static_cast<double>(event.age);
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
  const double since = request.started - world_.slack;
  const double sent = since - world_.way;
  const bool failed = request.url->last_drop >= sent || had_trouble(since);
  const bool error = request.url->last_error >= sent || failed;
  if (request.no_cache && event.decided < since) {
    fault(at, "reload", "an older answer to a request with no-cache (5.2.1.4)");
  }
  // Where the origin fails, what is stored may stand in for it (4.3.3).
  if (request.directives.max_age && !error &&
      age > static_cast<double>(*request.directives.max_age) + world_.slack) {
    fault(at, "request-max-age", "an answer older than the request's max-age (5.2.1.1)");
  }
  if (request.directives.min_fresh && !error &&
      lifetime - age + world_.slack < static_cast<double>(*request.directives.min_fresh)) {
    fault(at, "min-fresh", "an answer that is not fresh for as long as min-fresh (5.2.1.3)");
  }
  const double slack = lifetime > 0 ? 0.1 : 0;
  const bool soft = event.received < request.stale_before;
  if (age < lifetime + slack && !soft) return;
  world_.count("stale");
  const bool never =
      merged.must_revalidate || merged.proxy_revalidate || merged.s_maxage || merged.no_cache;
  const double beyond = soft ? 0 : age - lifetime;
  const auto within = [&](const std::optional<std::int64_t>& window) {
    return window && beyond < static_cast<double>(*window) + world_.slack;
  };
  const bool once_fresh = lifetime > 0 || merged.sie.value_or(0) > 0;
  if (!never && (within(request.directives.max_stale) || within(merged.swr))) return;
  if (!never && error && within(merged.sie)) return;
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

// Which bytes must follow.
void Oracle::set_bounds(const Case& at) {
  Answer& answer = at.answer;
  if (answer.body.kind() == BodyReader::Kind::kNone) return;
  answer.expected = answer.content->bytes;
  if (answer.status == 416)
    answer.expected = answer.event->status == 416 ? 0 : answer.content_bytes;
  if (answer.status != 206) return;
  const Field* range = find(answer.head.fields, "Content-Range");
  if (range == nullptr) {
    answer.multipart = true;
    return;
  }
  unsigned long long first = 0;
  unsigned long long last = 0;
  unsigned long long size = 0;
  if (std::sscanf(range->value.c_str(), "bytes %llu-%llu/%llu", &first, &last, &size) != 3 ||
      first > last || last >= size || size != answer.content->bytes) {
    fault(at, "range", "a wrong Content-Range");
    return;
  }
  // RFC 9110 13.1.5: a part only of what the client has the rest of.
  if (!at.request.if_range.empty() && at.request.if_range != answer.content->etag) {
    fault(at, "range", "a part in spite of If-Range");
  }
  answer.offset = first;
  answer.expected = last - first + 1;
  const std::string& asked = at.request.range;
  unsigned long long wanted = 0;
  unsigned long long wanted_last = 0;
  if (asked.find(',') == std::string::npos &&
      std::sscanf(asked.c_str(), "bytes=%llu-%llu", &wanted, &wanted_last) == 2 &&
      last != std::min<unsigned long long>(wanted_last, size - 1)) {
    fault(at, "range", "a part that ends elsewhere than was asked for");
  }
  if (!asked.starts_with("bytes=-") && asked.find(',') == std::string::npos &&
      std::sscanf(asked.c_str(), "bytes=%llu-", &wanted) == 1 && wanted != first) {
    fault(at, "range", "a part that was not asked for");
  }
}

bool Oracle::judge_content(const Request& request, Answer& answer, std::string_view bytes) {
  const Case at{request, answer};
  if (answer.own || answer.multipart) {
    answer.kept += bytes;
    answer.content_bytes += bytes.size();
    return true;
  }
  const std::size_t difference =
      find_difference(answer.content->name, answer.offset + answer.content_bytes, bytes);
  if (difference != std::string_view::npos) {
    const std::size_t from = difference > 64 ? difference - 64 : 0;
    fault(at, "bytes",
          "byte " + std::to_string(answer.offset + answer.content_bytes + difference) +
              " of content " + std::to_string(answer.content->name.number) + " is another's:\n" +
              std::string(bytes.substr(from, 300)));
    return false;
  }
  answer.content_bytes += bytes.size();
  if (answer.content_bytes > answer.expected) {
    fault(at, "bytes", "more bytes than there are");
    return false;
  }
  return true;
}

void Oracle::judge_end(const Request& request, Answer& answer, Ending ending) {
  const Case at{request, answer};
  count_outcome(at);
  if (answer.own || answer.content == nullptr) return;
  const bool until_close = answer.body.kind() == BodyReader::Kind::kClose;
  const bool complete = ending == Ending::kComplete || (until_close && ending == Ending::kClosed);
  const bool has_body = answer.body.kind() != BodyReader::Kind::kNone;
  if (complete && has_body && !answer.multipart && answer.content_bytes != answer.expected) {
    // RFC 9112 8: a message whose end did not come must not look whole.
    fault(at, "cut", "given as complete, but " + std::to_string(answer.expected) + " bytes long");
  }
  const Url& url = *request.url;
  const double since = request.started - world_.slack;
  if (!complete && !answer.event->cut && url.last_cut < since - world_.way && !had_trouble(since) &&
      ++lost_ > world_.readers_cut) {
    fault(at, "lost", "the answer was not brought to its end");
  }
  if (complete && answer.multipart) judge_parts(at);
  for (const Field& field : answer.body.trailers()) {
    if (!answer.content->lines.contains(field)) {
      fault(at, "trailers", "the origin never sent this trailer: " + quoted(field));
    }
  }
  if (complete && has_body) judge_trailers(at);
  if (complete && !answer.body.trailers().empty()) world_.count("answer: trailers");
}

// RFC 9110 14.6.
void Oracle::judge_parts(const Case& at) {
  const Field* type = find(at.answer.head.fields, "Content-Type");
  const std::size_t equals = type == nullptr ? std::string::npos : type->value.find("boundary=");
  if (equals == std::string::npos) {
    fault(at, "range", "a 206 without Content-Range and boundary");
    return;
  }
  const std::string delimiter = "--" + type->value.substr(equals + 9);
  std::string_view rest = at.answer.kept;
  while (true) {
    const std::size_t start = rest.find(delimiter);
    if (start == std::string_view::npos) {
      fault(at, "range", "a multipart body without an end");
      return;
    }
    rest.remove_prefix(start + delimiter.size());
    if (rest.starts_with("--")) return;
    Head head;
    std::string error;
    const std::size_t size = read_head(rest.substr(0, rest.find(delimiter)), head, error);
    const Field* range = find(head.fields, "Content-Range");
    unsigned long long first = 0;
    unsigned long long last = 0;
    if (size == 0 || range == nullptr ||
        std::sscanf(range->value.c_str(), "bytes %llu-%llu/", &first, &last) != 2 || last < first ||
        last >= at.answer.content->bytes || rest.size() < size + last - first + 1) {
      fault(at, "range", "a malformed part: " + std::string(rest.substr(0, 200)));
      return;
    }
    if (find_difference(at.answer.content->name, first,
                        rest.substr(size, static_cast<std::size_t>(last - first + 1))) !=
        std::string_view::npos) {
      fault(at, "bytes", "a part with other bytes: " + range->value);
      return;
    }
    rest.remove_prefix(size + static_cast<std::size_t>(last - first + 1));
    world_.count("answer: part of a multipart");
  }
}

void Oracle::count_outcome(const Case& at) {
  world_.count("answer: status " + std::to_string(at.answer.status));
  const std::string_view status = our_status(at.answer.head.fields);
  if (status.find("; hit") != std::string::npos) {
    world_.count("outcome: hit");
    if (!at.answer.own && !at.direct()) {
      world_.note_hit(at.request, at.answer.event->serial, at.answer.head_at);
      // A part of what is too large may be stored.
      if (at.answer.status == 200 && at.request.method == "GET" &&
          at.answer.content->bytes > world_.object_max_since(at.answer.content->made)) {
        fault(at, "max-object", "a hit that was larger than what may be stored");
      }
    }
    // RFC 9211 2.2: what was not forwarded has no reason for it.
    if (status.find("; fwd=") != std::string::npos) fault(at, "cache-status", "a hit with fwd");
  }
  if (status.find("; collapsed") != std::string::npos) world_.count("outcome: collapsed");
  if (status.find("; stored") != std::string::npos &&
      status.find("; stored=?0") == std::string::npos) {
    world_.count("outcome: stored");
  }
  for (const std::string_view name : {"; fwd=", "; detail="}) {
    const std::size_t begin = status.find(name);
    if (begin == std::string::npos) continue;
    std::string outcome = "outcome:";
    outcome += status.substr(begin + 1, status.find_first_of(",;", begin + 1) - begin - 1);
    world_.count(outcome);
  }
}

}  // namespace encore::proxyfuzz
