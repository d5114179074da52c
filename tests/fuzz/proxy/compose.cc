// Requests of clients.
#include <algorithm>
#include <string>

#include "tests/fuzz/proxy/client.h"
#include "tests/fuzz/proxy/origin.h"

namespace encore::proxyfuzz {
namespace {

void add_selecting(Random& random, int user, bool rich, Request& request) {
  Fields& fields = request.fields;
  if (random.percent(60)) {
    std::string cookie = "uid=" + std::to_string(user);
    if (rich && random.percent(40))
      cookie.insert(0, random.percent(50) ? "lang=en; " : "lang=de; ");
    fields.push_back({"Cookie", cookie});
  }
  if (random.percent(8)) {
    fields.push_back({"Authorization", "Bearer secret-" + std::to_string(user)});
    request.authorized = true;
  }
  if (random.percent(40)) {
    fields.push_back({"X-Lang", std::string(random.pick<std::string_view>({"en", "de"}))});
  }
  if (random.percent(50)) {
    fields.push_back(
        {"Accept-Encoding", std::string(random.pick<std::string_view>(
                                {"gzip", "gzip", "br", "gzip, br", "br,gzip", "identity"}))});
  }
}

void add_directives(Random& random, Request& request) {
  const auto add = [&](const char* value) { request.fields.push_back({"Cache-Control", value}); };
  switch (random.below(100)) {
    case 0:
    case 1:
    case 2:
    case 3:
      add("no-cache");
      break;
    case 4:
    case 5:
      add("max-age=0");
      break;
    case 6:
      add("max-age=1");
      break;
    case 7:
    case 8:
      add("only-if-cached");
      break;
    case 9:
    case 10:
      add("no-store");
      break;
    case 11:
      add("max-stale=1");
      break;
    case 12:
      add("max-stale");
      break;
    case 13:
      add("min-fresh=1");
      break;
    case 14:
      request.fields.push_back({"Pragma", "no-cache"});
      request.no_cache = true;
      break;
    case 15:
      add("max-stale=60");
      break;
    case 16:
    case 17:
      add("max-stale");
      break;
    case 18:
      add("min-fresh=5");
      break;
    case 19:
      add("only-if-cached, max-stale=60");
      break;
    case 20:
      add("stale-if-error=60");
      break;
    default:
      break;
  }
}

std::string random_etag(Random& random, const Url& url) {
  if (!url.contents_made.empty() && random.percent(85)) {
    const std::size_t back = random.below(std::min<std::size_t>(url.contents_made.size(), 3));
    const std::uint64_t of = url.contents_made[url.contents_made.size() - 1 - back];
    return (url.character.etag == 2 ? "W/\"c" : "\"c") + std::to_string(of) + "\"";
  }
  return random.percent(50) ? "*" : "\"other\"";
}

// Its parts can be stored and joined, for all who ask.
bool comes_in_parts(const Url& url) {
  const Character& character = url.character;
  return character.ranges && character.etag == 1 && character.framing == 0 &&
         character.vary.empty() && !character.personal;
}

std::string random_range(Random& random) {
  const auto at = [&random] {
    return std::to_string(random.pick<std::uint64_t>({0, 0, 1, 63, 500, 4000, 70000}));
  };
  switch (random.below(8)) {
    case 0:
    case 1:
      return "bytes=" + at() + "-";
    case 2:
      return "bytes=-" + std::to_string(random.below(3000));
    case 3:
      return "bytes=9999999-";
    case 4:
      return "bytes=0-9,20-29";
    case 5:
      return "bytes=0-0,-1";
    default: {
      const std::uint64_t first = random.percent(50) ? 0 : random.below(2000);
      return "bytes=" + std::to_string(first) + "-" + std::to_string(first + random.below(3000));
    }
  }
}

// A range of what a part has that the proxy may keep, and at times a date that is as new as any of
// its contents: what the date says comes first.
void add_stored_part(Random& random, Request& request) {
  const Url& url = *request.url;
  const std::uint64_t size = url.last_part->last - url.last_part->first + 1;
  const std::uint64_t first = url.last_part->first + random.below(size);
  const std::uint64_t last = first + random.below(url.last_part->last - first + 1);
  if (random.percent(40)) {
    request.modified_since = url.birth + url.contents + 1;
    request.fields.push_back({"If-Modified-Since", http_date(request.modified_since)});
    request.conditional = true;
  }
  request.range = "bytes=" + std::to_string(first) + "-" + std::to_string(last);
  request.fields.push_back({"Range", request.range});
}

// Asks for no body of what is being sent to others.
void add_bodiless(Random& random, Request& request) {
  const Url& url = *request.url;
  if (request.method == "HEAD") return;
  if (random.percent(20)) {
    request.range = "bytes=9999999-";
    request.fields.push_back({"Range", request.range});
    return;
  }
  const bool has_tag = url.character.etag != 0 && !url.contents_made.empty();
  const std::string mark = url.character.etag == 2 ? "W/\"c" : "\"c";
  request.fields.push_back(
      {"If-None-Match",
       has_tag ? mark + std::to_string(url.contents_made.back()) + "\"" : std::string("*")});
  request.conditional = true;
}

void add_conditions(Random& random, Request& request) {
  const Url& url = *request.url;
  if (request.method == "GET" && url.last_part) {
    if (random.percent(25)) return add_stored_part(random, request);
    // The whole of it: the proxy may ask for the rest alone.
    if (url.last_part->first == 0 && random.percent(60)) return;
  }
  Fields& fields = request.fields;
  if (random.percent(12)) {
    const std::string etag = random_etag(random, url);
    fields.push_back(
        {"If-None-Match", etag == "*" ? etag : etag + (random.percent(20) ? ", \"b\"" : "")});
    request.conditional = true;
  } else if (random.percent(3)) {
    request.modified_since = url.birth + static_cast<std::int64_t>(random.below(20));
    fields.push_back({"If-Modified-Since", http_date(request.modified_since)});
    request.conditional = true;
  }
  // A date next to a range is for few clients, and what comes first is for all who serve them.
  const double ranges = request.modified_since != 0 || comes_in_parts(url) ? 40 : 12;
  if (request.method != "GET" || !random.percent(ranges)) return;
  // A part from the beginning can be completed.
  const bool is_begin = comes_in_parts(url) && random.percent(40);
  request.range = is_begin ? "bytes=0-" + std::to_string(random.below(3000)) : random_range(random);
  fields.push_back({"Range", request.range});
  if (!random.percent(25)) return;
  const std::string etag = random_etag(random, url);
  if (etag == "*" || etag.starts_with("W/")) return;
  request.if_range = etag;
  fields.push_back({"If-Range", etag});
}

// Adds what rules depend on, apart from the path.
void add_for_rules(Random& random, Request& request) {
  if (random.percent(45)) {
    request.query = random.pick<std::string_view>(
        {"id=1", "id=1", "id=2", "id=1&utm_a=1", "id=1&utm_a=2", "utm_a=3&id=1", "id=2&utm_b=1",
         "page=1", "id=1&page=1", "page=2&id=1&utm_a=1", "id=1&id=2", "idx=1", "id=1&idx=2"});
  }
  if (random.percent(5)) {
    const std::string& path = request.url->path;
    request.spelling = random.pick<std::string_view>({"/x/..", "/.", "/%75"});
    request.spelling += request.spelling == "/%75" ? path.substr(2) : path;
  }
  Fields& fields = request.fields;
  if (random.percent(40)) {
    request.tenant = random.pick<std::string_view>({"t1", "t2"});
    fields.push_back({"X-Tenant", *request.tenant});
  }
  if (random.percent(20)) fields.push_back({"X-Junk", "of " + std::to_string(request.tag)});
  if (random.percent(20)) fields.push_back({"X-Spare", "of " + std::to_string(request.tag)});
}

// Sets the client, by what trusted proxies say and by nothing else (docs/CONFIG.md, [[listen]]).
void add_client(Random& random, const Asker& asker, Request& request) {
  request.listener = asker.listener;
  request.from_second = asker.from_second;
  request.client = asker.from_second ? "127.0.0.2" : "127.0.0.1";
  const std::string other = "10.0.0." + std::to_string(asker.user + 1);
  if (asker.listener == 1 && asker.from_second) {
    request.client = other;
    request.named_client = random.percent(30) ? "127.0.0.1, " + other : other;
  } else if (random.percent(20)) {
    request.named_client = other;
  }
  if (!request.named_client.empty()) {
    request.fields.push_back({"X-Forwarded-For", request.named_client});
  }
}

// Sets what follows from the rule that holds for it.
void apply_rule(const World& world, Request& request) {
  const RuleTable& rules = world.rules;
  if (request.listener == 1) {
    const auto& methods = world.allowed_methods;
    request.is_refused =
        Rule::is_match(world.denied_path, request.url->path) ||
        (!methods.empty() && std::ranges::find(methods, request.method) == methods.end());
  }
  request.selecting = selecting_of(request.fields);
  request.rules_before = world.earlier_rules.size();
  request.rule = rules.find({.path = request.url->path,
                             .method = request.method,
                             .client = request.client,
                             .listener = request.listener});
  request.object = rules.object_of(request.rule, request.url->path, request.query);
  if (request.rule == nullptr) return;
  std::optional<std::string>& cookie = request.selecting.cookie;
  if (cookie) cookie = request.rule->sent_cookie(*cookie);
  request.rule->edit_lang(request.selecting.lang);
}

}  // namespace

std::shared_ptr<Request> compose(Ring& ring, Random& random, const Asker& asker) {
  const int user = asker.user;
  const bool rich = ring.front != nullptr || ring.has_rules;
  if (ring.published != nullptr && ring.published->is_due(random)) {
    auto request = ring.world.make_request(ring.world.own());
    request->user = user;
    ring.published->compose(random, *request);
    return request;
  }
  // A slow client may be sent no more than a head while others get the body.
  const double joins = asker.is_slow ? 30 : 4;
  Url* const slow = random.percent(joins) ? ring.world.pick_slow(random) : nullptr;
  const std::uint64_t kind = random.below(100);
  const bool writes = slow == nullptr && kind >= 8 && kind < 12;
  Url* const written =
      writes && ring.world.pick_to_write ? ring.world.pick_to_write(random) : nullptr;
  Url& url = slow != nullptr ? *slow : written != nullptr ? *written : ring.world.pick_url(random);
  auto request = ring.world.make_request(url);
  request->user = user;
  request->method = "GET";
  if (kind < (slow != nullptr ? 30 : 8)) request->method = "HEAD";
  if (writes && kind < 11) request->method = "POST";
  if (writes && kind == 11) {
    request->method = random.pick<std::string_view>({"PUT", "DELETE"});
  }
  const bool unsafe = request->method != "GET" && request->method != "HEAD";
  Fields& fields = request->fields;
  fields.reserve(12);
  fields.push_back({"Traceparent", std::to_string(request->tag)});
  add_selecting(random, user, rich, *request);
  if (rich) {
    add_for_rules(random, *request);
    add_client(random, asker, *request);
  }
  if (unsafe) {
    request->body_bytes = random.pick<std::size_t>({0, 10, 3000, 3000, 40000});
    fields.push_back({"Content-Length", std::to_string(request->body_bytes)});
  } else {
    add_directives(random, *request);
    if (slow != nullptr) {
      add_bodiless(random, *request);
    } else {
      add_conditions(random, *request);
    }
    if (random.percent(50)) {
      fields.push_back({"TE", "trailers"});
      fields.push_back({"Connection", "TE"});
      request->takes_trailers = true;
    }
  }
  // Under TLS the end of what has no length tells whether it is whole.
  const bool is_tls = ring.has_tls[static_cast<std::size_t>(asker.listener)];
  request->http10 = random.percent(is_tls ? 8 : 3);
  if (request->http10 && random.percent(50)) fields.push_back({"Connection", "keep-alive"});
  request->directives = directives_of(fields);
  request->no_cache = request->no_cache || request->directives.no_cache;
  apply_rule(ring.world, *request);
  return request;
}

const std::string& host_of(const Ring& ring, const Url& url) {
  return ring.hosts[url.number % ring.hosts.size()];
}

std::string text_of(const Ring& ring, const Request& request) {
  const std::string& host = host_of(ring, *request.url);
  std::string out;
  out.reserve(512);
  out += request.method + " ";
  if (!request.own_path.empty()) {
    out += request.own_path;
  } else {
    if (ring.absolute) out += "http://" + host;
    out += request.spelling.empty() ? request.url->path : request.spelling;
    if (!request.query.empty()) out += "?" + request.query;
  }
  out += request.http10 ? " HTTP/1.0\r\n" : " HTTP/1.1\r\n";
  // A forward proxy is asked itself by the name that its configuration has.
  const bool asks_proxy = !request.own_path.empty() && ring.absolute;
  const std::string& named = request.method == "CONNECT" ? request.own_path : host;
  out += "Host: " + (asks_proxy && request.method != "CONNECT" ? "proxy.test" : named) + "\r\n";
  for (const Field& field : request.fields) append_line(field, out);
  out += "\r\n";
  out.append(request.body_bytes, 'x');
  return out;
}

}  // namespace encore::proxyfuzz
