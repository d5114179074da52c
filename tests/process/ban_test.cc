// What a ban speaks of, and which of them disks can be told.
#include "proxy/process/ban.h"

#include <string>

#include "tests/catch.h"

namespace encore::server {
namespace {

using Lines = std::vector<std::string>;

constexpr std::string_view kForward = "forward:";
constexpr std::string_view kReverse = "12345678";

Ban ban_of(BanOrder order) {
  auto ban = Ban::create(std::move(order));
  REQUIRE(ban);
  return std::move(*ban);
}

bool holds(const Ban& ban, std::string_view url, std::string_view type = "text/html",
           std::string_view tags = "", std::string_view realm = kReverse) {
  return ban.holds(std::string(realm) + std::string(url), type, tags);
}

TEST_CASE("a ban holds where all that it says does", "[process][ban]") {
  const Ban ban = ban_of({.host = "^(a|b)\\.example$", .url = "\\.png$", .content_type = "image/"});
  CHECK(holds(ban, "http://a.example/x/y.png", "image/png"));
  CHECK(holds(ban, "http://b.example/y.png", "image/png"));
  CHECK_FALSE(holds(ban, "http://c.example/y.png", "image/png"));
  CHECK_FALSE(holds(ban, "http://a.example/y.png?x", "image/png"));
  CHECK_FALSE(holds(ban, "http://a.example/y.png", "text/html"));
  CHECK_FALSE(holds(ban, "http://a.example/y.png", "image/png", "", kForward));
  CHECK_FALSE(ban.is_for_disks());
}

TEST_CASE("a ban of tags holds for any of them, whole", "[process][ban]") {
  const Ban ban = ban_of({.tags = {"one", "two"}});
  CHECK(holds(ban, "http://a/", "", "zero\ntwo\n"));
  CHECK_FALSE(holds(ban, "http://a/", "", "tw\nonetwo\n"));
  CHECK_FALSE(holds(ban, "http://a/"));
  CHECK(ban.is_for_disks());
  CHECK_FALSE(ban_of({.url = "x", .tags = {"one"}}).is_for_disks());
}

TEST_CASE("a beginning of one host's URLs is a prefix", "[process][ban]") {
  const auto prefixes = [](std::string host, std::string url, bool forward = false) {
    return ban_of({.forward = forward, .host = std::move(host), .url = std::move(url)}).prefixes();
  };
  CHECK(prefixes("^a\\.example$", "^/blog/.*") == Lines{"http://a.example/blog/"});
  CHECK(prefixes("^a\\.example\\:8080$", "^/x") == Lines{"http://a.example:8080/x"});
  CHECK(prefixes("^a\\.example$", "") == Lines{"http://a.example/"});
  CHECK(prefixes("", "") == Lines{""});
  CHECK(prefixes("^a\\.example$", "^/a\\.b\\?c", true) ==
        Lines{"http://a.example/a.b?c", "https://a.example/a.b?c"});
  for (const char* host : {"", "a\\.example", "^a\\.example", "^a.example$", "^(a|b)$"}) {
    CAPTURE(host);
    CHECK(prefixes(host, "^/x").empty());
  }
  for (const char* url : {"/x", "^/x$", "^/x.y", "^/x+", "^/\\d", "^/[a-z]", "^x", "^/x\\"}) {
    CAPTURE(url);
    const auto ban = Ban::create({.host = "^a$", .url = url});
    CHECK((!ban || ban->prefixes().empty()));
  }
}

TEST_CASE("what is no expression, or takes too much, is refused", "[process][ban]") {
  for (const char* pattern : {"(", "[a", "*", "a{1000}{1000}", "\\", "(?=a)", "(a)\\1"}) {
    CAPTURE(pattern);
    CHECK_FALSE(Ban::create({.url = pattern}));
  }
  // Where others take a time that doubles with each letter.
  const Ban ban = ban_of({.url = "^/(a+)+$"});
  CHECK_FALSE(holds(ban, "http://h/" + std::string(10'000, 'a') + "b"));
}

}  // namespace
}  // namespace encore::server
