#include "proxy/fleet/publications.h"

#include "tests/catch.h"

namespace encore::fleet {
namespace {

Publication publication_of(std::uint64_t number, bool is_soft = false) {
  return {.number = number, .fields = {"tag", std::to_string(number)}, .is_soft = is_soft};
}

std::vector<std::uint64_t> numbers_of(const std::vector<Publication>& some) {
  std::vector<std::uint64_t> numbers;
  for (const Publication& each : some) numbers.push_back(each.number);
  return numbers;
}

TEST_CASE("purges wait in their order, up to the limit", "[fleet]") {
  Publications all({.count = 3});
  for (std::uint64_t number = 1; number <= 3; ++number) CHECK(all.add(publication_of(number)));
  CHECK_FALSE(all.add(publication_of(4)));
  CHECK(numbers_of(all.front(10, 1000)) == std::vector<std::uint64_t>{1, 2, 3});
  CHECK(numbers_of(all.front(2, 1000)) == std::vector<std::uint64_t>{1, 2});
  CHECK(numbers_of(all.front(2, 1)) == std::vector<std::uint64_t>{1});
  all.published({5, 0});
  CHECK(all.add(publication_of(4)));
  CHECK(numbers_of(all.front(10, 1000)) == std::vector<std::uint64_t>{2, 3, 4});
  CHECK(all.last_id() == StreamId{5, 0});
}

TEST_CASE("purges that wait are bounded in bytes", "[fleet]") {
  const std::size_t bytes = publication_of(1).bytes();
  Publications all({.bytes = 2 * bytes});
  CHECK(all.add(publication_of(1)));
  CHECK(all.add(publication_of(2)));
  CHECK_FALSE(all.add(publication_of(3)));
  all.published({1, 0});
  CHECK(all.add(publication_of(3)));
  all.replace_all(publication_of(4));
  CHECK(all.add(publication_of(5)));
  CHECK_FALSE(all.add(publication_of(6)));
}

TEST_CASE("published purges wait again after the engine has lost them", "[fleet]") {
  Publications all({.recent = 2});
  for (std::uint64_t number = 1; number <= 3; ++number) CHECK(all.add(publication_of(number)));
  all.published({1, 0});
  all.published({2, 0});
  CHECK(all.republish_recent());
  CHECK(numbers_of(all.front(10, 1000)) == std::vector<std::uint64_t>{1, 2, 3});
  CHECK(all.last_id() == StreamId{});
  for (std::uint64_t id = 1; id <= 3; ++id) all.published({id, 0});
  // The first is not remembered any more.
  CHECK_FALSE(all.republish_recent());
  CHECK(numbers_of(all.front(10, 1000)) == std::vector<std::uint64_t>{2, 3});
}

TEST_CASE("a purge of everything is soft if all that it replaces are", "[fleet]") {
  Publications all;
  CHECK(all.add(publication_of(1, true)));
  CHECK(all.are_soft());
  CHECK(all.add(publication_of(2)));
  CHECK_FALSE(all.are_soft());
}

TEST_CASE("purges that wait survive in a file, up to a frame that is cut", "[fleet]") {
  PurgeEntry entry{.node = "a", .instance = "0", .number = 1};
  entry.order = {.tags = {"x\ny 3 z"}, .soft = true};
  const Publication first{.number = 1, .fields = *encode(entry)};
  entry.number = 2;
  entry.order = {.urls = {"http://a/"}};
  const Publication second{.number = 2, .fields = *encode(entry)};
  const std::string text = frame(first) + frame(second);
  const auto both = read_frames(text);
  REQUIRE(both.size() == 2);
  CHECK(both[0].fields == first.fields);
  CHECK(both[0].is_soft);
  CHECK(both[1].fields == second.fields);
  CHECK_FALSE(both[1].is_soft);
  for (std::size_t size = frame(first).size(); size < text.size(); ++size) {
    CAPTURE(size);
    CHECK(read_frames(text.substr(0, size)).size() == 1);
  }
  CHECK(read_frames("garbage").empty());
  CHECK(read_frames("99999999999999999999 ").empty());
  CHECK(read_frames("2 5 field999 x\n").empty());
}

}  // namespace
}  // namespace encore::fleet
