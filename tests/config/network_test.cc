#include "config/network.h"

#include <string>

#include "tests/catch.h"

using namespace encore;
using namespace encore::config;

namespace {

std::array<std::uint8_t, 16> address(std::string_view text) {
  const auto cidr = parse_cidr(text);
  REQUIRE(cidr.has_value());
  return cidr->address;
}

TEST_CASE("a server has a weight and may be a backup", "[config]") {
  const auto plain = parse_server("http://a:8080");
  REQUIRE(plain);
  CHECK(plain->port == 8080);
  CHECK(plain->weight == 1);
  CHECK_FALSE(plain->backup);
  const auto both = parse_server("https://a  backup weight=100");
  REQUIRE(both);
  CHECK(both->tls);
  CHECK(both->weight == 100);
  CHECK(both->backup);
  for (const std::string_view text :
       {"", " http://a", "http://a weight=0", "http://a weight=101", "http://a weight=",
        "http://a weight=1x", "http://a weight=2 weight=2", "http://a backup backup",
        "http://a Backup", "http://a\tbackup", "weight=2", "http://a b"}) {
    CAPTURE(text);
    CHECK_FALSE(parse_server(text).has_value());
  }
}

}  // namespace

TEST_CASE("An endpoint is a numeric address and a port", "[config][network]") {
  struct Row {
    std::string_view text;
    std::string_view canonical;
  };
  const Row row = GENERATE(Row{"127.0.0.1:3128", "127.0.0.1:3128"}, Row{"[::1]:80", "[::1]:80"},
                           Row{"*:80", "[::]:80"}, Row{"0.0.0.0:0", "0.0.0.0:0"},
                           Row{"[2001:DB8:0::1]:65535", "[2001:db8::1]:65535"});
  const auto endpoint = parse_endpoint(row.text);
  REQUIRE(endpoint.has_value());
  CHECK(to_string(*endpoint) == row.canonical);
}

TEST_CASE("What is not an endpoint is refused", "[config][network]") {
  const std::string text =
      GENERATE("", "127.0.0.1", ":80", "localhost:80", "::1:80", "[127.0.0.1]:80", "[::1]",
               "127.0.0.1:65536", "127.0.0.1:-1", "127.0.0.1:", "127.0.0.1:8 0", "[::1:80",
               "[*]:80", "127.1:80", "127.0.0.1:80:81");
  CAPTURE(text);
  CHECK_FALSE(parse_endpoint(text).has_value());
}

TEST_CASE("A name server is an address, on port 53 unless it says so", "[config][network]") {
  CHECK(parse_nameserver("192.0.2.53") == Endpoint{"192.0.2.53", 53});
  CHECK(parse_nameserver("2001:db8::1") == Endpoint{"2001:db8::1", 53});
  CHECK(parse_nameserver("127.0.0.1:5353") == Endpoint{"127.0.0.1", 5353});
  CHECK(parse_nameserver("[::1]:5353") == Endpoint{"::1", 5353});
  const std::string text = GENERATE("", "*", "*:53", "dns.example", "127.0.0.1:0",
                                    "127.0.0.1:", "127.0.0.1:65536", "[::1]", "::1:5353x");
  CAPTURE(text);
  CHECK_FALSE(parse_nameserver(text).has_value());
}

TEST_CASE("A server is named by scheme, host and port", "[config][network]") {
  CHECK(parse_server_url("http://Example.COM") == ServerUrl{false, "example.com", 80});
  CHECK(parse_server_url("https://example.com/") == ServerUrl{true, "example.com", 443});
  CHECK(parse_server_url("http://127.0.0.1:8000") == ServerUrl{false, "127.0.0.1", 8000});
  CHECK(parse_server_url("https://[2001:db8::1]:8443") == ServerUrl{true, "2001:db8::1", 8443});
}

TEST_CASE("What is not the URL of a server is refused", "[config][network]") {
  const std::string text = GENERATE(
      "", "example.com", "ftp://example.com", "http://", "http:///", "http://a/b", "http://a?b",
      "http://a#b", "http://user@a", "http://a:0", "http://a:65536", "http://a:", "http://a:80x",
      "http://a b", "http://[::1", "http://[a]", "http://-a", "http://a//");
  CAPTURE(text);
  CHECK_FALSE(parse_server_url(text).has_value());
}

TEST_CASE("A block contains its addresses, IPv4 also when mapped into IPv6", "[config][network]") {
  const auto ten = parse_cidr("10.0.0.0/8");
  REQUIRE(ten.has_value());
  CHECK(ten->contains(address("10.255.255.255")));
  CHECK(ten->contains(address("::ffff:10.1.2.3")));
  CHECK_FALSE(ten->contains(address("11.0.0.0")));
  CHECK_FALSE(ten->contains(address("::10.0.0.1")));

  const auto odd = parse_cidr("2001:db8::/29");
  REQUIRE(odd.has_value());
  CHECK(odd->contains(address("2001:dbf::1")));
  CHECK_FALSE(odd->contains(address("2001:dc0::1")));

  CHECK(parse_cidr("0.0.0.0/0")->contains(address("255.255.255.255")));
  CHECK_FALSE(parse_cidr("0.0.0.0/0")->contains(address("::1")));
  CHECK(parse_cidr("::/0")->contains(address("1.2.3.4")));
  CHECK(parse_cidr("::1")->contains(address("::1")));
  CHECK_FALSE(parse_cidr("::1")->contains(address("::2")));
}

TEST_CASE("A listener or a server may be a file", "[config][network]") {
  const auto listener = parse_listen_endpoint("unix:/run/encore.sock");
  REQUIRE(listener);
  CHECK(listener->socket == "/run/encore.sock");
  CHECK(to_string(*listener) == "unix:/run/encore.sock");
  CHECK(parse_listen_endpoint("127.0.0.1:80")->socket.empty());
  const auto server = parse_origin_server("unix:/run/app.sock");
  REQUIRE(server);
  CHECK(server->socket == "/run/app.sock");
  CHECK(server->host == "localhost");
  CHECK_FALSE(server->tls);
  CHECK(parse_origin_server("http://a:1")->socket.empty());
  CHECK_FALSE(parse_server_url("unix:/run/app.sock"));
  CHECK_FALSE(parse_endpoint("unix:/run/encore.sock"));
  const std::string longest = "unix:/" + std::string(kSocketNameBytesMax - 1, 'x');
  CHECK(parse_listen_endpoint(longest));
  const std::string bad = GENERATE_COPY(as<std::string>(), "unix:", "unix:relative", "unix:/",
                                        "unix:/folder/", "unix:/a\nb", longest + "x");
  CAPTURE(bad);
  CHECK_FALSE(parse_listen_endpoint(bad));
  CHECK_FALSE(parse_origin_server(bad));
}

TEST_CASE("A socket's permissions are an octal number", "[config][network]") {
  CHECK(parse_socket_mode("0660") == 0660U);
  CHECK(parse_socket_mode("0") == 0U);
  CHECK(parse_socket_mode("777") == 0777U);
  const char* const bad = GENERATE("", "0x1", "1000", "8", "rw", "-1", " 0660");
  CAPTURE(bad);
  CHECK_FALSE(parse_socket_mode(bad));
}

TEST_CASE("What is not a block is refused", "[config][network]") {
  const std::string text = GENERATE("", "10", "10.0.0.0/33", "::/129", "10.0.0.0/", "10.0.0.0/-1",
                                    "10.0.0.0/8/8", "localhost", "[::1]");
  CAPTURE(text);
  CHECK_FALSE(parse_cidr(text).has_value());
}

TEST_CASE("A block with bits behind its prefix is refused with the block that was meant",
          "[config][network]") {
  const auto cidr = parse_cidr("10.1.2.3/8");
  REQUIRE_FALSE(cidr.has_value());
  CHECK(cidr.error().message == "has bits set after its prefix (10.0.0.0/8?)");
}
