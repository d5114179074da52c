#include "proxy/coding/make_encoder.h"

#include <malloc.h>

#include <algorithm>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "base/sanitizers.h"
#include "tests/catch.h"
#include "tests/coding/decoders.h"

namespace encore::coding {
namespace {

using InputAction = Encoder::InputAction;

constexpr Coding kAll[] = {Coding::kZstd, Coding::kBrotli, Coding::kGzip};

std::string some_text(std::mt19937_64& random, std::size_t bytes) {
  static constexpr std::string_view kWords[] = {
      "alpha ", "<div class=\"x\">", "function(", "\n", "beta ", "0123", "gamma ", "\xff"};
  std::string text;
  while (text.size() < bytes) {
    text += kWords[random() % std::size(kWords)];
    if (random() % 5 == 0) text += std::to_string(random());
  }
  text.resize(bytes);
  return text;
}

// All of it, in room of so many bytes at a time.
std::string encode(Encoder& encoder, std::string_view text, InputAction then,
                   std::size_t room_bytes) {
  std::string made;
  std::size_t used = 0;
  while (true) {
    std::string room(room_bytes, '\0');
    const auto step = encoder.encode(std::as_bytes(std::span(text.substr(used))),
                                     std::as_writable_bytes(std::span(room)), then);
    REQUIRE_FALSE(step.is_broken);
    REQUIRE(step.made <= room_bytes);
    used += step.used;
    made.append(room, 0, step.made);
    REQUIRE(made.size() < 2 * text.size() + 200'000);  // it ends
    if (!step.is_done) continue;
    REQUIRE(used == text.size());
    return made;
  }
}

TEST_CASE("what is encoded in any pieces is decoded to what it was, as soon as it is flushed",
          "[coding]") {
  const std::uint64_t seed = GENERATE(take(8, random(std::uint64_t{1}, std::uint64_t{1} << 60U)));
  const Coding coding = GENERATE(from_range(std::begin(kAll), std::end(kAll)));
  CAPTURE(seed, to_string(coding));
  std::mt19937_64 random(seed);
  const Levels levels = levels_of(coding);
  const int level =
      levels.min + static_cast<int>(random() % static_cast<unsigned>(levels.max - levels.min + 1));
  const auto encoder = make_encoder(coding, level);
  const auto decoder = test::make_decoder(coding);
  REQUIRE(encoder != nullptr);
  std::string given;
  std::string got;
  const auto pass = [&](std::string_view text, InputAction then) {
    const std::size_t room = random() % 3 == 0 ? 1 + random() % 7 : 1 + random() % 20'000;
    const auto decoded = decoder->decode(encode(*encoder, text, then, room));
    REQUIRE(decoded.has_value());
    given += text;
    got += *decoded;
  };
  const std::size_t pieces = random() % 60;
  for (std::size_t i = 0; i < pieces; ++i) {
    const std::string text = some_text(random, random() % (random() % 4 == 0 ? 40'000 : 200));
    const InputAction then = random() % 3 == 0 ? InputAction::kFlush : InputAction::kMore;
    pass(text, then);
    if (then == InputAction::kFlush) REQUIRE(got == given);
    CHECK_FALSE(decoder->has_ended());
  }
  pass(random() % 2 == 0 ? some_text(random, random() % 5000) : std::string(), InputAction::kEnd);
  CHECK(got == given);
  CHECK(decoder->has_ended());
}

TEST_CASE("coded content that does not end is never taken for a whole one", "[coding]") {
  const Coding coding = GENERATE(from_range(std::begin(kAll), std::end(kAll)));
  CAPTURE(to_string(coding));
  std::mt19937_64 random(1);
  const std::string text = some_text(random, 20'000);
  const auto encoder = make_encoder(coding, levels_of(coding).usual);
  std::string made = encode(*encoder, text, InputAction::kFlush, 5000);
  made += encode(*encoder, {}, InputAction::kEnd, 5000);
  for (const std::size_t cut : {std::size_t{0}, made.size() / 2, made.size() - 1}) {
    const auto decoder = test::make_decoder(coding);
    (void)decoder->decode(std::string_view(made).substr(0, cut));
    CHECK_FALSE(decoder->has_ended());
  }
}

TEST_CASE("text becomes shorter", "[coding]") {
  const Coding coding = GENERATE(from_range(std::begin(kAll), std::end(kAll)));
  std::mt19937_64 random(2);
  const std::string text = some_text(random, 100'000);
  const auto encoder = make_encoder(coding, levels_of(coding).usual);
  CHECK(encode(*encoder, text, InputAction::kEnd, 8192).size() < text.size() / 2);
}

#if !defined(ENCORE_ADDRESS_SANITIZER) && !defined(ENCORE_THREAD_SANITIZER)
TEST_CASE("no encoder takes more memory than is accounted for it", "[coding]") {
  const Coding coding = GENERATE(from_range(std::begin(kAll), std::end(kAll)));
  std::mt19937_64 random(3);
  const std::string text = some_text(random, 4U << 20U);
  for (int level = levels_of(coding).min; level <= levels_of(coding).max; ++level) {
    CAPTURE(to_string(coding), level);
    std::vector<std::byte> room(16 * 1024);
    const auto taken = [] {
      const auto now = mallinfo2();
      return now.uordblks + now.hblkhd;
    };
    const std::size_t before = taken();
    std::size_t most = 0;
    const auto encoder = make_encoder(coding, level);
    for (std::size_t at = 0; at < text.size();) {
      const std::size_t piece = std::min<std::size_t>(text.size() - at, 32 * 1024);
      at += encoder
                ->encode(std::as_bytes(std::span(text).subspan(at, piece)), room,
                         at + piece == text.size() ? InputAction::kEnd : InputAction::kMore)
                .used;
      most = std::max(most, taken() - before);
    }
    CHECK(most <= encoder_bytes_max(coding, level));
  }
}
#endif

}  // namespace
}  // namespace encore::coding
