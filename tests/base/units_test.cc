#include "base/units.h"

#include "tests/catch.h"

namespace encore {

TEST_CASE("a size is read with its unit and written with the largest that fits", "[base]") {
  CHECK(parse_bytes("256MiB") == 256 * kMiB);
  CHECK(parse_bytes("1.5 GiB") == kGiB + kGiB / 2);
  CHECK(parse_bytes("10MB") == 10'000'000U);
  CHECK(parse_bytes("4096") == 4096U);
  CHECK(format_bytes(kGiB + kGiB / 2) == "1.5GiB");
  CHECK(format_bytes(17) == "17B");
}

TEST_CASE("a size that could be read two ways is refused and shown", "[base]") {
  for (const char* text : {"", "x", "-1MiB", "12k", "12M", "1e400", "nan", "99999999TiB", "-0"}) {
    CAPTURE(text);
    const auto result = parse_bytes(text);
    REQUIRE_FALSE(result);
    CHECK(result.error().message.find(text) != std::string::npos);
    CHECK(result.error().message.find("accepted") != std::string::npos);
  }
}

TEST_CASE("a duration keeps its unit through reading and writing", "[base]") {
  using namespace std::chrono_literals;
  CHECK(parse_duration("0") == 0ns);
  CHECK(parse_duration("0s") == 0ns);
  CHECK(parse_duration("90s") == 90s);
  CHECK(parse_duration("1.5s") == 1500ms);
  CHECK(parse_duration("2h") == 2h);
  CHECK_FALSE(parse_duration("90"));
  CHECK_FALSE(parse_duration("-1s"));
  CHECK(format_duration(90s) == "90s");
  CHECK(format_duration(2h) == "2h");
  CHECK(format_duration(1500ms) == "1500ms");
}

}  // namespace encore
