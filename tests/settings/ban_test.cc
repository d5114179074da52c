// The objects that a ban matches, and the bans that disks can store.
#include "proxy/settings/ban.h"

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

TEST_CASE("a ban holds where all that it says does", "[settings][ban]") {
  const Ban ban = ban_of({.host = "^(a|b)\\.example$", .url = "\\.png$", .content_type = "image/"});
  CHECK(holds(ban, "http://a.example/x/y.png", "image/png"));
  CHECK(holds(ban, "http://b.example/y.png", "image/png"));
  CHECK_FALSE(holds(ban, "http://c.example/y.png", "image/png"));
  CHECK_FALSE(holds(ban, "http://a.example/y.png?x", "image/png"));
  CHECK_FALSE(holds(ban, "http://a.example/y.png", "text/html"));
  CHECK_FALSE(holds(ban, "http://a.example/y.png", "image/png", "", kForward));
  CHECK_FALSE(ban.is_plain());
}

TEST_CASE("a ban of tags holds for any of them, whole", "[settings][ban]") {
  const Ban ban = ban_of({.tags = {"one", "two"}});
  CHECK(holds(ban, "http://a/", "", "zero\ntwo\n"));
  CHECK_FALSE(holds(ban, "http://a/", "", "tw\nonetwo\n"));
  CHECK_FALSE(holds(ban, "http://a/"));
  CHECK(ban.is_plain());
  CHECK_FALSE(ban_of({.url = "x", .tags = {"one"}}).is_plain());
}

TEST_CASE("a beginning of one host's URLs is a prefix", "[settings][ban]") {
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

TEST_CASE("a ban that was saved is the same ban", "[settings][ban]") {
  const Ban ban = ban_of({.forward = true,
                          .host = "^(a|b)$",
                          .url = "\\.png$",
                          .content_type = "image/",
                          .tags = {"one", "two"}});
  const auto again = Ban::load(ban.saved());
  REQUIRE(again);
  CHECK(again->saved() == ban.saved());
  CHECK(again->order().forward);
  CHECK(again->order().host == "^(a|b)$");
  CHECK(again->order().url == "\\.png$");
  CHECK(again->order().content_type == "image/");
  CHECK(again->order().tags == Lines{"one", "two"});
  const Ban bare = ban_of({.url = "x"});
  CHECK(Ban::load(bare.saved())->order().tags.empty());
  for (const char* bad : {"", "\n", "forward", "forward\na\nb\n", "forward\na\nb\nc",
                          "x\na\nb\nc\n", "reverse\n(\nb\nc\n"}) {
    CAPTURE(bad);
    CHECK_FALSE(Ban::load(bad));
  }
}

TEST_CASE("saved bans hold as they did, and what is none holds of everything", "[settings][ban]") {
  SavedBans bans;
  for (int turn = 0; turn < 300; ++turn) {
    const std::string number = std::to_string(turn % 200);  // more than are kept
    const std::string saved = ban_of({.url = "^/[x]" + number + "$"}).saved();
    CHECK(bans.hold(saved, "12345678http://a/x" + number, "", ""));
    CHECK_FALSE(bans.hold(saved, "12345678http://a/y" + number, "", ""));
    CHECK_FALSE(bans.hold(saved, "forward:http://a/x" + number, "", ""));
    CHECK_FALSE(bans.hold(saved, "short", "", ""));
  }
  CHECK(bans.hold("reverse\n(\n\n\n", "12345678http://a/y", "", ""));
}

TEST_CASE("what is no expression, or takes too much, is refused", "[settings][ban]") {
  for (const char* pattern : {"(", "[a", "*", "a{1000}{1000}", "\\", "(?=a)", "(a)\\1"}) {
    CAPTURE(pattern);
    CHECK_FALSE(Ban::create({.url = pattern}));
  }
  // Others take a time here that doubles with each letter.
  const Ban ban = ban_of({.url = "^/(a+)+$"});
  CHECK_FALSE(holds(ban, "http://h/" + std::string(10'000, 'a') + "b"));
}

}  // namespace
}  // namespace encore::server
