// BodyReader against a naive model: the text that all pieces make together.
#include "proxy/exchange/body_reader.h"

#include <algorithm>
#include <array>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "proxy/store/memory_store.h"
#include "tests/catch.h"
#include "tests/letters.h"

namespace encore::server {
namespace {

using State = BodyReader::State;

struct ReaderFixture {
  ReaderFixture() {
    auto made = store::make_memory_store({.limit_bytes = 64U << 20U});
    REQUIRE(made.has_value());
    store = std::move(*made);
  }
  store::BodyRef make_body() {
    auto body = store->make_body({});
    REQUIRE(body.has_value());
    return std::move(*body);
  }
  static void append(store::BodyRef& body, std::string_view text) {
    const std::size_t taken = body->append(std::as_bytes(std::span(text)));
    REQUIRE(taken == text.size());
  }
  store::BodyRef whole(std::string_view text) {
    auto body = make_body();
    append(body, text);
    body->complete();
    return body;
  }
  std::unique_ptr<store::Store> store;
};

// Reads what there is, with room for `parts` and at most `step` bytes at a time, and returns how it
// ended.
State read_all(BodyReader& reader, std::string& out, std::size_t parts, std::size_t step) {
  std::vector<iovec> room(parts);
  while (true) {
    const auto peeked = reader.peek(room, step);
    if (peeked.state != State::kReady) {
      CHECK(peeked.bytes == 0);
      return peeked.state;
    }
    CHECK(peeked.bytes != 0);
    CHECK(peeked.bytes <= step);
    std::string shown;
    for (std::size_t i = 0; i < peeked.parts; ++i) {
      shown.append(static_cast<const char*>(room[i].iov_base), room[i].iov_len);
    }
    REQUIRE(shown.size() == peeked.bytes);
    // Not always all of it.
    const std::size_t used = 1 + (shown.size() - 1) * (out.size() % 3) / 2;
    out += shown.substr(0, used);
    reader.advance(used);
  }
}

TEST_CASE("a reader of nothing is at its end", "[exchange][body]") {
  BodyReader reader;
  std::array<iovec, 2> room;
  CHECK(reader.at_end());
  CHECK(reader.peek(room, 10).state == State::kEnd);
  reader.add_text("");
  CHECK(reader.at_end());
}

TEST_CASE("texts and ranges come in their order, however they are cut", "[exchange][body]") {
  ReaderFixture fixture;
  const auto seed = GENERATE(take(60, random<std::uint64_t>(1, 1'000'000)));
  CAPTURE(seed);
  std::mt19937_64 random(seed);
  const auto below = [&](std::size_t bound) { return static_cast<std::size_t>(random() % bound); };
  const std::string all = letters(1 + below(300'000));
  BodyReader reader;
  REQUIRE(reader.set_body(fixture.whole(all)));
  std::string expected;
  std::uint64_t of_body = 0;
  for (std::size_t i = below(12); i-- > 0;) {
    if (below(2) == 0) {
      const std::string text(below(40), static_cast<char>('A' + i));
      reader.add_text(text);
      expected += text;
    } else {
      // Also backwards, for the body is all there.
      const std::size_t begin = below(all.size());
      const std::size_t end = begin + below(all.size() - begin + 1);
      reader.add_range(begin, end);
      expected += all.substr(begin, end - begin);
      of_body += end - begin;
    }
  }
  std::string got;
  CHECK(read_all(reader, got, 2 + below(6), 1 + below(70'000)) == State::kEnd);
  CHECK(got == expected);
  CHECK(reader.body_bytes() == of_body);
  CHECK(reader.at_end());
}

TEST_CASE("an open body is read as it grows, and ends when it is complete", "[exchange][body]") {
  ReaderFixture fixture;
  const auto seed = GENERATE(take(20, random<std::uint64_t>(1, 1'000'000)));
  CAPTURE(seed);
  std::mt19937_64 random(seed);
  auto body = fixture.make_body();
  BodyReader reader;
  REQUIRE(reader.set_body(body));
  reader.add_rest();
  std::string expected;
  std::string got;
  const std::string all = letters(200'000);
  while (expected.size() < all.size()) {
    CHECK(read_all(reader, got, 3, 1 + random() % 50'000) == State::kWaiting);
    CHECK(got == expected);
    const std::string more = all.substr(expected.size(), 1 + random() % 60'000);
    ReaderFixture::append(body, more);
    expected += more;
  }
  body->complete();
  CHECK_FALSE(reader.at_end());
  CHECK(read_all(reader, got, 3, 1000) == State::kEnd);
  CHECK(got == expected);
  CHECK(reader.at_end());
  CHECK(reader.position() == expected.size());
}

TEST_CASE("a body that ends before its range does is broken, after what there is of it",
          "[exchange][body]") {
  ReaderFixture fixture;
  const bool open = GENERATE(false, true);
  auto body = fixture.make_body();
  ReaderFixture::append(body, "hello");
  BodyReader reader;
  REQUIRE(reader.set_body(body));
  if (open) {
    reader.add_rest();
    body->abort();
  } else {
    // Complete, but shorter than was announced.
    reader.add_range(0, 6);
    body->complete();
  }
  std::string got;
  CHECK(read_all(reader, got, 2, 100) == State::kBroken);
  CHECK(got == "hello");
  CHECK_FALSE(reader.at_end());
}

TEST_CASE("what lies before a range of a growing body is read over", "[exchange][body]") {
  ReaderFixture fixture;
  auto body = fixture.make_body();
  BodyReader reader;
  REQUIRE(reader.set_body(body));
  reader.add_text("head ");
  reader.add_range(100'000, 100'010);
  const std::string all = letters(150'000);
  std::string got;
  ReaderFixture::append(body, std::string_view(all).substr(0, 70'000));
  CHECK(read_all(reader, got, 4, 100'000) == State::kWaiting);
  CHECK(got == "head ");
  CHECK(reader.position() == 70'000);
  ReaderFixture::append(body, std::string_view(all).substr(70'000));
  CHECK(read_all(reader, got, 4, 100'000) == State::kEnd);
  CHECK(got == "head " + all.substr(100'000, 10));
  CHECK(reader.body_bytes() == 10);
}

TEST_CASE("a body that keeps nothing any more cannot be entered again", "[exchange][body]") {
  ReaderFixture fixture;
  auto body = fixture.make_body();
  ReaderFixture::append(body, letters(1000));
  BodyReader reader;
  REQUIRE(reader.set_body(body));
  reader.add_range(500, 600);
  reader.add_range(100, 200);  // behind the reader's back
  body->stop_retaining();
  std::string got;
  CHECK(read_all(reader, got, 4, 1000) == State::kBroken);
  CHECK(got == letters(1000).substr(500, 100));
  BodyReader late;
  CHECK_FALSE(late.set_body(body));
}

TEST_CASE("a reader counts the memory that it alone keeps", "[exchange][body]") {
  ReaderFixture fixture;
  BodyReader reader;
  CHECK(reader.held_bytes() == 0);
  reader.add_text("twelve bytes");
  CHECK(reader.held_bytes() == 12);
  auto body = fixture.make_body();
  body->stop_retaining();
  ReaderFixture::append(body, letters(5000));
  BodyReader of_body;
  CHECK_FALSE(of_body.set_body(body));
  std::array<iovec, 2> room;
  reader.advance(reader.peek(room, 12).bytes);
  CHECK(reader.held_bytes() == 0);
}

TEST_CASE("what is passed over of a body that grows is let go, and the range is read",
          "[exchange][body]") {
  ReaderFixture fixture;
  auto body = fixture.make_body();
  BodyReader reader;
  REQUIRE(reader.set_body(body));
  body->stop_retaining();
  const std::string early(1U << 20U, 'a');
  for (int i = 0; i < 8; ++i) {
    ReaderFixture::append(body, early);
    reader.pass_over(8 * early.size() + 2);
  }
  CHECK(reader.position() == 8 * early.size());
  CHECK(body->held_bytes() <= 2 * store::kTransferChunkBytes);
  ReaderFixture::append(body, "xxrangeyy");
  reader.pass_over(8 * early.size() + 2);
  CHECK(reader.position() == 8 * early.size() + 2);
  reader.add_range(8 * early.size() + 2, 8 * early.size() + 7);
  std::string out;
  CHECK(read_all(reader, out, 4, 3) == State::kEnd);
  CHECK(out == "range");
  CHECK(reader.body_bytes() == 5);
  body->complete();
}

TEST_CASE("a reader goes on in another body where it has let one go", "[exchange][body]") {
  ReaderFixture fixture;
  const auto seed = GENERATE(take(20, random<std::uint64_t>(1, 1'000'000)));
  CAPTURE(seed);
  std::mt19937_64 random(seed);
  const std::string all = letters(200'000);
  const bool is_open = random() % 2 == 0;
  BodyReader reader;
  auto first = fixture.make_body();
  const std::size_t there = 1 + random() % (all.size() - 1);
  ReaderFixture::append(first, std::string_view(all).substr(0, there));
  REQUIRE(reader.set_body(first));
  reader.add_text("text");
  std::string expected = "text" + all;
  if (is_open) {
    expected = all;
    reader = BodyReader();
    REQUIRE(reader.set_body(first));
    reader.add_rest();
  } else {
    reader.add_range(0, all.size());
  }
  std::string got;
  CHECK(read_all(reader, got, 3, 1 + random() % 50'000) == State::kWaiting);
  // Shown, and not read.
  std::array<iovec, 3> room;
  (void)reader.peek(room, 10);
  const BodyReader::Left left = reader.left();
  CHECK(left.begin == there);
  CHECK(left.end == (is_open ? BodyReader::kOpenEnd : all.size()));
  reader.let_go();
  CHECK(reader.position() == 0);
  CHECK(read_all(reader, got, 3, 1000) == State::kWaiting);
  CHECK(reader.left().begin == there);
  // It begins there, or earlier.
  const std::uint64_t shift = random() % 2 == 0 ? there : random() % there;
  auto second = fixture.make_body();
  REQUIRE(reader.go_on_in(second, shift));
  CHECK(read_all(reader, got, 3, 1000) == State::kWaiting);
  ReaderFixture::append(second, std::string_view(all).substr(shift));
  second->complete();
  CHECK(read_all(reader, got, 3, 1 + random() % 50'000) == State::kEnd);
  CHECK(got == expected);
  CHECK(reader.body_bytes() == all.size());
  CHECK(reader.left().end == 0);
}

}  // namespace
}  // namespace encore::server
