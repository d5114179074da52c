// However the bytes of a client come, they mean the same; and however little the socket takes, it
// is sent the same.
#include <random>

#include "proxy/h2/server_session.h"
#include "tests/catch.h"
#include "tests/h2/peer.h"

namespace encore::h2 {
namespace {

using namespace test;  // NOLINT(google-build-using-namespace)

// Some frames, most of them sound, as a client may send them.
std::string random_bytes(std::mt19937_64& random) {
  std::string bytes = hello();
  StreamId next = 1;
  std::vector<StreamId> open;
  const auto any = [&](std::size_t count) { return random() % count; };
  for (int i = 0; i < 40; ++i) {
    const StreamId id = open.empty() ? 1 : open[any(open.size())];
    switch (any(12)) {
      case 0:
      case 1:
      case 2: {
        FieldList fields = get("/" + std::to_string(i), {{"cookie", "a"}, {"cookie", "b"}});
        if (any(8) == 0) fields.emplace_back("Bad", "x");
        if (any(8) == 0) fields.emplace_back("content-length", std::to_string(any(200)));
        std::string block = block_of(fields);
        if (any(3) == 0) {
          const std::size_t cut = any(block.size());
          bytes += frame(FrameType::kHeaders, any(2) == 0 ? kFlagEndStream : std::uint8_t{0}, next,
                         block.substr(0, cut));
          bytes += frame(FrameType::kContinuation, kFlagEndHeaders, next, block.substr(cut));
        } else if (any(3) == 0) {
          block = std::string(1, '\3') + u32(0) + "\x10" + block + std::string(3, '\0');
          bytes += frame(FrameType::kHeaders, kFlagEndHeaders | kFlagPadded | kFlagPriority, next,
                         block);
        } else {
          bytes += headers(next, fields, any(2) == 0);
        }
        open.push_back(next);
        next += 2;
        break;
      }
      case 3:
      case 4:
      case 5:
        bytes += data(id, std::string(any(300), 'd'), any(4) == 0);
        break;
      case 6:
        bytes += frame(FrameType::kData, kFlagPadded, id,
                       "\x04" + std::string(any(100), 'p') + std::string(4, '\0'));
        break;
      case 7:
        bytes += headers(id, {{"x-trailer", "1"}});
        break;
      case 8:
        bytes += any(2) == 0 ? rst(id) : window(id, static_cast<std::uint32_t>(any(3)));
        break;
      case 9:
        bytes += frame(FrameType::kPing, 0, 0, "12345678") + setting(Setting::kMaxFrameSize, 20000);
        break;
      case 10:
        bytes += frame(static_cast<FrameType>(0x50), 0, 0, std::string(any(400), 'u'));
        break;
      default:
        if (any(10) == 0) bytes += frame(FrameType::kGoAway, 0, any(2) == 0 ? 0 : 1, "12345678");
        break;
    }
  }
  if (any(4) == 0) bytes[any(bytes.size())] = static_cast<char>(random());
  return bytes;
}

std::string described(Peer& peer) {
  std::string text;
  for (const auto& [id, seen] : peer.seen) {
    // By then more or less has been passed on of content that turns out to be too long.
    const std::string content = seen.gone == ErrorCode::kProtocolError ? "" : seen.content;
    text += std::to_string(id) + "|" + seen.text + "|" + content + "|" + seen.trailers + "|" +
            (seen.has_ended ? "ended" : "") +
            (seen.gone ? std::string(to_string(*seen.gone)) : "") + "\n";
  }
  if (peer.end) text += std::string(peer.end->why);
  for (const SentFrame& each : peer.sent()) {
    text += std::to_string(static_cast<int>(each.header.type)) + "/" +
            std::to_string(each.header.stream) + "/" + each.payload + "\n";
  }
  return text;
}

TEST_CASE("random cuts of the input change nothing", "[h2][property]") {
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    std::mt19937_64 random(seed);
    const std::string bytes = random_bytes(random);
    Peer whole;
    whole.give(bytes);
    whole.take();
    const std::string expected = described(whole);
    for (int round = 0; round < 4; ++round) {
      Peer cut;
      for (std::size_t at = 0; at < bytes.size();) {
        const std::size_t size = round == 0 ? 1 : 1 + random() % 64;
        cut.give(std::string_view(bytes).substr(at, size));
        at += size;
      }
      cut.take();
      CAPTURE(seed, round);
      REQUIRE(described(cut) == expected);
    }
  }
}

TEST_CASE("however little the socket takes, each stream gets its content", "[h2][property]") {
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    std::mt19937_64 random(seed);
    Peer peer;
    peer.greet().give(setting(Setting::kInitialWindowSize, 20000));
    std::map<StreamId, TextSource> sources;
    std::map<StreamId, std::string> texts;
    const std::string trailers = "x-sum: 1\r\n";
    for (StreamId id = 1; id < 20; id += 2) {
      std::string text(random() % 60000, static_cast<char>('a' + id));
      for (std::size_t i = 0; i < text.size(); i += 100) text[i] = static_cast<char>(random());
      auto& source = sources.emplace(id, TextSource(text)).first->second;
      source.part_bytes = 1 + random() % 5000;
      source.available = random() % (text.size() + 1);
      const bool has_length = random() % 2 == 0;
      peer.give(headers(
          id, get("/", random() % 2 == 0 ? FieldList{{"priority", "u=2, i"}} : FieldList{})));
      peer.session.respond(
          id, "HTTP/1.1 200 OK\r\nContent-Length: " + std::to_string(text.size()) + "\r\n",
          has_length ? ServerSession::Framing::kLength : ServerSession::Framing::kOpen, &source,
          random() % 2 == 0 ? &trailers : nullptr);
      texts[id] = std::move(text);
    }
    for (int round = 0; round < 200; ++round) {
      peer.take(1 + random() % 3000);
      for (auto& [id, source] : sources) {
        source.available = std::min(texts[id].size(), source.available + random() % 4000);
        peer.session.resume(id);
      }
      if (round % 4 == 0) {
        peer.give(window(0, 20000));
        for (const auto& [id, text] : texts) {
          if (!peer.has_end(id)) peer.give(window(id, 5000));
        }
      }
      peer.pass(std::chrono::seconds(1));
    }
    CAPTURE(seed, peer.why());
    CHECK_FALSE(peer.end);
    for (const auto& [id, text] : texts) {
      CAPTURE(id);
      CHECK(peer.content(id) == text);
      CHECK(peer.has_end(id));
    }
    CHECK(peer.session.stream_count() == 0);
  }
}

}  // namespace
}  // namespace encore::h2
