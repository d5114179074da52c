// What content management systems say to have something purged.
#include "proxy/exchange/purge_wish.h"

#include <string>

#include "tests/catch.h"
#include "tests/exchange/some_request.h"

namespace encore::server {
namespace {

using Lines = std::vector<std::string>;

Result<PurgeWish> wish(const std::string& method, const std::string& path,
                       const std::string& fields = {}) {
  const std::string text = method + " http://a.example" + path + " HTTP/1.1\nHost: a.example\n";
  return read_purge_wish(*some_request(text + fields));
}

TEST_CASE("PURGE is of one URL, as its key has it", "[exchange][purge]") {
  const auto one = wish("PURGE", "/%61?x=1");
  REQUIRE(one);
  CHECK(one->keys == Lines{"forward:http://a.example/a?x=1"});
  CHECK(one->forward);
  CHECK(one->url.empty());
}

TEST_CASE("PURGE by expression is of its host alone, as WordPress asks for it",
          "[exchange][purge]") {
  const auto all = wish("PURGE", "/.*", "X-Purge-Method: regex\n");
  REQUIRE(all);
  CHECK(all->keys.empty());
  CHECK(all->host == "^a\\.example$");
  CHECK(all->url == "^/.*");
  CHECK(wish("PURGE", "/blog?p=1", "x-purge-method: Regex\n")->url == "^/blog?p=1");
  CHECK(wish("PURGE", "/", "X-Purge-Regex: ^/(a|b)\n")->url == "^/(a|b)");
  CHECK(wish("PURGE", "/.*", "X-Purge-Method: default\n")->keys ==
        Lines{"forward:http://a.example/.*"});
}

TEST_CASE("BAN is of what holds for all of its expressions, as Symfony asks for it",
          "[exchange][purge]") {
  const auto ban = wish("BAN", "/", "X-Host: ^(a|b)$\nX-Url: ^/x/.*\nX-Content-Type: text/html\n");
  REQUIRE(ban);
  CHECK(ban->keys.empty());
  CHECK(ban->host == "^(a|b)$");
  CHECK(ban->url == "^/x/.*");
  CHECK(ban->content_type == "text/html");
  const auto all = wish("BAN", "/", "X-Host: .*\nX-Url: .*\nX-Content-Type: .*\n");
  REQUIRE(all);
  CHECK((all->host + all->url + all->content_type).empty());
  const auto below = wish("BAN", "/x/");
  REQUIRE(below);
  CHECK(below->host == "^a\\.example$");
  CHECK(below->url == "^/x/");
}

TEST_CASE("BAN is of tags, as Drupal and Symfony ask for it", "[exchange][purge]") {
  const auto tags = [](const std::string& fields) { return wish("BAN", "/", fields)->tags; };
  CHECK(tags("Cache-Tags: node:1 node_list\n") == Lines{"node:1", "node_list"});
  CHECK(tags("Purge-Cache-Tags: a|b,c\n") == Lines{"a", "b", "c"});
  CHECK(tags("X-Cache-Tags: (^|,)(one|two\\-3|fo\\|ur)(,|$)\n") == Lines{"one", "two-3", "fo|ur"});
  CHECK(tags("X-Cache-Tags: (^|,)(,|$)\n") == Lines{"(^", ")(", "$)"});
  CHECK(tags("Surrogate-Key: k\nX-Host: .*\nX-Url: .*\n") == Lines{"k"});
}

TEST_CASE("what a wish may have has limits", "[exchange][purge]") {
  const auto pattern = [](std::size_t size) {
    return wish("BAN", "/", "X-Url: " + std::string(size, 'a') + "\n");
  };
  CHECK(pattern(kPurgePatternBytesMax));
  REQUIRE_FALSE(pattern(kPurgePatternBytesMax + 1));
  CHECK(pattern(kPurgePatternBytesMax + 1).error().message == "pattern-too-long");
  const auto tags = [](std::size_t count) {
    std::string text = "t";
    for (std::size_t i = 1; i < count; ++i) text += " t";
    return wish("BAN", "/", "Cache-Tags: " + text + "\n");
  };
  CHECK(tags(kPurgeTagsMax));
  REQUIRE_FALSE(tags(kPurgeTagsMax + 1));
  CHECK(tags(kPurgeTagsMax + 1).error().message == "too-many-tags");
}

}  // namespace
}  // namespace encore::server
