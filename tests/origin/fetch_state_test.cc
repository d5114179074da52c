#include "proxy/origin/fetch_state.h"

#include <array>
#include <string_view>

#include "tests/catch.h"

namespace encore::server {
namespace {

using At = FetchState::At;

TEST_CASE("a fetch goes from state to state as the table says, and ends once", "[fetch]") {
  // From the row to the column: connecting, sending, head, body, rest, ended.
  constexpr std::array<std::string_view, 6> kAllowed = {
      "xx   x",  // connecting: another server, or another connection
      "x xx x",  // sending: it broke, or is answered early
      "x  x x",  // head: a kept connection was closed by its origin
      "    xx",  // body
      "     x",  // rest of the request
      "      ",  // ended
  };
  for (std::size_t from = 0; from < kAllowed.size(); ++from) {
    for (std::size_t to = 0; to < kAllowed.size(); ++to) {
      CAPTURE(from, to);
      CHECK(FetchState::may_follow(static_cast<At>(from), static_cast<At>(to)) ==
            (kAllowed[from][to] == 'x'));
    }
  }
}

}  // namespace
}  // namespace encore::server
