#include "proxy/net/quiescence_detector.h"

#include "tests/catch.h"

namespace encore::net {

TEST_CASE("a count that two looks in a row find as it was is quiet", "[net][quiet]") {
  QuiescenceDetector quiet;
  CHECK_FALSE(quiet.look(0));  // nobody has looked before
  CHECK_FALSE(quiet.look(0));
  CHECK(quiet.look(0));
  CHECK(quiet.look(0));
  CHECK_FALSE(quiet.look(1));
  CHECK_FALSE(quiet.look(1));
  CHECK_FALSE(quiet.look(2));
  CHECK_FALSE(quiet.look(2));
  CHECK(quiet.look(2));
}

}  // namespace encore::net
