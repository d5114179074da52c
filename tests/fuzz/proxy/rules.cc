#include "tests/fuzz/proxy/rules.h"

#include <algorithm>
#include <array>
#include <utility>

namespace encore::proxyfuzz {
namespace {

constexpr std::array<std::string_view, 3> kClients = {"127.0.0.1", "127.0.0.2", "10.0.0.1"};

std::vector<std::string> parts_of(std::string_view text, char separator) {
  std::vector<std::string> all;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(separator), text.size());
    all.emplace_back(trim(text.substr(0, end)));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return all;
}

std::string name_of(std::string_view part) { return std::string(part.substr(0, part.find('='))); }

// A list of names, "a,b,c*".
bool is_in_list(std::string_view list, std::string_view name) {
  return std::ranges::any_of(parts_of(list, ','), [name](const std::string& one) {
    return one.ends_with('*') ? name.starts_with(std::string_view(one).substr(0, one.size() - 1))
                              : name == one;
  });
}

std::string joined_cookie(std::vector<std::string> pairs) {
  std::ranges::sort(pairs);
  std::string out;
  for (const std::string& pair : pairs) out += (out.empty() ? "" : "; ") + pair;
  return out;
}

std::string in_quotes(std::string_view text) { return "\"" + std::string(text) + "\""; }

std::string list_of(const std::vector<std::string>& texts) {
  std::string out = "[";
  for (const std::string& text : texts) out += (out.size() > 1 ? ", " : "") + in_quotes(text);
  return out + "]";
}

std::string lines_of(const Fields& fields) {
  std::vector<std::string> lines;
  for (const Field& field : fields) lines.push_back(field.name + ": " + field.value);
  return list_of(lines);
}

}  // namespace

bool Rule::is_match(std::string_view glob, std::string_view text) {
  const std::size_t star = glob.find('*');
  if (star == std::string_view::npos) return glob == text;
  const std::string_view front = glob.substr(0, star);
  if (!text.starts_with(front)) return false;
  for (std::size_t used = front.size(); used <= text.size(); ++used) {
    if (is_match(glob.substr(star + 1), text.substr(used))) return true;
  }
  return false;
}

bool Rule::holds_for(const RuleQuery& query) const {
  const auto is_path = [&](const std::string& glob) { return is_match(glob, query.path); };
  if (!paths.empty() && std::ranges::none_of(paths, is_path)) return false;
  if (!methods.empty() && std::ranges::find(methods, query.method) == methods.end()) return false;
  if (listener >= 0 && listener != query.listener) return false;
  if (clients.empty()) return true;
  return clients == "10.0.0.0/8" ? query.client.starts_with("10.") : clients == query.client;
}

bool Rule::admits(std::uint64_t bytes) const {
  if (admission == "never") return false;
  return !size_threshold || bytes <= static_cast<std::uint64_t>(*size_threshold);
}

bool Rule::ignores(std::string_view what) const {
  return std::ranges::find(ignored, what) != ignored.end();
}

bool Rule::says(const Field& line) const {
  return std::ranges::find(response_set, line) != response_set.end() ||
         std::ranges::find(response_add, line) != response_add.end();
}

bool Rule::takes(std::string_view line_name) const {
  const auto is_named = [line_name](const Field& line) { return same_name(line.name, line_name); };
  const auto is_same = [line_name](const std::string& one) { return same_name(one, line_name); };
  return std::ranges::any_of(response_set, is_named) ||
         std::ranges::any_of(response_remove, is_same);
}

std::string sorted_cookie(std::string_view cookie) { return joined_cookie(parts_of(cookie, ';')); }

std::string Rule::key_of(std::string_view query) const {
  if (key_query.empty()) return std::string(query);
  const bool only = key_query.starts_with("only:");
  const std::string_view list = std::string_view(key_query).substr(key_query.find(':') + 1);
  std::string out;
  for (const std::string& part : parts_of(query, '&')) {
    if (key_query == "none" || is_in_list(list, name_of(part)) != only) continue;
    out += (out.empty() ? "" : "&") + part;
  }
  return out;
}

std::optional<std::string> Rule::sent_cookie(std::string_view cookie) const {
  if (cookies == "ignore") return std::nullopt;
  if (!keys_by_cookie()) return sorted_cookie(cookie);
  std::vector<std::string> kept;
  for (const std::string& part : parts_of(cookie, ';')) {
    if (is_in_list(std::string_view(cookies).substr(4), name_of(part))) kept.push_back(part);
  }
  if (kept.empty()) return std::nullopt;
  return joined_cookie(std::move(kept));
}

// Strip, replace, add; a prefix ends where a segment does.
std::string Rule::sent_path(std::string_view path) const {
  std::string out(path);
  if (!strip_prefix.empty() && out.starts_with(strip_prefix + "/"))
    out.erase(0, strip_prefix.size());
  if (!replaced.empty()) {
    for (std::size_t at = out.find(replaced); at != std::string::npos;
         at = out.find(replaced, at + replacement.size())) {
      out.replace(at, replaced.size(), replacement);
    }
  }
  return add_prefix + out;
}

std::string Rule::location(std::string_view host, std::string_view path,
                           std::string_view query) const {
  std::string out = redirect;
  const auto fill = [&out](std::string_view brace, std::string_view value) {
    const std::size_t at = out.find(brace);
    if (at != std::string::npos) out.replace(at, brace.size(), value);
  };
  fill("{host}", host);
  fill("{path}", path);
  fill("{query}", query.empty() ? "" : "?" + std::string(query));
  return out;
}

namespace {

void draw_conditions(Random& random, Rule& rule) {
  static constexpr std::array<std::string_view, 10> kGlobs = {
      "/u*1", "/u*2", "*3", "*4*", "/u*5", "/u1*", "/u*6*", "/u2*", "/u*9", "/u*0"};
  for (std::uint64_t left = random.pick<std::uint64_t>({1, 1, 2, 3}); left > 0; --left) {
    rule.paths.emplace_back(kGlobs[random.below(kGlobs.size())]);
  }
  if (random.percent(7)) rule.paths = {"*"};
  if (random.percent(15)) {
    rule.methods = random.percent(70) ? std::vector<std::string>{"GET", "HEAD"}
                                      : std::vector<std::string>{"POST", "PUT"};
  }
  if (random.percent(25)) {
    rule.clients = random.pick<std::string_view>({"127.0.0.2", "10.0.0.0/8", "127.0.0.1"});
  }
  if (random.percent(15)) rule.listener = static_cast<int>(random.below(2));
}

void draw_answer(Random& random, Rule& rule) {
  switch (random.below(3)) {
    case 0:
      rule.deny = random.pick({403, 404, 451});
      break;
    case 1:
      rule.redirect = random.pick<std::string_view>(
          {"https://{host}/new{path}{query}", "/new{path}", "http://elsewhere.test{path}{query}"});
      rule.redirect_status = random.pick({301, 302, 308});
      break;
    default:
      rule.static_status = random.pick({200, 404});
      rule.static_body = "said by " + rule.name;
      break;
  }
}

void draw_storing(Random& random, Rule& rule) {
  const auto seconds = [&random] { return random.pick<std::int64_t>({0, 1, 1, 2, 60}); };
  rule.is_cached = !random.percent(5);
  if (random.percent(45)) {
    rule.admission = random.pick<std::string_view>(
        {"always", "always", "never", "size-threshold", "size-threshold", "size-threshold"});
    if (rule.admission == "size-threshold") {
      rule.size_threshold = random.pick<std::int64_t>({1, 1, 60, 300});
    }
  }
  if (random.percent(25)) {
    rule.fresh = seconds();
  } else if (random.percent(25)) {
    rule.fresh_min = random.pick<std::int64_t>({0, 1});
    if (random.percent(50)) rule.fresh_max = random.pick<std::int64_t>({1, 3});
  } else if (random.percent(15)) {
    rule.fresh_max = seconds();
  }
  if (random.percent(25)) {
    rule.negative.push_back(random.percent(50) ? Rule::Negative{404, 404, seconds()}
                                               : Rule::Negative{500, 599, seconds()});
  }
  if (random.percent(15)) rule.swr = seconds();
  if (random.percent(15)) rule.sie = seconds();
  if (!rule.waits() && random.percent(35)) {
    static constexpr std::array<std::string_view, 7> kWords = {
        "no-store",   "private",       "no-cache", "client-no-cache",
        "set-cookie", "authorization", "vary"};
    for (std::uint64_t left = random.between(1, 3); left > 0; --left) {
      const std::string_view word = kWords[random.below(kWords.size())];
      if (!rule.ignores(word)) rule.ignored.emplace_back(word);
    }
  }
  if (random.percent(20)) rule.max_object = random.pick<std::int64_t>({1, 300, 2000});
  if (rule.waits()) return;
  if (random.percent(15)) rule.collapse = random.percent(50);
  if (random.percent(15)) rule.heuristic_with_cookie = random.percent(50);
}

void draw_key(Random& random, Rule& rule) {
  if (random.percent(35)) {
    rule.cookies = random.pick<std::string_view>(
        {"bypass", "ignore", "ignore", "key:uid", "key:lang", "key:lang,uid"});
  }
  if (random.percent(45)) {
    rule.key_query = random.pick<std::string_view>(
        {"none", "only:id", "only:id", "only:id,p*", "except:utm_*", "except:utm_*,page"});
    rule.origin_query = random.percent(15);
  }
  if (random.percent(20)) rule.key_field = "X-Tenant";
}

void draw_asking(Random& random, Rule& rule) {
  rule.by_digest = random.percent(30);
  const std::uint64_t kind = random.below(100);
  if (kind < 25) {
    rule.rechecks = true;
  } else if (kind < 60) {
    rule.follows = true;
    rule.follow_hosts =
        random.pick<std::string_view>({"", "localhost", "local*", "local*", "*.test"});
  }
}

void draw_edits(Random& random, Rule& rule) {
  if (random.percent(12)) rule.add_prefix = "/v2";
  if (random.percent(10)) rule.strip_prefix = "/u";
  if (random.percent(10)) {
    rule.replaced = random.pick<std::string_view>({"/u", "1"});
    rule.replacement = random.pick<std::string_view>({"/x/u", "11", ""});
    if (rule.replaced == "/u" && rule.replacement != "/x/u") rule.replacement = "/u-";
  }
  if (random.percent(15)) rule.request_set.push_back({"X-Junk", "set by " + rule.name});
  if (random.percent(15)) rule.request_add.push_back({"X-More", "added by " + rule.name});
  if (random.percent(15)) rule.request_remove.emplace_back("X-Spare");
  // Answers differ by it.
  if (random.percent(12)) {
    if (random.percent(60)) {
      rule.request_set.push_back({"X-Lang", random.percent(50) ? "fr" : "en"});
    } else {
      rule.request_remove.emplace_back("X-Lang");
    }
  }
  if (random.percent(15)) rule.response_set.push_back({"X-Rand", "set by " + rule.name});
  if (random.percent(25)) rule.response_add.push_back({"X-Rule", "added by " + rule.name});
  if (random.percent(10)) {
    rule.response_remove.emplace_back(random.percent(50) ? "Last-Modified" : "Expires");
  }
}

}  // namespace

RuleTable RuleTable::draw(Random& random, int listeners) {
  RuleTable table;
  // Else all rules are the same for all clients, so that what one keeps is there for other rules.
  const bool may_depend = random.percent(60);
  for (std::uint64_t left = random.pick<std::uint64_t>({0, 1, 3, 4, 5, 6, 8}); left > 0; --left) {
    Rule rule;
    rule.name = "r" + std::to_string(table.rules_.size());
    draw_conditions(random, rule);
    rule.listener = may_depend ? std::min(rule.listener, listeners - 1) : -1;
    if (!may_depend) rule.clients.clear();
    if (random.percent(20)) {
      rule.content_type = random.pick<std::string_view>({"text/html", "text/*", "image/*"});
      rule.clients.clear();
      rule.listener = -1;
      draw_storing(random, rule);
    } else if (random.percent(12)) {
      draw_answer(random, rule);
    } else {
      draw_storing(random, rule);
      draw_key(random, rule);
      draw_edits(random, rule);
      draw_asking(random, rule);
    }
    table.rules_.push_back(std::move(rule));
  }
  return table;
}

const Rule* RuleTable::find(const RuleQuery& query) const {
  const auto found = std::ranges::find_if(
      rules_, [&](const Rule& rule) { return !rule.waits() && rule.holds_for(query); });
  return found == rules_.end() ? nullptr : &*found;
}

const Rule* RuleTable::find(const RuleQuery& query, std::string_view content_type) const {
  const auto found = std::ranges::find_if(rules_, [&](const Rule& rule) {
    return rule.holds_for(query) &&
           (!rule.waits() || Rule::is_match(rule.content_type, content_type));
  });
  return found == rules_.end() ? nullptr : &*found;
}

// The rules of all who may ask; null among them: none.
std::vector<const Rule*> RuleTable::all_of(std::string_view path) const {
  std::vector<const Rule*> all;
  for (const std::string_view method : {"GET", "HEAD"}) {
    for (const std::string_view client : kClients) {
      for (const int listener : {0, 1}) {
        all.push_back(
            find({.path = path, .method = method, .client = client, .listener = listener}));
      }
    }
  }
  return all;
}

std::vector<std::string> RuleTable::keys_of(std::string_view path, std::string_view query) const {
  std::vector<std::string> keys = {std::string(query)};
  for (const Rule* const rule : all_of(path)) keys.push_back(object_of(rule, path, query));
  return keys;
}

bool RuleTable::depends_on_who_asks() const {
  return std::ranges::any_of(rules_, [](const Rule& rule) {
    return !rule.answers() && rule.is_cached && (!rule.clients.empty() || rule.listener >= 0);
  });
}

void Rule::edit_lang(std::optional<std::string>& lang) const {
  for (const Field& line : request_set) {
    if (same_name(line.name, "X-Lang")) lang = line.value;
  }
  if (std::ranges::find(request_remove, "X-Lang") != request_remove.end()) lang.reset();
}

// Returns the rule's changes to the request that the origin receives.
std::string Rule::asks() const {
  std::string text = strip_prefix + "|" + add_prefix + "|" + replaced + "|" + replacement + "|";
  text += (origin_query ? "whole|" : "|") + key_field + "|";
  if (cookies != "bypass") text += cookies;
  if (by_digest) text += "|verifies";
  if (rechecks) text += "|rechecks";
  if (follows) text += "|follows " + follow_hosts;
  for (const Fields* const fields : {&request_set, &request_add}) {
    text += "|";
    for (const Field& field : *fields) text += field.name + ":" + field.value + ",";
  }
  for (const std::string& removed : request_remove) text += "|" + removed;
  return text;
}

// "It is there for those alone for whose request a rule says the same of it."
std::string RuleTable::object_of(const Rule* rule, std::string_view path,
                                 std::string_view query) const {
  static const Rule kNone;
  std::string object = rule == nullptr ? std::string(query) : rule->key_of(query);
  if (rule != nullptr && rule->keys_by_digest(path)) {
    object = kDigest;
    // If a host says who may have it, it is that host's own.
    if (rule->rechecks) object += "@";
  }
  if (!depends_on_who_asks()) return object;
  for (const std::string_view word :
       {"private", "no-store", "no-cache", "set-cookie", "authorization", "vary"}) {
    if (rule != nullptr && rule->rechecks && word == "authorization") continue;
    if (rule != nullptr && rule->ignores(word)) object += "#" + std::string(word);
  }
  const std::string asked = (rule == nullptr ? kNone : *rule).asks();
  return asked == kNone.asks() ? object : object + "#" + asked;
}

std::string RuleTable::text(const std::vector<std::string>& listeners) const {
  std::string out;
  const auto say = [&out](std::string_view key, const std::string& value) {
    out += std::string(key) + " = " + value + "\n";
  };
  const auto say_text = [&](std::string_view key, const std::string& value) {
    if (!value.empty()) say(key, in_quotes(value));
  };
  const auto say_list = [&](std::string_view key, const std::vector<std::string>& values) {
    if (!values.empty()) say(key, list_of(values));
  };
  const auto say_fields = [&](std::string_view key, const Fields& fields) {
    if (!fields.empty()) say(key, lines_of(fields));
  };
  const auto say_seconds = [&](std::string_view key, const std::optional<std::int64_t>& seconds) {
    if (seconds) say(key, in_quotes(std::to_string(*seconds) + "s"));
  };
  for (const Rule& rule : rules_) {
    out += "[[rule]]\n";
    say_text("name", rule.name);
    say_list("path", rule.paths);
    say_list("method", rule.methods);
    say_text("content_type", rule.content_type);
    say_text("clients", rule.clients);
    if (rule.listener >= 0) {
      say_text("listener", listeners[static_cast<std::size_t>(rule.listener)]);
    }
    if (!rule.is_cached) say("cache", "false");
    say_text("admission", rule.admission);
    if (rule.size_threshold) {
      say("size_threshold", in_quotes(std::to_string(*rule.size_threshold) + "B"));
    }
    say_seconds("fresh", rule.fresh);
    say_seconds("fresh_min", rule.fresh_min);
    say_seconds("fresh_max", rule.fresh_max);
    say_seconds("stale_while_revalidate", rule.swr);
    say_seconds("stale_if_error", rule.sie);
    if (rule.max_object) say("max_object", in_quotes(std::to_string(*rule.max_object) + "B"));
    std::vector<std::string> negative;
    for (const Rule::Negative& one : rule.negative) {
      negative.push_back(std::to_string(one.first) + "-" + std::to_string(one.last) + "=" +
                         std::to_string(one.seconds) + "s");
    }
    say_list("negative", negative);
    say_list("ignore", rule.ignored);
    if (rule.collapse) say("collapse", *rule.collapse ? "true" : "false");
    if (rule.heuristic_with_cookie) {
      say("heuristic_with_cookie", *rule.heuristic_with_cookie ? "true" : "false");
    }
    say_text("cookies", rule.cookies);
    say_text("key_query", rule.key_query);
    if (rule.origin_query) say("origin_query", "true");
    say_text("key_fields", rule.key_field);
    if (rule.by_digest) {
      say("key", in_quotes("digest"));
      say("verify", in_quotes("sha256"));
    }
    if (rule.rechecks) say("authorization", in_quotes("recheck"));
    if (rule.follows) say("follow_redirects", "true");
    say_text("follow_hosts", rule.follow_hosts);
    say_text("strip_prefix", rule.strip_prefix);
    say_text("add_prefix", rule.add_prefix);
    if (!rule.replaced.empty()) say_text("replace", rule.replaced + "=>" + rule.replacement);
    say_fields("request_set", rule.request_set);
    say_fields("request_add", rule.request_add);
    say_list("request_remove", rule.request_remove);
    say_fields("response_set", rule.response_set);
    say_fields("response_add", rule.response_add);
    say_list("response_remove", rule.response_remove);
    if (rule.deny != 0) say("deny", std::to_string(rule.deny));
    say_text("redirect", rule.redirect);
    if (rule.redirect_status != 0) say("redirect_status", std::to_string(rule.redirect_status));
    if (rule.static_status != 0) {
      say("static_status", std::to_string(rule.static_status));
      say_text("static_body", rule.static_body);
    }
  }
  return out;
}

}  // namespace encore::proxyfuzz
