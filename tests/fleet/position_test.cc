#include "proxy/fleet/position.h"

#include "tests/catch.h"

namespace encore::fleet {
namespace {

TEST_CASE("a position is read as it was kept", "[fleet]") {
  const Position position{.id = {5, 6}, .stream = "encore:purges", .disks = {"aa", "bb"}};
  const auto read = decode_position(encode(position));
  REQUIRE(read);
  CHECK(*read == position);
  const std::string text = encode(position);
  for (std::size_t size = 0; size < text.size(); ++size) {
    CAPTURE(size);
    CHECK_FALSE(decode_position(text.substr(0, size)));
  }
  CHECK_FALSE(decode_position(text + "x"));
  CHECK_FALSE(decode_position("encore fleet position 2\n" + text.substr(24)));
}

TEST_CASE("a stream is unbroken if the last applied entry is in it", "[fleet]") {
  const StreamId position{5, 0};
  const auto facts = [](StreamId last, bool has) {
    return StreamFacts{.exists = true, .last = last, .length = 3, .added = 9, .has_position = has};
  };
  CHECK(is_unbroken(position, facts({9, 0}, true)));
  // Trimmed, and nothing has come since.
  CHECK(is_unbroken(position, facts({5, 0}, false)));
  // Trimmed past it; restored from an older state and gone on; restored, and not gone on.
  CHECK_FALSE(is_unbroken(position, facts({9, 0}, false)));
  CHECK_FALSE(is_unbroken(position, facts({4, 9}, false)));
  CHECK_FALSE(is_unbroken(position, StreamFacts{}));
}

TEST_CASE("from the beginning a stream is unbroken if nothing was trimmed", "[fleet]") {
  CHECK(is_unbroken({}, StreamFacts{}));
  CHECK(is_unbroken({}, {.exists = true, .last = {9, 0}, .length = 3, .added = 3}));
  CHECK_FALSE(is_unbroken({}, {.exists = true, .last = {9, 0}, .length = 3, .added = 4}));
  CHECK_FALSE(is_unbroken({}, {.exists = true, .last = {9, 0}, .length = 3}));
}

}  // namespace
}  // namespace encore::fleet
