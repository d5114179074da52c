#include "proxy/exchange/purge_request.h"

#include <algorithm>
#include <array>
#include <optional>
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

bool has_field(const RequestContext& request, std::string_view name) {
  return std::ranges::any_of(request.head.fields, [name](const http::Field& field) {
    return http::equals_ignoring_case(field.name, name);
  });
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

// Tags of a list as responses have it, so that they are split as they were.
struct TagField {
  std::string_view name;
  std::string_view separators;
};
constexpr std::array<TagField, 7> kTagFields = {{{"xkey-purge", " \t,"},
                                                 {"xkey", " \t,"},
                                                 {"surrogate-key", " \t"},
                                                 {"cache-tag", ","},
                                                 {"x-cache-tags", ","},
                                                 {"cache-tags", " \t,"},
                                                 {"purge-cache-tags", " \t,"}}};
constexpr TagField kSoftKeys = {"xkey-softpurge", " \t,"};
constexpr std::string_view kMagentoPattern = "x-magento-tags-pattern";

// The field of responses whose tags a field of purges names.
std::string_view tagged_by(std::string_view purge_field) {
  if (purge_field == "xkey-purge" || purge_field == "xkey-softpurge") return "xkey";
  if (purge_field == kMagentoPattern) return "x-magento-tags";
  return purge_field;
}

// Drupal has two names for the same.
std::string_view other_name(std::string_view tag_field) {
  if (tag_field == "cache-tags") return "purge-cache-tags";
  return tag_field == "purge-cache-tags" ? "cache-tags" : tag_field;
}

// Tags of a field that is read of no response are on none: a purge by it would do nothing, and
// look as if it had. Why not all fields are read: docs/decisions/0327.
Result<void> check_is_read(const RequestContext& request, std::string_view purge_field) {
  if (!has_field(request, purge_field)) return {};
  const std::string_view wanted = tagged_by(purge_field);
  const auto& read = request.runtime->config.cache.tag_fields;
  const bool is_read = std::ranges::any_of(read, [&](const std::string& name) {
    return http::equals_ignoring_case(name, wanted) ||
           http::equals_ignoring_case(name, other_name(wanted));
  });
  if (is_read) return {};
  return fail("tag-field-not-read: cache.tag_fields does not have " + std::string(wanted) +
              "; add \"" + std::string(wanted) + "\" to cache.tag_fields");
}

void add_tags_of(const RequestContext& request, const TagField& field,
                 std::vector<std::string>& tags) {
  for (const http::Field& line : request.head.fields) {
    if (!http::equals_ignoring_case(line.name, field.name)) continue;
    std::string_view rest = line.value;
    while (!rest.empty()) {
      const std::string_view tag = rest.substr(0, rest.find_first_of(field.separators));
      rest.remove_prefix(std::min(tag.size() + 1, rest.size()));
      if (!http::trim_ows(tag).empty()) tags.emplace_back(http::trim_ows(tag));
    }
  }
}

// Magento says tags as an expression: "((^|,)a(,|$))|((^|,)b(,|$))". False: it is another one.
bool add_framed_tags(std::string_view text, std::vector<std::string>& tags) {
  constexpr std::string_view kBegin = "((^|,)";
  constexpr std::string_view kEnd = "(,|$))";
  while (true) {
    const std::size_t end = text.find(kEnd);
    if (!text.starts_with(kBegin) || end == std::string_view::npos) return false;
    const std::string_view tag = text.substr(kBegin.size(), end - kBegin.size());
    if (tag.empty() || tag.find_first_of("\\^$.|?*+()[]{},") != std::string_view::npos)
      return false;
    tags.emplace_back(tag);
    text.remove_prefix(end + kEnd.size());
    if (text.empty()) return true;
    if (!text.starts_with('|')) return false;
    text.remove_prefix(1);
  }
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

Result<PurgeRequest> check(PurgeRequest purge) {
  for (const std::string* pattern : {&purge.host, &purge.url, &purge.content_type}) {
    if (pattern->size() > kPurgePatternBytesMax) return fail("pattern-too-long");
  }
  if (purge.tags.size() > kPurgeTagsMax) return fail("too-many-tags");
  return purge;
}

Result<PurgeRequest> read_ban(const RequestContext& request, PurgeRequest purge) {
  purge.host = pattern_of(value_of(request, "x-host"));
  purge.url = pattern_of(value_of(request, "x-url"));
  purge.content_type = pattern_of(value_of(request, "x-content-type"));
  bool names_any = !value_of(request, "x-host").empty() || !value_of(request, "x-url").empty() ||
                   !purge.content_type.empty();
  constexpr std::array<std::string_view, 7> kBannedFields = {
      "x-cache-tags", "cache-tags", "purge-cache-tags", "surrogate-key",
      "cache-tag",    "xkey",       "xkey-purge"};
  for (const std::string_view name : kBannedFields) {
    if (auto read = check_is_read(request, name); !read) return std::unexpected(read.error());
    add_tags(value_of(request, name), purge.tags);
  }
  names_any = names_any || !purge.tags.empty();
  if (!names_any) {
    // Nothing but its target: what is below it, on this host.
    if (!request.has_uri()) return fail("nothing-to-ban");
    purge.host = exactly(authority_of(request));
    purge.url = "^" + path_of(request);
  }
  return check(std::move(purge));
}

// As Varnish's xkey and its like have it: any field with a word for it but "0" and "false".
bool is_soft(const RequestContext& request) {
  constexpr std::array<std::string_view, 3> kNames = {"x-soft-purge", "fastly-soft-purge",
                                                      "x-magento-purge-soft"};
  return std::ranges::any_of(kNames, [&](std::string_view name) {
    const std::string_view value = value_of(request, name);
    return !value.empty() && value != "0" && !http::equals_ignoring_case(value, "false");
  });
}

// Reads the tags of a PURGE or its like, or that it wants everything purged. Nothing: it is for a
// URL.
std::optional<Result<PurgeRequest>> read_tags(const RequestContext& request, PurgeRequest purge) {
  const std::string_view pattern = value_of(request, kMagentoPattern);
  if (pattern_of(pattern).empty() && !pattern.empty()) return purge;
  if (http::equals_ignoring_case(value_of(request, "clear-cache"), "true")) return purge;
  for (const std::string_view name : {kMagentoPattern, kSoftKeys.name}) {
    if (auto read = check_is_read(request, name); !read) return std::unexpected(read.error());
  }
  for (const TagField& field : kTagFields) {
    if (auto read = check_is_read(request, field.name); !read) {
      return std::unexpected(read.error());
    }
  }
  if (!pattern.empty() && !add_framed_tags(pattern, purge.tags)) return fail("bad-tags-pattern");
  for (const TagField& field : kTagFields) add_tags_of(request, field, purge.tags);
  // Both together are a hard purge, and tags for a soft one wait for a request of their own.
  if (purge.tags.empty() && has_field(request, kSoftKeys.name)) {
    purge.soft = true;
    add_tags_of(request, kSoftKeys, purge.tags);
  }
  if (purge.tags.empty()) {
    // A client that names no tags where some belong does not mean the URL.
    const auto named = [&](const TagField& field) { return has_field(request, field.name); };
    const bool are_named =
        named(kSoftKeys) || std::ranges::any_of(kTagFields, named) || !pattern.empty();
    if (are_named || request.head.method_text != "PURGE") return fail("nothing-to-purge");
    return std::nullopt;
  }
  return check(std::move(purge));
}

}  // namespace

Result<PurgeRequest> read_purge_request(const RequestContext& request) {
  PurgeRequest purge{.forward = request.is_forward(), .soft = is_soft(request)};
  if (request.head.method_text == "BAN") return read_ban(request, std::move(purge));
  if (auto by_tags = read_tags(request, purge)) return std::move(*by_tags);
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
      purge.keys.insert(purge.keys.end(), keys.begin(), keys.end());
    }
    return purge;
  }
  purge.host = exactly(authority_of(request));
  purge.url = pattern.empty() ? "^" + path_of(request) : std::string(pattern);
  return check(std::move(purge));
}

}  // namespace encore::server
