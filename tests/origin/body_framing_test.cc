#include "proxy/origin/body_framing.h"

#include <string>

#include "tests/catch.h"

namespace encore::server {
namespace {

using Status = BodyFraming::Status;

// Reads `input` in pieces of `step` bytes. Returns the content, and where it ended.
struct Framed {
  std::string content;
  Status status = Status::kNeedMore;
  std::size_t consumed = 0;
};
Framed read(BodyFraming& reader, std::string_view input, std::size_t step) {
  Framed outcome;
  while (outcome.consumed < input.size()) {
    std::string_view piece = input.substr(outcome.consumed, step);
    while (true) {
      const auto got = reader.next(piece);
      piece.remove_prefix(got.consumed);
      outcome.consumed += got.consumed;
      outcome.content += got.content;
      outcome.status = got.status;
      if (got.status == Status::kDone || got.status == Status::kBad) return outcome;
      if (got.status == Status::kNeedMore) break;
    }
  }
  return outcome;
}

TEST_CASE("a body ends as it is framed, however it is cut into reads", "[origin][body]") {
  struct Row {
    http::Framing framing;
    std::string input;
    std::string content;
    Status status;
    std::size_t consumed;
  };
  const Row rows[] = {
      {{.kind = http::BodyKind::kLength, .length = 5}, "helloHTTP", "hello", Status::kDone, 5},
      {{.kind = http::BodyKind::kLength, .length = 9}, "hello", "hello", Status::kNeedMore, 5},
      {{.kind = http::BodyKind::kLength, .length = 0}, "HTTP", "", Status::kDone, 0},
      {{.kind = http::BodyKind::kNone}, "HTTP", "", Status::kDone, 0},
      {{.kind = http::BodyKind::kUntilClose}, "hello", "hello", Status::kNeedMore, 5},
      {{.kind = http::BodyKind::kChunked},
       "2\r\nhe\r\n3\r\nllo\r\n0\r\n\r\nHTTP",
       "hello",
       Status::kDone,
       20},
      {{.kind = http::BodyKind::kChunked}, "2\r\nhe\r\n", "he", Status::kNeedMore, 7},
      {{.kind = http::BodyKind::kChunked}, "2\r\nhex", "he", Status::kBad, 5},
  };
  for (const Row& row : rows) {
    for (std::size_t step = 1; step <= row.input.size(); ++step) {
      INFO(row.input << " in steps of " << step);
      BodyFraming reader(row.framing, {});
      const Framed outcome = read(reader, row.input, step);
      CHECK(outcome.content == row.content);
      CHECK((outcome.status == row.status));
      if (row.status != Status::kBad) CHECK(outcome.consumed == row.consumed);
    }
  }
}

TEST_CASE("what found no place comes again", "[origin][body]") {
  for (const auto kind : {http::BodyKind::kLength, http::BodyKind::kChunked}) {
    BodyFraming reader({.kind = kind, .length = 5}, {});
    const bool chunked = kind == http::BodyKind::kChunked;
    std::string input = chunked ? "5\r\nhello\r\n0\r\n\r\n" : "hello";
    auto step = reader.next(input);
    REQUIRE((step.status == Status::kContent));
    REQUIRE(step.content == "hello");
    reader.give_back(3);
    step = reader.next(std::string_view(input).substr(step.consumed - 3));
    CHECK((step.status == Status::kContent));
    CHECK(step.content == "llo");
    if (!chunked) CHECK((reader.next("").status == Status::kDone));
  }
}

TEST_CASE("a body of a stream ends with that alone, whatever its head says", "[origin][body]") {
  using End = BodyFraming::End;
  for (const auto kind : {http::BodyKind::kLength, http::BodyKind::kChunked}) {
    BodyFraming reader({.kind = kind, .length = 5}, {}, End::kOfStream);
    CHECK_FALSE(reader.is_empty());
    CHECK_FALSE(reader.ends_with_connection());
    const auto step = reader.next("5\r\nhe");
    CHECK((step.status == Status::kContent));
    CHECK(step.content == "5\r\nhe");
    CHECK((reader.next("").status == Status::kNeedMore));
    reader.give_back(2);
    CHECK(reader.next("he").content == "he");
    CHECK(reader.has_length() == (kind == http::BodyKind::kLength));
  }
  CHECK_FALSE(
      BodyFraming({.kind = http::BodyKind::kLength, .length = 0}, {}, End::kOfStream).is_empty());
  CHECK(BodyFraming({.kind = http::BodyKind::kNone}, {}, End::kOfStream).is_empty());
}

TEST_CASE("what is here already is not waited for", "[origin][body]") {
  BodyFraming reader({.kind = http::BodyKind::kLength, .length = 5}, {});
  CHECK(reader.left() == 5);
  reader.skip(4);
  CHECK_FALSE(reader.is_empty());
  CHECK(reader.next("xyz").content == "x");
  CHECK(reader.is_empty());
  BodyFraming whole({.kind = http::BodyKind::kLength, .length = 2}, {});
  whole.skip(2);
  CHECK((whole.next("xyz").status == Status::kDone));
  CHECK(BodyFraming({.kind = http::BodyKind::kUntilClose}, {}).ends_with_connection());
}

}  // namespace
}  // namespace encore::server
