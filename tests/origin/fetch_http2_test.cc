// Fetches over HTTP/2, from the connection to the stored object: the test plays the server.
#include <array>
#include <deque>
#include <string>
#include <utility>
#include <vector>

#include "proxy/h2/field_encoder.h"
#include "proxy/origin/fetch.h"
#include "proxy/origin/origin_http2_pool.h"
#include "tests/catch.h"
#include "tests/origin/world.h"

namespace encore::server {
namespace {

std::string served(h2::FrameType type, std::uint8_t flags, h2::StreamId stream,
                   std::string_view payload) {
  std::string out;
  h2::append_frame_header({.length = static_cast<std::uint32_t>(payload.size()),
                           .type = type,
                           .flags = flags,
                           .stream = stream},
                          out);
  return out.append(payload);
}
std::string served_head(h2::StreamId stream, std::string_view lines, bool ends = false) {
  std::string block;
  std::optional<std::uint64_t> length;
  h2::append_pseudo(":status", "200", block);
  h2::append_fields(lines, block, length);
  return served(h2::FrameType::kHeaders,
                h2::kFlagEndHeaders | (ends ? h2::kFlagEndStream : std::uint8_t{0}), stream, block);
}
std::string served_content(h2::StreamId stream, std::string_view bytes, bool ends) {
  return served(h2::FrameType::kData, ends ? h2::kFlagEndStream : std::uint8_t{0}, stream, bytes);
}
std::string served_reset(h2::StreamId stream, h2::ErrorCode code) {
  return served(h2::FrameType::kRstStream, 0, stream,
                std::string("\0\0\0", 3) + static_cast<char>(code));
}
FetchPlan fetched_whole(bool has_upload = false) {
  FetchPlan plan;
  plan.whole = !has_upload;
  plan.has_upload = has_upload;
  return plan;
}

// A server, what it was sent, and a world that asks it.
struct Http2Served {
  explicit Http2Served(std::size_t waiting = 16,
                       const std::function<void(config::Config&)>& change = {},
                       const std::string& host = "127.0.0.1")
      : world({"http://" + host + ":" + std::to_string(origin.port())},
              [&](config::Config& config) {
                config.origin[0].http2 = true;
                if (change) change(config);
              }) {
    world.is_http2 = true;
    world.lines.use({.connections = 8, .waiting = waiting});
  }
  ~Http2Served() {
    while (!world.fetches.empty()) world.fetches.back()->abandon();
    for (int turn = 0; turn < 4; ++turn) world.run_turn();
    CHECK(world.stats.origin_http2_streams_open.get() == 0);
    CHECK(world.stats.origin_http2_open.get() == world.stats.origin_connections.get());
  }
  Http2Served(const Http2Served&) = delete;
  Http2Served& operator=(const Http2Served&) = delete;

  struct Frame {
    h2::FrameType type;
    std::uint8_t flags;
    h2::StreamId stream;
    std::string payload;
  };
  void run_until(const std::function<bool()>& done) {
    world.run_until(origin, [&] {
      world.lines.wake();
      if (!pending.empty()) pending.erase(0, origin.offer(pending));
      pull();
      return done();
    });
  }
  void run_turns(int turns = 8) {
    int turn = 0;
    run_until([&] { return ++turn >= turns; });
  }
  // So many requests have come on all connections.
  void run_until_asked(std::size_t requests) {
    run_until([&] { return count(h2::FrameType::kHeaders) == requests; });
  }
  std::size_t count(h2::FrameType type) const {
    std::size_t found = 0;
    for (const Frame& frame : frames) found += frame.type == type ? 1U : 0U;
    return found;
  }
  h2::StreamId last_asked() const {
    h2::StreamId last = 0;
    for (const Frame& frame : frames) {
      if (frame.type == h2::FrameType::kHeaders) last = frame.stream;
    }
    return last;
  }
  OriginHttp2Connection* connection() {
    const std::string& key = world.runtime->router.match("", "/")->group().servers()[0].pool_key;
    return world.pool.http2().find(key, [](const OriginHttp2Connection&) { return true; });
  }
  // Asks, and gets a small response.
  void fetch_one() {
    const std::size_t before = count(h2::FrameType::kHeaders);
    FetchReader reader(world, world.request("GET /one HTTP/1.1\r\nHost: h\r\n\r\n"),
                       fetched_whole());
    run_until_asked(before + 1);
    pending += served_head(last_asked(), "Content-Length: 0\r\n", true);
    run_until([&] { return reader.is_done() && world.fetches.empty(); });
    REQUIRE(reader.whole);
    run_turns();
  }

  Origin origin;
  World world;
  std::vector<Frame> frames;  // that came
  std::string pending = served(h2::FrameType::kSettings, 0, 0, "");

 private:
  void pull() {
    constexpr std::size_t kPreface = 24;
    constexpr std::size_t kHeader = 9;
    bytes_ += std::exchange(origin.asked, {});
    if (const auto at = bytes_.find("PRI * HTTP/2.0"); at != std::string::npos) {
      if (bytes_.size() < at + kPreface) return;
      bytes_.erase(0, at + kPreface);
    }
    const auto byte = [&](std::size_t at) { return static_cast<unsigned char>(bytes_[at]); };
    while (bytes_.size() >= kHeader) {
      const std::size_t length =
          (std::size_t{byte(0)} << 16U) + (std::size_t{byte(1)} << 8U) + byte(2);
      if (bytes_.size() < kHeader + length) return;
      frames.push_back({.type = static_cast<h2::FrameType>(byte(3)),
                        .flags = byte(4),
                        .stream = (std::uint32_t{byte(7)} << 8U) + byte(8),
                        .payload = bytes_.substr(kHeader, length)});
      bytes_.erase(0, kHeader + length);
    }
  }
  std::string bytes_;
};

TEST_CASE("requests wait for the connection that the first one makes, and share it",
          "[origin][fetch][http2]") {
  Http2Served served_by;
  World& world = served_by.world;
  std::deque<FetchReader> readers;
  for (int i = 0; i < 3; ++i) {
    readers.emplace_back(
        world, world.request("GET /" + std::to_string(i) + " HTTP/1.1\r\nHost: h\r\n\r\n"),
        fetched_whole());
  }
  CHECK(world.lines.waiting() == 2);
  served_by.run_until_asked(3);
  CHECK(world.stats.origin_connects.get() == 1);
  CHECK(world.stats.origin_reuses.get() == 2);
  CHECK(world.stats.origin_waits.get() == 2);
  CHECK(world.stats.origin_connections.get() == 1);
  CHECK(world.stats.origin_http2_streams_open.get() == 3);
  CHECK(world.pool.size() == 0);
  const std::string lines = "cache-control: max-age=60\r\ncontent-length: 6\r\n";
  for (const h2::StreamId stream : {5U, 1U, 3U}) {
    served_by.pending +=
        served_head(stream, lines) + served_content(stream, "body " + std::to_string(stream), true);
  }
  served_by.run_until([&] { return world.fetches.empty(); });
  for (std::size_t i = 0; i < 3; ++i) {
    CAPTURE(i);
    CHECK(readers[i].is_done());
    CHECK(readers[i].whole);
    CHECK(readers[i].body == "body " + std::to_string(2 * i + 1));
    CHECK((readers[i].visit.connect.count() < 0) == (i != 0));
    CHECK(world.stored(readers[i].request()));
  }
  const std::size_t text = std::string("HTTP/1.1 200 OK\r\n\r\n").size() + lines.size() + 6;
  CHECK(world.stats.bytes_from_origins.get() == 3 * text);
  served_by.run_turns();
  CHECK(world.pool.size() == 1);
  CHECK(world.lines.waiting() == 0);
  served_by.fetch_one();
  CHECK(world.stats.origin_connects.get() == 1);
  CHECK(served_by.origin.accepted == 1);
}

TEST_CASE("where nobody may wait each request makes a connection of its own",
          "[origin][fetch][http2]") {
  Http2Served served_by(0);
  World& world = served_by.world;
  std::deque<FetchReader> readers;
  for (int i = 0; i < 3; ++i) {
    readers.emplace_back(world, world.request("GET /a HTTP/1.1\r\nHost: h\r\n\r\n"),
                         fetched_whole());
  }
  CHECK(world.lines.waiting() == 0);
  for (int turn = 0; turn < 300 && world.stats.origin_connects.get() < 3; ++turn) {
    world.run_turn();
    if (turn > 20) ::usleep(1000);
  }
  CHECK(world.stats.origin_connects.get() == 3);
  CHECK(world.stats.origin_busy.get() == 0);
  CHECK(world.stats.origin_requests.get() == 3);
}

TEST_CASE("how a stream fails says whether its request goes again, and what it counts as",
          "[origin][fetch][http2]") {
  enum class How : std::uint8_t { kRefused, kReset, kInvalid, kClosed };
  struct Row {
    How how;
    const char* method;
    bool repeats;
    const char* detail;
    std::optional<ServerFailure> counts;
  };
  const Row row = GENERATE(values<Row>({
      {How::kRefused, "GET", true, "origin-refused-stream", {}},
      {How::kRefused, "POST", true, "origin-refused-stream", {}},
      {How::kReset, "GET", true, "origin-stream-reset", ServerFailure::kClosed},
      {How::kReset, "POST", false, "origin-stream-reset", ServerFailure::kClosed},
      {How::kInvalid, "GET", false, "bad-http2", ServerFailure::kInvalid},
      {How::kClosed, "GET", true, "origin-closed", ServerFailure::kClosed},
      {How::kClosed, "POST", false, "origin-closed", ServerFailure::kClosed},
  }));
  CAPTURE(static_cast<int>(row.how), row.method);
  Http2Served served_by(16, [](config::Config& config) { config.upstream.retries = 1; });
  World& world = served_by.world;
  const auto fail = [&] {
    const h2::StreamId stream = served_by.last_asked();
    switch (row.how) {
      case How::kRefused:
        served_by.pending += served_reset(stream, h2::ErrorCode::kRefusedStream);
        return;
      case How::kReset:
        served_by.pending += served_reset(stream, h2::ErrorCode::kInternalError);
        return;
      case How::kInvalid:
        served_by.pending += served_content(stream, "x", false);
        return;
      case How::kClosed:
        served_by.origin.close();
        return;
    }
  };
  FetchReader reader(world,
                     world.request(std::string(row.method) + " /a HTTP/1.1\r\nHost: h\r\n\r\n"),
                     fetched_whole());
  served_by.run_until_asked(1);
  served_by.run_until([&] { return served_by.pending.empty(); });
  fail();
  if (row.repeats) {
    served_by.run_until_asked(2);
    CHECK_FALSE(reader.is_done());
    CHECK(served_by.origin.accepted == (row.how == How::kClosed ? 2 : 1));
    fail();
  }
  served_by.run_until([&] { return reader.is_done() && world.fetches.empty(); });
  const std::uint64_t attempts = row.repeats ? 2 : 1;
  REQUIRE(reader.failure);
  CHECK(reader.failure->status == 502);
  CHECK(reader.failure->detail == row.detail);
  CHECK(reader.failure->outcome ==
        (row.how == How::kInvalid ? Outcome::kOriginInvalid : Outcome::kOriginAborted));
  CHECK(world.stats.origin_requests.get() == attempts);
  CHECK(world.stats.origin_retries.get() == attempts - 1);
  CHECK(served_by.count(h2::FrameType::kHeaders) == attempts);
  CHECK(world.failures() == (row.counts ? attempts : 0));
  if (row.counts) CHECK(world.failures(*row.counts) == attempts);
}

TEST_CASE("a response whose stream breaks off is whole for nobody, and is not asked for again",
          "[origin][fetch][http2]") {
  Http2Served served_by;
  World& world = served_by.world;
  const auto request = world.request("GET /a HTTP/1.1\r\nHost: h\r\n\r\n");
  FetchReader reader(world, request, fetched_whole());
  served_by.run_until_asked(1);
  served_by.pending += served_head(1, "Cache-Control: max-age=60\r\n") +
                       served_content(1, "some", false) +
                       served_reset(1, h2::ErrorCode::kInternalError);
  served_by.run_until([&] { return reader.is_done() && world.fetches.empty(); });
  CHECK(reader.body == "some");
  CHECK_FALSE(reader.whole);
  CHECK_FALSE(world.stored(*request));
  CHECK(world.failures(ServerFailure::kBroken) == 1);
  CHECK(world.failures() == 1);
  CHECK(world.stats.origin_requests.get() == 1);
  CHECK(world.stats.store_aborts.get() == 1);
  // The connection is in step: the next request goes on it.
  served_by.run_turns();
  CHECK(world.pool.size() == 1);
}

TEST_CASE("content and trailers go both ways, on a connection that is kept",
          "[origin][fetch][http2]") {
  Http2Served served_by;
  World& world = served_by.world;
  served_by.fetch_one();
  const auto request =
      world.request("POST /a HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n");
  FetchReader reader(world, request, fetched_whole(true));
  served_by.run_until([&] { return reader.upload_calls != 0; });
  CHECK(world.stats.origin_connects.get() == 1);
  const std::uint64_t of_heads = world.stats.bytes_to_origins.get();
  reader.producer()->upload("he", false, "");
  served_by.run_until([&] { return reader.producer()->accepts_upload(); });
  reader.producer()->upload("llo", true, "X-Sum: 1\r\n");
  // The fields behind the content come as a block of their own.
  served_by.run_until_asked(3);
  std::string content;
  for (const auto& frame : served_by.frames) {
    if (frame.type == h2::FrameType::kData) content += frame.payload;
  }
  CHECK(content == "hello");
  CHECK((served_by.frames.back().flags & h2::kFlagEndStream) != 0);
  std::string trailers;
  std::optional<std::uint64_t> length;
  h2::append_fields("X-T: 2\r\nSet-Cookie: no\r\n", trailers, length);
  served_by.pending +=
      served_head(3, "Cache-Control: no-store\r\n") + served_content(3, "fine", false) +
      served(h2::FrameType::kHeaders, h2::kFlagEndHeaders | h2::kFlagEndStream, 3, trailers);
  served_by.run_until([&] { return reader.is_done() && world.fetches.empty(); });
  CHECK(reader.body == "fine");
  CHECK(reader.whole);
  CHECK(reader.response->trailers == "x-t: 2\r\n");
  CHECK(world.stats.bytes_to_origins.get() == of_heads + 5);
  served_by.run_turns();
  CHECK(world.pool.size() == 1);
  CHECK(world.failures() == 0);
}

TEST_CASE("a connection is used again unless settings, a drain or the pool's size forbid",
          "[origin][fetch][http2]") {
  enum class Why : std::uint8_t { kNone, kReload, kDrain, kNoPool };
  const Why why = GENERATE(Why::kNone, Why::kReload, Why::kDrain, Why::kNoPool);
  CAPTURE(static_cast<int>(why));
  Http2Served served_by(16, [&](config::Config& config) {
    if (why == Why::kNoPool) config.upstream.pool_per_server = 0;
  });
  World& world = served_by.world;
  world.draining = why == Why::kDrain;
  served_by.fetch_one();
  const bool is_kept = why == Why::kNone || why == Why::kReload;
  CHECK(world.pool.size() == (is_kept ? 1 : 0));
  CHECK(served_by.origin.ended == !is_kept);
  const auto request = world.request("GET /a HTTP/1.1\r\nHost: h\r\n\r\n");
  if (why == Why::kReload) {
    auto run = Runtime::create(world.runtime->config, {}, "test");
    REQUIRE(run.has_value());
    world.runtime = *run;
  }
  FetchReader reader(world, request, fetched_whole());
  if (why != Why::kNone) {
    served_by.run_until([&] { return served_by.origin.accepted == 2; });
    served_by.pending = served(h2::FrameType::kSettings, 0, 0, "");
  }
  served_by.run_until_asked(2);
  CHECK(world.stats.origin_connects.get() == (why == Why::kNone ? 1 : 2));
  served_by.pending += served_head(served_by.last_asked(), "", true);
  served_by.run_until([&] { return reader.is_done() && world.fetches.empty(); });
  CHECK(reader.whole);
  // A connection that was made for a request of other settings carries no other.
  served_by.run_turns();
  CHECK(world.pool.size() == (why == Why::kNone ? 1 : 0));
}

TEST_CASE("a connection whose name is unsure is asked about, and not used for a body until then",
          "[origin][fetch][http2]") {
  const bool has_upload = GENERATE(true, false);
  Http2Served served_by(16, {}, "localhost");
  World& world = served_by.world;
  served_by.fetch_one();
  OriginHttp2Connection* const kept = served_by.connection();
  REQUIRE(kept != nullptr);
  const MonotonicTime now = world.loop->now();
  kept->set_named_until(now - std::chrono::seconds(1));
  FetchReader reader(world,
                     world.request(std::string(has_upload ? "POST" : "GET") +
                                   " /a HTTP/1.1\r\nHost: h\r\nContent-Length: 0\r\n\r\n"),
                     fetched_whole(has_upload));
  CHECK(world.stats.origin_reuses.get() == 0);  // the name comes from the loop
  if (has_upload) {
    served_by.run_until([&] { return world.stats.origin_connects.get() == 2; });
    CHECK(world.stats.origin_reuses.get() == 0);
    return;
  }
  served_by.run_until_asked(2);
  CHECK(world.stats.origin_connects.get() == 1);
  CHECK(world.stats.origin_reuses.get() == 1);
  CHECK(kept->named_until() > now);
  CHECK(reader.visit.connect.count() < 0);
  served_by.pending += served_head(3, "", true);
  served_by.run_until([&] { return reader.is_done(); });
}

TEST_CASE("a reader that takes nothing holds back its own stream", "[origin][fetch][http2]") {
  constexpr std::size_t kBody = 3'000'000;
  constexpr std::size_t kPiece = 16'000;
  constexpr std::uint64_t kBuffer = 256 * 1024;
  Http2Served served_by(16, [](config::Config& config) {
    config.limits.transfer_buffer_bytes = kBuffer;
    config.cache.collapse_buffer_bytes = kBuffer;
  });
  World& world = served_by.world;
  FetchReader reader(world, world.request("GET /a HTTP/1.1\r\nHost: h\r\n\r\n"), fetched_whole());
  reader.appetite = 0;
  served_by.run_until_asked(1);
  served_by.pending += served_head(1, "Cache-Control: no-store\r\n");
  const auto number = [](std::string_view text, std::size_t at) {
    std::uint32_t value = 0;
    for (std::size_t i = 0; i < 4; ++i) {
      value = (value << 8U) + static_cast<unsigned char>(text[at + i]);
    }
    return value;
  };
  // Bytes that may be sent on stream 1 by now, and by the window of the connection.
  const auto allowed = [&] {
    std::uint64_t of_stream = 65'535;
    std::uint64_t of_all = 65'535;
    for (const auto& frame : served_by.frames) {
      if (frame.type == h2::FrameType::kSettings) {
        for (std::size_t at = 0; at + 6 <= frame.payload.size(); at += 6) {
          if (frame.payload[at + 1] == 4) of_stream = number(frame.payload, at + 2);
        }
      }
      if (frame.type != h2::FrameType::kWindowUpdate) continue;
      (frame.stream == 0 ? of_all : of_stream) += number(frame.payload, 0);
    }
    return std::min(of_stream, of_all);
  };
  std::string body;
  for (std::size_t i = 0; i < kBody; ++i) body += static_cast<char>('a' + i % 23);
  std::size_t said = 0;
  const auto say = [&] {
    while (served_by.pending.empty() && said != kBody && said + kPiece <= allowed()) {
      const std::size_t piece = std::min(kPiece, kBody - said);
      served_by.pending += served_content(1, body.substr(said, piece), said + piece == kBody);
      said += piece;
      served_by.pending.erase(0, served_by.origin.offer(served_by.pending));
    }
  };
  served_by.run_turns();  // the head leaves
  std::size_t before = SIZE_MAX;
  while (before != said) {
    before = said;
    say();
    served_by.run_turns();
  }
  CHECK(said > kBuffer);
  CHECK(said < kBody);
  CHECK(world.store->stats().in_flight_bytes < 2 * kBuffer + (1U << 20U));
  CHECK(reader.body.empty());
  reader.take(UINT64_MAX / 2);
  served_by.run_until([&] {
    say();
    return reader.is_done() && world.fetches.empty();
  });
  CHECK(reader.whole);
  CHECK((reader.body == body));
}

}  // namespace
}  // namespace encore::server
