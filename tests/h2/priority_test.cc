#include "proxy/h2/priority.h"

#include "tests/catch.h"

namespace encore::h2 {
namespace {

TEST_CASE("a priority is read as RFC 9218 writes it", "[h2][rfc9218]") {
  CHECK(parse_priority("u=5, i") == Priority{.urgency = 5, .is_incremental = true});
  CHECK(parse_priority("u=0") == Priority{.urgency = 0, .is_incremental = false});
  CHECK(parse_priority("i") == Priority{.urgency = 3, .is_incremental = true});
  CHECK(parse_priority("i=?0,u=7") == Priority{.urgency = 7, .is_incremental = false});
  CHECK(parse_priority("u=2;x=1, i=?1") == Priority{.urgency = 2, .is_incremental = true});
  CHECK(parse_priority("") == Priority{.urgency = 3, .is_incremental = false});
}

TEST_CASE("what is no priority says nothing", "[h2][rfc9218]") {
  CHECK(parse_priority("u=8") == Priority{.urgency = 3, .is_incremental = false});
  CHECK(parse_priority("u=-1, i=3") == Priority{.urgency = 3, .is_incremental = false});
  CHECK(parse_priority("u=1,,") == Priority{});
  CHECK(parse_priority("U=1") == Priority{});
  CHECK(parse_priority(std::string(100, ' ') + "u=1") == Priority{});
}

}  // namespace
}  // namespace encore::h2
