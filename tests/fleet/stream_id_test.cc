#include "proxy/fleet/stream_id.h"

#include "tests/catch.h"

namespace encore::fleet {
namespace {

TEST_CASE("a place in a stream is read as the engine writes it", "[fleet]") {
  CHECK(parse_stream_id("1700000000000-3") == StreamId{1700000000000, 3});
  CHECK(to_string(StreamId{1700000000000, 3}) == "1700000000000-3");
  CHECK(parse_stream_id("0-0") == StreamId{});
  CHECK(parse_stream_id("18446744073709551615-18446744073709551615"));
  for (const char* text : {"", "-", "1", "1-", "-1", "1-2-3", "1 -2", "+1-2", "0x1-2",
                           "18446744073709551616-0", "1-99999999999999999999", "1-2\n"}) {
    CAPTURE(text);
    CHECK_FALSE(parse_stream_id(text));
  }
  CHECK(StreamId{2, 0} > StreamId{1, 9});
  CHECK(StreamId{2, 1} > StreamId{2, 0});
}

}  // namespace
}  // namespace encore::fleet
