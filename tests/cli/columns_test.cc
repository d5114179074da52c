#include "proxy/cli/columns.h"

#include "tests/catch.h"

namespace encore::cli {
namespace {

TEST_CASE("names stand left, numbers right", "[cli][columns]") {
  CHECK(columns({{"host", "requests/s", "note"}, {"a.example", "12", "x"}, {"b", "3.5", "yy"}}) ==
        "host       requests/s  note\n"
        "a.example          12  x\n"
        "b                 3.5  yy\n");
  CHECK(columns({}).empty());
}

TEST_CASE("a long name is cut, and moves nothing", "[cli][columns]") {
  const std::string text = columns({{"host", "n"}, {std::string(100, 'a'), "1"}}, 10);
  CHECK(text == "host        n\naaaaaaa...  1\n");
}

TEST_CASE("numbers have three digits that count, and units", "[cli][columns]") {
  CHECK(short_number(0) == "0");
  CHECK(short_number(0.126) == "0.13");
  CHECK(short_number(12.34) == "12.3");
  CHECK(short_number(1234.5) == "1234");
  CHECK(short_bytes(0) == "0B");
  CHECK(short_bytes(1023) == "1023B");
  CHECK(short_bytes(1536) == "1.50KiB");
  CHECK(short_bytes(5.0 * 1024 * 1024 * 1024) == "5GiB");
  CHECK(short_seconds(0.00012) == "0.12 ms");
  CHECK(short_seconds(1.5) == "1.50 s");
}

}  // namespace
}  // namespace encore::cli
