// Floods and other things that clients do to cost us something: each is met at its limit and one
// beyond it, and has its counter. No test sleeps: the clock is a number.
#include "proxy/h2/server_session.h"
#include "tests/catch.h"
#include "tests/h2/peer.h"

namespace encore::h2 {
namespace {

using namespace test;  // NOLINT(google-build-using-namespace)
using Framing = ServerSession::Framing;
using std::chrono::seconds;

// Gives `step` until the connection ends, and returns how often that went well.
template <typename Step>
int times_until_end(Peer& peer, Step step) {
  for (int i = 0; i < 100000; ++i) {
    peer.give(step(i));
    peer.take();
    if (peer.end) return i;
  }
  return -1;
}

void check_flood(const Peer& peer, Allowance which) {
  REQUIRE(peer.end);
  CHECK(peer.end->code == ErrorCode::kEnhanceYourCalm);
  CHECK(peer.end->why == to_string(which));
  CHECK(peer.counters.of(which) == 1);
}

StreamId id_of(int i) { return static_cast<StreamId>(2 * i + 1); }

TEST_CASE("streams that are reset before their answer end the connection",
          "[h2][limits][cve-2023-44487]") {
  Peer peer;
  peer.greet();
  CHECK(times_until_end(peer, [](int i) { return headers(id_of(i), get()) + rst(id_of(i)); }) ==
        100);
  check_flood(peer, Allowance::kResetUnanswered);
  CHECK(peer.counters.streams_reset == 101);
}

TEST_CASE("it is the same whoever is made to reset them", "[h2][limits][cve-2025-8671]") {
  const std::vector<std::string> ways = {window(1, 0), window(1, 0x7fffffff),
                                         headers(1, {{"A", "b"}}), headers(1, {{"a", "b"}}, false)};
  for (const std::string& way : ways) {
    Peer peer;
    peer.greet();
    CHECK(times_until_end(peer, [&way](int i) {
            std::string bytes = way;
            bytes[8] = static_cast<char>(id_of(i));
            bytes[7] = static_cast<char>(id_of(i) >> 8U);
            return headers(id_of(i), get(), false) + bytes;
          }) == 100);
    check_flood(peer, Allowance::kResetUnanswered);
  }
  Peer malformed;
  malformed.greet();
  CHECK(times_until_end(
            malformed, [](int i) { return headers(id_of(i), get("/", {{"Upper", "x"}})); }) == 100);
  check_flood(malformed, Allowance::kResetUnanswered);
  Peer own;
  own.greet();
  CHECK(times_until_end(own, [&own](int i) {
          if (i != 0) own.session.reset(id_of(i - 1), ErrorCode::kInternalError);
          return headers(id_of(i), get());
        }) == 101);
  check_flood(own, Allowance::kResetUnanswered);
}

TEST_CASE("33 resets a second are allowed for ever", "[h2][limits][cve-2023-44487]") {
  Peer peer;
  peer.greet();
  for (int i = 0; i < 3000; ++i) {
    peer.give(headers(id_of(i), get()) + rst(id_of(i)));
    peer.take();
    peer.pass(std::chrono::milliseconds(1000 / 33 + 1));
  }
  CHECK_FALSE(peer.end);
}

TEST_CASE("whoever looks into responses and leaves may do so more often", "[h2][limits]") {
  Peer peer;
  peer.greet();
  std::vector<std::unique_ptr<TextSource>> sources;
  CHECK(times_until_end(peer, [&](int i) {
          if (i == 0) return headers(1, get());
          auto& source = sources.emplace_back(std::make_unique<TextSource>(std::string(10, 'x')));
          source->available = 1;
          peer.session.respond(id_of(i - 1), "HTTP/1.1 200 OK\r\n", Framing::kOpen, source.get());
          peer.take();
          return rst(id_of(i - 1)) + headers(id_of(i), get());
        }) == 1001);
  check_flood(peer, Allowance::kResetAnswered);
}

TEST_CASE("a whole response that is reset behind its end is no reset", "[h2][limits]") {
  Peer peer;
  peer.answer = "HTTP/1.1 200 OK\r\n";
  peer.greet();
  for (int i = 0; i < 3000; ++i) {
    peer.give(headers(id_of(i), get()));
    peer.take();
  }
  CHECK_FALSE(peer.end);
  CHECK(peer.counters.streams == 3000);
}

TEST_CASE("more streams than announced are refused", "[h2][limits][rfc9113][5.1.2]") {
  Peer peer(Options{.streams_max = 3});
  peer.greet();
  for (int i = 0; i < 4; ++i) peer.give(headers(id_of(i), get()));
  peer.take();
  CHECK(peer.session.stream_count() == 3);
  CHECK(peer.reset_code(7) == ErrorCode::kRefusedStream);
  CHECK(peer.counters.of(Limit::kStreamsRefused) == 1);
  CHECK_FALSE(peer.seen.contains(7));
  peer.give(rst(1) + headers(9, get()));
  CHECK(peer.seen.contains(9));
}

TEST_CASE("floods of frames that bring nobody forward end the connection",
          "[h2][limits][cve-2019-9511]") {
  struct Row {
    Allowance which;
    std::string bytes;
    int count;  // with the hello's SETTINGS
  };
  const std::vector<Row> rows = {
      {Allowance::kSettings, frame(FrameType::kSettings, 0, 0, ""), 19},
      {Allowance::kPing, frame(FrameType::kPing, 0, 0, "12345678"), 100},
      {Allowance::kPriority, frame(FrameType::kPriority, 0, 3, u32(0) + "\x10"), 200},
      {Allowance::kPriority, frame(FrameType::kPriorityUpdate, 0, 0, u32(3) + "u=1"), 200},
      {Allowance::kWindow, window(0, 1), 200},
      {Allowance::kUnknown, frame(static_cast<FrameType>(0xbb), 0, 0, ""), 100},
  };
  for (const Row& row : rows) {
    Peer peer;
    peer.greet();
    CAPTURE(to_string(row.which));
    CHECK(times_until_end(peer, [&row](int) { return row.bytes; }) == row.count);
    check_flood(peer, row.which);
    // With time, it is no flood.
    Peer slow;
    slow.greet();
    const AllowanceLimit limit = limit_of(row.which);
    for (int i = 0; i < 2 * row.count; ++i) {
      slow.give(row.bytes);
      slow.take();
      slow.pass(std::chrono::milliseconds(1000 / limit.per_second + 1));
    }
    CHECK_FALSE(slow.end);
  }
}

TEST_CASE("empty and tiny DATA end the connection", "[h2][limits][cve-2019-9518]") {
  Peer empty;
  empty.greet().give(headers(1, get(), false));
  CHECK(times_until_end(empty, [](int) { return data(1, ""); }) == 100);
  check_flood(empty, Allowance::kEmpty);
  Peer padded;
  padded.greet().give(headers(1, get(), false));
  CHECK(times_until_end(padded, [](int) {
          return frame(FrameType::kData, kFlagPadded, 1, std::string("\x02\0\0", 3));
        }) == 100);
  check_flood(padded, Allowance::kEmpty);
  Peer tiny;
  tiny.greet().give(headers(1, get(), false));
  CHECK(times_until_end(tiny, [](int) { return data(1, "123456789012345"); }) == 10000);
  check_flood(tiny, Allowance::kTiny);
  Peer small;
  small.greet().give(headers(1, get(), false));
  for (int i = 0; i < 20000; ++i) small.give(data(1, "1234567890123456"));
  CHECK_FALSE(small.end);
  Peer late;
  late.greet().give(headers(1, get(), false));
  late.session.reset(1, ErrorCode::kCancel);
  CHECK(times_until_end(late, [](int) { return data(1, ""); }) == 100);
  check_flood(late, Allowance::kEmpty);
}

TEST_CASE("windows that open byte by byte end the connection", "[h2][limits][cve-2019-9511]") {
  Peer peer;
  TextSource source(std::string(100000, 'x'));
  peer.greet().give(setting(Setting::kInitialWindowSize, 0) + headers(1, get()));
  peer.session.respond(1, "HTTP/1.1 200 OK\r\n", Framing::kOpen, &source);
  CHECK(times_until_end(peer, [](int) { return window(1, 1); }) == 200);
  check_flood(peer, Allowance::kWindow);
}

TEST_CASE("windows that open for frames worth their while go on for ever", "[h2][limits]") {
  Peer peer;
  TextSource source(std::string(std::size_t{512} * 3000, 'x'));
  peer.greet().give(setting(Setting::kInitialWindowSize, 0) + headers(1, get()));
  peer.session.respond(1, "HTTP/1.1 200 OK\r\n", Framing::kOpen, &source);
  for (int i = 0; i < 3000; ++i) {
    peer.give(window(1, 512) + window(0, 512));
    peer.take();
  }
  CHECK_FALSE(peer.end);
  CHECK(peer.content(1).size() == std::size_t{512} * 3000);
}

TEST_CASE("windows may open long after the content, a little at a time", "[h2][limits]") {
  Peer peer;
  constexpr std::size_t kBytes = std::size_t{4} << 20;
  constexpr std::uint32_t kPiece = 4096;
  TextSource source(std::string(kBytes, 'x'));
  source.part_bytes = kBytes;
  peer.greet().give(setting(Setting::kInitialWindowSize, kBytes) +
                    window(0, static_cast<std::uint32_t>(kBytes)) + headers(1, get()));
  peer.session.respond(1, "HTTP/1.1 200 OK\r\n", Framing::kOpen, &source);
  while (peer.content(1).size() != kBytes) peer.take();
  for (std::size_t at = 0; at < kBytes; at += kPiece) {
    peer.give(window(1, kPiece) + window(0, kPiece));
  }
  CHECK_FALSE(peer.end);
  // Twice as many would be allowed.
  const int left = times_until_end(peer, [](int) { return window(0, 1); });
  CHECK(left > 2000);
  CHECK(left < 2500);
  check_flood(peer, Allowance::kWindow);
}

TEST_CASE("windows may open for short messages", "[h2][limits]") {
  Peer peer;
  TextSource source(std::string(10000, 'x'));
  source.available = 0;
  peer.greet().give(headers(1, get()));
  peer.session.respond(1, "HTTP/1.1 200 OK\r\n", Framing::kOpen, &source);
  peer.take();
  for (std::size_t sent = 10; sent <= 10000; sent += 10) {
    source.available = sent;
    peer.session.resume(1);
    peer.take();
    peer.give(window(1, 10) + window(0, 10));
  }
  CHECK_FALSE(peer.end);
  CHECK(peer.content(1).size() == 10000);
}

TEST_CASE("a header block has a limit of CONTINUATIONs", "[h2][limits][cve-2024-28182]") {
  for (const int count : {8, 9}) {
    Peer peer;
    peer.greet().give(frame(FrameType::kHeaders, kFlagEndStream, 1, block_of(get())));
    for (int i = 0; i < count; ++i) {
      peer.give(frame(FrameType::kContinuation, i == 7 ? kFlagEndHeaders : std::uint8_t{0}, 1,
                      i == 7 ? "" : block_of({{"a", "b"}})));
      if (i == 6 && count == 9) {
        peer.give(frame(FrameType::kContinuation, 0, 1, block_of({{"a", "b"}})));
        peer.give(frame(FrameType::kContinuation, 0, 1, block_of({{"a", "b"}})));
        break;
      }
    }
    if (count == 8) {
      CHECK_FALSE(peer.end);
      CHECK(peer.seen.contains(1));
    } else {
      CHECK(peer.end_code() == ErrorCode::kEnhanceYourCalm);
      CHECK(peer.counters.of(Limit::kContinuations) == 1);
    }
  }
}

TEST_CASE("a block is cut where its list becomes too large", "[h2][limits][cve-2026-49975]") {
  // One field of the dynamic table, by one byte each time.
  const auto bomb = [](std::size_t times, std::size_t value) {
    std::string block = block_of(get());
    block += '\x40';
    block += std::string("\x01x", 2);
    std::string length;
    length += static_cast<char>(0x7f);
    std::size_t left = value - 127;
    for (; left >= 128; left >>= 7U) length += static_cast<char>(left % 128 + 128);
    length += static_cast<char>(left);
    block += length + std::string(value, 'v') + std::string(times, '\xbe');
    return frame(FrameType::kHeaders, kFlagEndHeaders | kFlagEndStream, 1, block);
  };
  // Twice 32 KiB, of which the pseudo fields take 4 * 32 and 43 bytes.
  const std::size_t list =
      65536 - 4 * 32 - std::string(":methodGET:schemehttp:authoritya.example:path/").size();
  const std::size_t one = 32 + 1 + 2000;
  Peer at;
  at.greet().give(bomb(list / one - 1, 2000));
  CHECK_FALSE(at.end);
  REQUIRE(at.seen.contains(1));
  // The parser behind refuses such a head (431), and the connection goes on.
  CHECK(at.seen[1].text.size() > 32768);
  Peer beyond;
  beyond.greet().give(bomb(list / one, 2000));
  CHECK(beyond.end_code() == ErrorCode::kEnhanceYourCalm);
  CHECK(beyond.counters.of(Limit::kHeadBytes) == 1);
  CHECK_FALSE(beyond.seen.contains(1));
}

TEST_CASE("a block is cut where its fields become too many, crumbs of cookies counted",
          "[h2][limits][cve-2026-49975]") {
  for (const std::string name : {"cookie", "x"}) {
    for (const std::size_t count : {508U, 509U}) {
      FieldList fields = get();
      for (std::size_t i = 0; i < count; ++i) fields.emplace_back(name, "1");
      Peer peer;
      peer.greet().give(headers(1, fields));
      CHECK(peer.end.has_value() == (count == 509));
      CHECK(peer.counters.of(Limit::kHeadFields) == (count == 509 ? 1 : 0));
    }
  }
}

TEST_CASE("trailers and what is discarded are cut, too", "[h2][limits]") {
  FieldList fields;
  for (std::size_t i = 0; i < 513; ++i) fields.emplace_back("x", "1");
  Peer trailers;
  trailers.greet().give(headers(1, get(), false) + headers(1, fields));
  CHECK(trailers.end_code() == ErrorCode::kEnhanceYourCalm);
  Peer refused(Options{.streams_max = 0});
  refused.greet().give(headers(1, fields));
  CHECK(refused.end_code() == ErrorCode::kEnhanceYourCalm);
}

TEST_CASE("the bytes of a block have a limit before they are decoded", "[h2][limits]") {
  Peer peer(Options{.head_bytes_max = 1000});
  peer.greet().give(frame(FrameType::kHeaders, 0, 1, std::string(2001, '\x20')));
  CHECK(peer.end_code() == ErrorCode::kEnhanceYourCalm);
  CHECK(peer.counters.of(Limit::kHeadBytes) == 1);
}

TEST_CASE("a block that does not end has a time", "[h2][limits]") {
  Peer peer;
  peer.greet().give(frame(FrameType::kHeaders, kFlagEndStream, 1, block_of(get())));
  peer.pass(seconds(10));
  peer.session.check_timeouts(peer.now);
  CHECK_FALSE(peer.end);
  peer.pass(std::chrono::milliseconds(1));
  peer.session.check_timeouts(peer.now);
  CHECK(peer.end_code() == ErrorCode::kEnhanceYourCalm);
  CHECK(peer.counters.of(Limit::kHeadTime) == 1);
}

TEST_CASE("SETTINGS of many entries end the connection", "[h2][limits][cve-2019-9515]") {
  std::string payload;
  for (int i = 0; i < 32; ++i) payload += setting(Setting::kInitialWindowSize, 1).substr(9);
  Peer at;
  at.greet().give(frame(FrameType::kSettings, 0, 0, payload));
  CHECK_FALSE(at.end);
  Peer beyond;
  beyond.greet().give(frame(FrameType::kSettings, 0, 0, payload + payload.substr(0, 6)));
  CHECK(beyond.end_code() == ErrorCode::kEnhanceYourCalm);
  CHECK(beyond.counters.of(Limit::kSettingsInFrame) == 1);
}

TEST_CASE("a stream whose window stays shut is reset, and the third ends the connection",
          "[h2][limits][cve-2026-49975]") {
  Peer peer;
  peer.greet().give(setting(Setting::kInitialWindowSize, 0));
  std::map<StreamId, TextSource> sources;
  for (const StreamId id : {1U, 3U, 5U, 7U}) {
    auto& source = sources.emplace(id, TextSource("abc")).first->second;
    peer.give(headers(id, get()));
    peer.session.respond(id, "HTTP/1.1 200 OK\r\n", Framing::kOpen, &source);
  }
  peer.give(window(7, 10));
  peer.take();
  CHECK(peer.has_end(7));
  peer.session.check_timeouts(peer.now);
  peer.pass(seconds(29));
  peer.session.check_timeouts(peer.now);
  CHECK(peer.counters.of(Limit::kStalledStream) == 0);
  peer.give(window(3, 2));
  peer.take();
  peer.pass(seconds(1));
  peer.session.check_timeouts(peer.now);
  // Two bytes are no progress.
  CHECK(peer.counters.of(Limit::kStalledStream) == 3);
  CHECK(peer.seen[1].gone == ErrorCode::kCancel);
  CHECK(peer.end_code() == ErrorCode::kEnhanceYourCalm);
  CHECK(peer.counters.of(Limit::kStalledConnection) == 1);
}

TEST_CASE("a stream that goes on slowly is left alone", "[h2][limits]") {
  Peer peer;
  TextSource source(std::string(1 << 20, 'x'));
  peer.greet().give(setting(Setting::kInitialWindowSize, 0) + headers(1, get()));
  peer.session.respond(1, "HTTP/1.1 200 OK\r\n", Framing::kOpen, &source);
  for (int i = 0; i < 20; ++i) {
    peer.give(window(1, 1024));
    peer.take();
    peer.session.check_timeouts(peer.now);
    peer.pass(seconds(20));
    peer.session.check_timeouts(peer.now);
  }
  CHECK(peer.counters.of(Limit::kStalledStream) == 0);
  CHECK_FALSE(peer.end);
}

TEST_CASE("a connection whose window stays shut ends as well", "[h2][limits]") {
  Peer peer;
  std::map<StreamId, TextSource> sources;
  peer.greet();
  for (const StreamId id : {1U, 3U, 5U, 7U}) {
    auto& source = sources.emplace(id, TextSource(std::string(50000, 'x'))).first->second;
    peer.give(headers(id, get()));
    peer.session.respond(id, "HTTP/1.1 200 OK\r\n", Framing::kOpen, &source);
  }
  peer.take();
  peer.session.check_timeouts(peer.now);
  peer.pass(seconds(30));
  peer.session.check_timeouts(peer.now);
  CHECK(peer.end_code() == ErrorCode::kEnhanceYourCalm);
}

TEST_CASE("a client that takes nothing is not read", "[h2][limits]") {
  Options options;
  options.output_bytes_max = 1000;
  Peer peer(options);
  peer.answer = "HTTP/1.1 200 OK\r\nA: " + std::string(300, 'x') + "\r\n";
  peer.greet();
  std::string bytes;
  for (int i = 0; i < 20; ++i) bytes += headers(id_of(i), get());
  const std::size_t used = peer.session.receive(bytes, peer.now);
  CHECK(peer.session.is_paused());
  CHECK(used < bytes.size());
  CHECK(peer.seen.size() < 6);
  peer.take();
  CHECK_FALSE(peer.session.is_paused());
  peer.give(std::string_view(bytes).substr(used));
  CHECK(peer.seen.size() == 20);
}

TEST_CASE("priorities for streams to come are kept for a few", "[h2][limits][rfc9218][7.1]") {
  Peer peer;
  peer.greet();
  const std::size_t before = peer.session.memory_bytes();
  for (int i = 0; i < 150; ++i) {
    peer.give(frame(FrameType::kPriorityUpdate, 0, 0, u32(id_of(i + 100)) + "u=1"));
  }
  CHECK_FALSE(peer.end);
  CHECK(peer.session.memory_bytes() < before + 4096);
}

}  // namespace
}  // namespace encore::h2
