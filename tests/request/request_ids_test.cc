#include "proxy/request/request_ids.h"

#include <algorithm>
#include <set>
#include <string>

#include "tests/catch.h"

namespace encore::server {
namespace {

TEST_CASE("an id is up to 128 characters of a few kinds", "[request][ids]") {
  CHECK(is_request_id("a"));
  CHECK(is_request_id(std::string(kRequestIdBytesMax, 'x')));
  CHECK_FALSE(is_request_id(std::string(kRequestIdBytesMax + 1, 'x')));
  CHECK_FALSE(is_request_id(""));
  for (int byte = 0; byte < 256; ++byte) {
    const char c = static_cast<char>(byte);
    const bool alnum = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    const bool mark = std::string_view("-._~+/=:").contains(c);
    CHECK(is_request_id(std::string("a") + c) == (alnum || mark));
  }
}

TEST_CASE("those that are made are ids, each another one, and of each worker others",
          "[request][ids]") {
  RequestIds one;
  RequestIds other;
  std::set<std::string> seen;
  std::set<char> digits;
  for (int i = 0; i < 10'000; ++i) {
    const std::string made(one.make());
    CHECK((made.size() == 32 && is_request_id(made)));
    CHECK(made.find_first_not_of("0123456789abcdef") == std::string::npos);
    digits.insert(made.begin(), made.end());
    REQUIRE(seen.insert(made).second);
    REQUIRE(seen.insert(std::string(other.make())).second);
  }
  CHECK(digits.size() == 16);
}

}  // namespace
}  // namespace encore::server
