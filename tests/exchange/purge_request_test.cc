// Purge requests of content management systems.
#include "proxy/exchange/purge_request.h"

#include <string>

#include "tests/catch.h"
#include "tests/exchange/some_request.h"

namespace encore::server {
namespace {

using Lines = std::vector<std::string>;

// Tags are read from every field that a purge may name.
config::Config tagged() {
  config::Config config;
  config.cache.tag_fields = {"Surrogate-Key", "Cache-Tag",    "xkey",
                             "Cache-Tags",    "X-Cache-Tags", "X-Magento-Tags"};
  return config;
}

Result<PurgeRequest> purge(const std::string& method, const std::string& path,
                           const std::string& fields = {}, config::Config config = tagged()) {
  config.listen.front().purge_clients = {"127.0.0.0/8"};
  const std::string text = method + " http://a.example" + path + " HTTP/1.1\nHost: a.example\n";
  return read_purge_request(*some_request(text + fields, some_runtime(config)));
}

TEST_CASE("PURGE is of one URL, as its key has it", "[exchange][purge]") {
  const auto one = purge("PURGE", "/%61?x=1");
  REQUIRE(one);
  CHECK(one->keys == Lines{"forward:http://a.example/a?x=1"});
  CHECK(one->forward);
  CHECK(one->url.empty());
}

TEST_CASE("PURGE by expression is of its host alone, as WordPress asks for it",
          "[exchange][purge]") {
  const auto all = purge("PURGE", "/.*", "X-Purge-Method: regex\n");
  REQUIRE(all);
  CHECK(all->keys.empty());
  CHECK(all->host == "^a\\.example$");
  CHECK(all->url == "^/.*");
  CHECK(purge("PURGE", "/blog?p=1", "x-purge-method: Regex\n")->url == "^/blog?p=1");
  CHECK(purge("PURGE", "/", "X-Purge-Regex: ^/(a|b)\n")->url == "^/(a|b)");
  CHECK(purge("PURGE", "/.*", "X-Purge-Method: default\n")->keys ==
        Lines{"forward:http://a.example/.*"});
}

TEST_CASE("BAN is of what holds for all of its expressions, as Symfony asks for it",
          "[exchange][purge]") {
  const auto ban = purge("BAN", "/", "X-Host: ^(a|b)$\nX-Url: ^/x/.*\nX-Content-Type: text/html\n");
  REQUIRE(ban);
  CHECK(ban->keys.empty());
  CHECK(ban->host == "^(a|b)$");
  CHECK(ban->url == "^/x/.*");
  CHECK(ban->content_type == "text/html");
  const auto all = purge("BAN", "/", "X-Host: .*\nX-Url: .*\nX-Content-Type: .*\n");
  REQUIRE(all);
  CHECK((all->host + all->url + all->content_type).empty());
  const auto below = purge("BAN", "/x/");
  REQUIRE(below);
  CHECK(below->host == "^a\\.example$");
  CHECK(below->url == "^/x/");
}

TEST_CASE("BAN is of tags, as Drupal and Symfony ask for it", "[exchange][purge]") {
  const auto tags = [](const std::string& fields) { return purge("BAN", "/", fields)->tags; };
  CHECK(tags("Cache-Tags: node:1 node_list\n") == Lines{"node:1", "node_list"});
  CHECK(tags("Purge-Cache-Tags: a|b,c\n") == Lines{"a", "b", "c"});
  CHECK(tags("X-Cache-Tags: (^|,)(one|two\\-3|fo\\|ur)(,|$)\n") == Lines{"one", "two-3", "fo|ur"});
  CHECK(tags("X-Cache-Tags: (^|,)(,|$)\n") == Lines{"(^", ")(", "$)"});
  CHECK(tags("Surrogate-Key: k\nX-Host: .*\nX-Url: .*\n") == Lines{"k"});
}

TEST_CASE("PURGE is of tags where it names some, as responses have them", "[exchange][purge]") {
  const auto tags = [](const std::string& fields, const std::string& method = "PURGE") {
    const auto made = purge(method, "/page", fields);
    REQUIRE(made);
    CHECK(made->keys.empty());
    CHECK((made->host + made->url + made->content_type).empty());
    CHECK_FALSE(made->soft);
    return made->tags;
  };
  CHECK(tags("xkey: a b,c\n") == Lines{"a", "b", "c"});
  CHECK(tags("XKey-Purge: a\nxkey-purge: b\n") == Lines{"a", "b"});
  CHECK(tags("xkey-purge: a\nxkey-softpurge: b\n") == Lines{"a"});
  CHECK(tags("Surrogate-Key: a,b c|d\n") == Lines{"a,b", "c|d"});
  CHECK(tags("Cache-Tag: a b, c\n") == Lines{"a b", "c"});
  CHECK(tags("X-Cache-Tags: a b,c\n") == Lines{"a b", "c"});
  CHECK(tags("xkey-purge: a b\n", "PURGEKEYS") == Lines{"a", "b"});
  CHECK(tags("X-Cache-Tags: a,b\n", "PURGETAGS") == Lines{"a", "b"});
  CHECK(tags("X-Magento-Tags-Pattern: ((^|,)cat_p_1(,|$))\n") == Lines{"cat_p_1"});
  CHECK(tags("X-Magento-Tags-Pattern: ((^|,)cat_p_1(,|$))|((^|,)cms-b(,|$))\n") ==
        Lines{"cat_p_1", "cms-b"});
  // Everything.
  CHECK(tags("X-Magento-Tags-Pattern: .*\n").empty());
  CHECK(tags("Clear-Cache: true\n").empty());
  // As it was: nothing of a URL is said by these.
  CHECK(purge("PURGE", "/a", "Clear-Cache: false\n")->keys == Lines{"forward:http://a.example/a"});
}

TEST_CASE("who names no tag that can be read purges nothing", "[exchange][purge]") {
  for (const char* fields :
       {"xkey: \n", "xkey: , ,\n", "Surrogate-Key:\n", "xkey-softpurge: \n", "X-Cache-Tags: ,\n"}) {
    CAPTURE(fields);
    const auto made = purge("PURGE", "/a", fields);
    REQUIRE_FALSE(made);
    CHECK(made.error().message == "nothing-to-purge");
  }
  for (const char* method : {"PURGEKEYS", "PURGETAGS"}) CHECK_FALSE(purge(method, "/a"));
  for (const char* pattern :
       {"cat_p", "((^|,)a(,|$))|", "((^|,)a(,|$))((^|,)b(,|$))", "((^|,)(,|$))", "((^|,)a|b(,|$))",
        "((^|,)a.*(,|$))", "|((^|,)a(,|$))", "((^|,)a(,|$)"}) {
    CAPTURE(pattern);
    const auto made = purge("PURGE", "/", "X-Magento-Tags-Pattern: " + std::string(pattern) + "\n");
    REQUIRE_FALSE(made);
    CHECK(made.error().message == "bad-tags-pattern");
  }
}

TEST_CASE("a purge by a field that no response is tagged by is an error that names the key",
          "[exchange][purge]") {
  for (const char* fields :
       {"xkey: a\n", "xkey-purge: a\n", "xkey-softpurge: a\n", "Cache-Tags: a\n",
        "X-Cache-Tags: a\n", "X-Magento-Tags-Pattern: ((^|,)a(,|$))\n"}) {
    CAPTURE(fields);
    const auto made = purge("PURGE", "/a", fields, {});
    REQUIRE_FALSE(made);
    CHECK(made.error().message.starts_with("tag-field-not-read"));
    CHECK(made.error().message.ends_with("cache.tag_fields"));
  }
  CHECK_FALSE(purge("BAN", "/", "Cache-Tags: a\n", {}));
  CHECK(purge("PURGE", "/a", "Surrogate-Key: a\n", {}));
}

TEST_CASE("a purge is soft where its fields say so", "[exchange][purge]") {
  for (const char* name : {"X-Soft-Purge", "Fastly-Soft-Purge", "x-magento-purge-soft"}) {
    CAPTURE(name);
    const auto soft = [&](const std::string& value, const std::string& method = "PURGE") {
      return purge(method, "/a", std::string(name) + ": " + value + "\n")->soft;
    };
    CHECK(soft("1"));
    CHECK(soft("true"));
    CHECK(soft("1", "BAN"));
    CHECK_FALSE(soft("0"));
    CHECK_FALSE(soft("False"));
    CHECK_FALSE(soft(""));
  }
  const auto keys = purge("PURGEKEYS", "/", "xkey-softpurge: a b\n");
  REQUIRE(keys);
  CHECK(keys->soft);
  CHECK(keys->tags == Lines{"a", "b"});
}

TEST_CASE("what a purge may have has limits", "[exchange][purge]") {
  const auto pattern = [](std::size_t size) {
    return purge("BAN", "/", "X-Url: " + std::string(size, 'a') + "\n");
  };
  CHECK(pattern(kPurgePatternBytesMax));
  REQUIRE_FALSE(pattern(kPurgePatternBytesMax + 1));
  CHECK(pattern(kPurgePatternBytesMax + 1).error().message == "pattern-too-long");
  const auto tags = [](std::size_t count) {
    std::string text = "t";
    for (std::size_t i = 1; i < count; ++i) text += " t";
    return purge("BAN", "/", "Cache-Tags: " + text + "\n");
  };
  CHECK(tags(kPurgeTagsMax));
  REQUIRE_FALSE(tags(kPurgeTagsMax + 1));
  CHECK(tags(kPurgeTagsMax + 1).error().message == "too-many-tags");
  const auto keys = [](std::size_t count) {
    std::string text = "xkey: t";
    for (std::size_t i = 1; i < count; ++i) text += " t";
    return purge("PURGE", "/", text + "\n");
  };
  CHECK(keys(kPurgeTagsMax));
  REQUIRE_FALSE(keys(kPurgeTagsMax + 1));
  CHECK(keys(kPurgeTagsMax + 1).error().message == "too-many-tags");
}

}  // namespace
}  // namespace encore::server
