#include "proxy/fleet/reply.h"

#include <filesystem>
#include <fstream>
#include <iterator>

#include "tests/catch.h"
#include "tests/fleet/read_hostile.h"

namespace encore::fleet {
namespace {

Reply read_one(std::string_view text) {
  ReplyReader reader;
  REQUIRE(reader.feed(text));
  auto reply = reader.next();
  REQUIRE(reply);
  REQUIRE(*reply);
  return **reply;
}

TEST_CASE("replies of each kind are read", "[fleet]") {
  CHECK(read_one("+OK\r\n").text == "OK");
  CHECK(read_one("-NOAUTH no\r\n").is_error());
  CHECK(read_one(":-7\r\n").integer == -7);
  CHECK(read_one("$-1\r\n").kind == Reply::Kind::kNil);
  CHECK(read_one("*-1\r\n").kind == Reply::Kind::kNil);
  CHECK(read_one({"$3\r\na\0b\r\n", 9}).text.size() == 3);
  const Reply nested = read_one("*2\r\n*2\r\n+a\r\n:1\r\n*1\r\n$1\r\nb\r\n");
  REQUIRE(nested.items.size() == 2);
  REQUIRE(nested.items[0].items.size() == 2);
  CHECK(nested.items[0].items[0].text == "a");
  CHECK(nested.items[0].items[1].integer == 1);
  CHECK(nested.items[1].items.at(0).text == "b");
}

TEST_CASE("a reply that comes byte by byte is read once it is whole", "[fleet]") {
  const std::string text = "*2\r\n$5\r\nhello\r\n:5\r\n+next\r\n";
  ReplyReader reader;
  std::vector<Reply> replies;
  for (const char c : text) {
    REQUIRE(reader.feed({&c, 1}));
    auto reply = reader.next();
    REQUIRE(reply);
    if (*reply) replies.push_back(**reply);
  }
  REQUIRE(replies.size() == 2);
  CHECK(replies[0].items[0].text == "hello");
  CHECK(replies[1].text == "next");
}

TEST_CASE("a hostile engine costs no more memory than a bounded reply", "[fleet]") {
  const auto is_refused = [](std::string_view text) {
    ReplyReader reader;
    if (!reader.feed(text)) return true;
    return !reader.next();
  };
  CHECK(is_refused("HTTP/1.1 200 OK\r\n\r\n"));
  CHECK(is_refused("*2147483647\r\n"));
  CHECK(is_refused("*300000\r\n"));
  CHECK(is_refused("*4294967297\r\n"));
  // Two lists below the bound, above it together.
  std::string two = "*2\r\n*200000\r\n";
  for (int i = 0; i < 200'000; ++i) two += ":1\r\n";
  two += "*200000\r\n";
  CHECK(is_refused(two));
  // Deeper than hiredis nests.
  std::string deep;
  for (int i = 0; i < 100; ++i) deep += "*1\r\n";
  CHECK(is_refused(deep));
  ReplyReader reader;
  REQUIRE(reader.feed("$999999999\r\n"));
  const std::string part(std::size_t{1} << 20U, 'x');
  std::size_t fed = 0;
  while (fed < 64 && reader.feed(part)) {
    ++fed;
    REQUIRE(reader.next());
  }
  CHECK(fed == 7);
  CHECK(reader.was_too_large());
}

TEST_CASE("of a reply that is too large there is its front", "[fleet]") {
  const auto front_of = [](const std::string& text) {
    ReplyReader reader;
    if (reader.feed(text)) CHECK_FALSE(reader.next());
    CHECK(reader.was_too_large());
    return reader.take_front();
  };
  const std::string begin = "*2\r\n$1\r\ns\r\n*1\r\n*2\r\n$3\r\n1-2\r\n";
  const std::string text(9 << 20, 'x');
  ReplyReader reader;
  REQUIRE(reader.feed(begin + "*2\r\n$3\r\ntag\r\n$9437184\r\n"));
  REQUIRE(reader.next());
  CHECK_FALSE(reader.feed(text));
  for (const Reply& front : {reader.take_front(), front_of(begin + "*300000\r\n")}) {
    REQUIRE(front.items.size() == 2);
    REQUIRE(front.items[1].items.size() == 1);
    REQUIRE(front.items[1].items[0].items.size() == 2);
    CHECK(front.items[1].items[0].items[0].text == "1-2");
  }
  // There is none before the first byte, and none of a reply that was taken.
  ReplyReader other;
  CHECK(other.take_front().kind == Reply::Kind::kNil);
  REQUIRE(other.feed("*1\r\n+a\r\n"));
  REQUIRE(other.next());
  CHECK(other.take_front().items.empty());
}

TEST_CASE("what the fuzzer begins with is read within bounds", "[fleet]") {
  std::size_t files = 0;
  for (const auto& each : std::filesystem::directory_iterator(ENCORE_FLEET_REPLIES)) {
    std::ifstream file(each.path(), std::ios::binary);
    const std::string bytes{std::istreambuf_iterator<char>(file), {}};
    for (const std::size_t piece : {0U, 1U, 7U}) read_hostile(bytes, piece);
    ++files;
  }
  CHECK(files >= 10);
}

TEST_CASE("an engine's words are printed without control characters", "[fleet]") {
  CHECK(readable("ERR a\x1b[31m\nb") == "ERR a?[31m?b");
  CHECK(readable(std::string(1000, 'x')).size() == 160);
}

}  // namespace
}  // namespace encore::fleet
