#include "proxy/net/address_order.h"

#include <map>
#include <string>

#include "tests/catch.h"

namespace encore::net {
namespace {

std::string ordered(const std::vector<std::string>& destinations,
                    const std::map<std::string, std::string>& sources) {
  std::vector<Address> addresses;
  for (const std::string& each : destinations) addresses.push_back(*Address::parse_ip(each, 80));
  order_addresses(addresses, [&](const Address& destination) {
    const auto found = sources.find(destination.ip_string());
    return found == sources.end() ? std::nullopt : Address::parse_ip(found->second, 0);
  });
  std::string all;
  for (const Address& address : addresses) all += address.ip_string() + " ";
  return all;
}

}  // namespace

TEST_CASE("destinations are ordered as in the examples of the RFC", "[net][rfc6724][10.2]") {
  struct Row {
    std::map<std::string, std::string> sources;  // destination -> source
    std::string expected;
  };
  for (const Row& row : {
           Row{{{"2001:db8:1::1", "2001:db8:1::2"}, {"198.51.100.121", "169.254.13.78"}},
               "2001:db8:1::1 198.51.100.121 "},
           Row{{{"2001:db8:1::1", "fe80::1"}, {"198.51.100.121", "198.51.100.117"}},
               "198.51.100.121 2001:db8:1::1 "},
           Row{{{"2001:db8:1::1", "2001:db8:1::2"}, {"10.1.2.3", "10.1.2.4"}},
               "2001:db8:1::1 10.1.2.3 "},
           Row{{{"2001:db8:1::1", "2001:db8:1::2"}, {"fe80::1", "fe80::2"}},
               "fe80::1 2001:db8:1::1 "},
           Row{{{"2001:db8:1::1", "2001:db8:1::2"}, {"2001:db8:3ffe::1", "2001:db8:3f44::2"}},
               "2001:db8:1::1 2001:db8:3ffe::1 "},
           Row{{{"2002:c633:6401::1", "2002:c633:6401::2"}, {"2001:db8:1::1", "2002:c633:6401::2"}},
               "2002:c633:6401::1 2001:db8:1::1 "},
           Row{{{"2002:c633:6401::1", "2002:c633:6401::2"}, {"2001:db8:1::1", "2001:db8:1::2"}},
               "2001:db8:1::1 2002:c633:6401::1 "},
       }) {
    std::vector<std::string> forward;
    for (const auto& [destination, source] : row.sources) forward.push_back(destination);
    CHECK(ordered(forward, row.sources) == row.expected);
    CHECK(ordered({forward.rbegin(), forward.rend()}, row.sources) == row.expected);
  }
}

TEST_CASE("addresses without a way come last", "[net][rfc6724]") {
  CHECK(ordered({"2001:db8::1", "198.51.100.1"}, {{"198.51.100.1", "10.0.0.1"}}) ==
        "198.51.100.1 2001:db8::1 ");
}

TEST_CASE("the families take turns, and equal addresses stay as they came", "[net][rfc8305]") {
  const std::map<std::string, std::string> sources = {{"198.51.100.3", "10.0.0.1"},
                                                      {"198.51.100.1", "10.0.0.1"},
                                                      {"198.51.100.2", "10.0.0.1"},
                                                      {"2001:db8:1::1", "2001:db8:1::9"}};
  CHECK(ordered({"198.51.100.3", "198.51.100.1", "198.51.100.2", "2001:db8:1::1"}, sources) ==
        "2001:db8:1::1 198.51.100.3 198.51.100.1 198.51.100.2 ");
}

TEST_CASE("the kernel says from where it would send", "[net]") {
  CHECK(source_of(Address::loopback_v4(0))->is_loopback());
  CHECK_FALSE(source_of(*Address::parse_ip("255.255.255.255", 0)).has_value());
}

}  // namespace encore::net
