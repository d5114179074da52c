#include "config/derive.h"
#include "config/dump.h"
#include "config/load.h"
#include "tests/catch.h"

namespace encore::config {
namespace {

Config good(std::string_view toml) {
  auto config = parse_config(toml, "t.toml");
  INFO((config ? std::string() : config.error().message));
  REQUIRE(config.has_value());
  return *std::move(config);
}

std::string fault(std::string_view toml) {
  const auto config = parse_config(toml, "t.toml");
  REQUIRE_FALSE(config.has_value());
  return config.error().message;
}

}  // namespace

TEST_CASE("a rule says what it says and leaves the rest unset", "[config][rules]") {
  const Config config = good(
      "[[rule]]\nhost = \"*.Example.org\"\npath = [\"/a*\", \"/b\"]\nadmission = \"always\"\n"
      "fresh = \"30d\"\nnegative = {404 = \"10s\", 5xx = \"1s\"}\n[[rule]]\n");
  REQUIRE(config.rule.size() == 2);
  const Rule& rule = config.rule[0];
  CHECK(rule.host == std::vector<std::string>{"*.example.org"});
  CHECK(rule.path.size() == 2);
  CHECK(rule.admission == Policy::kAlways);
  CHECK(rule.fresh == std::chrono::hours(30 * 24));
  CHECK_FALSE(rule.fresh_min);
  CHECK_FALSE(rule.cache);
  REQUIRE(rule.negative.size() == 2);
  CHECK(rule.negative[1]->first == 500);
  CHECK(rule.negative[1]->last == 599);
  CHECK(config.rule[1] == Rule{});
}

TEST_CASE("what is dumped of rules is read again as the same", "[config][rules]") {
  const Config config = good(
      "[[rule]]\nname = \"a\"\ncookies = \"key:b,a\"\nkey_query = \"only:x,y*\"\n"
      "max_object = \"4GiB\"\ncollapse = false\ndeny = 451\nrequest_set = \"X-A: b: c\"\n"
      "negative = [\"10s\", \"400-403=1m\"]\nclients = \"10.0.0.0/8\"\nfresh = \"0s\"\n");
  const std::string text = dump_config(config);
  CHECK(text.find("fresh_min") == std::string::npos);
  CHECK(good(text) == config);
  REQUIRE(config.rule[0].cookies);
  CHECK((*config.rule[0].cookies)->names == std::vector<std::string>{"a", "b"});
  CHECK(config.rule[0].request_set[0]->value == "b: c");
}

TEST_CASE("a rule can be set on the command line", "[config][rules]") {
  const std::string sets[] = {"rule.0.host=a.example", "rule.0.fresh=1h", "rule.0.deny=403"};
  const auto config = parse_config("", "t.toml", sets);
  REQUIRE(config.has_value());
  CHECK(config->rule[0].host == std::vector<std::string>{"a.example"});
  CHECK(config->rule[0].deny == 403);
}

TEST_CASE("conditions that no request meets are refused", "[config][rules]") {
  for (const std::string host :
       {"example.com:8080", "*:80", "127.0.0.1:80", "[::1]:80", "*.example.com:*", "[::1", "::1]",
        "[example.com]", "[127.0.0.1]", "1::2::3", "example.com/x", "https://example.com"}) {
    CAPTURE(host);
    const std::string said = fault("[[rule]]\nhost = [\"a\", \"" + host + "\"]\ndeny = 403\n");
    CHECK(said.starts_with("t.toml:2:8: rule.0.host: \"" + host + "\" "));
    CHECK(said.ends_with("globs without a port (`*` is any run of characters)"));
  }
  CHECK(fault("[[rule]]\nhost = \"a:80\"\n").find("\"a:80\" has a port;") != std::string::npos);
  for (const std::string path : {"secret/*", "https://a/b", "secret", "", "/a?b", "/a b", "/a#b"}) {
    CAPTURE(path);
    CHECK(fault("[[rule]]\npath = \"" + path + "\"\ndeny = 403\n")
              .starts_with("t.toml:2:8: rule.0.path: \"" + path + "\" "));
  }
  for (const std::string more : {"listen]]\ndeny_hosts", "limit]]\nhosts"}) {
    CAPTURE(more);
    CHECK(fault("[[" + more + " = [\"a:80\"]\n").find("\"a:80\" has a port;") != std::string::npos);
  }
  for (const std::string table : {"[[rule]]\nmethod", "[[listen]]\nallow_methods"}) {
    CAPTURE(table);
    CHECK(fault(table + " = [\"GET\", \"get\"]\n").find("\"get\" is not in capitals;") !=
          std::string::npos);
    good(table + " = [\"GET\", \"patch\", \"M-SEARCH\"]\n");
  }
}

TEST_CASE("hosts of rules are names and addresses, whole or in part", "[config][rules]") {
  for (const std::string host : {"*", "*.example.com", "a-b_c.example.com.", "10.0.0.1", "10.*",
                                 "::1", "[::1]", "2001:DB8::1", "[2001:db8::80]", "::ffff:10.0.0.1",
                                 "2001:db8:*", "[2001:db8:*]", "[2001:*", "fe80:*:80", "[*:80]"}) {
    CAPTURE(host);
    CHECK(good("[[rule]]\nhost = \"" + host + "\"\n").rule[0].host.size() == 1);
  }
}

TEST_CASE("what says more of an answer that a rule does not give is refused", "[config][rules]") {
  CHECK(fault("[[rule]]\nredirect_status = 301\n")
            .starts_with("t.toml:2:19: rule.0.redirect_status: without redirect; accepted: "));
  CHECK(fault("[[rule]]\nstatic_body = \"x\"\ndeny = 403\n")
            .starts_with("t.toml:2:15: rule.0.static_body: without static_status; accepted: "));
  CHECK(fault("[[rule]]\nstatic_type = \"a/b\"\n")
            .starts_with("t.toml:2:15: rule.0.static_type: without static_status; accepted: "));
}

TEST_CASE("the report names rules behind one that holds for all", "[config][rules]") {
  const std::string all = "[[rule]]\npath = \"*\"\n[[rule]]\nname = \"x\"\ndeny = 403\n[[rule]]\n";
  CHECK(check_report(good(all), 1)
            .contains("note: rule.0 matches every request, so that later rules never apply: rule.1 "
                      "(x), rule.2.\n"));
  CHECK_FALSE(check_report(good("[[rule]]\nmethod = \"GET\"\n[[rule]]\n"), 1).contains("rule."));
  CHECK_FALSE(check_report(good("[[rule]]\nhost = \"a\"\n[[rule]]\n"), 1).contains("rule."));
}

TEST_CASE("a purge_to_origin beside purge_clients is noted", "[config]") {
  const std::string note = "purge_to_origin has no effect";
  CHECK(check_report(good("[[listen]]\npurge_to_origin = true\npurge_clients = [\"::1\"]\n"), 1)
            .contains(note));
  CHECK_FALSE(check_report(good("[[listen]]\npurge_to_origin = true\n"), 1).contains(note));
}

TEST_CASE("client_cache_control is a list of directives", "[config][rules]") {
  for (const std::string text : {"max-age=0, must-revalidate", "no-cache",
                                 "max-age=60,s-maxage=1 , x=\\\"a, b\\\"", "Public"}) {
    CAPTURE(text);
    good("[[rule]]\nclient_cache_control = \"" + text + "\"\n");
  }
  const auto said = [](const std::string& text) {
    return fault("[[rule]]\nclient_cache_control = \"" + text + "\"\n");
  };
  CHECK(said("max-age=1h").contains("\"max-age=1h\" has max-age without a number of seconds;"));
  CHECK(said("public, s-maxage").contains("has s-maxage without a number of seconds;"));
  CHECK(said("public; max-age=1").contains("has \"public; max-age=1\", which is not a directive;"));
  CHECK(said("Cache-Control: public").contains("which is not a directive;"));
}

TEST_CASE("origins that no listener serves are noted", "[config]") {
  const std::string origin = "[[origin]]\nservers = [\"http://127.0.0.1:8000\"]\n";
  const std::string reverse = "[[listen]]\nmode = \"reverse\"\n";
  const std::string note = "note: [[origin]] has no effect: no [[listen]] has mode";
  CHECK(check_report(good(origin), 1).contains(note));
  CHECK_FALSE(check_report(good(origin + reverse), 1).contains(note));
  CHECK_FALSE(check_report(good(""), 1).contains(note));
}

TEST_CASE("a listener that is none is refused beside those that there are", "[config][rules]") {
  CHECK(fault("[[listen]]\naddress = \"*:80\"\n[[listen]]\naddress = \"unix:/a\"\n"
              "[[rule]]\nlistener = \"127.0.0.1:80\"\n") ==
        "t.toml:6:12: rule.0.listener: \"127.0.0.1:80\" is not the address of a [[listen]]; "
        "accepted: "
        "\"*:80\", \"unix:/a\"");
}

TEST_CASE("what does not go together in a rule is refused where it stands", "[config][rules]") {
  CHECK_FALSE(fault("[[rule]]\ncookies = \"key:a*b\"\n").empty());
  CHECK_FALSE(fault("[[rule]]\ncookies = \"bypass:*a\"\n").empty());
  CHECK_FALSE(fault("[[rule]]\ncookies = \"bypass:\"\n").empty());
  CHECK(fault("[[rule]]\ncontent_type = \"a/b\"\ncookies = \"ignore\"\n")
            .starts_with("t.toml:3:11: rule.0.cookies: applies before the response"));
  CHECK(fault("[[rule]]\nadmission = \"tinylfu\"\n").find("learns from all requests") !=
        std::string::npos);
  const std::string waits = "[[rule]]\ncontent_type = \"a/b\"\nignore = [\"private\"]\n[[rule]]\n";
  CHECK(parse_config(waits, "t.toml", {}).has_value());
  CHECK(parse_config(waits + "clients = \"10.0.0.0/8\"\ndeny = 403\n", "t.toml", {}).has_value());
  const std::string some = "clients = \"10.0.0.0/8\"\n";
  CHECK(parse_config(waits + some, "t.toml", {}).has_value());
  CHECK(fault("[[rule]]\n" + some + waits)
            .starts_with("t.toml:5:10: rule.1.ignore: \"private\" with content_type"));
  CHECK(parse_config("[[rule]]\ncache = false\n" + some + waits, "t.toml", {}).has_value());
  CHECK(fault("[[rule]]\ndeny = 200\n").find("200 is too small; accepted: 400 .. 599") !=
        std::string::npos);
  CHECK(fault("[[rule]]\nnegative = {404 = 10}\n").find("a value of another kind") !=
        std::string::npos);
}

}  // namespace encore::config
