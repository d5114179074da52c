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
                        .doc = "What logs and `Cache-Status` call it. Empty: `rule-N`, counted "
                               "from 0.",
                        .accepted = "letters, digits and -._, or \"\"",
                        .item_check = check_rule_name}),
    bound<&Rule::host>({.name = "host",
                        .kind = Kind::kTextList,
                        .doc = "Condition: the host asked for, without its port. Empty, here and "
                               "below: any.",
                        .range = kItems,
                        .one_will_do = true,
                        .accepted = "globs without a port (`*` is any run of characters)",
                        .item_check = check_host_glob}),
    bound<&Rule::path>({.name = "path",
                        .kind = Kind::kTextList,
                        .doc = "Condition: the path, normalised, without its query. A path that "
                               "servers may read as another one, for which another rule holds, is "
                               "refused with 400.",
                        .range = kItems,
                        .one_will_do = true,
                        .accepted = "globs that begin with \"/\" or \"*\", as \"/pool/*\" or "
                                    "\"*.deb\"",
                        .item_check = check_rule_path}),
    bound<&Rule::content_type>(
        {.name = "content_type",
         .kind = Kind::kTextList,
         .doc = "Condition: the media type of the response, without parameters.",
         .range = kItems,
         .one_will_do = true,
         .accepted = "globs, as \"image/*\"",
         .item_check = check_glob}),
    bound<&Rule::method>({.name = "method",
                          .kind = Kind::kTextList,
                          .doc = "Condition: the request's method. What is stored for `GET` "
                                 "answers `HEAD`: name both.",
                          .range = kItems,
                          .one_will_do = true,
                          .accepted = "methods in capitals, as \"GET\"",
                          .item_check = check_method}),
    bound<&Rule::listener>({.name = "listener",
                            .kind = Kind::kTextList,
                            .doc = "Condition: the listener that was asked, by its `address` in "
                                   "`[[listen]]`.",
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
    bound<&Rule::cache>({.name = "cache",
                         .kind = Kind::kBool,
                         .doc = "false: nothing of it is stored, nor looked up in the cache."}),
    bound<&Rule::admission>(
        {.name = "admission",
         .kind = Kind::kChoice,
         .doc = "What may enter the cache, in place of `admission.policy`. `second-hit` and "
                "`nth-hit` use its filter, and want one of the two there, or `probation`; the "
                "policies that learn "
                "from all requests can only be had for all.",
         .choices = cache::kMemoryAdmissionNames}),
    bound<&Rule::min_requests>({.name = "min_requests",
                                .kind = Kind::kInteger,
                                .doc = "With `nth-hit`: the request at which it is stored.",
                                .range = {.min = 2, .max = cache::kMinRequestsMax}}),
    bound<&Rule::probability>({.name = "probability",
                               .kind = Kind::kReal,
                               .doc = "With `probability`: of each request.",
                               .range = {.min = 1e-6, .max = 1}}),
    bound<&Rule::size_threshold_bytes>({.name = "size_threshold",
                                        .kind = Kind::kBytes,
                                        .doc = "With `size-threshold`: stored up to it.",
                                        .range = {.min = 1, .max = 1e15}}),
    bound<&Rule::max_object_bytes>(
        {.name = "max_object",
         .kind = Kind::kBytes,
         .doc = "The largest body that is stored, in place of `cache.max_object`. Like that it is "
                "never more than an eighth of the memory, or of the disks.",
         .range = {.min = 1, .max = 1e15}}),
    bound<&Rule::fresh>(
        {.name = "fresh",
         .kind = Kind::kDuration,
         .doc = "How long a response without an error is fresh, from when it came, whatever its "
                "origin says of that. What forbids storing it, or using it unasked, still does: "
                "see `ignore`.",
         .range = kTenYears}),
    bound<&Rule::fresh_min>({.name = "fresh_min",
                             .kind = Kind::kDuration,
                             .doc = "Fresh for at least so long.",
                             .range = kTenYears}),
    bound<&Rule::fresh_max>({.name = "fresh_max",
                             .kind = Kind::kDuration,
                             .doc = "Fresh for at most so long.",
                             .range = kTenYears}),
    bound<&Rule::heuristic_with_cookie>(
        {.name = "heuristic_with_cookie",
         .kind = Kind::kBool,
         .doc = "Whether the freshness of responses to requests with `Cookie` is guessed, in place "
                "of `cache.heuristic_with_cookie`."}),
    bound<&Rule::negative>(
        {.name = "negative",
         .kind = Kind::kTextList,
         .doc = "How long responses with an error status are fresh, by status; a duration alone is "
                "for 404, 405, 410, 414 and 501. The first that names the status holds. May be "
                "written as `{404 = \"10s\", 5xx = \"1s\"}`.",
         .range = kItems,
         .one_will_do = true,
         .accepted = "\"10s\", \"404=10s\", \"5xx=1s\" or \"400-403=1m\"",
         .item_check = check_parsed<StatusLifeText>}),
    bound<&Rule::stale_while_revalidate>(
        {.name = "stale_while_revalidate",
         .kind = Kind::kDuration,
         .doc = "How long a stale response is served while it is validated, whatever its origin "
                "says of that. A response that never was fresh is served no longer than its "
                "origin allows.",
         .range = kTenYears}),
    bound<&Rule::stale_if_error>({.name = "stale_if_error",
                                  .kind = Kind::kDuration,
                                  .doc = "How long it is served where the origin fails, likewise.",
                                  .range = kTenYears}),
    bound<&Rule::ignore>(
        {.name = "ignore",
         .kind = Kind::kTextList,
         .doc = "What is overridden, and nothing else is: of the response `no-store`, `private`, "
                "`no-cache`, `set-cookie` (it is stored without them) and `vary`; of the request "
                "`client-no-cache` (and `max-age`, `min-fresh`, `Pragma`) and `authorization`. "
                "With `private`, `authorization` and `vary` one client gets what was made for "
                "another.",
         .range = kItems,
         .one_will_do = true,
         .accepted = "no-store, private, no-cache, client-no-cache, set-cookie, authorization, "
                     "vary",
         .item_check = check_ignored}),
    bound<&Rule::collapse>({.name = "collapse",
                            .kind = Kind::kBool,
                            .doc = "Whether requests wait for the same one under way, in place of "
                                   "`cache.collapse`."}),
    bound<&Rule::compress>({.name = "compress",
                            .kind = Kind::kBool,
                            .doc = "false: nothing of it is compressed here, whatever "
                                   "`[compression]` says. What is `verify`'d never is."}),
    bound<&Rule::cookies>(
        {.name = "cookies",
         .doc = "What a `Cookie` does. `bypass`: the request goes to its origin, and nothing of it "
                "is stored. `bypass:NAME`: so do requests with one of these cookies; all other "
                "cookies end here. `ignore`: it ends here. `key:NAME`: of its cookies only these "
                "go on, and what they say tells responses apart.",
         .accepted = "\"bypass\", \"bypass:NAME,...\", \"ignore\" or \"key:NAME,...\"; a name may "
                     "end with `*`",
         .item_check = check_parsed<CookiesText>}),
    bound<&Rule::key_query>(
        {.name = "key_query",
         .doc = "Which parameters of the query tell objects apart. The others are dropped, from "
                "what the origin sees, too, but with `origin_query`.",
         .accepted = "\"all\", \"none\", \"only:a,b\" or \"except:a,b\"; a name may end with `*`",
         .item_check = check_parsed<KeyQueryText>}),
    bound<&Rule::origin_query>({.name = "origin_query",
                                .kind = Kind::kBool,
                                .doc = "The origin sees the whole query in spite of `key_query`."}),
    bound<&Rule::key_fields>(
        {.name = "key_fields",
         .kind = Kind::kTextList,
         .doc = "Fields of the request that tell responses apart, as if each response named them "
                "in `Vary`. `cache.variants_max` bounds how many there are of a URL.",
         .range = {.min = 0, .max = 16},
         .one_will_do = true,
         .accepted = "names of fields",
         .item_check = check_field_name}),
    bound<&Rule::key>({.name = "key",
                       .kind = Kind::kChoice,
                       .doc = "`digest`: what has the same SHA-256 in its path (`sha256:HEX`, "
                              "`SHA256/HEX`) is one object, on whatever host and path. Wants "
                              "`verify`.",
                       .choices = kRuleKeyNames}),
    bound<&Rule::verify>({.name = "verify",
                          .kind = Kind::kChoice,
                          .doc = "`sha256`: a body that is not what the digest in its path says is "
                                 "not stored, and its client's connection is broken before its "
                                 "end.",
                          .choices = kVerifyNames}),
    bound<&Rule::authorization>(
        {.name = "authorization",
         .kind = Kind::kChoice,
         .doc = "`recheck`: what was asked for with `Authorization` may be stored, and each client "
                "gets it after its origin has said yes to a `HEAD` with that client's own "
                "credentials, or with none; each worker remembers the answer for a minute.",
         .choices = kAuthorizationNames}),
    bound<&Rule::follow_redirects>(
        {.name = "follow_redirects",
         .kind = Kind::kBool,
         .doc = "301, 302, 303, 307 and 308 are followed here where they lead to the same host, or "
                "to one of `follow_hosts`, and what comes is stored under the URL that was asked "
                "for. Where they lead is checked as what a client asks for is."}),
    bound<&Rule::follow_hosts>(
        {.name = "follow_hosts",
         .kind = Kind::kTextList,
         .doc = "With `follow_redirects`: hosts that redirections are followed to, besides the one "
                "that was asked for. They answer in its name: name those alone that you trust with "
                "that.",
         .range = kItems,
         .one_will_do = true,
         .accepted = "globs without a port (`*` is any run of characters)",
         .item_check = check_host_glob}),
};

constexpr std::array kActionKeys = {
    bound<&Rule::strip_prefix>({.name = "strip_prefix",
                                .doc = "Taken off the path that the origin is asked for.",
                                .accepted = "a path that starts with \"/\", or \"\"",
                                .item_check = check_prefix_or_empty}),
    bound<&Rule::add_prefix>({.name = "add_prefix",
                              .doc = "Put in front of it.",
                              .accepted = "a path that starts with \"/\", or \"\"",
                              .item_check = check_prefix_or_empty}),
    bound<&Rule::replace>({.name = "replace",
                           .kind = Kind::kTextList,
                           .doc = "Texts in it that are replaced, wherever they stand, one after "
                                  "the other.",
                           .range = {.min = 0, .max = 16},
                           .one_will_do = true,
                           .accepted = "\"FROM=>TO\"",
                           .item_check = check_replacement}),
    bound<&Rule::request_set>({.name = "request_set",
                               .kind = Kind::kTextList,
                               .doc = "Fields that the origin gets in place of the client's.",
                               .range = {.min = 0, .max = 64},
                               .one_will_do = true,
                               .accepted = "\"Name: value\"",
                               .item_check = check_parsed<FieldLineText>}),
    bound<&Rule::request_add>({.name = "request_add",
                               .kind = Kind::kTextList,
                               .doc = "Fields that it gets beside them.",
                               .range = {.min = 0, .max = 64},
                               .one_will_do = true,
                               .accepted = "\"Name: value\"",
                               .item_check = check_parsed<FieldLineText>}),
    bound<&Rule::request_remove>({.name = "request_remove",
                                  .kind = Kind::kTextList,
                                  .doc = "Fields that it does not get.",
                                  .range = {.min = 0, .max = 64},
                                  .one_will_do = true,
                                  .accepted = "names of fields",
                                  .item_check = check_edited_field}),
    bound<&Rule::response_set>({.name = "response_set",
                                .kind = Kind::kTextList,
                                .doc = "Fields that the client gets in place of the origin's. What "
                                       "is stored, and for how long, follows from the origin's.",
                                .range = {.min = 0, .max = 64},
                                .one_will_do = true,
                                .accepted = "\"Name: value\"",
                                .item_check = check_parsed<FieldLineText>}),
    bound<&Rule::response_add>({.name = "response_add",
                                .kind = Kind::kTextList,
                                .doc = "Fields that it gets beside them.",
                                .range = {.min = 0, .max = 64},
                                .one_will_do = true,
                                .accepted = "\"Name: value\"",
                                .item_check = check_parsed<FieldLineText>}),
    bound<&Rule::response_remove>({.name = "response_remove",
                                   .kind = Kind::kTextList,
                                   .doc = "Fields that it does not get.",
                                   .range = {.min = 0, .max = 64},
                                   .one_will_do = true,
                                   .accepted = "names of fields",
                                   .item_check = check_edited_field}),
    bound<&Rule::client_cache_control>(
        {.name = "client_cache_control",
         .doc = "`Cache-Control` that the client gets in place of the origin's, of responses that "
                "a shared cache may store and reuse. A response with `private`, `no-store` or "
                "`no-cache` keeps its own.",
         .accepted = "directives, as \"max-age=0, must-revalidate\"",
         .item_check = check_directives}),
    bound<&Rule::deny>({.name = "deny",
                        .kind = Kind::kInteger,
                        .doc = "The request is refused with this status.",
                        .range = {.min = 400, .max = 599}}),
    bound<&Rule::redirect>(
        {.name = "redirect",
         .doc = "The request is sent elsewhere: {host}, {path} and {query} (with its `?`) stand "
                "for the request's.",
         .accepted = "a URL or a path, as \"https://{host}{path}{query}\", or \"\"",
         .item_check = check_redirect}),
    bound<&Rule::redirect_status>({.name = "redirect_status",
                                   .kind = Kind::kInteger,
                                   .doc = "With `redirect`.",
                                   .range = {.min = 301, .max = 308}}),
    bound<&Rule::static_status>({.name = "static_status",
                                 .kind = Kind::kInteger,
                                 .doc = "The request is answered here, with this status.",
                                 .range = {.min = 200, .max = 599}}),
    bound<&Rule::static_body>({.name = "static_body",
                               .doc = "With `static_status`: the body.",
                               .accepted = "text of up to 64 KiB",
                               .item_check = check_static_text}),
    bound<&Rule::static_type>({.name = "static_type",
                               .doc = "With `static_status`: its `Content-Type`.",
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
