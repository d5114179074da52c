#include "proxy/settings/glob.h"

#include <cstdint>
#include <random>
#include <string>
#include <string_view>

#include "tests/catch.h"

namespace encore::server {
namespace {

// The meaning of a glob, in the shortest form.
bool naive(std::string_view pattern, std::string_view text) {
  if (pattern.empty()) return text.empty();
  if (pattern[0] == '*') {
    return naive(pattern.substr(1), text) || (!text.empty() && naive(pattern, text.substr(1)));
  }
  return !text.empty() && pattern[0] == text[0] && naive(pattern.substr(1), text.substr(1));
}

std::string random_text(std::mt19937_64& random, std::string_view letters) {
  std::string text(random() % 9, ' ');
  for (char& c : text) c = letters[random() % letters.size()];
  return text;
}

}  // namespace

TEST_CASE("a glob describes the whole text, and a star any run of it", "[settings][glob]") {
  struct Row {
    std::string_view pattern;
    std::string_view text;
    bool matches;
  };
  const Row table[] = {
      {"", "", true},
      {"", "a", false},
      {"a", "a", true},
      {"a", "ab", false},
      {"a", "A", false},
      {"*", "", true},
      {"*", "a/b.c", true},
      {"/a/*", "/a/", true},
      {"/a/*", "/a/b/c", true},
      {"/a/*", "/a", false},
      {"*.example.com", "www.example.com", true},
      {"*.example.com", "example.com", false},
      {"*.css", "/a/b.css", true},
      {"*.css", "/a/b.cssx", false},
      {"a*a", "a", false},
      {"a*a", "aa", true},
      {"*ab*ab*", "xabab", true},
      {"*ab*ab*", "xaba", false},
      {"a*b*c", "a-c-b-c", true},
      {"**a**", "a", true},
      {"?", "a", false},
      {"[a]", "a", false},
  };
  for (const Row& row : table) {
    CAPTURE(row.pattern, row.text);
    CHECK(glob_matches(row.pattern, row.text) == row.matches);
  }
}

TEST_CASE("a glob answers as its meaning has it, whatever it is made of", "[settings][glob]") {
  std::mt19937_64 random(20);
  int matched = 0;
  for (int i = 0; i < 200'000; ++i) {
    const std::string pattern = random_text(random, "ab**");
    const std::string text = random_text(random, "ab");
    const bool expected = naive(pattern, text);
    matched += expected ? 1 : 0;
    if (glob_matches(pattern, text) == expected) continue;
    FAIL("pattern \"" << pattern << "\", text \"" << text << "\"");
  }
  CHECK(matched > 20'000);
}

TEST_CASE("a glob that was made to take long does not", "[settings][glob]") {
  // Tried in each way, this is more than the age of the universe; searched naively, 10^12 steps.
  std::string pattern;
  for (int i = 0; i < 1'000; ++i) pattern += "*" + std::string(1'000, 'a') + "b";
  CHECK_FALSE(glob_matches(pattern + "*", std::string(1'000'000, 'a')));
}

}  // namespace encore::server
