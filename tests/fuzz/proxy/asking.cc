#include "tests/fuzz/proxy/asking.h"

#include <algorithm>
#include <array>
#include <cstdio>

namespace encore::proxyfuzz {
namespace {

std::string describe(const Request& request) {
  std::array<char, 160> text;
  const int size = std::snprintf(
      text.data(), text.size(), "%.3f client u%d: tag %llu %s%s ended %.3f", request.started,
      request.user, static_cast<unsigned long long>(request.tag), request.method.c_str(),
      request.stream == 0 ? "" : " over HTTP/2", request.ended);
  std::string out(text.data(), static_cast<std::size_t>(size));
  if (!request.query.empty()) out += " ?" + request.query;
  if (request.rule != nullptr) out += " by " + request.rule->name;
  for (const Field& field : request.fields) {
    if (!same_name(field.name, "Traceparent") && !same_name(field.name, "TE") &&
        field.name != "Connection") {
      out += "; " + field.name + ": " + field.value;
    }
  }
  return out + " -> " + (request.answer.empty() ? "(no answer yet)" : request.answer);
}

// Objects that RFC 9111 4.4 invalidates are others from now on.
void note_write(const World& world, const Url& url, const Event& event) {
  const std::string named = "/r/" + std::to_string(event.serial);
  for (const std::string_view path : {std::string_view(url.path), std::string_view(named)}) {
    world.note_change({.url = url, .path = path, .since = event.decided, .certain = true});
  }
}

}  // namespace

std::string summary(const Answer& answer, Ending ending) {
  std::string out = std::to_string(answer.status);
  if (const Field* head = find(answer.head.fields, "X-Head")) out += " #" + head->value;
  for (const Field& field : answer.head.fields) {
    if (same_name(field.name, "Cache-Status")) out += " (" + field.value + ")";
  }
  out += " " + std::to_string(answer.content_bytes) + " bytes";
  if (ending == Ending::kClosed) out += ", closed";
  if (ending == Ending::kReset) out += ", reset";
  if (ending == Ending::kLeft) out += ", left";
  return out;
}

void note_begun(Ring& ring, const std::shared_ptr<Request>& request, double at,
                const Accounts::Sent& sent) {
  --ring.requests_left;
  ++request->url->clients;
  request->started = at;
  const Url::Bounds& bounds = request->url->bounds[request->object];
  const Url::Bounds& all = request->url->all_bounds;
  request->not_before = std::max(bounds.not_before, all.not_before);
  request->stale_before = std::max(bounds.stale_before, all.stale_before);
  if (ring.accounts != nullptr) ring.accounts->note_begun(*request, sent);
  ring.world.remember(*request->url, [request] { return describe(*request); });
  ring.world.count("request: " + request->method);
}

void note_answered(Ring& ring, const std::shared_ptr<Request>& request, Answer& answer,
                   std::uint64_t bytes, std::uint64_t cuts) {
  World& world = ring.world;
  request->ended = now();
  // The proxy may have the end of a part, or of a bare head, later.
  if (answer.status == 200 && request->method == "GET") request->whole = request->ended;
  request->answer = summary(answer, Ending::kComplete);
  if (request->own_path.empty() && request->started > world.last_ending) {
    world.answered.tables.insert(request->rules_before);
    if (request->rule != nullptr) ++world.answered.by_rule[request->rule->name];
  }
  if (ring.accounts != nullptr) {
    ring.accounts->note_whole(
        *request,
        {.status = answer.status, .bytes = bytes, .content = answer.content_bytes, .cuts = cuts});
  }
  if (request->own_path.empty()) {
    ring.oracle.judge_end(*request, answer, Ending::kComplete);
  } else if (request->method == "CONNECT") {
    ring.tunnels->judge_refusal(*request, answer);
  } else {
    ring.published->judge(*request, answer);
  }
  --request->url->clients;
  if (answer.event == nullptr || request->method == "GET" || request->method == "HEAD" ||
      answer.status >= 400) {
    return;
  }
  world.invalidate(*request->url, request->query, answer.event->received, false);
  // A query is a part of the key.
  if (world.on_written && request->query.empty()) {
    world.on_written(*request->url, answer.event->received);
  }
  note_write(world, *request->url, *answer.event);
}

}  // namespace encore::proxyfuzz
