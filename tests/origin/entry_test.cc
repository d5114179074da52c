#include "proxy/origin/entry.h"

#include <algorithm>
#include <string>

#include "proxy/request/request_ids.h"
#include "tests/catch.h"
#include "tests/origin/receive.h"

namespace encore::server {
namespace {

TEST_CASE("the id of a request goes to nobody else with its response", "[origin][entry]") {
  Origin origin;
  World world({origin.url()});
  const auto request = world.request("GET /a HTTP/1.1\r\nHost: h\r\n\r\n");
  for (const bool has_id : {true, false}) {
    const std::string text = "HTTP/1.1 200 OK\r\nCache-Control: max-age=60, private=\"X-Own\"\r\n" +
                             (has_id ? std::string(kRequestIdName) + ": abc\r\n" : std::string()) +
                             "Content-Length: 0\r\n\r\n";
    ReceivedResponse received;
    receive(world, text, received);
    const auto stripped = governing_directives(*request, received).stripped_fields;
    const auto has = [&](std::string_view name) {
      return std::ranges::any_of(stripped,
                                 [&](const auto& each) { return std::string_view(each) == name; });
    };
    CHECK(has(kRequestIdName) == has_id);
    CHECK(stripped.size() == (has_id ? 2 : 1));
  }
}

}  // namespace
}  // namespace encore::server
