#include "proxy/exchange/purge_wish.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "proxy/http/message.h"
#include "proxy/settings/url_keys.h"

namespace encore::server {
namespace {

bool is_plain(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
         static_cast<unsigned char>(c) >= 0x80;
}

// A pattern that only this text matches.
std::string exactly(std::string_view text) {
  std::string pattern = "^";
  for (const char c : text) {
    if (!is_plain(c)) pattern += '\\';
    pattern += c;
  }
  return pattern + "$";
}

std::string_view value_of(const RequestContext& request, std::string_view name) {
  for (const http::Field& field : request.head.fields) {
    if (http::equals_ignoring_case(field.name, name)) return field.value;
  }
  return {};
}

// Symfony's FOSHttpCache says tags as an expression: "(^|,)(a|b)(,|$)", each with \ before what is
// no letter.
std::string_view without_frame(std::string_view tags) {
  constexpr std::string_view kBegin = "(^|,)(";
  constexpr std::string_view kEnd = ")(,|$)";
  if (tags.size() < kBegin.size() + kEnd.size() || !tags.starts_with(kBegin) ||
      !tags.ends_with(kEnd)) {
    return tags;
  }
  tags.remove_prefix(kBegin.size());
  tags.remove_suffix(kEnd.size());
  return tags;
}

void add_tags(std::string_view text, std::vector<std::string>& tags) {
  const std::string_view list = without_frame(text);
  const bool escaped = list.size() != text.size();
  std::string tag;
  const auto end = [&] {
    if (!tag.empty()) tags.push_back(std::exchange(tag, {}));
  };
  for (std::size_t i = 0; i < list.size(); ++i) {
    char c = list[i];
    if (escaped && c == '\\' && i + 1 < list.size()) {
      c = list[++i];
    } else if (c == ' ' || c == '\t' || c == ',' || c == '|') {
      end();
      continue;
    }
    tag += c;
  }
  end();
}

// ".*" and its like say nothing.
std::string pattern_of(std::string_view text) {
  return text == ".*" || text == "^.*$" || text == "^.*" ? std::string() : std::string(text);
}

// Path and query of the target, as it came.
std::string path_of(const RequestContext& request) {
  std::string path(request.target.path.empty() ? std::string_view("/") : request.target.path);
  if (request.target.has_query) {
    path += '?';
    path += request.target.query;
  }
  return path;
}

// Host and port as keys have them.
std::string_view authority_of(const RequestContext& request) {
  return request.uri_text().substr(request.uri.authority, request.uri.path - request.uri.authority);
}

Result<PurgeWish> check(PurgeWish wish) {
  for (const std::string* pattern : {&wish.host, &wish.url, &wish.content_type}) {
    if (pattern->size() > kPurgePatternBytesMax) return fail("pattern-too-long");
  }
  if (wish.tags.size() > kPurgeTagsMax) return fail("too-many-tags");
  return wish;
}

Result<PurgeWish> read_ban(const RequestContext& request, PurgeWish wish) {
  wish.host = pattern_of(value_of(request, "x-host"));
  wish.url = pattern_of(value_of(request, "x-url"));
  wish.content_type = pattern_of(value_of(request, "x-content-type"));
  bool names_any = !value_of(request, "x-host").empty() || !value_of(request, "x-url").empty() ||
                   !wish.content_type.empty();
  constexpr std::array<std::string_view, 4> kTagFields = {"x-cache-tags", "cache-tags",
                                                          "purge-cache-tags", "surrogate-key"};
  for (const std::string_view name : kTagFields) add_tags(value_of(request, name), wish.tags);
  names_any = names_any || !wish.tags.empty();
  if (!names_any) {
    // Nothing but its target: what is below it, on this host.
    if (!request.has_uri()) return fail("nothing-to-ban");
    wish.host = exactly(authority_of(request));
    wish.url = "^" + path_of(request);
  }
  return check(std::move(wish));
}

}  // namespace

Result<PurgeWish> read_purge_wish(const RequestContext& request) {
  PurgeWish wish{.forward = request.is_forward()};
  if (request.head.method_text == "BAN") return read_ban(request, std::move(wish));
  if (!request.has_uri()) return fail("nothing-to-purge");
  const std::string_view pattern = value_of(request, "x-purge-regex");
  if (pattern.empty() &&
      !http::equals_ignoring_case(value_of(request, "x-purge-method"), "regex")) {
    // Over http and https, in whichever way the request itself has come.
    const Runtime& runtime = *request.runtime;
    const bool forward = request.is_forward();
    const std::string url = std::string(to_string(request.target.scheme)) + "://" +
                            std::string(authority_of(request)) + path_of(request);
    std::vector<std::string> realms = {std::string(kForwardRealm)};
    if (!forward) realms = {request.route->realm(), request.route->secure_realm()};
    for (const std::string& realm : realms) {
      const auto keys = keys_of_url(url, realm, runtime.rules,
                                    forward ? runtime.forward : runtime.reverse, forward);
      wish.keys.insert(wish.keys.end(), keys.begin(), keys.end());
    }
    return wish;
  }
  wish.host = exactly(authority_of(request));
  wish.url = pattern.empty() ? "^" + path_of(request) : std::string(pattern);
  return check(std::move(wish));
}

}  // namespace encore::server
