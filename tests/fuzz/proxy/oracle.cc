#include "tests/fuzz/proxy/oracle.h"

#include <algorithm>
#include <array>

#include "tests/fuzz/proxy/http2_fields.h"
#include "tests/fuzz/proxy/judged_fields.h"
#include "tests/fuzz/proxy/loop.h"

namespace encore::proxyfuzz {

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
  // Interim responses are of no use, and nobody else's business, than to the client that asked.
  if (event == nullptr || event->request.get() != &request) {
    world_.report("interim", "an interim response that was not made for this request", &request,
                  head.start + (field ? "\nX-Interim: " + field->value + "\n" : "\n"));
  }
  world_.count("answer: 1xx");
}

bool Oracle::judge_head(const Request& request, Answer& answer) {
  if (has_lower_names) {
    for (Field& field : answer.head.fields) field.name = usual_name(field.name);
  }
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
  if (answer.event->url != request.url && !shares_digest(at)) {
    std::string what = "an answer for another URL: " + answer.event->url->path + ", made for tag " +
                       std::to_string(answer.event->request ? answer.event->request->tag : 0) +
                       "\n--- what happened to that\n";
    for (const auto& happening : answer.event->url->history) what += happening() + "\n";
    fault(at, "url", what);
    return false;
  }
  answer.content = answer.event->content;
  if (const Field* body = find(fields, "X-Body")) {
    answer.content = world_.content(static_cast<std::uint64_t>(number(body->value).value_or(0)));
    if (answer.content == nullptr || answer.content->url != answer.event->url) {
      fault(at, "url", "content that the origin never made for this URL: " + body->value);
      return false;
    }
  }
  if (request.is_refused || (request.rule != nullptr && request.rule->answers())) {
    fault(at, "denied", "a response of the origin to what is refused, or answered by a rule");
  }
  judge_status(at);
  judge_condition(at);
  judge_fields(at);
  judge_edits(at);
  judge_listener(at);
  judge_cookies(at);
  if (at.direct()) {
    note_gone(at);
  } else {
    judge_reuse(at);
  }
  judge_digest(at);
  judge_age(at);
  set_bounds(at);
  return true;
}

// RFC 9112 9.3.1: the end of a kept connection says nothing of its server, which has seen the
// request once, and would see it again.
bool Oracle::is_not_tried_again(const Case& at, double since) const {
  const Request& request = at.request;
  const bool safe = request.method == "GET" || request.method == "HEAD";
  return safe && request.dropped_kept == 1 && request.asked_origin == 1 && !had_trouble(since) &&
         !may_be_wrong(at) && world_.last_ending < since;
}

// An answer that the proxy made without a response of the origin's.
void Oracle::judge_own(const Case& at) {
  Answer& answer = at.answer;
  answer.own = true;
  const int status = answer.status;
  const Url& url = *at.request.url;
  if (judge_own_by_rule(at)) return;
  for (const Field& field : answer.head.fields) {
    if (at.request.rule != nullptr && at.request.rule->says(field)) continue;
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
  if (status == 502 && is_not_tried_again(at, since)) {
    fault(at, "retry", "a kept connection was closed under it, and it was not sent again");
  }
  if (status == 504 && at.request.directives.only_if_cached) return;
  // A request that is not idempotent, or has a body, is not sent to another server.
  const bool safe = at.request.method == "GET" || at.request.method == "HEAD";
  const bool lost = !safe && (at.request.met_failure || world_.last_failure >= since);
  if ((status == 502 || status == 503 || status == 504) && (failed || lost)) return;
  if (status == 502 && may_be_wrong(at)) return;
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
    if (world_.strips_tags && is_of_tags(field.name)) {
      fault(at, "fields", "a client gets the tags: " + quoted(field));
    }
    if (is_of_proxy(field.name)) continue;
    if (at.request.rule != nullptr && at.request.rule->says(field)) continue;
    if (event.is_foreign && same_name(field.name, "Location")) {
      judge_location(at, field);
      continue;
    }
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
    // RFC 9110 9.3.2: the length that a HEAD's answer had reaches its client.
    const Field* told = find(event.fields, "Content-Length");
    if (told == nullptr && find(fields, "Content-Length") != nullptr) {
      fault(at, "fields", "a HEAD is told a length that the origin has not said");
    }
    if (told != nullptr && std::ranges::find(fields, *told) == fields.end()) {
      fault(at, "fields", "this line of the origin is lost: " + quoted(*told));
    }
  }
  if (selective) return;
  for (const Field& field : event.fields) {
    if (is_of_proxy(field.name) || is_of_body(field.name)) continue;
    if (world_.strips_tags && is_of_tags(field.name)) continue;
    if (at.request.rule != nullptr && at.request.rule->takes(field.name)) continue;
    if (same_name(field.name, "Set-Cookie")) {
      if (!at.direct() || event.is_update || event.is_foreign) continue;
    }
    // That of another host is made whole.
    if (same_name(field.name, "Location") && event.is_foreign) continue;
    if (same_name(field.name, "X-Foo") && (!at.direct() || event.is_update)) continue;
    if (same_name(field.name, "Content-Type") && at.answer.status == 206) continue;
    if (std::ranges::find(fields, field) == fields.end()) {
      fault(at, "fields", "this line of the origin is lost: " + quoted(field));
    }
  }
}

// The Location of another host is made whole.
void Oracle::judge_location(const Case& at, const Field& field) {
  const Field* const said = find(at.answer.event->fields, "Location");
  if (said == nullptr) return fault(at, "fields", "the origin never sent a Location");
  const std::string front = said->value.starts_with('/') ? "http://" + world_.other_host : "";
  if (field.value != front + said->value) {
    fault(at, "fields", "a Location that leads elsewhere: " + field.value);
  }
}

// Set-Cookie reaches who caused it; another only where the origin marked the response for shared
// caches and the request that it was made for carried no Cookie ([cache] set_cookie = "strip").
// Never that of a 304 or of a HEAD, whose fields go into the stored response (RFC 9111 3.2).
void Oracle::judge_cookies(const Case& at) {
  for (const Field& field : at.answer.head.fields) {
    if (!same_name(field.name, "Set-Cookie")) continue;
    if (at.answer.event->is_foreign) fault(at, "set-cookie", "another host's " + quoted(field));
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

bool Oracle::may_be_cut() {
  ++lost_;
  if (lost_ > world_.readers_cut && world_.ask_readers_cut) {
    world_.readers_cut = world_.ask_readers_cut();
  }
  return lost_ <= world_.readers_cut;
}

void Oracle::judge_end(const Request& request, Answer& answer, Ending ending) {
  const Case at{request, answer};
  count_outcome(at);
  if (answer.own && ending == Ending::kComplete) judge_own_end(at);
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
  if (!complete && !answer.event->cut && !may_be_wrong(at) && url.last_cut < since - world_.way &&
      !had_trouble(since) && !may_be_cut()) {
    fault(at, "lost", "the answer was not brought to its end");
  }
  if (complete && answer.multipart) judge_parts(at);
  if (complete && has_body && answer.status == 200 && is_wrong(at)) {
    fault(at, "digest", "given as complete, though it is not what its digest says");
  }
  for (const Field& field : answer.body.trailers()) {
    if (!answer.content->lines.contains(field)) {
      fault(at, "trailers", "the origin never sent this trailer: " + quoted(field));
    }
  }
  if (complete && has_body) judge_trailers(at);
  if (complete && !answer.body.trailers().empty()) world_.count("answer: trailers");
}

void Oracle::count_outcome(const Case& at) {
  world_.count("answer: status " + std::to_string(at.answer.status));
  const std::string_view status = our_status(at.answer.head.fields);
  if (status.find("; hit") != std::string::npos) {
    world_.count("outcome: hit");
    if (!at.answer.own && !at.direct()) {
      world_.note_hit(at.request, at.answer.event->serial, at.answer.head_at);
      judge_limits(at);
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
