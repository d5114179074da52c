// Connections of HTTP/2 to servers over a socket whose far end the test plays, and their pool.
#include "proxy/origin/origin_http2_connection.h"

#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "proxy/h2/field_encoder.h"
#include "proxy/net/loop.h"
#include "proxy/origin/origin_http2_pool.h"
#include "proxy/origin/origin_http2_stream.h"
#include "tests/catch.h"

namespace encore::server {
namespace {

using std::chrono::seconds;

std::string h2_frame(h2::FrameType type, std::uint8_t flags, h2::StreamId stream,
                     std::string_view payload) {
  std::string out;
  h2::append_frame_header({.length = static_cast<std::uint32_t>(payload.size()),
                           .type = type,
                           .flags = flags,
                           .stream = stream},
                          out);
  return out.append(payload);
}
std::string h2_head(h2::StreamId stream, bool ends) {
  std::string block;
  h2::append_pseudo(":status", "200", block);
  return h2_frame(h2::FrameType::kHeaders,
                  h2::kFlagEndHeaders | (ends ? h2::kFlagEndStream : std::uint8_t{0}), stream,
                  block);
}
std::string h2_content(h2::StreamId stream, std::string_view bytes, bool ends) {
  return h2_frame(h2::FrameType::kData, ends ? h2::kFlagEndStream : std::uint8_t{0}, stream, bytes);
}
std::string h2_settings(std::string_view payload) {
  return h2_frame(h2::FrameType::kSettings, 0, 0, payload);
}
// MAX_CONCURRENT_STREAMS.
std::string h2_streams_max(char count) { return h2_settings(std::string("\0\3\0\0\0", 5) + count); }

// The far end: what it was sent, and frames of it.
class FarServer {
 public:
  explicit FarServer(net::Socket socket) : socket_(std::move(socket)) {}
  void say(const std::string& bytes) {
    REQUIRE(::send(socket_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL) ==
            static_cast<ssize_t>(bytes.size()));
  }
  void look() {
    char room[8192];
    ssize_t got = 0;
    while ((got = ::recv(socket_.get(), room, sizeof(room), 0)) > 0) {
      bytes_.append(room, static_cast<std::size_t>(got));
    }
    has_ended = has_ended || got == 0;
  }
  // How many frames of a type have come; a frame's payload of one stream, one after the other.
  std::size_t count(h2::FrameType type) const {
    std::size_t frames = 0;
    each(
        [&](h2::FrameType of, std::uint32_t, std::string_view) { frames += of == type ? 1U : 0U; });
    return frames;
  }
  std::string content(std::uint32_t stream) const {
    std::string text;
    each([&](h2::FrameType of, std::uint32_t on, std::string_view payload) {
      if (of == h2::FrameType::kData && on == stream) text += payload;
    });
    return text;
  }
  bool has_ended = false;

 private:
  template <typename Call>
  void each(Call call) const {
    constexpr std::size_t kPreface = 24;
    constexpr std::size_t kHeader = 9;
    if (bytes_.size() < kPreface) return;
    CHECK(bytes_.starts_with("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"));
    const auto byte = [&](std::size_t at) { return static_cast<unsigned char>(bytes_[at]); };
    for (std::size_t at = kPreface; at + kHeader <= bytes_.size();) {
      const std::size_t length =
          (std::size_t{byte(at)} << 16U) + (std::size_t{byte(at + 1)} << 8U) + byte(at + 2);
      const std::uint32_t stream = (std::uint32_t{byte(at + 7)} << 8U) + byte(at + 8);
      call(static_cast<h2::FrameType>(byte(at + 3)), stream,
           std::string_view(bytes_).substr(at + kHeader, length));
      at += kHeader + length;
    }
  }

  net::Socket socket_;
  std::string bytes_;
};

// The sender of one request.
struct Sender final : OriginHttp2Handler {
  explicit Sender(OriginHttp2Connection& connection) : stream(connection.open()) {
    stream->set_handler(this);
  }
  ~Sender() {
    if (stream != nullptr) stream->release();
  }
  Sender(const Sender&) = delete;
  Sender& operator=(const Sender&) = delete;
  void get() {
    REQUIRE(
        stream->send_head("GET / HTTP/1.1\r\nHost: a\r\n\r\n", OriginHttp2Stream::Content::kNone));
  }
  std::size_t on_stream_bytes(std::string_view bytes) override {
    got += bytes;
    return bytes.size();
  }
  void on_stream_end(std::string_view) override { ++ends; }
  void on_stream_writable() override { ++writable; }
  void on_stream_failed(const StreamFailure& why) override { failed = why; }

  std::unique_ptr<OriginHttp2Stream> stream;
  std::string got;
  int ends = 0;
  int writable = 0;
  std::optional<StreamFailure> failed;
};

struct Pooled {
  Pooled() {
    auto made = net::Loop::create();
    REQUIRE(made.has_value());
    loop = std::move(*made);
    lines.use({.connections = 100, .waiting = 10});
  }
  ~Pooled() {
    pool.close_all();
    turns(5);
    CHECK(pool.idle_count() == 0);
    CHECK(stats.origin_connections.get() == 0);
    CHECK(stats.origin_http2_open.get() == 0);
    CHECK(stats.origin_http2_streams_open.get() == 0);
    CHECK(lines.size() == 0);
  }
  Pooled(const Pooled&) = delete;
  Pooled& operator=(const Pooled&) = delete;

  OriginHttp2Connection& add(const std::string& key, MonotonicTime made = {}) {
    int ends[2];
    REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends) == 0);
    servers.push_back(std::make_unique<FarServer>(net::Socket(ends[1])));
    return pool.add(
        key,
        {.stream = std::make_unique<net::Stream>(
             *loop, net::Socket(ends[0]),
             *net::Address::parse_ip("127.0.0.1", static_cast<std::uint16_t>(servers.size())),
             nullptr),
         .slot = lines.claim(key),
         .count = ConnectionCount(stats),
         .made = made,
         .named_until = MonotonicTime::max()},
        {.has_streams_apart = true}, stats);
  }
  void turns(int count = 4) {
    for (int i = 0; i < count; ++i) {
      loop->stop();
      loop->run();
      for (auto& server : servers) server->look();
    }
  }
  OriginHttp2Connection* find(std::string_view key) {
    return pool.find(key, [](const OriginHttp2Connection&) { return true; });
  }

  std::unique_ptr<net::Loop> loop;
  WorkerStats stats;
  int room = 0;
  OriginQueues lines{[this] { ++room; }};
  std::vector<std::unique_ptr<FarServer>> servers;
  OriginHttp2Pool pool;
};

TEST_CASE("requests share a connection, and each gets its own response", "[origin][http2]") {
  Pooled pooled;
  OriginHttp2Connection& connection = pooled.add("a");
  FarServer& server = *pooled.servers[0];
  CHECK(pooled.stats.origin_http2_connections.get() == 1);
  CHECK(pooled.stats.origin_http2_open.get() == 1);
  CHECK(pooled.stats.origin_connections.get() == 1);
  CHECK(pooled.find("a") == &connection);
  CHECK(pooled.find("b") == nullptr);
  CHECK(pooled.pool.find("a", [](const OriginHttp2Connection&) { return false; }) == nullptr);
  CHECK(connection.is_idle());
  CHECK(pooled.pool.idle_count() == 1);
  server.say(h2_settings(""));
  Sender first(connection);
  Sender second(connection);
  CHECK_FALSE(first.stream->is_reused());
  CHECK(second.stream->is_reused());
  CHECK_FALSE(connection.is_idle());
  CHECK(pooled.pool.idle_count() == 0);
  CHECK(pooled.stats.origin_http2_streams.get() == 2);
  CHECK(pooled.stats.origin_http2_streams_open.get() == 2);
  first.get();
  second.get();
  const std::uint64_t before = first.stream->moved_bytes();
  CHECK(before > 0);
  pooled.turns();
  CHECK(server.count(h2::FrameType::kHeaders) == 2);
  server.say(h2_head(3, false) + h2_head(1, false) + h2_content(3, "second", true) +
             h2_content(1, "first", false));
  pooled.turns();
  CHECK(second.got.ends_with("\r\n\r\nsecond"));
  CHECK(second.ends == 1);
  CHECK(first.got.ends_with("\r\n\r\nfirst"));
  CHECK(first.ends == 0);
  CHECK(first.stream->moved_bytes() == before + first.got.size());
  second.stream->release();
  CHECK(pooled.stats.origin_http2_streams_open.get() == 1);
  CHECK_FALSE(connection.is_idle());
  server.say(h2_content(1, "", true));
  pooled.turns();
  CHECK(first.ends == 1);
  first.stream->release();
  pooled.turns();
  CHECK(connection.is_idle());
  CHECK(connection.idle_since() > MonotonicTime{});
  CHECK(pooled.stats.origin_http2_streams_open.get() == 0);
  CHECK(pooled.find("a") == &connection);
  CHECK_FALSE(server.has_ended);
}

TEST_CASE("streams that were paused each go on once, with their own content", "[origin][http2]") {
  Pooled pooled;
  OriginHttp2Connection& connection = pooled.add("a");
  FarServer& server = *pooled.servers[0];
  server.say(h2_settings(""));
  Sender first(connection);
  Sender second(connection);
  Sender gone(connection);
  for (Sender* each : {&first, &second, &gone}) {
    each->get();
    each->stream->pause_reading();
  }
  pooled.turns();
  server.say(h2_head(1, false) + h2_head(3, false) + h2_head(5, false) +
             h2_content(1, "one", true) + h2_content(3, "two", true) + h2_content(5, "x", true));
  pooled.turns();
  for (Sender* each : {&first, &second, &gone}) {
    CHECK_FALSE(each->got.ends_with("one"));
    each->stream->resume_reading();
    each->stream->resume_reading();
  }
  gone.stream->release();
  CHECK(first.ends == 0);  // not from within the call
  pooled.turns();
  CHECK(first.got.ends_with("\r\n\r\none"));
  CHECK(second.got.ends_with("\r\n\r\ntwo"));
  CHECK(first.ends == 1);
  CHECK(second.ends == 1);
  CHECK(gone.ends == 0);
}

TEST_CASE("a server that takes no more requests has no room, until one ends", "[origin][http2]") {
  Pooled pooled;
  OriginHttp2Connection& connection = pooled.add("a");
  FarServer& server = *pooled.servers[0];
  server.say(h2_streams_max(1));
  pooled.turns();
  struct Waits final : OriginQueues::Waiter::Owner {
    bool on_turn() override { return ++turns != 0; }
    void on_ousted() override {}
    int turns = 0;
  } owner;
  OriginQueues::Waiter waiter(owner);
  Sender first(connection);
  first.get();
  pooled.turns();
  CHECK_FALSE(connection.has_room());
  CHECK(pooled.find("a") == nullptr);
  REQUIRE(pooled.lines.wait("a", {*net::Address::parse_ip("10.0.0.1", 1), false}, waiter));
  // More may be sent: who waits hears of it.
  pooled.room = 0;
  SECTION("by its settings") {
    server.say(h2_streams_max(2));
    pooled.turns();
    CHECK(connection.has_room());
  }
  SECTION("by its response") {
    server.say(h2_head(1, true));
    pooled.turns();
    CHECK(first.ends == 1);
    first.stream->release();
    pooled.turns();
    CHECK(connection.has_room());
  }
  CHECK(pooled.room == 1);
  pooled.lines.wake();
  CHECK(owner.turns == 1);
}

TEST_CASE("a new connection has room for those that wait, next to the request that made it",
          "[origin][http2]") {
  Pooled pooled;
  struct Waits final : OriginQueues::Waiter::Owner {
    bool on_turn() override { return true; }
    void on_ousted() override {}
  } owner;
  OriginQueues::Waiter waiter(owner);
  REQUIRE(pooled.lines.wait("a", {*net::Address::parse_ip("10.0.0.1", 1), false}, waiter));
  pooled.room = 0;
  const Sender first(pooled.add("a"));
  CHECK(pooled.room == 1);
  pooled.lines.wake();
}

TEST_CASE("a connection that is left ends with its last request, an idle one at once",
          "[origin][http2]") {
  Pooled pooled;
  OriginHttp2Connection& old = pooled.add("a", MonotonicTime(seconds(10)));
  OriginHttp2Connection& young = pooled.add("a", MonotonicTime(seconds(20)));
  pooled.add("b", MonotonicTime(seconds(19)));
  for (auto& server : pooled.servers) server->say(h2_settings(""));
  pooled.turns();
  CHECK(pooled.find("a") == &old);
  Sender sender(old);
  sender.get();
  pooled.turns();
  pooled.pool.close_made_before(MonotonicTime(seconds(20)));
  CHECK(pooled.find("a") == &young);
  pooled.turns();
  CHECK(pooled.find("b") == nullptr);
  CHECK(pooled.servers[2]->has_ended);
  CHECK(pooled.stats.origin_http2_open.get() == 2);
  CHECK_FALSE(pooled.servers[0]->has_ended);
  pooled.servers[0]->say(h2_head(1, true));
  pooled.turns();
  CHECK(sender.ends == 1);
  CHECK_FALSE(sender.failed);
  sender.stream->release();
  pooled.turns();
  CHECK(pooled.servers[0]->has_ended);
  CHECK(pooled.servers[0]->count(h2::FrameType::kGoAway) == 1);
  CHECK(pooled.stats.origin_http2_open.get() == 1);
  CHECK(pooled.stats.origin_connections.get() == 1);
  CHECK(pooled.find("a") == &young);
}

TEST_CASE("idle connections give way, those with requests do not", "[origin][http2]") {
  Pooled pooled;
  OriginHttp2Connection& busy = pooled.add("a");
  pooled.add("a");
  pooled.add("b");
  for (auto& server : pooled.servers) server->say(h2_settings(""));
  pooled.turns();
  Sender sender(busy);
  sender.get();
  pooled.turns();
  CHECK(pooled.pool.idle_count() == 2);
  SECTION("for another connection of the server") {
    CHECK_FALSE(pooled.pool.give_up("c"));
    CHECK(pooled.pool.give_up("a"));
    CHECK_FALSE(pooled.pool.give_up("a"));
    CHECK(pooled.pool.idle_count() == 1);
    CHECK(pooled.pool.give_up("b"));
  }
  SECTION("to a bound of all") {
    pooled.pool.close_beyond(2);
    CHECK(pooled.pool.idle_count() == 2);
    pooled.pool.close_beyond(1);
    CHECK(pooled.pool.idle_count() == 1);
    pooled.pool.close_beyond(0);
  }
  SECTION("if they were idle for long") {
    pooled.pool.close_idle_since(MonotonicTime{});
    CHECK(pooled.pool.idle_count() == 2);
    pooled.pool.close_idle_since(pooled.loop->now() + seconds(1));
  }
  SECTION("at the end") {
    pooled.pool.close_all();
    CHECK(pooled.find("a") == nullptr);
  }
  CHECK(pooled.pool.idle_count() == 0);
  pooled.turns();
  CHECK(pooled.stats.origin_http2_open.get() == 1);
  CHECK_FALSE(pooled.servers[0]->has_ended);
  CHECK(pooled.servers[1]->has_ended);
  CHECK(pooled.servers[2]->has_ended);
  pooled.servers[0]->say(h2_head(1, true));
  pooled.turns();
  CHECK(sender.ends == 1);
}

TEST_CASE("a connection that its server ends takes its requests with it", "[origin][http2]") {
  enum class How : std::uint8_t { kCloses, kGoesAway, kBreaksRules };
  const How how = GENERATE(How::kCloses, How::kGoesAway, How::kBreaksRules);
  CAPTURE(static_cast<int>(how));
  using Kind = StreamFailure::Kind;
  Pooled pooled;
  OriginHttp2Connection& connection = pooled.add("a");
  FarServer& server = *pooled.servers[0];
  server.say(h2_settings(""));
  Sender sender(connection);
  sender.get();
  pooled.turns();
  switch (how) {
    case How::kCloses:
      pooled.servers[0] = std::make_unique<FarServer>(net::Socket());
      break;
    case How::kGoesAway:
      server.say(h2_frame(h2::FrameType::kGoAway, 0, 0, std::string(8, '\0')));
      break;
    case How::kBreaksRules:
      server.say(h2_content(0, "x", false));
      break;
  }
  for (int i = 0; i < 4; ++i) {
    pooled.loop->stop();
    pooled.loop->run();
  }
  REQUIRE(sender.failed);
  CHECK(sender.failed->kind == (how == How::kCloses     ? Kind::kLost
                                : how == How::kGoesAway ? Kind::kRefused
                                                        : Kind::kInvalid));
  if (how == How::kCloses) CHECK(sender.failed->why == "closed");
  CHECK(pooled.find("a") == nullptr);
  sender.stream->release();
  for (int i = 0; i < 4; ++i) {
    pooled.loop->stop();
    pooled.loop->run();
  }
  CHECK(pooled.stats.origin_http2_open.get() == 0);
  CHECK(pooled.stats.origin_connections.get() == 0);
  CHECK(pooled.pool.idle_count() == 0);
}

TEST_CASE("content of any length leaves in order, as the server takes it", "[origin][http2]") {
  Pooled pooled;
  OriginHttp2Connection& connection = pooled.add("a");
  FarServer& server = *pooled.servers[0];
  server.say(h2_settings(std::string("\0\4\0\x40\0\0", 6)) +
             h2_frame(h2::FrameType::kWindowUpdate, 0, 0, std::string("\0\x40\0\0", 4)));
  pooled.turns();
  std::string content;
  for (std::size_t i = 0; i < 1'500'000; ++i) content += static_cast<char>('a' + i * 7 % 26);
  Sender sender(connection);
  REQUIRE(sender.stream->send_head("POST / HTTP/1.1\r\nHost: a\r\n\r\n",
                                   OriginHttp2Stream::Content::kFollows));
  sender.stream->offer_last(content, "");
  CHECK_FALSE(sender.stream->has_sent_all());
  std::size_t taken = 0;
  for (int turn = 0; turn < 3000 && !sender.stream->has_sent_all(); ++turn) {
    pooled.turns(1);
    taken += sender.stream->taken_bytes();
  }
  pooled.turns();
  taken += sender.stream->taken_bytes();
  CHECK(sender.stream->has_sent_all());
  CHECK(taken == content.size());
  CHECK((server.content(1) == content));
  CHECK(sender.writable > 0);
  CHECK(sender.stream->moved_bytes() > content.size());
}

TEST_CASE("one that is being made is known, and its end wakes who waits", "[origin][http2]") {
  Pooled pooled;
  CHECK_FALSE(pooled.pool.has_attempt("a"));
  struct Waits final : OriginQueues::Waiter::Owner {
    bool on_turn() override { return ++turns != 0; }
    void on_ousted() override {}
    int turns = 0;
  } owner;
  OriginQueues::Waiter waiter(owner);
  {
    OriginHttp2Pool::Attempt first = pooled.pool.begin_attempt("a", pooled.lines);
    OriginHttp2Pool::Attempt second = pooled.pool.begin_attempt("a", pooled.lines);
    CHECK(pooled.pool.has_attempt("a"));
    CHECK_FALSE(pooled.pool.has_attempt("b"));
    first.end();
    first.end();
    CHECK(pooled.pool.has_attempt("a"));
    OriginHttp2Pool::Attempt moved = std::move(second);
    second = pooled.pool.begin_attempt("b", pooled.lines);
    second = std::move(moved);
    CHECK_FALSE(pooled.pool.has_attempt("b"));
    CHECK(pooled.pool.has_attempt("a"));
    REQUIRE(pooled.lines.wait("a", {*net::Address::parse_ip("10.0.0.1", 1), false}, waiter));
    CHECK(owner.turns == 0);
    pooled.room = 0;
  }
  CHECK_FALSE(pooled.pool.has_attempt("a"));
  CHECK(pooled.room == 1);
  pooled.lines.wake();
  CHECK(owner.turns == 1);
}

TEST_CASE("the protocol that a server chose last is remembered", "[origin][http2]") {
  Pooled pooled;
  CHECK_FALSE(pooled.pool.is_http1("a"));
  pooled.pool.note_http1("a", true);
  CHECK(pooled.pool.is_http1("a"));
  CHECK_FALSE(pooled.pool.is_http1("b"));
  pooled.pool.note_http1("a", false);
  CHECK_FALSE(pooled.pool.is_http1("a"));
}

}  // namespace
}  // namespace encore::server
