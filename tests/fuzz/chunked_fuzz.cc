// Chunked bodies: however they are cut, our decoder reaches one end, never takes a byte of what
// follows, and agrees with Boost.Beast's where it accepts. Decoded content, written anew, decodes
// to the same. The first byte is the size of the reads.
//
// Known differences: Beast checks trailers as fields while ours only bounds them (parse_fields
// judges them later), and parses extensions, refusing some of which ours only bounds the bytes.
#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "proxy/http/chunked.h"
#include "proxy/http/parser.h"
#include "tests/fuzz/beast_oracle.h"

using namespace encore;
using namespace encore::http;

namespace {

using Status = ChunkedDecoder::Status;

struct Decoded {
  Status status = Status::kNeedMore;
  std::string content;
  std::string trailers;
  std::size_t consumed = 0;
};

Decoded decode(std::string_view bytes, std::size_t step) {
  ChunkedDecoder decoder({.extension_bytes_max = 64, .trailer_bytes_max = 256});
  Decoded result;
  while (result.status == Status::kNeedMore && result.consumed < bytes.size()) {
    const std::vector<char> copy(bytes.begin() + static_cast<std::ptrdiff_t>(result.consumed),
                                 bytes.begin() + static_cast<std::ptrdiff_t>(std::min(
                                                     result.consumed + step, bytes.size())));
    std::string_view part(copy.data(), copy.size());
    do {
      const auto taken = decoder.next(part);
      ENCORE_CHECK(taken.consumed <= part.size(), "no more than was given");
      part.remove_prefix(taken.consumed);
      result.consumed += taken.consumed;
      result.content += taken.data;
      result.status = taken.status;
    } while (result.status == Status::kData);
  }
  result.trailers = decoder.trailers();
  return result;
}

std::string encode(std::string_view content) {
  std::string out;
  std::array<char, kChunkHeadMax> head{};
  for (; !content.empty(); content.remove_prefix(std::min<std::size_t>(content.size(), 7))) {
    const std::string_view chunk = content.substr(0, 7);
    out.append(head.data(), write_chunk_head(chunk.size(), head.data()));
    out += chunk;
    out += kChunkEnd;
  }
  out += kLastChunk;
  out += kChunkEnd;
  return out;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 2) return 0;
  const std::size_t step = data[0] % 32 + 1;
  const std::string_view bytes(reinterpret_cast<const char*>(data + 1), size - 1);
  const Decoded whole = decode(bytes, bytes.size());
  const Decoded cut = decode(bytes, step);
  ENCORE_CHECK(whole.status == cut.status && whole.content == cut.content &&
                   whole.consumed == cut.consumed && whole.trailers == cut.trailers,
               "cuts change nothing");
  Fields trailers;
  ParseError error;
  const bool good_trailers = parse_fields(whole.trailers, {}, trailers, error);
  if (whole.status != Status::kDone) return 0;
  const oracle::Body other = oracle::decode_chunked(bytes);
  if (other.status == oracle::Status::kComplete && good_trailers) {
    ENCORE_CHECK(other.content == whole.content, "one content");
    ENCORE_CHECK(other.consumed == whole.consumed, "one end");
  }
  const Decoded again = decode(encode(whole.content), 5);
  ENCORE_CHECK(again.status == Status::kDone && again.content == whole.content, "written as read");
  return 0;
}
