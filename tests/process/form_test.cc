#include "proxy/process/form.h"

#include <string>

#include "tests/catch.h"

namespace encore::server {

TEST_CASE("a form has its pairs in order, and what is escaped", "[process][form]") {
  const auto pairs = read_form("a=1&&b&c=%41+%2b&=x&a=2=3");
  REQUIRE(pairs);
  using Pairs = std::vector<std::pair<std::string, std::string>>;
  CHECK(*pairs == Pairs{{"a", "1"}, {"b", ""}, {"c", "A +"}, {"", "x"}, {"a", "2=3"}});
  CHECK(read_form("")->empty());
  for (const char* broken : {"a=%", "a=%4", "a=%zz", "a=1&b=%4"}) {
    CAPTURE(broken);
    CHECK_FALSE(read_form(broken));
  }
}

TEST_CASE("what is appended is read again, byte by byte", "[process][form]") {
  std::string text;
  for (int c = 0; c < 256; ++c) text += static_cast<char>(c);
  std::string form;
  append_form("one", text, form);
  append_form("two", "", form);
  const auto pairs = read_form(form);
  REQUIRE(pairs);
  REQUIRE(pairs->size() == 2);
  CHECK((*pairs)[0].second == text);
  CHECK((*pairs)[1].first == "two");
}

}  // namespace encore::server
