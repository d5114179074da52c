#include "proxy/net/address.h"

#include <sys/un.h>

#include "tests/catch.h"

namespace encore::net {

TEST_CASE("an address is read and written with its port", "[net][address]") {
  CHECK(Address::parse_ip("127.0.0.1", 3128)->to_string() == "127.0.0.1:3128");
  CHECK(Address::parse_ip("0.0.0.0", 0)->to_string() == "0.0.0.0:0");
  CHECK(Address::parse_ip("[::1]", 443)->to_string() == "[::1]:443");
  CHECK(Address::parse_ip("2001:db8::1", 65535)->to_string() == "[2001:db8::1]:65535");
  CHECK(Address::parse_ip("::1", 443)->ip_string() == "::1");
  CHECK(Address::parse_ip("::1", 443)->port() == 443);
  CHECK(Address::parse_ip("::1", 443)->is_v6());
}

TEST_CASE("what is not an address is none", "[net][address]") {
  for (const char* text : {"", ":", "[::1", "[::1]80", "localhost", "[127.0.0.1]", "fe80::1%lo",
                           "127.0.0.1:80", "::1]"}) {
    CAPTURE(text);
    CHECK_FALSE(Address::parse_ip(text, 80));
  }
}

TEST_CASE("only strict dotted decimal is an IPv4 address", "[net][address]") {
  for (const char* text : {"127.1", "2130706433", "0x7f.0.0.1", "0177.0.0.1", "127.0.0.1.",
                           "127.0.0.01", " 127.0.0.1", "1.2.3.256", ""}) {
    CAPTURE(text);
    CHECK_FALSE(Address::parse_ip(text, 80));
  }
  CHECK_FALSE(Address::parse_ip(std::string_view("127.0.0.1\0x", 11), 80));
  CHECK_FALSE(Address::parse_ip(std::string(200, '1'), 80));
}

TEST_CASE("the scope of an address looks through what carries IPv4 in IPv6", "[net][address]") {
  struct Row {
    const char* ip;
    Scope scope;
  };
  const Row rows[] = {
      {"8.8.8.8", Scope::kGlobal},
      {"127.0.0.1", Scope::kLoopback},
      {"127.255.255.255", Scope::kLoopback},
      {"126.255.255.255", Scope::kGlobal},
      {"128.0.0.0", Scope::kGlobal},
      {"0.0.0.0", Scope::kUnspecified},
      {"0.1.2.3", Scope::kUnspecified},
      {"10.0.0.0", Scope::kPrivate},
      {"11.0.0.0", Scope::kGlobal},
      {"100.63.255.255", Scope::kGlobal},
      {"100.64.0.0", Scope::kPrivate},
      {"100.127.255.255", Scope::kPrivate},
      {"100.128.0.0", Scope::kGlobal},
      {"169.254.169.254", Scope::kLinkLocal},
      {"172.15.255.255", Scope::kGlobal},
      {"172.16.0.0", Scope::kPrivate},
      {"172.31.255.255", Scope::kPrivate},
      {"172.32.0.0", Scope::kGlobal},
      {"192.168.1.1", Scope::kPrivate},
      {"192.0.0.8", Scope::kReserved},
      {"192.0.2.1", Scope::kReserved},
      {"198.18.0.1", Scope::kReserved},
      {"198.19.255.255", Scope::kReserved},
      {"198.20.0.0", Scope::kGlobal},
      {"224.0.0.1", Scope::kMulticast},
      {"239.255.255.255", Scope::kMulticast},
      {"240.0.0.1", Scope::kReserved},
      {"255.255.255.255", Scope::kReserved},
      {"::", Scope::kUnspecified},
      {"::1", Scope::kLoopback},
      {"::2", Scope::kUnspecified},  // IPv4-compatible 0.0.0.2
      {"2606:4700::1111", Scope::kGlobal},
      {"fe80::1", Scope::kLinkLocal},
      {"febf::1", Scope::kLinkLocal},
      {"fec0::1", Scope::kPrivate},
      {"fc00::1", Scope::kPrivate},
      {"fdff::1", Scope::kPrivate},
      {"ff02::1", Scope::kMulticast},
      {"2001:db8::1", Scope::kReserved},
      {"4000::1", Scope::kReserved},  // not given out
      {"::ffff:127.0.0.1", Scope::kLoopback},
      {"::ffff:8.8.8.8", Scope::kGlobal},
      {"::ffff:0:10.0.0.1", Scope::kPrivate},  // IPv4-translated
      {"::127.0.0.1", Scope::kLoopback},       // IPv4-compatible
      {"::8.8.8.8", Scope::kReserved},
      {"64:ff9b::127.0.0.1", Scope::kLoopback},  // NAT64
      {"64:ff9b::8.8.8.8", Scope::kGlobal},
      {"64:ff9b:1::10.0.0.1", Scope::kPrivate},
      {"64:ff9b:1::8.8.8.8", Scope::kReserved},
      {"2002:7f00:1::", Scope::kLoopback},       // 6to4 of 127.0.0.1
      {"2002:a9fe:a9fe::1", Scope::kLinkLocal},  // embeds 169.254.169.254
      {"2002:808:808::1", Scope::kGlobal},
      {"2001:0:1:2:3:4:80ff:fffe", Scope::kLoopback},  // Teredo, complement of 127.0.0.1
  };
  for (const Row& row : rows) {
    CAPTURE(row.ip);
    const auto address = Address::parse_ip(row.ip, 80);
    REQUIRE(address);
    CHECK(to_string(address->scope()) == to_string(row.scope));
  }
}

TEST_CASE("an IPv4-mapped address is the same as its IPv4 address", "[net][address]") {
  const auto mapped = *Address::parse_ip("::ffff:10.1.2.3", 80);
  const auto plain = *Address::parse_ip("10.1.2.3", 80);
  CHECK(mapped == plain);
  CHECK(mapped.same_ip(*Address::parse_ip("10.1.2.3", 81)));
  CHECK_FALSE(mapped == *Address::parse_ip("10.1.2.3", 81));
  CHECK(mapped.canonical().to_string() == "10.1.2.3:80");
  CHECK(mapped.mapped_bytes() == plain.mapped_bytes());
  CHECK(mapped.embedded_v4()->to_string() == "10.1.2.3:80");
  CHECK_FALSE(Address::loopback_v6(1).embedded_v4());
}

TEST_CASE("a client is named by its IPv4 address, or by its network of IPv6", "[net][address]") {
  CHECK(Address::parse_ip("10.1.2.3", 80)->client_string() == "10.1.2.3");
  CHECK(Address::parse_ip("::ffff:10.1.2.3", 80)->client_string() == "10.1.2.3");
  CHECK(Address::parse_ip("2001:db8:1:2:3:4:5:6", 80)->client_string() == "2001:db8:1:2::/64");
}

TEST_CASE("a socket's address of another family or a short one is none", "[net][address]") {
  sockaddr_un path{};
  path.sun_family = AF_UNIX;
  CHECK_FALSE(Address::from_sockaddr(reinterpret_cast<sockaddr*>(&path), sizeof path));
  const auto address = Address::loopback_v6(80);
  CHECK_FALSE(Address::from_sockaddr(address.data(), sizeof(sockaddr_in)));
  CHECK(Address::from_sockaddr(address.data(), address.size()) == address);
}

}  // namespace encore::net
