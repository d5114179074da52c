// Decodes gzip, for tests of what is sent coded.
#pragma once

#include <zlib.h>

#include <cstddef>
#include <string>
#include <string_view>

#include "tests/catch.h"

namespace encore {

// REQUIRES: all of one member, of at most `bytes_max` decoded bytes; else the test fails.
inline std::string gunzipped(std::string_view bytes, std::size_t bytes_max = 1'000'000) {
  z_stream stream{};
  REQUIRE(inflateInit2(&stream, 15 + 16) == Z_OK);
  std::string out(bytes_max, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  stream.avail_in = static_cast<uInt>(bytes.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  CHECK(inflate(&stream, Z_FINISH) == Z_STREAM_END);
  CHECK(stream.avail_in == 0);
  out.resize(stream.total_out);
  inflateEnd(&stream);
  return out;
}

}  // namespace encore
