#include "proxy/net/stream.h"

#include <sys/socket.h>

#include <cerrno>
#include <vector>

#include "proxy/net/timer.h"
#include "tests/catch.h"
#include "tests/net/net_test_support.h"
#include "tests/net/reset.h"

namespace encore::net {
namespace {

struct Connected {
  explicit Connected(bool reading = true)
      : pair(), stream(*loop, std::move(pair.near), pair.far_address, &handler) {
    if (reading) stream.resume_reading();
  }
  TestLoop loop;
  SocketPair pair;
  Recorder handler;
  Stream stream;
};

}  // namespace

TEST_CASE("a stream hands over what comes and counts it", "[net][stream]") {
  Connected c;
  REQUIRE(send_all(c.pair.far, "hello"));
  c.loop.run_until([&] { return c.handler.received == "hello"; });
  CHECK(c.stream.bytes_read() == 5);
  CHECK(c.stream.peer() == c.pair.far_address);
  CHECK(c.stream.local().is_loopback());
  CHECK(c.stream.kept_bytes() == 0);
}

TEST_CASE("a stream reads nothing until it is asked to", "[net][stream]") {
  Connected c(false);
  REQUIRE(send_all(c.pair.far, "early"));
  c.loop.run_turns(5);
  CHECK(c.handler.data_calls == 0);
  c.stream.resume_reading();
  c.loop.run_until([&] { return c.handler.received == "early"; });
}

TEST_CASE("bytes that are not used come again in front of the next", "[net][stream]") {
  Connected c;
  std::vector<std::string> seen;
  c.handler.data = [&](Stream&, std::string_view bytes) -> std::size_t {
    seen.emplace_back(bytes);
    return bytes.find('\n') == std::string_view::npos ? 0 : bytes.size();
  };
  REQUIRE(send_all(c.pair.far, "one "));
  c.loop.run_until([&] { return seen.size() == 1; });
  CHECK(c.stream.kept_bytes() == 4);
  REQUIRE(send_all(c.pair.far, "two\n"));
  c.loop.run_until([&] { return seen.size() == 2; });
  CHECK(seen[1] == "one two\n");
  CHECK(c.stream.kept_bytes() == 0);
}

TEST_CASE("resuming presents kept bytes though nothing new came", "[net][stream]") {
  Connected c;
  bool busy = true;
  c.handler.data = [&](Stream&, std::string_view bytes) -> std::size_t {
    if (busy) return 0;
    c.handler.received += bytes;
    return bytes.size();
  };
  REQUIRE(send_all(c.pair.far, "pipelined"));
  c.loop.run_until([&] { return c.handler.data_calls == 1; });
  c.loop.run_turns(3);
  CHECK(c.handler.data_calls == 1);
  busy = false;
  c.stream.resume_reading();
  CHECK(c.handler.received.empty());  // never from inside resume_reading
  c.loop.run_turns(1);
  CHECK(c.handler.received == "pipelined");
}

TEST_CASE("a handler that resumes inside on_data is called again, not recursively",
          "[net][stream]") {
  Connected c;
  int depth = 0;
  c.handler.data = [&](Stream& stream, std::string_view bytes) -> std::size_t {
    CHECK(++depth == 1);
    c.handler.received += bytes.front();
    if (bytes.size() > 1) stream.resume_reading();
    --depth;
    return 1;
  };
  REQUIRE(send_all(c.pair.far, "abcdef"));
  c.loop.run_until([&] { return c.handler.received == "abcdef"; });
  CHECK(c.handler.data_calls == 6);
}

TEST_CASE("a stream that keeps its limit reads no more until some is used", "[net][stream]") {
  Connected c;
  std::size_t presented = 0;
  std::size_t use = 0;
  c.handler.data = [&](Stream&, std::string_view bytes) -> std::size_t {
    presented = bytes.size();
    return std::min(use, bytes.size());
  };
  const std::string block(32 * 1024, 'x');
  for (int i = 0; i < 8; ++i) REQUIRE(send_all(c.pair.far, block));
  c.loop.run_until([&] { return c.stream.kept_bytes() >= Stream::kKeptBytesMax; });
  c.loop.run_turns(5);
  CHECK(c.stream.kept_bytes() < 2 * Stream::kKeptBytesMax);
  CHECK(c.stream.bytes_read() == presented);
  CHECK_FALSE(c.stream.is_reading_paused());
  use = 1 << 20;
  c.stream.resume_reading();
  c.loop.run_until([&] { return c.stream.bytes_read() == 8 * block.size(); });
  CHECK(c.stream.kept_bytes() == 0);
}

TEST_CASE("pausing stops bytes at once and resuming loses none", "[net][stream]") {
  Connected c;
  c.handler.data = [&](Stream& stream, std::string_view bytes) -> std::size_t {
    c.handler.received += bytes.substr(0, 2);
    stream.pause_reading();
    return 2;
  };
  REQUIRE(send_all(c.pair.far, "aabbcc"));
  for (const char* all : {"aa", "aabb", "aabbcc"}) {
    c.loop.run_until([&] { return c.handler.received == all; });
    c.loop.run_turns(3);
    CHECK(c.handler.received == all);
    c.stream.resume_reading();
  }
}

TEST_CASE("an end comes after the bytes that were kept, and once", "[net][stream]") {
  Connected c;
  c.handler.data = [&](Stream& stream, std::string_view bytes) -> std::size_t {
    CHECK(c.handler.eofs == 0);
    if (c.handler.data_calls == 1) {
      stream.pause_reading();
      return 0;
    }
    c.handler.received += bytes;
    return bytes.size();
  };
  REQUIRE(send_all(c.pair.far, "last"));
  c.loop.run_until([&] { return c.handler.data_calls == 1; });
  ::shutdown(c.pair.far.get(), SHUT_WR);
  c.stream.resume_reading();
  c.loop.run_until([&] { return c.handler.eofs == 1; });
  CHECK(c.handler.received == "last");
  CHECK(c.stream.is_eof());
  // Half closed: the other direction works.
  CHECK(c.stream.write("answer").status == WriteStatus::kAll);
  c.loop.run_turns(3);
  CHECK(receive_now(c.pair.far) == "answer");
  CHECK(c.handler.eofs == 1);
}

TEST_CASE("a reset by the peer is an error with its reason", "[net][stream]") {
  Connected c;
  reset_connection(c.pair.far);
  c.loop.run_until([&] { return c.handler.errors == 1; });
  CHECK(c.handler.reason == CloseReason::kReset);
  CHECK(c.handler.os_error == ECONNRESET);
  CHECK(c.stream.write("x").status == WriteStatus::kError);
}

TEST_CASE("what the peer sent before a failed write can still be read", "[net][stream]") {
  Connected c;
  REQUIRE(c.stream.write("a request that is not read").status == WriteStatus::kAll);
  REQUIRE(send_all(c.pair.far, "answer"));
  c.pair.far.reset();  // with unread bytes: the connection is reset
  WriteResult result;
  for (int i = 0; i < 1000 && result.status != WriteStatus::kError; ++i) {
    result = c.stream.write("more");
  }
  REQUIRE(result.status == WriteStatus::kError);
  c.loop.run_turns(2);
  CHECK(c.handler.received.empty());  // unless it is asked for
  REQUIRE(c.stream.read_rest());
  c.loop.run_until([&] { return c.handler.eofs + c.handler.errors == 1; });
  CHECK(c.handler.received == "answer");
  CHECK(c.stream.write("x").status == WriteStatus::kError);
  CHECK_FALSE(c.stream.read_rest());
}

TEST_CASE("there is no rest to read of a stream that did not fail in writing", "[net][stream]") {
  Connected c;
  CHECK_FALSE(c.stream.read_rest());
  c.stream.close();
  CHECK_FALSE(c.stream.read_rest());
}

TEST_CASE("bytes go where the handler wants them", "[net][stream]") {
  Connected c;
  std::vector<std::byte> place(64);
  c.handler.buffer = [&](Stream&) { return std::span(place); };
  const char* at = nullptr;
  c.handler.data = [&](Stream&, std::string_view bytes) {
    at = bytes.data();
    return bytes.size();
  };
  REQUIRE(send_all(c.pair.far, "body"));
  c.loop.run_until([&] { return at != nullptr; });
  CHECK(at == reinterpret_cast<const char*>(place.data()));
}

TEST_CASE("several parts go in one write, in order, few bytes and many", "[net][stream]") {
  Connected c;
  std::string head = "head ";
  std::string body(GENERATE(as<std::size_t>{}, 4, 4090, 4091, 4092, 20000), 'b');
  body.back() = '.';
  CAPTURE(body.size());
  const iovec parts[] = {{head.data(), head.size()}, {nullptr, 0}, {body.data(), body.size()}};
  // A second write would fail.
  const FailCalls fail(FailCalls::Call::kSend, 1, ENOBUFS);
  const WriteResult result = c.stream.write(parts);
  CHECK(result.status == WriteStatus::kAll);
  CHECK(result.bytes == head.size() + body.size());
  CHECK(c.stream.bytes_written() == head.size() + body.size());
  CHECK(receive_now(c.pair.far) == head + body);
}

TEST_CASE("a short write is gone on with when the socket takes more", "[net][stream]") {
  Connected c;
  std::string all(24 << 20, ' ');  // more than both sockets hold
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = static_cast<char>('a' + i % 23);
  std::size_t sent = 0;
  const auto go_on = [&](Stream& stream) {
    const WriteResult result = stream.write(std::string_view(all).substr(sent));
    CHECK(result.status != WriteStatus::kError);
    CHECK((result.status == WriteStatus::kAll) == (result.bytes == all.size() - sent));
    sent += result.bytes;
  };
  c.handler.writable = go_on;
  go_on(c.stream);
  REQUIRE(sent < all.size());
  std::string got;
  c.loop.run_until([&] {
    got += receive_now(c.pair.far);
    return got.size() == all.size();
  });
  CHECK(got == all);
  CHECK(c.handler.writable_calls > 0);
  const int calls = c.handler.writable_calls;
  c.loop.run_turns(5);
  CHECK(c.handler.writable_calls == calls);  // told only while something is owed
}

TEST_CASE("a handler that has no more to write is not asked again", "[net][stream]") {
  Connected c;
  const std::string block(1 << 20, 'x');
  while (c.stream.write(block).status == WriteStatus::kAll) {
  }
  c.loop.run_until([&] {
    receive_now(c.pair.far);
    return c.handler.writable_calls > 0;
  });
  c.loop.run_turns(5);
  CHECK(c.handler.writable_calls == 1);
}

TEST_CASE("a stream may be destroyed in any of its callbacks", "[net][stream]") {
  TestLoop loop;
  const int which = GENERATE(0, 1, 2, 3, 4);
  CAPTURE(which);
  SocketPair pair;
  Recorder handler;
  auto stream = std::make_unique<Stream>(*loop, std::move(pair.near), pair.far_address, &handler);
  bool done = false;
  const auto destroy = [&](Stream&) {
    stream.reset();
    done = true;
  };
  handler.data = [&](Stream& s, std::string_view) -> std::size_t {
    if (which == 0) destroy(s);
    if (which == 1 && handler.data_calls == 2) destroy(s);  // while kept bytes are presented
    return 0;
  };
  handler.eof = destroy;
  handler.error = destroy;
  handler.writable = destroy;
  stream->resume_reading();
  if (which <= 1) REQUIRE(send_all(pair.far, "bytes"));
  if (which == 1) {
    loop.run_until([&] { return handler.data_calls == 1; });
    stream->resume_reading();
  }
  if (which == 2) ::shutdown(pair.far.get(), SHUT_WR);
  if (which == 3) reset_connection(pair.far);
  if (which == 4) {
    const std::string block(1 << 20, 'x');
    while (stream->write(block).status == WriteStatus::kAll) {
    }
  }
  loop.run_until([&] {
    if (which == 4) receive_now(pair.far);
    return done;
  });
  loop.run_turns(3);
  CHECK(stream == nullptr);
}

TEST_CASE("closing in on_data drops what was not used, and its bytes stay valid", "[net][stream]") {
  Connected c;
  std::string seen;
  c.handler.data = [&](Stream& stream, std::string_view bytes) -> std::size_t {
    if (c.handler.data_calls == 1) {
      stream.resume_reading();
      return 0;
    }
    stream.close();
    seen = bytes;
    return 0;
  };
  REQUIRE(send_all(c.pair.far, "bytes"));
  c.loop.run_until([&] { return !c.stream.is_open(); });
  CHECK(seen == "bytes");
  CHECK(c.stream.kept_bytes() == 0);
  CHECK(c.stream.local() == Address());
  c.stream.resume_reading();
  c.stream.pause_reading();
  c.stream.shutdown_write();
  c.stream.close_gracefully();
  c.stream.abort();
  c.loop.run_turns(3);
  CHECK(c.handler.data_calls == 2);
}

TEST_CASE("a graceful close delivers the answer to a peer that is still sending", "[net][stream]") {
  Connected c;
  const std::string block(16 * 1024, 'x');
  c.handler.data = [&](Stream& stream, std::string_view) -> std::size_t {
    CHECK(stream.write("413").status == WriteStatus::kAll);
    stream.close_gracefully();
    CHECK_FALSE(stream.is_open());
    return 0;
  };
  REQUIRE(send_all(c.pair.far, block));
  c.loop.run_until([&] { return !c.stream.is_open(); });
  CHECK(send_all(c.pair.far, block));
  c.loop.run_turns(5);
  CHECK(send_all(c.pair.far, block));  // no reset yet
  c.loop.run_turns(5);
  CHECK(receive_now(c.pair.far) == "413");
  char byte;
  CHECK(::recv(c.pair.far.get(), &byte, 1, MSG_DONTWAIT) == 0);  // an end, not an error
}

TEST_CASE("a graceful close does not read for ever", "[net][stream]") {
  Connected c;
  c.stream.close_gracefully();
  const std::string block(64 * 1024, 'x');
  bool refused = false;
  c.loop.run_until([&] {
    while (!refused) {
      const ssize_t sent =
          ::send(c.pair.far.get(), block.data(), block.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
      if (sent < 0 && errno == EAGAIN) return false;
      refused = sent < 0;
      if (!refused) return false;
    }
    return true;
  });
  CHECK((errno == ECONNRESET || errno == EPIPE));
}

TEST_CASE("an abort is a reset for the peer", "[net][stream]") {
  Connected c;
  CHECK(c.stream.write("half a bo").status == WriteStatus::kAll);
  receive_now(c.pair.far);
  c.stream.abort();
  CHECK_FALSE(c.stream.is_open());
  char byte;
  CHECK(::recv(c.pair.far.get(), &byte, 1, MSG_DONTWAIT) == -1);
  CHECK(errno == ECONNRESET);
}

TEST_CASE("an exchange survives interrupted calls and ends cleanly on broken ones",
          "[net][stream]") {
  using Call = FailCalls::Call;
  const auto call = GENERATE(Call::kReceive, Call::kSend);
  const int os_error = GENERATE(EINTR, EAGAIN, ECONNRESET, ENOBUFS, ETIMEDOUT);
  // In one piece, or in two that are too much to be gathered.
  const bool parts = GENERATE(false, true);
  CAPTURE(static_cast<int>(call), os_error, parts);
  const std::string padding(parts ? 5000 : 0, '.');
  const bool transient = os_error == EINTR || os_error == EAGAIN;
  bool failed = true;
  for (int nth = 0; failed; ++nth) {
    CAPTURE(nth);
    REQUIRE(nth < 20);
    Connected c;
    std::string owed;
    bool dead = false;
    const auto send_owed = [&](Stream& stream) {
      const std::size_t half = parts ? owed.size() / 2 : 0;
      const iovec both[] = {{owed.data(), half}, {owed.data() + half, owed.size() - half}};
      const WriteResult result = parts ? stream.write(both) : stream.write(owed);
      if (result.status == WriteStatus::kError) {
        dead = true;
        CHECK(result.os_error == os_error);
        return stream.close();
      }
      owed.erase(0, result.bytes);
    };
    c.handler.data = [&](Stream& stream, std::string_view bytes) {
      owed += bytes;
      send_owed(stream);
      return bytes.size();
    };
    c.handler.writable = send_owed;
    c.handler.error = [&](Stream&) {
      dead = true;
      CHECK(c.handler.os_error == os_error);
    };
    const FailCalls fail(call, nth, os_error);
    std::string echoed;
    for (const char* word : {"one", "two", "three"}) {
      send_all(c.pair.far, padding + word);
      c.loop.run_until([&] { return dead || (echoed += receive_now(c.pair.far)).ends_with(word); });
    }
    failed = fail.failed();
    CHECK(dead == (failed && !transient));
    if (!dead) CHECK(echoed == padding + "one" + padding + "two" + padding + "three");
  }
}

TEST_CASE("an idle stream costs less than 400 bytes", "[net][stream]") {
  CHECK(sizeof(Stream) < 400);
}

TEST_CASE("a stream knows its round trip where the protocol measures one", "[net][stream]") {
  Connected c;
  CHECK(c.stream.round_trip() > Nanoseconds(0));
  CHECK(c.stream.round_trip() < std::chrono::seconds(10));
  c.stream.close();
  CHECK(c.stream.round_trip() == Nanoseconds(0));
  int ends[2];
  REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends) == 0);
  const Socket far(ends[1]);
  const Stream local(*c.loop, Socket(ends[0]), Address::loopback_v4(1), &c.handler);
  CHECK(local.round_trip() == Nanoseconds(0));
}

TEST_CASE("activity is stamped with the turn's time", "[net][stream]") {
  Connected c;
  const MonotonicTime born = c.stream.last_activity();
  c.loop.run_turns(2);
  CHECK(c.stream.last_activity() == born);
  REQUIRE(send_all(c.pair.far, "x"));
  MonotonicTime turn;
  c.handler.data = [&](Stream& stream, std::string_view bytes) {
    turn = stream.loop().now();
    return bytes.size();
  };
  c.loop.run_until([&] { return c.handler.data_calls == 1; });
  CHECK(c.stream.last_activity() == turn);
  CHECK(turn > born);
}

}  // namespace encore::net
