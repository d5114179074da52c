// Checks the texts of rules, and which keys of a rule go together.
#include <algorithm>
#include <array>

#include "base/text.h"
#include "cache/options.h"
#include "config/derive.h"
#include "config/draft.h"
#include "config/keys.h"

namespace encore::config {
namespace {

constexpr std::size_t kGlobBytesMax = 1024;
constexpr std::size_t kStaticBytesMax = 64 * kKiB;

bool is_plain(std::string_view text) {
  return std::ranges::all_of(text, [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return byte > 0x20 && byte != 0x7f;
  });
}

// Directives of Cache-Control that are a number of seconds; clients ignore them with another value.
constexpr std::array<std::string_view, 4> kSeconds = {"max-age", "s-maxage",
                                                      "stale-while-revalidate", "stale-if-error"};

// Removes the first member of a list and returns it; a comma within quotes does not end it.
std::string_view take_member(std::string_view& rest) {
  std::size_t end = 0;
  for (bool quoted = false; end < rest.size() && (quoted || rest[end] != ','); ++end) {
    if (rest[end] == '"') quoted = !quoted;
  }
  std::string_view member = rest.substr(0, end);
  rest.remove_prefix(std::min(rest.size(), end + 1));
  while (member.starts_with(' ')) member.remove_prefix(1);
  while (member.ends_with(' ')) member.remove_suffix(1);
  return member;
}

Result<void> check_directive(std::string_view member) {
  const std::size_t equals = std::min(member.find('='), member.size());
  const auto name = check_field_name(member.substr(0, equals));
  if (!name) return fail("has \"" + std::string(member) + "\", which is not a directive");
  if (std::ranges::find(kSeconds, lower_ascii(*name)) == kSeconds.end()) return {};
  const std::string_view value = member.substr(std::min(member.size(), equals + 1));
  if (value.empty() || value.find_first_not_of("0123456789") != std::string_view::npos) {
    return fail("has " + *name + " without a number of seconds");
  }
  return {};
}

std::string element(std::size_t index, std::string_view key) {
  return "rule." + std::to_string(index) + "." + std::string(key);
}

bool remembers_requests(Policy policy) {
  return policy == Policy::kSecondHit || policy == Policy::kNthHit;
}

bool learns_from_all(Policy policy) {
  return policy == Policy::kTinyLfu || policy == Policy::kAdaptSize ||
         policy == Policy::kExactSecondHit;
}

// Returns a key that must be known before the request is sent, and so cannot wait for its
// content_type.
const char* asks_before(const Rule& rule) {
  if (rule.cookies) return "cookies";
  if (rule.key_query) return "key_query";
  if (!rule.key_fields.empty()) return "key_fields";
  if (rule.key != RuleKey::kUrl) return "key";
  if (rule.verify != Verify::kNone) return "verify";
  if (rule.authorization != AuthorizationUse::kRfc) return "authorization";
  if (rule.follow_redirects) return "follow_redirects";
  if (rule.collapse) return "collapse";
  if (!rule.compress) return "compress";
  if (!rule.strip_prefix.empty()) return "strip_prefix";
  if (!rule.add_prefix.empty()) return "add_prefix";
  if (!rule.replace.empty()) return "replace";
  if (!rule.request_set.empty()) return "request_set";
  if (!rule.request_add.empty()) return "request_add";
  if (!rule.request_remove.empty()) return "request_remove";
  if (!rule.response_set.empty()) return "response_set";
  if (!rule.response_add.empty()) return "response_add";
  if (!rule.response_remove.empty()) return "response_remove";
  if (rule.client_cache_control) return "client_cache_control";
  if (rule.deny) return "deny";
  if (!rule.redirect.empty()) return "redirect";
  if (rule.static_status) return "static_status";
  const auto asks = [](const std::string& name) {
    return name == "client-no-cache" || name == "vary";
  };
  return std::ranges::any_of(rule.ignore, asks) ? "ignore" : nullptr;
}

}  // namespace

Result<std::string> check_rule_name(std::string_view text) {
  if (text.empty()) return std::string();
  auto name = check_token(text);
  if (!name) return fail("is not a name");
  return name;
}

Result<std::string> check_glob(std::string_view text) {
  if (text.empty() || text.size() > kGlobBytesMax || !is_plain(text)) return fail("is not a glob");
  return std::string(text);
}

Result<std::string> check_rule_path(std::string_view text) {
  if (text.empty() || text.size() > kGlobBytesMax) return fail("is not a path");
  return check_path_glob(text);
}

Result<std::string> check_ignored(std::string_view text) {
  static constexpr std::array<std::string_view, 7> kNames = {
      "no-store", "private", "no-cache", "client-no-cache", "authorization", "set-cookie", "vary"};
  if (std::ranges::find(kNames, text) == kNames.end()) return fail("is unknown");
  return std::string(text);
}

Result<std::string> check_prefix_or_empty(std::string_view text) {
  return text.empty() ? Result<std::string>(std::string()) : check_path_prefix(text);
}

Result<std::string> check_replacement(std::string_view text) {
  const std::size_t arrow = text.find("=>");
  if (arrow == std::string_view::npos || arrow == 0) return fail("has no \"=>\" behind a text");
  if (text.size() > kGlobBytesMax || !is_plain(text) ||
      text.find_first_of("?#", 0) != std::string_view::npos) {
    return fail("contains characters that a path cannot have");
  }
  return std::string(text);
}

Result<std::string> check_redirect(std::string_view text) {
  if (text.empty()) return std::string();
  const bool absolute = text.starts_with("http://") || text.starts_with("https://");
  if (!absolute && !text.starts_with('/')) return fail("is neither a URL nor a path");
  if (text.size() > kGlobBytesMax || !is_plain(text))
    return fail("contains characters that a URL cannot have");
  std::string_view rest = text;
  while (true) {
    const std::size_t open = rest.find_first_of("{}");
    if (open == std::string_view::npos) break;
    rest.remove_prefix(open);
    const auto known = [rest](std::string_view name) { return rest.starts_with(name); };
    if (!known("{host}") && !known("{path}") && !known("{query}")) {
      return fail("has a brace that is neither {host}, {path} nor {query}");
    }
    rest.remove_prefix(rest.find('}') + 1);
  }
  return std::string(text);
}

Result<std::string> check_static_text(std::string_view text) {
  if (text.size() > kStaticBytesMax) return fail("is too long");
  return std::string(text);
}

// Cache-Control as one line: no value that a client would read as nothing.
Result<std::string> check_directives(std::string_view text) {
  auto line = parse_field_line("Cache-Control:" + std::string(text));
  if (!line) return std::unexpected(line.error());
  if (line->value.empty()) return fail("has no directive");
  if (line->value.size() > kGlobBytesMax) return fail("is too long");
  for (std::string_view rest = line->value; !rest.empty();) {
    if (auto good = check_directive(take_member(rest)); !good) {
      return std::unexpected(good.error());
    }
  }
  return std::move(line->value);
}

Result<std::string> check_media_type(std::string_view text) {
  const auto good = [](char c) { return static_cast<unsigned char>(c) >= 0x20 && c != 0x7f; };
  if (text.find('/') == std::string_view::npos || text.size() > 256 ||
      !std::ranges::all_of(text, good)) {
    return fail("is not a media type");
  }
  return std::string(text);
}

Result<std::string> check_edited_field(std::string_view text) {
  auto line = parse_field_line(std::string(text) + ":");
  if (!line) return std::unexpected(line.error());
  return std::move(line->name);
}

Result<std::string> check_client_field(std::string_view text) {
  if (text.empty()) return std::string();
  return check_edited_field(text);
}

void Draft::check_rules() {
  for (std::size_t i = 0; i < config.rule.size(); ++i) check_rule(i);
}

void Draft::check_rule(std::size_t index) {
  const Rule& rule = config.rule[index];
  const auto at = [index](std::string_view key) { return element(index, key); };
  check_are_listeners(at("listener"), rule.listener);
  if (const char* early = asks_before(rule); early != nullptr && !rule.content_type.empty()) {
    fault_at(at(early),
             "applies before the response, whose content_type this rule needs; accepted: in a rule "
             "without content_type");
  }
  check_rule_keeps_apart(index);
  if (rule.fresh && (rule.fresh_min || rule.fresh_max)) {
    fault_at(at("fresh"), "together with fresh_min or fresh_max; accepted: one or the other");
  }
  if (rule.fresh_min && rule.fresh_max && *rule.fresh_min > *rule.fresh_max) {
    fault_at(at("fresh_min"), "is more than fresh_max; accepted: up to it");
  }
  if (rule.key == RuleKey::kDigest && rule.verify == Verify::kNone) {
    fault_at(at("key"),
             "\"digest\" without verify: one wrong body would be served for all; accepted: with "
             "verify = \"sha256\"");
  }
  const int answers = static_cast<int>(rule.deny.has_value()) +
                      static_cast<int>(!rule.redirect.empty()) +
                      static_cast<int>(rule.static_status.has_value());
  if (answers > 1) {
    fault_at(at(rule.deny ? "deny" : "redirect"),
             "together with another answer; accepted: one of deny, redirect and static_status");
  }
  const std::uint32_t status = rule.redirect_status;
  const bool redirects =
      status == 301 || status == 302 || status == 303 || status == 307 || status == 308;
  if (!redirects) {
    fault_at(at("redirect_status"), "is not a redirection; accepted: 301, 302, 303, 307 or 308");
  }
  const Rule usual;
  const auto needs = [&](std::string_view key, bool is_said, std::string_view other) {
    if (is_said) fault_at(at(key), "without " + std::string(other) + "; accepted: with it");
  };
  if (rule.redirect.empty() && redirects) {
    needs("redirect_status", status != usual.redirect_status, "redirect");
  }
  if (!rule.static_status) {
    needs("static_body", rule.static_body != usual.static_body, "static_status");
    needs("static_type", rule.static_type != usual.static_type, "static_status");
  }
  needs("follow_hosts", !rule.follow_redirects && !rule.follow_hosts.empty(), "follow_redirects");
  check_rule_admission(rule, at("admission"));
}

// Reports rules whose keys cannot separate responses that are stored against their origin's word:
// keys are made before the response, and its content_type, is known. Rules behind such a rule
// change keys alone.
void Draft::check_rule_keeps_apart(std::size_t index) {
  const Rule& rule = config.rule[index];
  if (rule.content_type.empty() || !depend_on_who_asks(std::span(config.rule).first(index + 1))) {
    return;
  }
  for (const std::string& word : rule.ignore) {
    // A response says nothing of these: they are read before it (asks_before()).
    if (word == "client-no-cache" || word == "vary") continue;
    fault_at(element(index, "ignore"),
             "\"" + word +
                 "\" with content_type, after a rule that depends on clients or listener: all "
                 "clients would share the stored responses; accepted: in a rule without "
                 "content_type, or before those");
    return;
  }
}

void Draft::check_rule_admission(const Rule& rule, const std::string& path) {
  if (!rule.admission) return;
  const Policy policy = *rule.admission;
  const Policy all = config.admission.policy;
  if (remembers_requests(policy) && !remembers_requests(all) && all != Policy::kProbation) {
    fault_at(path,
             "needs the filter of admission.policy; accepted: with \"second-hit\", \"nth-hit\" or "
             "\"probation\" there");
  }
  if (learns_from_all(policy) && policy != all) {
    fault_at(path, "learns from all requests; accepted: where admission.policy is the same");
  }
}

}  // namespace encore::config
