#include "proxy/observe/redaction.h"

#include <string>

#include "tests/catch.h"

namespace encore::server {
namespace {

std::string shown(std::string_view url, std::vector<std::string> names = {"token", "api_key"}) {
  const Redaction redaction(std::move(names));
  std::string storage = "what was there";
  return std::string(redaction.url(url, storage));
}

TEST_CASE("the values of named parameters are hidden, however they are written",
          "[observe][redaction]") {
  CHECK(shown("/a?token=x") == "/a?token=***");
  CHECK(shown("/a?b=1&token=x&c=2") == "/a?b=1&token=***&c=2");
  CHECK(shown("/a?TOKEN=x;Api_Key=y#token=z") == "/a?TOKEN=***;Api_Key=***#token=z");
  CHECK(shown("/a?%74o%4Ben=x") == "/a?%74o%4Ben=***");
  CHECK(shown("http://h/a?token=x=y?z") == "http://h/a?token=***");
  CHECK(shown("?token=x") == "?token=***");
  CHECK(shown("/a?token=x&token=y") == "/a?token=***&token=***");
}

TEST_CASE("what is no such value stays as it is", "[observe][redaction]") {
  for (const std::string_view url :
       {"", "/", "/a", "/a?", "/a?tokens=x", "/a?token", "/a?token=", "/a?x=token=y", "/token=x",
        "/a?to%6=x", "/a?%=x", "/a?&&;;=&", "http://h:80/a@b?c=d@e", "*", "host:443"}) {
    CHECK(shown(url) == url);
  }
  CHECK(shown("/a?token=x", {}) == "/a?token=x");
}

TEST_CASE("who asks is hidden where a URL says it", "[observe][redaction]") {
  CHECK(shown("http://me:pw@h/a?b") == "http://***@h/a?b");
  CHECK(shown("http://me:p@w@h") == "http://***@h");
  CHECK(shown("http://me@h?token=x", {"token"}) == "http://***@h?token=***");
  CHECK(shown("//me@h/", {}) == "//***@h/");
  CHECK(shown("http://@h/") == "http://***@h/");
  // An address in a path or a query is none of who asks.
  CHECK(shown("/mail?to=//a@b") == "/mail?to=//a@b");
  // Rather too much than too little.
  CHECK(shown("/a//b@c") == "/a//***@c");
  CHECK(shown("/a#?token=x") == "/a#?token=***");
}

TEST_CASE("a URL of parameters alone costs no more than their number", "[observe][redaction]") {
  std::string url = "/?";
  for (int i = 0; i < 20'000; ++i) url += "%74oken=a&";
  const std::string text = shown(url);
  CHECK(text.find("=a") == std::string::npos);
  CHECK(text.size() == url.size() + 2 * 20'000U);
}

}  // namespace
}  // namespace encore::server
