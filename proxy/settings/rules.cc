#include "proxy/settings/rules.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "base/text.h"
#include "config/derive.h"
#include "filter/hash.h"
#include "proxy/settings/access.h"
#include "proxy/settings/glob.h"
#include "proxy/settings/path_readings.h"

namespace encore::server {
namespace {

using http::LifetimeRule;

// A longer path is not requested: the client determines how often there is something to replace.
constexpr std::size_t kRewrittenBytesMax = 64 * std::size_t{1024};

// The space for lines in replies that are gathered for one write.
constexpr std::size_t kLinesOfPlainHitMax = 2048;

std::uint32_t seconds_of(Nanoseconds duration) {
  const auto seconds = std::chrono::ceil<std::chrono::seconds>(duration).count();
  return static_cast<std::uint32_t>(std::clamp<std::int64_t>(seconds, 0, http::kDeltaMax));
}

std::optional<std::uint32_t> seconds_of(const std::optional<Nanoseconds>& duration) {
  return duration ? std::optional(seconds_of(*duration)) : std::nullopt;
}

bool matches_any(const std::vector<std::string>& globs, std::string_view text) {
  return std::ranges::any_of(globs, [text](const auto& glob) { return glob_matches(glob, text); });
}

// Statuses of errors that may be kept without a word of the origin's (RFC 9110 15.1).
constexpr std::uint16_t kUsualErrors[] = {404, 405, 410, 414, 501};

void add_errors(const config::Rule& rule, LifetimeRule& lifetimes) {
  for (const config::StatusLifeText& text : rule.negative) {
    const std::uint32_t seconds = seconds_of(text->life);
    if (!text->is_usual()) {
      lifetimes.errors.push_back({static_cast<std::uint16_t>(text->first),
                                  static_cast<std::uint16_t>(text->last), seconds});
      continue;
    }
    for (const std::uint16_t status : kUsualErrors) {
      lifetimes.errors.push_back({status, status, seconds});
    }
  }
}

void ignore(const std::string& what, RequestPolicy& request_policy) {
  http::Ignored& ignored = request_policy.store.ignored;
  ignored.no_store |= what == "no-store";
  ignored.is_private |= what == "private";
  ignored.no_cache |= what == "no-cache";
  ignored.set_cookie |= what == "set-cookie";
  ignored.authorization |= what == "authorization";
  request_policy.reuse.ignore_client_reload |= what == "client-no-cache";
  request_policy.stale.ignore_client_reload |= what == "client-no-cache";
  if (what == "vary") request_policy.store.ignores_vary = request_policy.vary.ignores_vary = true;
}

void name_what_tells_apart(const config::Rule& rule, http::VaryOptions& vary) {
  for (const std::string& field : rule.key_fields) {
    vary.further_names.push_back(lower_ascii(field));
  }
  if (rule.cookies && (*rule.cookies)->kind == config::Cookies::Kind::kIgnore) {
    vary.cookies = http::CookieUse::kNone;
  } else if (rule.cookies && !(*rule.cookies)->names.empty()) {
    // `bypass` as well: the cookies that it does not name end here. Why they end:
    // docs/decisions/0372.
    vary.cookies = http::CookieUse::kSome;
    vary.cookie_names = (*rule.cookies)->names;
    vary.further_names.emplace_back("cookie");
  }
  std::ranges::sort(vary.further_names);
  const auto repeated = std::ranges::unique(vary.further_names);
  vary.further_names.erase(repeated.begin(), repeated.end());
}

void choose_query(const config::KeyQuery& query, http::KeyOptions& keys) {
  switch (query.kind) {
    case config::KeyQuery::Kind::kAll:
      return;
    case config::KeyQuery::Kind::kNone:
      keys.keep_query.emplace();
      return;
    case config::KeyQuery::Kind::kOnly:
      keys.keep_query = query.names;
      return;
    case config::KeyQuery::Kind::kExcept:
      keys.drop_query.insert(keys.drop_query.end(), query.names.begin(), query.names.end());
      return;
  }
}

cache::AdmissionRule admission_of(const config::Rule& rule) {
  using Kind = cache::AdmissionRule::Kind;
  constexpr double kTwoTo32 = 4294967296.0;
  switch (*rule.admission) {
    case config::Policy::kAlways:
      return {.kind = Kind::kAlways};
    case config::Policy::kNever:
      return {.kind = Kind::kNever};
    case config::Policy::kSecondHit:
      return {.kind = Kind::kNthHit, .parameter = 2};
    case config::Policy::kNthHit:
      return {.kind = Kind::kNthHit, .parameter = rule.min_requests};
    case config::Policy::kProbability:
      return {.kind = Kind::kProbability,
              .parameter = static_cast<std::uint64_t>(std::ceil(rule.probability * kTwoTo32))};
    case config::Policy::kSizeThreshold:
      return {.kind = Kind::kSizeThreshold, .parameter = rule.size_threshold_bytes};
    case config::Policy::kExactSecondHit:
    case config::Policy::kTinyLfu:
    case config::Policy::kAdaptSize:
    case config::Policy::kProbation:
      break;  // the same for all
  }
  return {};
}

// False: there is no room for it.
bool replace_all(std::string& text, const std::string& from, const std::string& to) {
  const std::size_t bytes_max = std::max(kRewrittenBytesMax, text.size());
  std::string out;
  std::size_t used = 0;
  for (std::size_t at = text.find(from); at != std::string::npos; at = text.find(from, used)) {
    out.append(text, used, at - used).append(to);
    used = at + from.size();
    if (out.size() > bytes_max) return false;
  }
  if (used == 0) return true;
  text = out.append(text, used);
  return text.size() <= bytes_max;
}

// A prefix ends where a segment does.
bool is_below(std::string_view path, std::string_view prefix) {
  if (prefix.empty() || !path.starts_with(prefix)) return false;
  return prefix.ends_with('/') || path.size() == prefix.size() || path[prefix.size()] == '/';
}

// A path put together from pieces must not leave its directory.
std::string normalised(const std::string& path) {
  if (path.find("/.") == std::string::npos) return path;
  http::Target target;
  target.authority.host = "x";
  target.path = path;
  std::string text(http::key_bytes_max(target), '\0');
  const http::KeyText parts = http::write_key(target, {}, text);
  return text.substr(parts.path, parts.bytes - parts.path);
}

http::HeadEdits edits_of(const std::vector<config::FieldLineText>& set,
                         const std::vector<config::FieldLineText>& add,
                         const std::vector<std::string>& remove) {
  http::HeadEdits edits;
  for (const auto& line : set) edits.set(line->name, line->value);
  for (const auto& line : add) edits.add(line->name, line->value);
  for (const auto& name : remove) edits.remove(name);
  return edits;
}

std::optional<RuleAnswer> answer_of(const config::Rule& rule) {
  if (rule.deny) return RuleAnswer{.status = static_cast<int>(*rule.deny), .is_refusal = true};
  if (!rule.redirect.empty()) {
    return RuleAnswer{.status = static_cast<int>(rule.redirect_status), .location = rule.redirect};
  }
  if (!rule.static_status) return std::nullopt;
  return RuleAnswer{.status = static_cast<int>(*rule.static_status),
                    .body = rule.static_body,
                    .content_type = rule.static_type};
}

// Returns the part of a key for the directives about a response's audience that a rule overrides.
std::string ignored_part(const config::Rule& rule) {
  const bool rechecks = rule.authorization == config::AuthorizationUse::kRecheck;
  std::string part;
  for (const std::string_view word :
       {"no-store", "private", "no-cache", "set-cookie", "authorization", "vary"}) {
    if (std::ranges::find(rule.ignore, word) == rule.ignore.end()) continue;
    if (rechecks && word == "authorization") continue;  // it asks for each
    part.append(part.empty() ? "#ignore=" : ",").append(word);
  }
  return part;
}

// By what another response may come for the same URL, or another one is kept, than without the
// rule. Digits, for fields may be secrets.
std::string asks_part(const config::Rule& rule) {
  std::string text;
  const auto add = [&text](std::string_view what, std::string_view value) {
    if (!value.empty()) text.append(what).append("=").append(value).append("\n");
  };
  for (const auto& line : rule.request_set) {
    add("set", lower_ascii(line->name) + ":" + line->value);
  }
  for (const auto& line : rule.request_add) {
    add("add", lower_ascii(line->name) + ":" + line->value);
  }
  for (const std::string& name : rule.request_remove) add("remove", lower_ascii(name));
  add("strip_prefix", rule.strip_prefix);
  add("add_prefix", rule.add_prefix);
  for (const std::string& pair : rule.replace) add("replace", pair);
  if (rule.origin_query) add("origin_query", "true");
  for (const std::string& name : rule.key_fields) add("key_field", lower_ascii(name));
  if (rule.cookies) {
    const auto& cookies = *rule.cookies;
    if (cookies->kind == config::Cookies::Kind::kKey) {
      for (const std::string& name : cookies->names) add("cookie", name);
    } else if (cookies->kind == config::Cookies::Kind::kIgnore || !cookies->names.empty()) {
      add("cookies", "ignore");  // for those that bypass by name: stored ones came without any
    }
  }
  if (rule.verify == config::Verify::kSha256) add("verify", "sha256");
  if (rule.follow_redirects) add("follow_redirects", "true");
  for (const std::string& host : rule.follow_hosts) add("follow_host", lower_ascii(host));
  if (rule.authorization == config::AuthorizationUse::kRecheck) add("authorization", "recheck");
  if (text.empty()) return {};
  return fmt::format("#asks={:016x}",
                     filter::hash_key(filter::HashFamily::kXxh3, filter::Seed{}, text).lo);
}

// As hosts are compared with it (plain_host()): of IPv6 addresses without brackets, also in part.
std::string plain_glob(std::string_view glob) {
  if (glob.find('*') == std::string_view::npos) return plain_host(glob);
  if (glob.starts_with('[')) glob.remove_prefix(1);
  if (glob.ends_with(']')) glob.remove_suffix(1);
  return plain_host(glob);
}

std::vector<std::pair<std::string, std::string>> replacements_of(const config::Rule& rule) {
  std::vector<std::pair<std::string, std::string>> pairs;
  for (const std::string& text : rule.replace) {
    const std::size_t arrow = text.find("=>");
    pairs.emplace_back(text.substr(0, arrow), text.substr(arrow + 2));
  }
  return pairs;
}

std::string name_of(const config::Rule& rule, std::size_t number) {
  return rule.name.empty() ? "rule-" + std::to_string(number) : rule.name;
}

}  // namespace

Rule::Rule(const config::Rule& rule, std::size_t number, const RequestPolicy& forward,
           const RequestPolicy& reverse)
    : name_(name_of(rule, number)),
      detail_(rule.name.empty() ? name_ : "rule-" + name_),
      paths_(normal_globs(rule.path)),
      methods_(rule.method),
      listeners_(rule.listener),
      forward_(forward),
      reverse_(reverse),
      answer_(answer_of(rule)),
      request_edits_(edits_of(rule.request_set, rule.request_add, rule.request_remove)),
      response_edits_(edits_of(rule.response_set, rule.response_add, rule.response_remove)),
      strip_prefix_(rule.strip_prefix),
      add_prefix_(rule.add_prefix),
      replacements_(replacements_of(rule)) {
  for (const std::string& host : rule.host) hosts_.push_back(plain_glob(host));
  for (const std::string& host : rule.follow_hosts) follow_hosts_.push_back(plain_glob(host));
  for (const std::string& type : rule.content_type) content_types_.push_back(lower_ascii(type));
  for (const config::CidrText& block : rule.clients) clients_.push_back(*block);
  apply(rule, forward_);
  apply(rule, reverse_);
  set(kByDigest, rule.key == config::RuleKey::kDigest);
  set(kVerifies, rule.verify == config::Verify::kSha256);
  set(kRechecks, rule.authorization == config::AuthorizationUse::kRecheck);
  set(kFollowsRedirects, rule.follow_redirects);
  set(kBypassesCookies, rule.cookies && (*rule.cookies)->kind == config::Cookies::Kind::kBypass);
  set(kShowsWholeQuery, rule.origin_query);
  set(kRewritesPath, !strip_prefix_.empty() || !add_prefix_.empty() || !replacements_.empty());
  const bool chooses = rule.key_query && (*rule.key_query)->kind != config::KeyQuery::Kind::kAll;
  set(kChangesKey, chooses || by_digest());
  if (rule.client_cache_control) shared_edits_.set("Cache-Control", *rule.client_cache_control);
  set(kAllowsPlainHits, !answer_ && !rechecks() && response_edits_.only_adds() &&
                            shared_edits_.empty() &&
                            response_edits_.lines().size() <= kLinesOfPlainHitMax);
}

void Rule::apply(const config::Rule& rule, RequestPolicy& request_policy) const {
  request_policy.is_cached = rule.cache.value_or(request_policy.is_cached);
  request_policy.store.refuses = !request_policy.is_cached;
  request_policy.collapse = rule.collapse.value_or(request_policy.collapse);
  request_policy.compress = rule.compress && rule.verify == config::Verify::kNone;
  if (rule.max_object_bytes) request_policy.max_object_bytes = *rule.max_object_bytes;
  if (rule.admission) request_policy.admission = admission_of(rule);
  http::FreshnessOptions& freshness = request_policy.store.freshness;
  freshness.heuristic_with_cookie =
      rule.heuristic_with_cookie.value_or(freshness.heuristic_with_cookie);
  LifetimeRule& lifetimes = freshness.rule;
  lifetimes.seconds = seconds_of(rule.fresh);
  lifetimes.seconds_min = seconds_of(rule.fresh_min);
  lifetimes.seconds_max = seconds_of(rule.fresh_max);
  add_errors(rule, lifetimes);
  request_policy.swr_seconds = seconds_of(rule.stale_while_revalidate);
  request_policy.sie_seconds = seconds_of(rule.stale_if_error);
  for (const std::string& what : rule.ignore) ignore(what, request_policy);
  if (rule.authorization == config::AuthorizationUse::kRecheck) {
    request_policy.store.ignored.authorization = true;
    request_policy.collapse = false;  // each asks for itself
  }
  name_what_tells_apart(rule, request_policy.vary);
  request_policy.vary.decided_names = request_edits_.left_out();
  if (rule.key_query) choose_query(**rule.key_query, request_policy.keys);
}

std::string Rule::rewritten(std::string_view path) const {
  std::string text(path);
  if (is_below(text, strip_prefix_)) {
    text.erase(0, strip_prefix_.size());
    if (!text.starts_with('/')) text.insert(0, 1, '/');
  }
  for (const auto& [from, to] : replacements_) {
    if (!replace_all(text, from, to)) return {};
  }
  if (!add_prefix_.empty()) {
    // Not out of the prefix either.
    text = text.starts_with('/') ? normalised(text) : normalised("/" + text).substr(1);
    const bool twice = add_prefix_.ends_with('/') && text.starts_with('/');
    text.insert(0, add_prefix_, 0, add_prefix_.size() - (twice ? 1 : 0));
  }
  if (!text.starts_with('/')) text.insert(0, 1, '/');
  return normalised(text);
}

// As plain_host() has it.
bool Rule::matches_host(std::string_view host) const {
  return hosts_.empty() || matches_any(hosts_, host);
}

bool Rule::matches_rest(const RuleQuery& query) const {
  if (!paths_.empty() && !matches_any(paths_, query.path)) return false;
  if (!methods_.empty() && std::ranges::find(methods_, query.method) == methods_.end()) {
    return false;
  }
  return listeners_.empty() || query.listener.empty() ||
         std::ranges::find(listeners_, query.listener) != listeners_.end();
}

bool Rule::matches_client(const RuleQuery& query) const {
  if (clients_.empty() || query.client == nullptr) return true;
  const auto bytes = query.client->mapped_bytes();
  return std::ranges::any_of(clients_,
                             [&](const config::Cidr& block) { return block.contains(bytes); });
}

bool Rule::names_form_of(std::string_view path) const {
  return std::ranges::any_of(paths_, [path](const std::string& glob) {
    return names_its_form(glob) && glob_matches(glob, path);
  });
}

bool Rule::matches_content_type(std::string_view type) const {
  return content_types_.empty() || matches_any(content_types_, type);
}

Rules::Rules(const std::vector<config::Rule>& rules, const RequestPolicy& forward,
             const RequestPolicy& reverse, const SeriesBounds& bounds, const Rules* before) {
  std::vector<std::string> names;
  for (const config::Rule& rule : rules) names.push_back(name_of(rule, names.size()));
  series_ = SeriesTable<RuleCounts>(names, bounds, before == nullptr ? nullptr : &before->series_);
  // Then a URL may be another rule's for another client.
  const bool depend_on_who_asks = config::depend_on_who_asks(rules);
  for (const config::Rule& rule : rules) {
    auto made = std::make_unique<Rule>(rule, rules_.size(), forward, reverse);
    made->counts_ = series_.of(made->name_);
    made->asks_ = asks_part(rule);
    if (depend_on_who_asks) made->apart_ = ignored_part(rule) + made->asks_;
    if (!made->apart_.empty()) made->set(Rule::kChangesKey, true);
    rules_.push_back(std::move(made));
    wait_for_content_types_ |= rules_.back()->waits_for_content_type();
    refuse_any_ |= rule.deny.has_value();
    has_paths_ |= !rule.path.empty();
    for (const std::string& host : rules_.back()->hosts_) {
      if (host.find('*') == std::string::npos) by_host_.try_emplace(host);
    }
  }
  for (std::uint32_t i = 0; i < rules_.size(); ++i) {
    const Rule& rule = *rules_[i];
    const auto is_glob = [](const std::string& host) {
      return host.find('*') != std::string::npos;
    };
    if (rule.hosts_.empty() || std::ranges::any_of(rule.hosts_, is_glob)) {
      of_other_hosts_.push_back(i);
    }
    for (auto& [host, list] : by_host_) {
      if (rule.matches_host(host)) list.push_back(i);
    }
  }
}

namespace {

// As plain_host() has it, of a host in lower case: names and IPv4 addresses are that already, but
// for the dot that ends a whole name (RFC 3986 3.2.2).
std::string_view compared_host(std::string_view host, std::string& storage) {
  if (host.contains(':')) return storage = plain_host(host);
  if (host.size() > 1 && host.ends_with('.')) host.remove_suffix(1);
  return host;
}

}  // namespace

const std::vector<std::uint32_t>& Rules::candidates(std::string_view host, bool& is_known) const {
  const auto known = by_host_.find(host);
  is_known = known != by_host_.end();
  return is_known ? known->second : of_other_hosts_;
}

Rules::Found Rules::find(const RuleQuery& query) const {
  Found found = find_as_it_stands(query);
  if (!has_paths_) return found;
  const PathReadings readings = other_readings(query.path, query.path_as_sent);
  const bool is_meant =
      found.rule != nullptr && !readings.reveals_dots && found.rule->names_form_of(query.path);
  found.is_ambiguous = !readings.is_complete;
  for (const std::string& reading : readings.others) {
    RuleQuery other = query;
    other.path = reading;
    const Found there = find_as_it_stands(other);
    found.by_client |= there.by_client;
    if (there.rule == found.rule && there.waiting == found.waiting) continue;
    const bool is_refused =
        there.rule != nullptr && there.rule->answer() && there.rule->answer()->is_refusal;
    found.is_ambiguous |= is_refused || !is_meant;
  }
  return found;
}

Rules::Found Rules::find_as_it_stands(const RuleQuery& query) const {
  Found found;
  bool is_known = false;
  std::string storage;
  const std::string_view host = compared_host(query.host, storage);
  for (const std::uint32_t index : candidates(host, is_known)) {
    const Rule& rule = *rules_[index];
    if (!rule.matches_rest(query) || (!is_known && !rule.matches_host(host))) continue;
    found.by_client |= !rule.clients_.empty();
    if (!rule.matches_client(query)) continue;
    if (rule.waits_for_content_type()) {
      constexpr std::uint64_t kFactor = 0x9e3779b97f4a7c15U;  // odd, so that each place counts
      found.waiting = (found.waiting + index + 1) * kFactor;
      continue;
    }
    found.rule = &rule;
    break;
  }
  return found;
}

const Rule* Rules::find(const RuleQuery& query, std::string_view content_type) const {
  bool is_known = false;
  std::string storage;
  const std::string_view host = compared_host(query.host, storage);
  for (const std::uint32_t index : candidates(host, is_known)) {
    const Rule& rule = *rules_[index];
    if (rule.matches_rest(query) && (is_known || rule.matches_host(host)) &&
        rule.matches_client(query) && rule.matches_content_type(content_type)) {
      return &rule;
    }
  }
  return nullptr;
}

bool Rules::may_answer(const RuleQuery& query, const RuleQuery& asked) const {
  if (may_answer_as_it_stands(query, asked, Answers::kAll)) return true;
  if (!refuse_any_) return false;
  const PathReadings readings = other_readings(query.path, query.path_as_sent);
  if (!readings.is_complete) return true;
  return std::ranges::any_of(readings.others, [&](const std::string& reading) {
    RuleQuery other = query;
    other.path = reading;
    return may_answer_as_it_stands(other, asked, Answers::kRefusals);
  });
}

bool Rules::may_answer_as_it_stands(const RuleQuery& query, const RuleQuery& asked,
                                    Answers answers) const {
  std::string storage;
  std::string storage_asked;
  const std::string_view host = compared_host(query.host, storage);
  const std::string_view host_asked = compared_host(asked.host, storage_asked);
  // True while each rule so far matches both requests or neither.
  bool is_same = true;
  for (const auto& rule : rules_) {
    if (rule->waits_for_content_type()) continue;
    const bool holds = rule->matches_rest(query) && rule->matches_host(host);
    const bool held = rule->matches_rest(asked) && rule->matches_host(host_asked);
    is_same = is_same && holds == held;
    if (!holds) continue;
    const bool counts = rule->answer() && (answers == Answers::kAll || rule->answer()->is_refusal);
    // A client that the rule answers there, too, has never come here.
    if (counts && !is_same) return true;
    if (rule->clients_.empty() && rule->listeners_.empty()) return false;
  }
  return false;
}

std::vector<const Rule*> Rules::changing_keys(std::string_view asked, std::string_view path) const {
  std::vector<const Rule*> found;
  bool is_known = false;
  std::string storage;
  const std::string_view host = compared_host(asked, storage);
  for (const std::uint32_t index : candidates(host, is_known)) {
    const Rule& rule = *rules_[index];
    const bool for_path = rule.paths_.empty() || matches_any(rule.paths_, path);
    if (rule.changes_key() && for_path && (is_known || rule.matches_host(host))) {
      found.push_back(&rule);
    }
  }
  return found;
}

std::string media_type(std::string_view content_type) {
  const std::string_view type = content_type.substr(0, content_type.find(';'));
  return lower_ascii(http::trim_ows(type));
}

std::string filled_in(std::string_view location, std::string_view host, std::string_view path,
                      std::string_view query) {
  std::string text;
  while (!location.empty()) {
    const std::size_t open = std::min(location.find('{'), location.size());
    text += location.substr(0, open);
    location.remove_prefix(open);
    if (location.empty()) break;
    const std::size_t close = location.find('}');
    const std::string_view name = location.substr(0, close + 1);
    location.remove_prefix(name.size());
    text += name == "{host}" ? host : name == "{path}" ? path : query;
  }
  return text;
}

}  // namespace encore::server
