// Http1Writer over a real pair of sockets whose buffer is small, against what a plain HTTP/1
// message would be.
#include "proxy/client/http1_writer.h"

#include <memory>
#include <optional>
#include <random>
#include <string>

#include "proxy/http/chunked.h"
#include "proxy/net/timer.h"
#include "proxy/store/memory_store.h"
#include "tests/catch.h"
#include "tests/client/http1_pair.h"
#include "tests/letters.h"

namespace encore::server {
namespace {

using Status = Http1Writer::Status;
using Coding = Http1Writer::Coding;

struct WriterFixture {
  WriterFixture() {
    auto made = store::make_memory_store({.limit_bytes = 64U << 20U});
    REQUIRE(made.has_value());
    store = std::move(*made);
    auto fresh = store->make_body({});
    REQUIRE(fresh.has_value());
    body = std::move(*fresh);
  }
  void append(std::string_view text) {
    REQUIRE(body->append(std::as_bytes(std::span(text))) == text.size());
  }
  // Pumps and reads by turns until the writer says something else than that it is blocked or has
  // more.
  Status run(std::mt19937_64& random) {
    while (true) {
      const Status status = writer.pump(*pair.stream);
      CHECK(writer.is_blocked() == (status == Status::kBlocked));
      if (status != Status::kBlocked && status != Status::kMore) {
        got += pair.read();
        return status;
      }
      got += pair.read(1 + random() % 9000);
    }
  }

  StreamPair pair;
  std::unique_ptr<store::Store> store;
  store::BodyRef body;
  BodyReader content;
  Http1Writer writer;
  std::string got;
};

// Content and trailers of chunks; empty where they are malformed or go on.
struct Decoded {
  std::string content;
  std::string trailers;
  bool whole = false;
};
Decoded decode(std::string_view input) {
  http::ChunkedDecoder decoder;
  Decoded decoded;
  while (true) {
    const auto step = decoder.next(input);
    input.remove_prefix(step.consumed);
    if (step.status == http::ChunkedDecoder::Status::kData) {
      decoded.content += step.data;
      continue;
    }
    decoded.whole = step.status == http::ChunkedDecoder::Status::kDone && input.empty();
    decoded.trailers = decoder.trailers();
    return decoded;
  }
}

TEST_CASE("head and content of a known length arrive as they are", "[client][writer]") {
  const auto seed = GENERATE(take(15, random<std::uint64_t>(1, 1'000'000)));
  CAPTURE(seed);
  std::mt19937_64 random(seed);
  WriterFixture fixture;
  const std::string all = letters(random() % 400'000);
  fixture.append(all);
  fixture.body->complete();
  REQUIRE(fixture.content.set_body(fixture.body));
  fixture.content.add_range(0, all.size());
  fixture.writer.add_text("HTTP/1.1 200 OK\r\n\r\n");
  fixture.writer.set_content(fixture.content, Coding::kIdentity);
  CHECK(fixture.run(random) == Status::kDone);
  CHECK(fixture.got == "HTTP/1.1 200 OK\r\n\r\n" + all);
  CHECK(fixture.writer.sent_bytes() == fixture.got.size());
}

TEST_CASE("an open body goes as chunks, and its trailers behind it", "[client][writer]") {
  const auto seed = GENERATE(take(15, random<std::uint64_t>(1, 1'000'000)));
  CAPTURE(seed);
  std::mt19937_64 random(seed);
  WriterFixture fixture;
  REQUIRE(fixture.content.set_body(fixture.body));
  fixture.content.add_rest();
  const std::string head = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
  std::string trailers;
  fixture.writer.add_text(head);
  fixture.writer.set_content(fixture.content, Coding::kChunked, &trailers);
  std::string all;
  for (int i = 0; i < 12; ++i) {
    CHECK(fixture.run(random) == Status::kWaiting);
    const std::string more = letters(random() % 60'000);
    fixture.append(more);
    all += more;
  }
  trailers = "Checksum: 1\r\n";
  fixture.body->complete();
  CHECK(fixture.run(random) == Status::kDone);
  REQUIRE(fixture.got.starts_with(head));
  const Decoded decoded = decode(std::string_view(fixture.got).substr(head.size()));
  CHECK(decoded.whole);
  CHECK(decoded.content == all);
  CHECK(decoded.trailers == trailers);
}

TEST_CASE("content that breaks off leaves chunks without an end", "[client][writer]") {
  std::mt19937_64 random(1);
  WriterFixture fixture;
  fixture.append("some of it");
  REQUIRE(fixture.content.set_body(fixture.body));
  fixture.content.add_rest();
  fixture.writer.set_content(fixture.content, Coding::kChunked);
  CHECK(fixture.run(random) == Status::kWaiting);
  fixture.body->abort();
  CHECK(fixture.run(random) == Status::kBroken);
  const Decoded decoded = decode(fixture.got);
  CHECK_FALSE(decoded.whole);
  CHECK(decoded.content == "some of it");
}

TEST_CASE("what went ahead of a text is not sent again", "[client][writer]") {
  std::mt19937_64 random(1);
  WriterFixture fixture;
  CHECK(fixture.writer.send_ahead(*fixture.pair.stream, "HTTP/1.1 ") == Status::kDone);
  CHECK(fixture.writer.send_ahead(*fixture.pair.stream, "HTTP/1.1 ") == Status::kWaiting);
  CHECK(fixture.run(random) == Status::kDone);
  fixture.writer.add_text("HTTP/1.1 103 Early Hints\r\n\r\n");
  fixture.writer.add_text("HTTP/1.1 204 No Content\r\n\r\n");
  CHECK(fixture.run(random) == Status::kDone);
  CHECK(fixture.got == "HTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 204 No Content\r\n\r\n");
}

TEST_CASE("a pump writes one share and says that there is more", "[client][writer]") {
  WriterFixture fixture;
  StreamPair wide(8 << 20);
  const std::string all = letters(3 * net::TurnShares::kShareMax);
  fixture.content.add_text(all);
  fixture.writer.set_content(fixture.content, Coding::kIdentity);
  std::string got;
  int pumps = 0;
  Status status = Status::kMore;
  while (status != Status::kDone) {
    const std::uint64_t before = fixture.writer.sent_bytes();
    status = fixture.writer.pump(*wide.stream);
    CHECK(fixture.writer.sent_bytes() - before <= net::TurnShares::kShareMax);
    got += wide.read();
    REQUIRE(++pumps < 1000);
  }
  CHECK(got == all);
  CHECK(pumps >= 3);
}

// Waits in the queue of a loop for as long as it lives, and moves nothing.
struct Waiting {
  explicit Waiting(net::Loop& loop) : deferred(loop, [this] { deferred.wait_for_share(); }) {
    deferred.wait_for_share();
  }
  net::Deferred deferred;
};

TEST_CASE(
    "a writer with much to write waits for its share where others wait or the turn is used up",
    "[client][writer]") {
  const bool is_much = GENERATE(true, false);
  const bool others_wait = GENERATE(true, false);
  WriterFixture fixture;
  StreamPair wide(8 << 20);
  const std::string all = letters(Http1Writer::kLittleBytes + (is_much ? 1 : 0));
  fixture.content.add_text(all);
  fixture.writer.set_content(fixture.content, Coding::kChunked);
  std::optional<Waiting> other;
  if (others_wait) {
    other.emplace(*wide.loop);
  } else {
    net::DeferredNode reader;
    wide.loop->shares().count_read(reader, net::TurnShares::kTurnBytes, 1);
  }
  CHECK(fixture.writer.pump(*wide.stream) == (is_much ? Status::kMore : Status::kDone));
  CHECK((fixture.writer.sent_bytes() == 0) == is_much);
  other.reset();
  // With something to do immediately, so that it does not sleep.
  wide.loop->defer([] {});
  REQUIRE(wide.loop->turn());
  CHECK(fixture.writer.pump(*wide.stream) == Status::kDone);
  const Decoded decoded = decode(wide.read());
  CHECK(decoded.whole);
  CHECK(decoded.content == all);
}

TEST_CASE("a client that has gone is found out by a write", "[client][writer]") {
  WriterFixture fixture;
  fixture.pair.close_other();
  fixture.writer.add_text("HTTP/1.1 200 OK\r\n\r\n");
  CHECK(fixture.writer.pump(*fixture.pair.stream) == Status::kDead);
  CHECK(fixture.writer.is_dead());
}

TEST_CASE("a client stalls while it takes nothing of what there is", "[client][writer]") {
  WriterFixture fixture;
  const MonotonicTime begin = fixture.pair.loop->now();
  const auto after = [&](int waited) {
    return fixture.writer.stalled_for(begin + std::chrono::seconds(waited), *fixture.pair.stream);
  };
  CHECK(after(1) == Nanoseconds(0));
  fixture.content.add_text(letters(1 << 20));
  fixture.writer.set_content(fixture.content, Coding::kIdentity);
  REQUIRE(fixture.writer.pump(*fixture.pair.stream) == Status::kBlocked);
  CHECK(fixture.writer.held_bytes() == 1 << 20);
  CHECK(after(5) == std::chrono::seconds(5));
  // A pump that sends nothing is no progress.
  REQUIRE(fixture.writer.pump(*fixture.pair.stream) == Status::kBlocked);
  CHECK(after(9) == std::chrono::seconds(9));
  // To take what the kernel has for it is, although nothing more is written.
  REQUIRE_FALSE(fixture.pair.read().empty());
  CHECK(after(10) == Nanoseconds(0));
  CHECK(after(12) == std::chrono::seconds(2));
}

}  // namespace
}  // namespace encore::server
