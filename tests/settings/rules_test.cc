#include "proxy/settings/rules.h"

#include <functional>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "proxy/settings/glob.h"
#include "proxy/settings/url_keys.h"
#include "tests/catch.h"

namespace encore::server {
namespace {

Rules make_rules(const std::vector<config::Rule>& rules) {
  return Rules(rules, RequestPolicy{}, RequestPolicy{});
}

std::string found(const Rules& rules, const RuleQuery& query) {
  const Rule* rule = rules.find(query).rule;
  return rule == nullptr ? "none" : rule->name();
}

template <typename T>
const T& pick(const std::vector<T>& from, std::mt19937_64& random) {
  return from[random() % from.size()];
}

}  // namespace

TEST_CASE("the first rule whose conditions all hold is found, as a look at each would find it",
          "[settings][rules]") {
  const std::vector<std::string> hosts = {"a.example", "b.example", "*.example", "*", "a.*"};
  const std::vector<std::string> paths = {"/", "/x/*", "*.deb", "/x/y", "*"};
  const std::vector<std::string> methods = {"GET", "POST"};
  const std::vector<std::string> types = {"text/*", "image/png"};
  const std::vector<config::CidrText> blocks = {"10.0.0.0/8", "10.1.0.0/16", "::1"};
  const std::uint64_t seed = Catch::rngSeed();
  std::mt19937_64 random(seed);
  INFO("seed " << seed);
  const auto some = [&random](const auto& from, auto& to) {
    for (std::uint64_t left = random() % 3; left != 0; --left) to.push_back(pick(from, random));
  };
  for (int turn = 0; turn < 300; ++turn) {
    std::vector<config::Rule> rules(random() % 8);
    for (config::Rule& rule : rules) {
      some(hosts, rule.host);
      some(paths, rule.path);
      if (random() % 2 == 0) some(methods, rule.method);
      if (random() % 3 == 0) some(types, rule.content_type);
      if (random() % 3 == 0) some(blocks, rule.clients);
      if (random() % 4 == 0) rule.listener = {"127.0.0.1:1"};
    }
    const Rules made = make_rules(rules);
    for (int ask = 0; ask < 40; ++ask) {
      const std::string host =
          pick<std::string>({"a.example", "b.example", "c.org", "a.b"}, random);
      const std::string path = pick<std::string>({"/", "/x/y", "/x/z.deb", "/q"}, random);
      const std::string method = pick(methods, random);
      const std::string type = pick<std::string>({"text/html", "image/png", ""}, random);
      const auto client = net::Address::parse_ip(
          pick<std::string>({"10.1.2.3", "10.2.2.3", "::1", "9.9.9.9"}, random), 1);
      REQUIRE(client.has_value());
      const std::string listener = pick<std::string>({"127.0.0.1:1", "127.0.0.1:2"}, random);
      const RuleQuery query{host, path, method, listener, &*client};
      const auto holds = [&](const config::Rule& rule, bool by_type) {
        const auto any = [](const auto& globs, const std::string& text) {
          return globs.empty() || std::ranges::any_of(globs, [&](const std::string& glob) {
                   return glob_matches(glob, text);
                 });
        };
        const bool in_block = rule.clients.empty() ||
                              std::ranges::any_of(rule.clients, [&](const config::CidrText& block) {
                                return block->contains(client->mapped_bytes());
                              });
        return any(rule.host, host) && any(rule.path, path) && any(rule.method, method) &&
               any(rule.listener, listener) && in_block &&
               (by_type ? any(rule.content_type, type) : rule.content_type.empty());
      };
      std::string first = "none";
      std::string first_by_type = "none";
      for (std::size_t i = rules.size(); i-- > 0;) {
        if (holds(rules[i], false)) first = "rule-" + std::to_string(i);
        if (holds(rules[i], true)) first_by_type = "rule-" + std::to_string(i);
      }
      CHECK(found(made, query) == first);
      const Rule* by_type = made.find(query, type);
      CHECK((by_type == nullptr ? "none" : by_type->name()) == first_by_type);
    }
  }
}

TEST_CASE("a path for which one rule holds in one reading and another in another is ambiguous",
          "[settings][rules]") {
  std::vector<config::Rule> rules(4);
  rules[0].name = "first";
  rules[0].path = {"/admin/public/*"};
  rules[1].name = "deny";
  rules[1].path = {"/admin/*"};
  rules[1].deny = 403;
  rules[2].name = "local";
  rules[2].path = {"/local/*"};
  rules[2].clients = {"127.0.0.1"};
  rules[2].deny = 403;
  rules[3].name = "odd";
  rules[3].path = {"/x%2F*", "//x/*", "/@*"};
  const Rules made = make_rules(rules);
  const auto of = [&](const char* path, const char* as_sent = "") {
    const RuleQuery query{.host = "a", .path = path, .method = "GET", .path_as_sent = as_sent};
    return made.find(query).is_ambiguous ? "ambiguous" : found(made, query);
  };
  CHECK(of("/admin/x") == "deny");
  CHECK(of("/admin/x;v=1") == "deny");
  for (const char* path : {"/admin%2Fx", "//admin/x", "/x/..%2Fadmin/x", "/x/..;/admin/x",
                           "/x\\..\\admin\\x", "/x/%252e%252e/admin/x", "/admin/..%2Fx"}) {
    CAPTURE(path);
    CHECK(of(path) == "ambiguous");
  }
  CHECK(of("/admin/x", "/x/%2e%2e/admin/x") == "ambiguous");
  CHECK(of("/admin/x", "/x/../admin/x") == "deny");
  // Not by way of what an earlier rule holds for.
  CHECK(of("/admin/public/x") == "first");
  CHECK(of("/admin/public/..%2Fx") == "ambiguous");
  CHECK(of("/admin/public//x") == "first");
  // A glob that says how a path is written means that; not with dots, nor to what is refused.
  CHECK(of("/x%2F..%2Fz") == "ambiguous");
  CHECK(of("/x%2F..%2Fadmin%2Fx") == "ambiguous");
  CHECK(of("/x%2Fy") == "odd");
  CHECK(of("//x/y") == "odd");
  CHECK(of("/@scope%2Fname") == "odd");
  CHECK(of("/x/y") == "none");
  const auto other = net::Address::parse_ip("192.0.2.1", 1);
  const auto by_other =
      made.find({.host = "a", .path = "//local/x", .method = "GET", .client = &*other});
  CHECK(by_other.rule == nullptr);
  CHECK(by_other.by_client);
}

TEST_CASE("what another client would find otherwise is marked as such", "[settings][rules]") {
  std::vector<config::Rule> rules(2);
  rules[0].path = {"/a"};
  rules[0].clients = {"10.0.0.0/8"};
  const Rules made = make_rules(rules);
  const auto other = net::Address::parse_ip("9.9.9.9", 1);
  CHECK(made.find({.host = "h", .path = "/a", .method = "GET", .client = &*other}).by_client);
  CHECK_FALSE(made.find({.host = "h", .path = "/b", .method = "GET", .client = &*other}).by_client);
}

TEST_CASE("a rule rewrites paths by segments, and never out of where they stand",
          "[settings][rules]") {
  config::Rule rule;
  rule.strip_prefix = "/app";
  rule.add_prefix = "/v2/";
  rule.replace = {"x=>"};
  const Rules made = make_rules({rule});
  CHECK(made[0].rewritten("/app/a") == "/v2/a");
  CHECK(made[0].rewritten("/app") == "/v2/");
  CHECK(made[0].rewritten("/apple") == "/v2/apple");
  CHECK(made[0].rewritten("/app/.x./.x./etc") == "/v2/etc");
  CHECK(made[0].rewritten("/.x./etc") == "/v2/etc");
  rule.add_prefix = "/v2";
  rule.replace = {"/y=>", "x=>"};
  CHECK(make_rules({rule})[0].rewritten("/y.x./etc") == "/v2etc");
  CHECK(made[0].rewritten("/") == "/v2/");
}

TEST_CASE("a path that is rewritten grows to 64 KiB and no further", "[settings][rules]") {
  config::Rule rule;
  rule.replace = {"1=>" + std::string(256, '2')};
  const Rules made = make_rules({rule});
  CHECK(made[0].rewritten("/" + std::string(255, '1')).size() == 1 + 255 * 256);
  CHECK(made[0].rewritten("/" + std::string(256, '1')).empty());
  // Each replacement makes more to replace.
  rule.replace = {"1=>" + std::string(1000, '2'), "2=>" + std::string(1000, '3'),
                  "3=>" + std::string(1000, '4')};
  CHECK(make_rules({rule})[0].rewritten("/" + std::string(16, '1')).empty());
  const std::string long_path = "/" + std::string(100'000, 'x');
  rule.replace = {"x=>y"};
  CHECK(make_rules({rule})[0].rewritten(long_path).size() == long_path.size());
}

TEST_CASE("an address is the same host in whichever way it is written", "[settings][rules]") {
  std::vector<config::Rule> rules(2);
  rules[0].host = {"127.0.0.1"};
  rules[1].host = {"[::1]", "[2001:db8:*"};
  const Rules made = make_rules(rules);
  const auto of = [&](std::string_view host) {
    return found(made, {.host = host, .path = "/", .method = "GET"});
  };
  for (const std::string_view host : {"127.0.0.1", "127.0.0.1.", "[::ffff:127.0.0.1]"}) {
    CHECK(of(host) == "rule-0");
  }
  CHECK(of("[::ffff:7f00:1]") == "rule-0");
  CHECK(of("::ffff:127.0.0.1") == "rule-0");  // as CONNECT has it
  CHECK(of("[::1]") == "rule-1");
  CHECK(of("[0:0::1]") == "rule-1");
  CHECK(of("[2001:db8::5]") == "rule-1");
  CHECK(of("[::2]") == "none");
}

TEST_CASE("a URL has a key for each rule that makes another of it", "[settings][rules]") {
  std::vector<config::Rule> rules(3);
  rules[0].path = {"/q"};
  rules[0].key_query = "none";
  rules[0].clients = {"10.0.0.0/8"};
  rules[1].path = {"/q"};
  rules[1].key_query = "only:a";
  rules[2].key = config::RuleKey::kDigest;
  const Rules made = make_rules(rules);
  const auto keys = [&](std::string_view url) {
    return keys_of_url(url, "forward:", made, RequestPolicy{}, true);
  };
  CHECK(keys("http://h/q?a=1&b=2") ==
        std::vector<std::string>{"forward:http://h/q?a=1&b=2", "forward:http://h/q",
                                 "forward:http://h/q?a=1", "forward:http://h/q?a=1&b=2"});
  const std::string hex(64, 'a');
  CHECK(keys("http://h/blobs/sha256:" + hex) ==
        std::vector<std::string>{"forward:http://h/blobs/sha256:" + hex, "forward:sha256:" + hex});
  CHECK(keys("nonsense").empty());
}

TEST_CASE("what a rule asks or keeps in another way is told apart where rules depend on who asks",
          "[settings][rules]") {
  const auto key_suffix = [](const std::function<void(config::Rule&)>& change,
                             bool depends = true) {
    std::vector<config::Rule> rules(2);
    change(rules[0]);
    if (depends) rules[1].clients = {"10.0.0.0/8"};
    const Rules made = make_rules(rules);
    const std::string part = made[0].key_suffix();
    CHECK(made[0].changes_key() == !part.empty());
    CHECK(made[1].key_suffix().empty());
    return part;
  };
  const auto ignores = [](std::vector<std::string> words) {
    return [words = std::move(words)](config::Rule& rule) { rule.ignore = words; };
  };
  CHECK(key_suffix(ignores({"vary", "private", "no-cache"})) == "#ignore=private,no-cache,vary");
  CHECK(key_suffix(ignores({"private"}), false).empty());
  CHECK(key_suffix([](config::Rule& rule) { rule.fresh = std::chrono::seconds(1); }).empty());
  std::set<std::string> parts;
  const std::vector<std::function<void(config::Rule&)>> changes = {
      [](config::Rule& rule) { rule.strip_prefix = "/a"; },
      [](config::Rule& rule) { rule.add_prefix = "/a"; },
      [](config::Rule& rule) { rule.replace = {"/a=>/b"}; },
      [](config::Rule& rule) { rule.origin_query = true; },
      [](config::Rule& rule) { rule.key_fields = {"X-A"}; },
      [](config::Rule& rule) { rule.request_remove = {"X-A"}; },
      [](config::Rule& rule) { rule.verify = config::Verify::kSha256; },
      [](config::Rule& rule) { rule.follow_redirects = true; },
      [](config::Rule& rule) {
        rule.follow_redirects = true;
        rule.follow_hosts = {"cdn.example"};
      },
      [](config::Rule& rule) { rule.authorization = config::AuthorizationUse::kRecheck; },
      [](config::Rule& rule) {
        rule.ignore = {"private"};
        rule.follow_redirects = true;
      }};
  for (const auto& change : changes) {
    const std::string part = key_suffix(change);
    CHECK(part.find("#asks=") != std::string::npos);
    CHECK(part == key_suffix(change));
    CHECK(key_suffix(change, false).empty());
    CHECK(parts.insert(part).second);
  }
}

TEST_CASE("rules that only answer do not make others depend on who asks", "[settings][rules]") {
  std::vector<config::Rule> rules(2);
  rules[0].ignore = {"private"};
  rules[1].clients = {"10.0.0.0/8"};
  rules[1].deny = 403;
  CHECK(make_rules(rules)[0].key_suffix().empty());
  rules[1].deny = {};
  CHECK_FALSE(make_rules(rules)[0].key_suffix().empty());
  rules[1].cache = false;
  CHECK(make_rules(rules)[0].key_suffix().empty());
  rules[1].content_type = {"a/b"};
  CHECK_FALSE(make_rules(rules)[0].key_suffix().empty());
}

TEST_CASE("somebody may be answered by a rule, unless one in front holds for all",
          "[settings][rules]") {
  std::vector<config::Rule> rules(2);
  rules[0].path = {"/a/*"};
  rules[0].listener = {"x:1"};
  rules[1].path = {"/a/*"};
  rules[1].deny = 403;
  const auto may = [&](std::string_view path, std::string_view asked = "/go") {
    return make_rules(rules).may_answer({.host = "h", .path = path, .method = "GET"},
                                        {.host = "h", .path = asked, .method = "GET"});
  };
  CHECK(may("/a/b"));
  CHECK(may("/%61/b"));
  CHECK_FALSE(may("/b"));
  rules[0].listener = {};
  CHECK_FALSE(may("/a/b"));
  std::swap(rules[0], rules[1]);
  rules[0].clients = {"10.0.0.0/8"};
  CHECK(may("/a/b"));
  // A client that is refused here is refused there.
  CHECK_FALSE(may("/a/b", "/a/go"));
  rules[0] = rules[1] = {};
  rules[0].clients = {"10.0.0.0/8"};
  rules[1].deny = 403;
  CHECK_FALSE(may("/a/b"));
  rules[0].path = {"/go"};
  CHECK(may("/a/b"));
}

TEST_CASE("a redirection is filled in from the request", "[settings][rules]") {
  CHECK(filled_in("https://{host}{path}{query}", "h:1", "/a", "?b") == "https://h:1/a?b");
  CHECK(filled_in("/x", "h", "/a", "") == "/x");
  CHECK(media_type("Text/HTML ; charset=x") == "text/html");
}

TEST_CASE("what a rule does not say stays as it is for all", "[settings][rules]") {
  RequestPolicy all;
  all.max_object_bytes = 7;
  all.collapse = false;
  all.reuse.ignore_client_reload = true;
  all.keys.drop_query = {"a"};
  std::vector<config::Rule> rules(2);
  rules[1].max_object_bytes = 9;
  rules[1].collapse = true;
  rules[1].key_query = "except:b";
  rules[1].fresh = std::chrono::milliseconds(1500);
  const Rules made(rules, all, all);
  const RequestPolicy& same = made[0].request_policy(true);
  CHECK(same.max_object_bytes == 7);
  CHECK_FALSE(same.collapse);
  CHECK(same.reuse.ignore_client_reload);
  CHECK(same.keys.drop_query == std::vector<std::string>{"a"});
  CHECK_FALSE(made[0].changes_key());
  const RequestPolicy& other = made[1].request_policy(false);
  CHECK(other.max_object_bytes == 9);
  CHECK(other.collapse);
  CHECK(other.keys.drop_query == std::vector<std::string>{"a", "b"});
  CHECK(other.store.freshness.rule.seconds == 2);
  CHECK(made[1].changes_key());
}

}  // namespace encore::server
