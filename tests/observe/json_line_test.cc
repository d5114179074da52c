#include "proxy/observe/json_line.h"

#include <cstdio>
#include <random>
#include <string>

#include "tests/catch.h"

namespace encore::server {
namespace {

// Byte by byte, as the format says.
std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (byte < 0x20 || byte >= 0x7f) {
      char code[8];
      std::snprintf(code, sizeof code, "\\u%04x", byte);
      out += code;
    } else {
      out += c;
    }
  }
  return out;
}

std::string written(std::string_view value) {
  // A copy of exactly its length shows a read beyond it.
  const std::string own(value);
  std::string out = "before";
  JsonLine line(out);
  line.text(R"("k":")", own);
  line.finish();
  return out;
}

}  // namespace

TEST_CASE("each byte at each place of each length is escaped as it must be", "[observe]") {
  std::size_t wrong = 0;
  for (std::size_t length = 0; length <= 40; ++length) {
    std::string text(length, 'x');
    if (written(text) != "before\"k\":\"" + text + '"') ++wrong;
    for (std::size_t at = 0; at < length; ++at) {
      for (int byte = 0; byte < 256; ++byte) {
        text[at] = static_cast<char>(byte);
        if (written(text) != "before\"k\":\"" + escaped(text) + '"') ++wrong;
      }
      text[at] = 'x';
    }
  }
  CHECK(wrong == 0);
}

TEST_CASE("what is too long with its escapes is cut, and says so", "[observe]") {
  const std::string front = "before\"k\":\"";
  const std::string end = std::string(kFieldCut) + '"';
  CHECK(written(std::string(kFieldBytesMax, 'x')) ==
        front + std::string(kFieldBytesMax, 'x') + '"');
  CHECK(written(std::string(kFieldBytesMax + 1, 'x')) ==
        front + std::string(kFieldBytesMax, 'x') + end);
  for (const std::size_t bytes : {2'000U, 60'000U}) {
    const std::string line = written(std::string(bytes, '\xe4'));
    CHECK(line.size() <= front.size() + kFieldBytesMax + end.size());
    CHECK(line.ends_with("\\u00e4" + end));
  }
}

TEST_CASE("what is written in a row stands in a row, whatever has to be made room for",
          "[observe]") {
  std::mt19937_64 random(1);
  for (int round = 0; round < 300; ++round) {
    std::string out(random() % 3000, 'b');
    if (random() % 2 == 0) out.shrink_to_fit();
    std::string expected = out;
    JsonLine line(out);
    for (auto left = random() % 30; left != 0; --left) {
      std::string value(random() % (random() % 8 == 0 ? 5000 : 60), ' ');
      for (char& c : value) c = static_cast<char>(random() % (random() % 20 == 0 ? 256 : 90) + 32);
      const std::uint64_t number = random() >> random() % 64U;
      line.text(",\"text\":\"", value);
      expected += ",\"text\":\"" + escaped(value) + '"';
      line.text_if_any("no", {});
      line.number(",\"number\":", number);
      expected += ",\"number\":" + std::to_string(number);
      line.time_if_any("no", Nanoseconds{-1});
      line.time_if_any(",\"time\":", Nanoseconds{1999});
      expected += ",\"time\":1";
      line.raw(value);
      expected += value;
    }
    line.finish();
    REQUIRE(out == expected);
  }
}

}  // namespace encore::server
