// Answers of the origin.
#include <algorithm>
#include <array>

#include "tests/fuzz/proxy/origin.h"

namespace encore::proxyfuzz {
namespace {

constexpr std::uint32_t kErrorBytesMax = 100;
// More than one read of a body takes, and all of it within what a socket holds.
constexpr std::uint32_t kLargeMin = 17000;
constexpr std::uint32_t kLargeMax = 24000;
constexpr double kLasting = 50;  // percent
constexpr double kLargeSurplus = 60;
constexpr double kLongPauses = 8;

std::string personal(int user) { return user < 0 ? "nobody" : "u" + std::to_string(user); }

std::string head_of(int status, const Fields& fields) {
  std::string out;
  out.reserve(1024);
  out += "HTTP/1.1 " + std::to_string(status) + " Said\r\n";
  for (const Field& field : fields) append_line(field, out);
  out += "\r\n";
  return out;
}

// True if the origin, or a rule in its place, may say for how long the response is fresh.
bool may_state_lifetime(const Event& event) {
  const Rule* const rule = event.rule;
  if (rule != nullptr && (rule->fresh || rule->fresh_min)) return true;
  return find(event.fields, "Cache-Control") != nullptr || find(event.fields, "Expires") != nullptr;
}

std::string random_text(Random& random, std::size_t most) {
  std::string out;
  for (std::size_t left = random.below(most + 1); left > 0; --left) {
    out += static_cast<char>('a' + random.below(26));
  }
  return out;
}

// "bytes=a-b", "bytes=a-", "bytes=-n"; nothing else is understood.
bool read_range(std::string_view text, std::uint32_t size, std::uint32_t& begin,
                std::uint32_t& end) {
  if (!text.starts_with("bytes=") || text.find(',') != std::string_view::npos) return false;
  text.remove_prefix(6);
  const std::size_t dash = text.find('-');
  if (dash == std::string_view::npos) return false;
  const auto first = number(text.substr(0, dash));
  const auto last = number(text.substr(dash + 1));
  if (!first && !last) return false;
  if (!first) {
    begin = size - std::min(static_cast<std::uint32_t>(*last), size);
    end = size;
  } else {
    begin = static_cast<std::uint32_t>(*first);
    end = last ? std::min(static_cast<std::uint32_t>(*last) + 1, size) : size;
  }
  return true;
}

std::string opaque(std::string_view etag) {
  return std::string(etag.starts_with("W/") ? etag.substr(2) : etag);
}

}  // namespace

int user_of(const Fields& request) {
  if (const Field* field = find(request, "Authorization")) {
    return static_cast<int>(number(field->value.substr(field->value.rfind('-') + 1)).value_or(-1));
  }
  const Field* cookie = find(request, "Cookie");
  const std::size_t at = cookie == nullptr ? std::string::npos : cookie->value.find("uid=");
  if (at == std::string::npos) return -1;
  const std::string_view value = std::string_view(cookie->value).substr(at + 4);
  return static_cast<int>(number(value.substr(0, value.find(';'))).value_or(-1));
}

Selecting selecting_of(const Fields& request) {
  Selecting out;
  if (const Field* field = find(request, "Cookie")) out.cookie = sorted_cookie(field->value);
  if (const Field* field = find(request, "X-Lang")) out.lang = field->value;
  for (const std::string_view coding : {"br", "gzip", "zstd"}) {
    for (const std::string& member : members(request, "Accept-Encoding")) {
      if (member == coding) out.encodings += std::string(coding) + " ";
    }
  }
  return out;
}

void Author::change(Url& url) {
  Character& character = url.character;
  if (url.random.percent(character.change_of_mind)) {
    character.cache_control = random_cache_control(url.random);
    if (url.random.percent(50)) character.vary = random_character(url.random).vary;
    ++url.version;
    url.current.clear();
  } else if (url.random.percent(character.change)) {
    ++url.version;
    url.current.clear();
  }
}

// The last read of such a body takes no more than its rest, and the kernel keeps the bytes behind
// it.
bool Author::has_large_surplus(const Url& url) const {
  return world_.surplus != 0 && url.number % 10 == 0 && url.blob == nullptr;
}

// The representation that these fields select, of this version.
Content& Author::choose(Url& url, const Request& cause, const Fields& request, int status,
                        bool unsafe) {
  const Character& character = url.character;
  const Selecting selecting = selecting_of(request);
  const int user = character.personal ? user_of(request) : -1;
  // An error that lasts has validators.
  const bool lasts = status == 404 && character.missing > kLasting;
  if ((status != 200 && !lasts) || unsafe) {
    Content& content = world_.make_content(
        url, selecting, user, static_cast<std::uint32_t>(url.random.below(kErrorBytesMax)));
    content.etag.clear();
    content.last_modified = 0;
    return content;
  }
  if (url.blob != nullptr && !lasts) {
    if (!url.random.percent(character.wrong)) return *url.blob;
    world_.last_wrong = now();
    world_.count("origin: another body than its digest says");
    return world_.make_content(url, selecting, -1, url.blob->bytes);
  }
  std::string variant = std::to_string(user) + (lasts ? " 404" : "");
  if (!cause.query.empty()) {
    variant += "?" + (cause.rule == nullptr ? cause.query : cause.rule->sent_query(cause.query));
  }
  bool unique = false;
  for (const std::string& name : character.vary) {
    variant += "|";
    if (name == "*") unique = true;
    if (name == "Cookie") variant += selecting.cookie.value_or("-");
    if (name == "X-Lang") variant += selecting.lang.value_or("-");
    if (name == "Accept-Encoding") variant += selecting.encodings;
  }
  Content*& current = url.current[variant];
  if (current == nullptr || unique) {
    const auto bytes = static_cast<std::uint32_t>(has_large_surplus(url)
                                                      ? url.random.between(kLargeMin, kLargeMax)
                                                      : url.random.below(character.size_max + 1));
    current = &world_.make_content(url, selecting, user, bytes);
  }
  return *current;
}

bool Author::is_not_modified(const Url& url, const Content& content, const Fields& request) const {
  if (!url.character.not_modified) return false;
  if (find(request, "If-None-Match") != nullptr) {
    for (const std::string& member : members(request, "If-None-Match")) {
      if (member == "*") return true;
      if (!content.etag.empty() && opaque(member) == opaque(content.etag)) return true;
    }
    return false;
  }
  const Field* since = find(request, "If-Modified-Since");
  return since != nullptr && content.last_modified != 0 &&
         since->value == http_date(content.last_modified);
}

int Author::choose_range(const Url& url, const Content& content, const Fields& request,
                         std::uint32_t& begin, std::uint32_t& end) const {
  begin = 0;
  end = content.bytes;
  const Field* range = find(request, "Range");
  if (range == nullptr || !url.character.ranges) return 200;
  if (const Field* condition = find(request, "If-Range")) {
    // Strong comparison (RFC 9110 13.1.5); a date never counts as strong here.
    if (condition->value != content.etag || content.etag.starts_with("W/")) return 200;
  }
  if (!read_range(range->value, content.bytes, begin, end)) return 200;
  if (begin < end) return 206;
  begin = end = 0;
  return 416;
}

// A content that a condition names which is none of the client's.
Content* Author::validated_by_proxy(const Url& url, const Fields& request,
                                    const Request& cause) const {
  const Field* condition = find(request, "If-None-Match");
  if (condition == nullptr || cause.conditional || !cause.range.empty()) return nullptr;
  const std::string tag = opaque(condition->value);
  if (!tag.starts_with("\"c") || !tag.ends_with('"')) return nullptr;
  const auto number = proxyfuzz::number(std::string_view(tag).substr(2, tag.size() - 3));
  Content* named = world_.find_content(static_cast<std::uint64_t>(number.value_or(0)));
  return named != nullptr && named->url == &url ? named : nullptr;
}

void Author::add_caching_fields(Url& url, Event& event) {
  const Character& character = url.character;
  const bool thin = event.status == 304 && character.thin_304;
  Fields& fields = event.fields;
  const auto wall = wall_seconds();
  if (event.content != nullptr && !event.content->etag.empty()) {
    fields.push_back({"ETag", event.content->etag});
  }
  if (thin) return;
  const std::string control = event.withheld ? "no-store" : character.cache_control;
  if (!control.empty()) fields.push_back({"Cache-Control", control});
  if (event.content != nullptr && event.content->last_modified != 0) {
    fields.push_back({"Last-Modified", http_date(event.content->last_modified)});
  }
  if (!character.expires.empty()) {
    fields.push_back(
        {"Expires", character.expires == "+" ? http_date(wall + 2) : character.expires});
  }
  if (character.pragma) fields.push_back({"Pragma", "no-cache"});
  if (url.random.percent(30)) {
    for (const std::string& name : character.vary) fields.push_back({"Vary", name});
  } else if (!character.vary.empty()) {
    std::string all;
    for (const std::string& name : character.vary) all += (all.empty() ? "" : ", ") + name;
    fields.push_back({"Vary", all});
  }
}

// Fields that must not come into other hands; each value names its response and the user who caused
// it.
void Author::add_personal_fields(Url& url, Event& event, int user) {
  const Character& character = url.character;
  const std::string whose = std::to_string(event.serial) + "." + personal(user);
  if (character.personal) event.fields.push_back({"X-Made-For", whose});
  if (url.random.percent(character.set_cookie)) {
    event.fields.push_back({"Set-Cookie", "sid=" + whose + "; Path=/"});
    if (url.random.percent(20)) event.fields.push_back({"Set-Cookie", "b=" + whose});
  }
  if (url.random.percent(character.secret_field)) event.fields.push_back({"X-Foo", whose});
}

void Author::frame(Url& url, Reply& reply, const Content& of, std::uint32_t begin,
                   std::uint32_t end) {
  std::size_t size = end - begin;
  Fields& fields = reply.event->fields;
  int framing = url.character.framing;
  if (has_large_surplus(url)) framing = 0;
  if (framing == 3) framing = static_cast<int>(url.random.below(3));
  if (reply.event->status == 304 || reply.event->status == 204) return;
  if (framing == 0) {
    fields.push_back({"Content-Length", std::to_string(size)});
    append_content(of.name, begin, end, reply.body);
    return;
  }
  if (framing == 2) {
    fields.push_back({"Connection", "close"});
    append_content(of.name, begin, end, reply.body);
    reply.end = Reply::End::kClose;
    return;
  }
  fields.push_back({"Transfer-Encoding", "chunked"});
  reply.body.reserve(size + size / 8 + 2048);
  while (begin != end) {
    const auto part = static_cast<std::uint32_t>(
        std::min<std::size_t>(end - begin, url.random.pick<std::size_t>({1, 100, 9999, 999999})));
    std::array<char, 24> line;
    const int length = std::snprintf(line.data(), line.size(), "%x\r\n", part);
    reply.body.append(line.data(), static_cast<std::size_t>(length));
    append_content(of.name, begin, begin + part, reply.body);
    reply.body += "\r\n";
    begin += part;
  }
  reply.body += "0\r\n";
  if (url.random.percent(url.character.trailers)) {
    for (std::uint64_t left = url.random.pick<std::uint64_t>({1, 1, 2, 5, 40}); left > 0; --left) {
      Fields& trailers = reply.event->trailers;
      trailers.push_back({"X-T" + std::to_string(left),
                          url.random.percent(30)
                              ? ""
                              : std::to_string(reply.event->serial) + random_text(url.random, 30)});
      reply.body += trailers.back().name + ": " + trailers.back().value + "\r\n";
    }
  }
  reply.body += "\r\n";
}

// How it goes wrong, and how slowly.
void Author::spoil(Url& url, Reply& reply) {
  const Character& character = url.character;
  if (reply.end == Reply::End::kKeep && url.random.percent(5)) {
    reply.event->fields.push_back({"Connection", "close"});
    reply.end = Reply::End::kClose;
  }
  if (url.random.percent(character.slow_body)) {
    reply.pieces = url.random.between(2, 6);
    reply.pause = 0.001 * static_cast<double>(url.random.between(1, 60));
    // So long that who reads slowly may ask for it behind something else.
    if (url.random.percent(kLongPauses)) reply.pause *= 10;
  }
  if (!url.random.percent(character.cut) || reply.body.empty()) return;
  const bool until_close = find(reply.event->fields, "Content-Length") == nullptr &&
                           find(reply.event->fields, "Transfer-Encoding") == nullptr;
  reply.body.resize(url.random.below(reply.body.size()));
  reply.end = until_close || url.random.percent(50) ? Reply::End::kReset : Reply::End::kClose;
  reply.event->cut = true;
  reply.pieces = std::max<std::size_t>(reply.pieces, 2);
  reply.pause = std::max(reply.pause, 0.001);
}

// How large it may be, to be stored by the rule that holds for this response.
void Author::note_limits(const Event& event, Content& content) {
  const Rule* const rule = event.rule;
  event.url->may_be_admitted |= rule == nullptr || rule->admits(content.bytes);
  if (rule != nullptr && rule->max_object) {
    content.object_max =
        std::max(content.object_max, static_cast<std::uint64_t>(*rule->max_object));
  } else {
    content.has_configured_max = true;
  }
}

// One user in three is refused, and some URLs refuse a user without a name.
bool Author::is_refused(const Url& url, const Fields& request) {
  if (!url.character.guarded) return false;
  const int user = user_of(request);
  if (user < 0) return url.number % 2 == 0;
  return (static_cast<std::uint64_t>(user) + url.number) % 3 == 0;
}

// To a path that only who was sent there asks for.
void Author::redirect(Url& url, Event& event, Request& cause, const Request::Offer* taken) {
  const int number = taken == nullptr ? 1 : taken->number + 1;
  Request::Offer offer{.path = "/to/" + std::to_string(number) + "/" + std::to_string(event.serial),
                       .host = {},
                       .number = number};
  if (!world_.other_host.empty() && url.random.percent(60)) offer.host = world_.other_host;
  const std::string front = offer.host.empty() ? "" : "http://" + offer.host;
  event.fields.push_back({"Location", front + offer.path});
  cause.offers.push_back(std::move(offer));
}

// A response that is added to a stored one has its tag whether it says it again or not: a 304, the
// answer to a HEAD, and a part that the proxy itself has asked for.
void Author::add_tag(Url& url, Event& event, bool is_own_part) {
  if (url.tag.empty()) return;
  if (event.is_update && url.random.percent(50)) return;
  if (is_own_part && url.random.percent(80)) {
    world_.untagged_part = url.path;
    return;
  }
  const bool is_second = url.number % 2 == 0;
  event.fields.push_back({is_second ? "Cache-Tag" : "Surrogate-Key",
                          is_second ? "other, " + url.tag : "other " + url.tag});
}

Reply Author::write(Url& url, const std::string& method, const Fields& request,
                    const std::shared_ptr<Request>& cause, double received,
                    const Request::Offer* taken) {
  Reply reply;
  Event& event = world_.make_event(url);
  reply.event = &event;
  event.request = cause;
  event.method = method;
  event.received = received;
  event.decided = now();
  const bool unsafe = method != "GET" && method != "HEAD";
  event.status = 200;
  if (unsafe) {
    event.status = url.random.pick({200, 200, 204, 303, 404, 500});
    if (event.status < 400) {
      ++url.version;
      url.current.clear();
    }
  } else {
    change(url);
    event.withheld = url.random.percent(url.character.withhold);
    if (event.withheld) {
      ++url.version;
      url.current.clear();
    }
    if (url.random.percent(url.character.redirect)) {
      event.status = url.random.pick({301, 302, 303, 307, 308});
    }
    if (url.random.percent(url.character.missing)) event.status = 404;
    if (is_refused(url, request)) event.status = 401;
    if (url.random.percent(url.character.error)) event.status = url.random.pick({500, 503, 504});
  }
  Content& content = choose(url, *cause, request, event.status, unsafe);
  event.content = &content;
  event.rule = world_.storing_rule(*cause, url.character.content_type);
  std::uint32_t begin = 0;
  std::uint32_t end = content.bytes;
  if (event.status == 200 && !unsafe) {
    if (is_not_modified(url, content, request)) {
      event.status = 304;
    } else if (method == "GET") {
      event.status = choose_range(url, content, request, begin, end);
    }
  }
  if (event.status == 204) begin = end;
  event.is_foreign = taken != nullptr && !taken->host.empty();
  if (method == "HEAD" && event.status / 100 == 2) url.allowed[world_.asker_of(*cause)] = now();
  event.is_update = event.status == 304 || method == "HEAD";
  const std::string serial = std::to_string(event.serial);
  Fields& fields = event.fields;
  fields.reserve(24);
  if (!url.random.percent(10)) fields.push_back({"Date", http_date(wall_seconds())});
  fields.push_back({"X-Head", serial});
  fields.push_back({"Content-Location", "/r/" + serial});
  if (event.status != 304) {
    // A HEAD without validators tells nothing of whose body it speaks.
    if (method != "HEAD" || content.has_validator()) {
      fields.push_back({"X-Body", std::to_string(content.number)});
    }
    fields.push_back({"Content-Type", url.character.content_type});
    fields.push_back({"X-Rand", serial + random_text(url.random, 200)});
  }
  if (event.status == 206) {
    url.last_part = {.first = begin, .last = end - 1};
    // A client with a part of it asks for another, or for the same again.
    if (url.random.percent(50) || begin == 0) world_.come_back_to(url);
    if (begin == 0) world_.come_back_to(url);
  }
  if (event.status == 206 || event.status == 416) {
    fields.push_back({"Content-Range", event.status == 416
                                           ? "bytes */" + std::to_string(content.bytes)
                                           : "bytes " + std::to_string(begin) + "-" +
                                                 std::to_string(end - 1) + "/" +
                                                 std::to_string(content.bytes)});
  }
  const Field* const asked = find(request, "Range");
  const bool is_own_part = event.status == 206 && asked != nullptr && asked->value != cause->range;
  if (is_own_part) world_.count("origin: the rest of a part");
  add_tag(url, event, is_own_part);
  const bool redirects = event.status / 100 == 3 && event.status != 304 && !unsafe;
  if (redirects) redirect(url, event, *cause, taken);
  // Those that are for one client are not followed.
  if (!redirects || url.random.percent(40)) {
    add_caching_fields(url, event);
    add_personal_fields(url, event, user_of(request));
  } else if (url.random.percent(50)) {
    fields.push_back({"Cache-Control", "max-age=5"});
  }
  if (redirects) cause->offers.back().states_lifetime = may_state_lifetime(event);
  if (url.random.percent(url.character.age)) {
    event.age = static_cast<std::int64_t>(url.random.below(3));
    fields.push_back({"Age", std::to_string(event.age)});
  }
  if (url.random.percent(3)) {
    for (std::uint64_t left = url.random.between(1, 100); left > 0; --left)
      fields.push_back({"X-E", ""});
  }
  if (url.random.percent(5)) {
    fields.push_back({"Connection", "X-Hop"});
    fields.push_back({"X-Hop", serial});
  }
  frame(url, reply, content, begin, end);
  if (method == "HEAD") {
    reply.body.clear();
    event.trailers.clear();
  }
  spoil(url, reply);
  // Behind a large body, of which the last read takes no more than its rest, the kernel keeps them.
  const bool is_large = reply.body.size() > 16384;
  if (world_.surplus != 0 && url.number % 5 == 0 && reply.end == Reply::End::kKeep && !event.cut &&
      url.random.percent(is_large ? kLargeSurplus : world_.surplus)) {
    const std::string surplus = "surplus behind " + serial + random_text(url.random, 3000);
    reply.body += surplus;
    reply.surplus = surplus.size();
  }
  reply.head = head_of(event.status, fields);
  if (url.random.percent(url.character.interim)) {
    reply.interim = "HTTP/1.1 103 Early Hints\r\nX-Interim: " + serial + "\r\n\r\n";
  }
  if (!unsafe && method == "GET" && event.status != 304) {
    ++content.sent;
    if (event.trailers.empty() || event.status != 200) ++content.sent_without_trailers;
    if (find(request, "Cookie") == nullptr) ++content.sent_without_cookie;
    note_limits(event, content);
  }
  event.validated = validated_by_proxy(url, request, *cause);
  event.directives = directives_of(fields);
  for (const Fields* list : {&fields, &event.trailers}) {
    for (const Field& field : *list) content.lines.add(field);
  }
  if (method == "HEAD" && !content.has_validator()) {
    for (const Field& field : fields) {
      url.lines_by_length[content.bytes].add(field);
    }
  }
  if (event.status >= 500) url.last_error = now();
  const Change change{.url = url, .path = url.path, .since = event.decided, .serial = event.serial};
  if (event.status != 304) world_.note_change(change);
  if (unsafe && event.status < 400) {
    const std::string named = "/r/" + serial;
    world_.note_change({.url = url, .path = named, .since = event.decided, .serial = event.serial});
  }
  return reply;
}

}  // namespace encore::proxyfuzz
