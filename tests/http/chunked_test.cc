#include "proxy/http/chunked.h"

#include <array>
#include <string>

#include "tests/catch.h"

namespace encore::http {
namespace {

using namespace std::string_literals;

struct Decoded {
  ChunkedDecoder::Status status;
  std::string body;
  std::string trailers;
  std::size_t consumed;
};

Decoded decode(std::string_view input, std::size_t step, ChunkedDecoder::Limits limits = {}) {
  ChunkedDecoder decoder(limits);
  Decoded result{};
  for (std::size_t at = 0; at < input.size(); at += step) {
    std::string_view part = input.substr(at, step);
    while (true) {
      const auto taken = decoder.next(part);
      part.remove_prefix(taken.consumed);
      result.consumed += taken.consumed;
      result.body += taken.data;
      result.status = taken.status;
      if (taken.status != ChunkedDecoder::Status::kData) break;
    }
    if (result.status != ChunkedDecoder::Status::kNeedMore) break;
  }
  result.trailers = decoder.trailers();
  return result;
}

}  // namespace

TEST_CASE("chunks are decoded however they are cut", "[http][rfc9112][7.1]") {
  const std::string text =
      "5\r\nhello\r\n00006 ; ext=\"a;b\"\r\n world\r\nA;x\r\n0123456789\r\n"
      "0\r\nX: y\r\nZ: w\r\n\r\nGET";
  for (std::size_t step = 1; step <= text.size(); ++step) {
    CAPTURE(step);
    const Decoded result = decode(text, step);
    CHECK(result.status == ChunkedDecoder::Status::kDone);
    CHECK(result.body == "hello world0123456789");
    CHECK(result.trailers == "X: y\r\nZ: w\r\n");
    CHECK(result.consumed == text.size() - 3);
  }
  CHECK(decode("0\r\n\r\n", 9).status == ChunkedDecoder::Status::kDone);
  CHECK(decode("7fffffffffffffff\r\n", 99).status == ChunkedDecoder::Status::kNeedMore);
}

TEST_CASE("what is not exactly a chunk is refused", "[http][rfc9112][7.1][smuggling]") {
  const std::string table[] = {
      "\r\n",
      "g\r\n",
      "0x5\r\nhello\r\n",
      "-5\r\n",
      "+5\r\n",
      " 5\r\n",
      "5 \r\n",
      "5\nhello\r\n",
      "5\r\rhello\r\n",
      "5\rhello",
      "5\r\nhello\n",
      "5\r\nhelloX\r\n",
      "5\r\nhello\rX",
      "5;a\nb\r\nhello\r\n",
      "5;a\rb\r\nhello\r\n",
      "5;\0\r\nhello\r\n"s,
      "5 6\r\nhello\r\n",
      ";a\r\n",
      "8000000000000000\r\n",
      "ffffffffffffffff\r\n",
      "10000000000000000\r\n",
      "00000000000000005\r\nhello\r\n",
      "0\r\nX: y\n\r\n",
      "0\r\nX: y\r\r\n",
      "0\r\nX: \0\r\n"s,
      "0\r\n\rX",
      "0\n\n",
  };
  for (const std::string& text : table) {
    CAPTURE(text);
    CHECK(decode(text, 1).status == ChunkedDecoder::Status::kBad);
    CHECK(decode(text, text.size()).status == ChunkedDecoder::Status::kBad);
  }
}

TEST_CASE("extensions and trailers have limits over the whole body", "[http][limits]") {
  const ChunkedDecoder::Limits limits{.extension_bytes_max = 4, .trailer_bytes_max = 8};
  CHECK(decode("1;a\r\nx\r\n1;b\r\nx\r\n0\r\n\r\n", 3, limits).status ==
        ChunkedDecoder::Status::kDone);
  CHECK(decode("1;a\r\nx\r\n1;bc\r\nx\r\n0\r\n\r\n", 3, limits).status ==
        ChunkedDecoder::Status::kBad);
  CHECK(decode("0\r\nA: bcde\r\n\r\n", 3, limits).status == ChunkedDecoder::Status::kBad);
  CHECK(decode("0\r\nA: bcd\r\n\r\n", 3, limits).status == ChunkedDecoder::Status::kDone);
}

TEST_CASE("a chunk's line is written as it will be read", "[http][rfc9112][7.1]") {
  std::array<char, kChunkHeadMax> out{};
  for (const auto& [size, text] :
       {std::pair{std::uint64_t{1}, "1\r\n"}, std::pair{std::uint64_t{0x1234abc}, "1234abc\r\n"},
        std::pair{~std::uint64_t{0}, "ffffffffffffffff\r\n"}}) {
    CHECK(std::string(out.data(), write_chunk_head(size, out.data())) == text);
  }
}

}  // namespace encore::http
