// Keys of [[rule]].
#include <array>

#include "cache/options.h"
#include "config/keys.h"

namespace encore::config {
namespace {

constexpr std::array<std::string_view, 2> kRuleKeyNames = {"url", "digest"};
constexpr std::array<std::string_view, 2> kVerifyNames = {"none", "sha256"};

constexpr std::array<std::string_view, 2> kAuthorizationNames = {"rfc", "recheck"};

constexpr Range kItems = {.min = 0, .max = 256};
constexpr Range kTenYears = {.min = 0, .max = 3650 * kDay};

constexpr std::array kConditionKeys = {
    bound<&Rule::name>({.name = "name",
                        .doc = "Name in logs and `Cache-Status`. Empty: `rule-N`, counted from 0.",
                        .accepted = "letters, digits and -._, or \"\"",
                        .item_check = check_rule_name}),
    bound<&Rule::host>({.name = "host",
                        .kind = Kind::kTextList,
                        .doc = "Condition: the requested host. Empty, here and below: any.",
                        .range = kItems,
                        .one_will_do = true,
                        .accepted = "globs without a port (`*` is any run of characters)",
                        .item_check = check_host_glob}),
    bound<&Rule::path>({.name = "path",
                        .kind = Kind::kTextList,
                        .doc = "Condition: the path, normalised, without query. Paths that servers "
                               "may read as one with another rule get 400.",
                        .range = kItems,
                        .one_will_do = true,
                        .accepted = "globs that begin with \"/\" or \"*\", as \"/pool/*\" or "
                                    "\"*.deb\"",
                        .item_check = check_rule_path}),
    bound<&Rule::content_type>({.name = "content_type",
                                .kind = Kind::kTextList,
                                .doc = "Condition: media type of the response, without parameters.",
                                .range = kItems,
                                .one_will_do = true,
                                .accepted = "globs, as \"image/*\"",
                                .item_check = check_glob}),
    bound<&Rule::method>(
        {.name = "method",
         .kind = Kind::kTextList,
         .doc = "Condition: the method. Objects stored for `GET` answer `HEAD`: name both.",
         .range = kItems,
         .one_will_do = true,
         .accepted = "methods in capitals, as \"GET\"",
         .item_check = check_method}),
    bound<&Rule::listener>({.name = "listener",
                            .kind = Kind::kTextList,
                            .doc = "Condition: the `address` of the `[[listen]]`.",
                            .range = kItems,
                            .one_will_do = true,
                            .accepted = "addresses of `[[listen]]`s",
                            .item_check = check_file_name}),
    bound<&Rule::clients>({.name = "clients",
                           .kind = Kind::kTextList,
                           .doc = "Condition: the client's address.",
                           .range = {.min = 0, .max = 4096},
                           .one_will_do = true,
                           .accepted = "addresses and blocks, as \"10.0.0.0/8\"",
                           .item_check = check_parsed<CidrText>}),
    bound<&Rule::cache>(
        {.name = "cache", .kind = Kind::kBool, .doc = "false: neither store nor look up."}),
    bound<&Rule::admission>(
        {.name = "admission",
         .kind = Kind::kChoice,
         .doc =
             "Policy in place of `admission.policy`. `second-hit` and `nth-hit` need one of these "
             "two, or `probation`, there. Policies that learn from all requests are not available.",
         .choices = cache::kMemoryAdmissionNames}),
    bound<&Rule::min_requests>({.name = "min_requests",
                                .kind = Kind::kInteger,
                                .doc = "`nth-hit`: the request that stores.",
                                .range = {.min = 2, .max = cache::kMinRequestsMax}}),
    bound<&Rule::probability>({.name = "probability",
                               .kind = Kind::kReal,
                               .doc = "`probability`: that of each request.",
                               .range = {.min = 1e-6, .max = 1}}),
    bound<&Rule::size_threshold_bytes>({.name = "size_threshold",
                                        .kind = Kind::kBytes,
                                        .doc = "`size-threshold`: the largest stored size.",
                                        .range = {.min = 1, .max = 1e15}}),
    bound<&Rule::max_object_bytes>({.name = "max_object",
                                    .kind = Kind::kBytes,
                                    .doc = "In place of `cache.max_object`, with the same bounds.",
                                    .range = {.min = 1, .max = 1e15}}),
    bound<&Rule::fresh>(
        {.name = "fresh",
         .kind = Kind::kDuration,
         .doc = "Lifetime of responses without an error, from their arrival, whatever the origin "
                "states. Directives against storing or reuse still apply; see `ignore`.",
         .range = kTenYears}),
    bound<&Rule::fresh_min>({.name = "fresh_min",
                             .kind = Kind::kDuration,
                             .doc = "Shortest lifetime.",
                             .range = kTenYears}),
    bound<&Rule::fresh_max>({.name = "fresh_max",
                             .kind = Kind::kDuration,
                             .doc = "Longest lifetime.",
                             .range = kTenYears}),
    bound<&Rule::heuristic_with_cookie>({.name = "heuristic_with_cookie",
                                         .kind = Kind::kBool,
                                         .doc = "In place of `cache.heuristic_with_cookie`."}),
    bound<&Rule::negative>({.name = "negative",
                            .kind = Kind::kTextList,
                            .doc = "Lifetimes of responses with an error status; a single duration "
                                   "is for 404, 405, 410, 414 and 501. The first match applies. "
                                   "Also written as `{404 = \"10s\", 5xx = \"1s\"}`.",
                            .range = kItems,
                            .one_will_do = true,
                            .accepted = "\"10s\", \"404=10s\", \"5xx=1s\" or \"400-403=1m\"",
                            .item_check = check_parsed<StatusLifeText>}),
    bound<&Rule::stale_while_revalidate>(
        {.name = "stale_while_revalidate",
         .kind = Kind::kDuration,
         .doc = "How long a stale response is served during its validation, whatever the origin "
                "states. Never-fresh responses follow their origin.",
         .range = kTenYears}),
    bound<&Rule::stale_if_error>({.name = "stale_if_error",
                                  .kind = Kind::kDuration,
                                  .doc = "The same if the origin fails.",
                                  .range = kTenYears}),
    bound<&Rule::ignore>(
        {.name = "ignore",
         .kind = Kind::kTextList,
         .doc = "Directives to override: of the request `client-no-cache` (also `max-age`, "
                "`min-fresh`, `Pragma`) and `authorization`, of the response the others "
                "(`set-cookie`: stored without it). `private`, `authorization` and `vary` give one "
                "client's response to others.",
         .range = kItems,
         .one_will_do = true,
         .accepted = "no-store, private, no-cache, client-no-cache, set-cookie, authorization, "
                     "vary",
         .item_check = check_ignored}),
    bound<&Rule::collapse>(
        {.name = "collapse", .kind = Kind::kBool, .doc = "In place of `cache.collapse`."}),
    bound<&Rule::compress>({.name = "compress",
                            .kind = Kind::kBool,
                            .doc = "false: do not compress. Verified bodies never are."}),
    bound<&Rule::cookies>(
        {.name = "cookies",
         .doc = "`bypass`: requests with cookies are not cached. `bypass:NAME`: only those with "
                "one of these cookies; others are removed. `ignore`: remove all. `key:NAME`: keep "
                "only these, as part of the key.",
         .accepted = "\"bypass\", \"bypass:NAME,...\", \"ignore\" or \"key:NAME,...\"; a name may "
                     "end with `*`",
         .item_check = check_parsed<CookiesText>}),
    bound<&Rule::key_query>(
        {.name = "key_query",
         .doc = "Query parameters in the key. Others are removed, also for the origin unless "
                "`origin_query`.",
         .accepted = "\"all\", \"none\", \"only:a,b\" or \"except:a,b\"; a name may end with `*`",
         .item_check = check_parsed<KeyQueryText>}),
    bound<&Rule::origin_query>({.name = "origin_query",
                                .kind = Kind::kBool,
                                .doc = "Send the whole query to the origin nevertheless."}),
    bound<&Rule::key_fields>({.name = "key_fields",
                              .kind = Kind::kTextList,
                              .doc = "Request fields that separate responses, as if each named "
                                     "them in `Vary`. `cache.variants_max` limits them.",
                              .range = {.min = 0, .max = 16},
                              .one_will_do = true,
                              .accepted = "names of fields",
                              .item_check = check_field_name}),
    bound<&Rule::key>({.name = "key",
                       .kind = Kind::kChoice,
                       .doc =
                           "`digest`: responses with the same SHA-256 in their path (`sha256:HEX`, "
                           "`SHA256/HEX`) are one object, on any host and path. Needs `verify`.",
                       .choices = kRuleKeyNames}),
    bound<&Rule::verify>({.name = "verify",
                          .kind = Kind::kChoice,
                          .doc = "`sha256`: a body that differs from the digest in its path is not "
                                 "stored, and its response breaks off.",
                          .choices = kVerifyNames}),
    bound<&Rule::authorization>(
        {.name = "authorization",
         .kind = Kind::kChoice,
         .doc = "`recheck`: store responses to requests with `Authorization`. Each client needs a "
                "yes of the origin to a `HEAD` with its credentials, which a worker remembers for "
                "a minute.",
         .choices = kAuthorizationNames}),
    bound<&Rule::follow_redirects>(
        {.name = "follow_redirects",
         .kind = Kind::kBool,
         .doc =
             "Follow 301, 302, 303, 307 and 308 to the same host or to `follow_hosts`, and store "
             "the result under the requested URL. Targets are checked like client requests."}),
    bound<&Rule::follow_hosts>({.name = "follow_hosts",
                                .kind = Kind::kTextList,
                                .doc = "Further hosts for it. They answer in the requested host's "
                                       "name: list only hosts that you trust with that.",
                                .range = kItems,
                                .one_will_do = true,
                                .accepted = "globs without a port (`*` is any run of characters)",
                                .item_check = check_host_glob}),
};

constexpr std::array kActionKeys = {
    bound<&Rule::strip_prefix>({.name = "strip_prefix",
                                .doc = "Prefix removed from the path for the origin.",
                                .accepted = "a path that starts with \"/\", or \"\"",
                                .item_check = check_prefix_or_empty}),
    bound<&Rule::add_prefix>({.name = "add_prefix",
                              .doc = "Prefix added to it.",
                              .accepted = "a path that starts with \"/\", or \"\"",
                              .item_check = check_prefix_or_empty}),
    bound<&Rule::replace>({.name = "replace",
                           .kind = Kind::kTextList,
                           .doc = "Replacements in it, applied in order to every occurrence.",
                           .range = {.min = 0, .max = 16},
                           .one_will_do = true,
                           .accepted = "\"FROM=>TO\"",
                           .item_check = check_replacement}),
    bound<&Rule::request_set>({.name = "request_set",
                               .kind = Kind::kTextList,
                               .doc = "Fields set for the origin.",
                               .range = {.min = 0, .max = 64},
                               .one_will_do = true,
                               .accepted = "\"Name: value\"",
                               .item_check = check_parsed<FieldLineText>}),
    bound<&Rule::request_add>({.name = "request_add",
                               .kind = Kind::kTextList,
                               .doc = "Fields added for the origin.",
                               .range = {.min = 0, .max = 64},
                               .one_will_do = true,
                               .accepted = "\"Name: value\"",
                               .item_check = check_parsed<FieldLineText>}),
    bound<&Rule::request_remove>({.name = "request_remove",
                                  .kind = Kind::kTextList,
                                  .doc = "Fields removed for the origin.",
                                  .range = {.min = 0, .max = 64},
                                  .one_will_do = true,
                                  .accepted = "names of fields",
                                  .item_check = check_edited_field}),
    bound<&Rule::response_set>(
        {.name = "response_set",
         .kind = Kind::kTextList,
         .doc = "Fields set for clients. Storing and lifetime follow the origin's.",
         .range = {.min = 0, .max = 64},
         .one_will_do = true,
         .accepted = "\"Name: value\"",
         .item_check = check_parsed<FieldLineText>}),
    bound<&Rule::response_add>({.name = "response_add",
                                .kind = Kind::kTextList,
                                .doc = "Fields added for clients.",
                                .range = {.min = 0, .max = 64},
                                .one_will_do = true,
                                .accepted = "\"Name: value\"",
                                .item_check = check_parsed<FieldLineText>}),
    bound<&Rule::response_remove>({.name = "response_remove",
                                   .kind = Kind::kTextList,
                                   .doc = "Fields removed for clients.",
                                   .range = {.min = 0, .max = 64},
                                   .one_will_do = true,
                                   .accepted = "names of fields",
                                   .item_check = check_edited_field}),
    bound<&Rule::client_cache_control>(
        {.name = "client_cache_control",
         .doc = "`Cache-Control` for clients, of responses that a shared cache may store and "
                "reuse. `private`, `no-store` and `no-cache` stay.",
         .accepted = "directives, as \"max-age=0, must-revalidate\"",
         .item_check = check_directives}),
    bound<&Rule::deny>({.name = "deny",
                        .kind = Kind::kInteger,
                        .doc = "Refuse with this status.",
                        .range = {.min = 400, .max = 599}}),
    bound<&Rule::redirect>(
        {.name = "redirect",
         .doc = "Redirect there, with {host}, {path} and {query} (with its `?`) of the request.",
         .accepted = "a URL or a path, as \"https://{host}{path}{query}\", or \"\"",
         .item_check = check_redirect}),
    bound<&Rule::redirect_status>({.name = "redirect_status",
                                   .kind = Kind::kInteger,
                                   .doc = "Status of `redirect`.",
                                   .range = {.min = 301, .max = 308}}),
    bound<&Rule::static_status>({.name = "static_status",
                                 .kind = Kind::kInteger,
                                 .doc = "Answer with this status.",
                                 .range = {.min = 200, .max = 599}}),
    bound<&Rule::static_body>({.name = "static_body",
                               .doc = "Body for `static_status`.",
                               .accepted = "text of up to 64 KiB",
                               .item_check = check_static_text}),
    bound<&Rule::static_type>({.name = "static_type",
                               .doc = "`Content-Type` for `static_status`.",
                               .accepted = "a media type",
                               .item_check = check_media_type}),
};

constexpr auto kRuleKeys = [] {
  std::array<Key, kConditionKeys.size() + kActionKeys.size()> keys{};
  std::size_t at = 0;
  for (const Key& key : kConditionKeys) keys[at++] = key;
  for (const Key& key : kActionKeys) keys[at++] = key;
  return keys;
}();

}  // namespace

std::span<const Key> rule_keys() { return kRuleKeys; }

}  // namespace encore::config
