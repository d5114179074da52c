#include "proxy/client/client_counter.h"

#include "tests/catch.h"

namespace encore::server {
namespace {

net::Address address(const char* text, std::uint16_t port = 1) {
  return net::Address::parse_ip(text, port).value();
}

TEST_CASE("a client has as many connections as the limit, whatever their ports",
          "[process][clients]") {
  ClientCounter counter;
  for (std::uint16_t port = 1; port <= 3; ++port) {
    CHECK(counter.enter(address("192.0.2.1", port), 3));
  }
  CHECK_FALSE(counter.enter(address("192.0.2.1", 4), 3));
  // Others have their own, and one that is refused is not counted.
  CHECK(counter.enter(address("192.0.2.2"), 3));
  counter.leave(address("192.0.2.1", 2));
  CHECK(counter.enter(address("192.0.2.1", 5), 3));
  CHECK_FALSE(counter.enter(address("192.0.2.1", 6), 3));
}

TEST_CASE("a limit that a reload has lowered lets nobody in until enough have left",
          "[process][clients]") {
  ClientCounter counter;
  for (int i = 0; i < 3; ++i) CHECK(counter.enter(address("2001:db8::1"), 3));
  CHECK_FALSE(counter.enter(address("2001:db8::1"), 2));
  counter.leave(address("2001:db8::1"));
  CHECK_FALSE(counter.enter(address("2001:db8::1"), 2));
  counter.leave(address("2001:db8::1"));
  CHECK(counter.enter(address("2001:db8::1"), 2));
}

TEST_CASE("a mapped address is its IPv4 one", "[process][clients]") {
  ClientCounter counter;
  CHECK(counter.enter(address("192.0.2.1"), 1));
  CHECK_FALSE(counter.enter(address("::ffff:192.0.2.1"), 1));
}

TEST_CASE("an IPv6 network of 64 bits is one client", "[process][clients]") {
  ClientCounter counter;
  CHECK(counter.enter(address("2001:db8:0:1::1"), 1));
  CHECK_FALSE(counter.enter(address("2001:db8:0:1:ffff::2"), 1));
  CHECK(counter.enter(address("2001:db8:0:2::1"), 1));
  CHECK(counter.enter(address("192.0.2.1"), 1));
  CHECK(counter.enter(address("192.0.2.2"), 1));
}

}  // namespace
}  // namespace encore::server
