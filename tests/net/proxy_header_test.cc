#include "proxy/net/proxy_header.h"

#include <cstdint>
#include <random>
#include <string>
#include <string_view>

#include "tests/catch.h"

namespace encore::net {
namespace {

using Status = ProxyHeaderStatus;

constexpr std::string_view kSignature("\r\n\r\n\0\r\nQUIT\n", 12);

std::string number(std::size_t value) {
  return {static_cast<char>(value >> 8U), static_cast<char>(value & 0xffU)};
}

std::string binary(unsigned command, unsigned family, std::string_view rest) {
  std::string text(kSignature);
  text += static_cast<char>(0x20U | command);
  text += static_cast<char>(family);
  return text + number(rest.size()) + std::string(rest);
}

std::string tlv(unsigned type, std::string_view value) {
  return std::string(1, static_cast<char>(type)) + number(value.size()) + std::string(value);
}

const std::string kV4 =
    std::string("\xc0\x00\x02\x01\x7f\x00\x00\x01", 8) + number(5000) + number(80);
const std::string kV6 = std::string("\x20\x01\x0d\xb8", 4) + std::string(11, '\0') + "\x01" +
                        std::string(16, '\0') + number(6000) + number(80);

// "192.0.2.1:5000", "-" for none, or what is wrong.
std::string read(std::string_view input) {
  ProxyHeader header;
  switch (parse_proxy_header(input, header)) {
    case Status::kIncomplete:
      return "incomplete";
    case Status::kBad:
      return "bad";
    case Status::kComplete:
      break;
  }
  CHECK(header.size <= input.size());
  return header.source ? header.source->to_string() : "-";
}

}  // namespace

TEST_CASE("a PROXY header of version 1 says who has connected", "[net][proxy_header]") {
  struct Row {
    std::string_view line;
    std::string_view said;
  };
  const Row table[] = {
      {"PROXY TCP4 192.0.2.1 127.0.0.1 5000 80\r\n", "192.0.2.1:5000"},
      {"PROXY TCP4 255.255.255.255 255.255.255.255 65535 65535\r\n", "255.255.255.255:65535"},
      {"PROXY TCP6 2001:db8::1 ::1 6000 80\r\n", "[2001:db8::1]:6000"},
      {"PROXY TCP6 ::ffff:192.0.2.1 ::1 6000 80\r\n", "192.0.2.1:6000"},
      {"PROXY UNKNOWN\r\n", "-"},
      {"PROXY UNKNOWN ffff::1 whatever 65535 65535\r\n", "-"},
      {"PROXY UNKNOWNS\r\n", "bad"},
      {"PROXY TCP4 2001:db8::1 ::1 6000 80\r\n", "bad"},
      {"PROXY TCP6 192.0.2.1 127.0.0.1 5000 80\r\n", "bad"},
      {"PROXY TCP6 [2001:db8::1] ::1 6000 80\r\n", "bad"},
      {"PROXY TCP4 192.0.2.1 127.0.0.1 5000\r\n", "bad"},
      {"PROXY TCP4 192.0.2.1 127.0.0.1 5000 80 \r\n", "bad"},
      {"PROXY TCP4 192.0.2.1  127.0.0.1 5000 80\r\n", "bad"},
      {"PROXY TCP4 192.0.2.1 127.0.0.1 05000 80\r\n", "bad"},
      {"PROXY TCP4 192.0.2.1 127.0.0.1 65536 80\r\n", "bad"},
      {"PROXY TCP4 192.0.2.1 127.0.0.1 -1 80\r\n", "bad"},
      {"PROXY TCP4 192.0.2.01 127.0.0.1 5000 80\r\n", "bad"},
      {"PROXY TCP4 0xc0000201 127.0.0.1 5000 80\r\n", "bad"},
      {"PROXY TCP4 192.0.2.1 127.0.0.1 5000 80\n", "bad"},
      {"PROXY TCP4 192.0.2.1\r 127.0.0.1 5000 80\r\n", "bad"},
      {"PROXY UDP4 192.0.2.1 127.0.0.1 5000 80\r\n", "bad"},
      {"PROXY \r\n", "bad"},
      {"PROXY\r\n", "bad"},
      {"proxy TCP4 192.0.2.1 127.0.0.1 5000 80\r\n", "bad"},
      {"GET / HTTP/1.1\r\n", "bad"},
      {"\x16\x03\x01", "bad"},
  };
  for (const Row& row : table) {
    CAPTURE(row.line);
    CHECK(read(row.line) == row.said);
  }
  const std::string longest = "PROXY UNKNOWN " + std::string(107 - 16, 'x') + "\r\n";
  CHECK(longest.size() == 107);
  CHECK(read(longest) == "-");
  CHECK(read("PROXY UNKNOWN " + std::string(107 - 15, 'x') + "\r\n") == "bad");
  CHECK(read("PROXY UNKNOWN " + std::string(107 - 14, 'x')) == "bad");
}

TEST_CASE("a PROXY header of version 2 says who has connected", "[net][proxy_header]") {
  CHECK(read(binary(1, 0x11, kV4)) == "192.0.2.1:5000");
  CHECK(read(binary(1, 0x12, kV4)) == "192.0.2.1:5000");
  CHECK(read(binary(1, 0x21, kV6)) == "[2001:db8::1]:6000");
  CHECK(read(binary(0, 0x11, kV4)) == "-");
  CHECK(read(binary(0, 0x00, "")) == "-");
  CHECK(read(binary(0, 0x00, "anything at all")) == "-");
  CHECK(read(binary(1, 0x00, "")) == "-");
  CHECK(read(binary(1, 0x00, "anything")) == "-");
  CHECK(read(binary(1, 0x31, std::string(216, 'p'))) == "-");
  CHECK(read(binary(1, 0x31, std::string(215, 'p'))) == "bad");
  CHECK(read(binary(1, 0x11, kV4.substr(1))) == "bad");
  CHECK(read(binary(1, 0x21, kV6.substr(1))) == "bad");
  CHECK(read(binary(2, 0x11, kV4)) == "bad");
  CHECK(read(binary(1, 0x41, kV4)) == "bad");
  CHECK(read(binary(1, 0x13, kV4)) == "bad");
  std::string other_version = binary(1, 0x11, kV4);
  other_version[12] = 0x11;
  CHECK(read(other_version) == "bad");
}

TEST_CASE("what version 2 says beside the addresses is read or skipped", "[net][proxy_header]") {
  const auto secure = [](std::string_view extensions) {
    ProxyHeader header;
    const auto status = parse_proxy_header(binary(1, 0x11, kV4 + std::string(extensions)), header);
    return status == Status::kComplete ? (header.secure ? "tls" : "plain") : "bad";
  };
  const std::string tls = tlv(0x20, std::string("\x01\0\0\0\0", 5));
  CHECK(secure("") == std::string_view("plain"));
  CHECK(secure(tls) == std::string_view("tls"));
  CHECK(secure(tlv(0x01, "h2") + tls + tlv(0x04, "")) == std::string_view("tls"));
  CHECK(secure(tlv(0x20, std::string("\x02\0\0\0\0", 5))) == std::string_view("plain"));
  CHECK(secure(tlv(0x20, "\x01")) == std::string_view("bad"));
  CHECK(secure(tlv(0x01, "h2").substr(0, 4)) == std::string_view("bad"));
  CHECK(secure("\x01") == std::string_view("bad"));
  // At the limit of a header, and one past it.
  CHECK(secure(tlv(0x04, std::string(4096 - 16 - 12 - 3, 'x'))) == std::string_view("plain"));
  CHECK(secure(tlv(0x04, std::string(4096 - 16 - 12 - 2, 'x'))) == std::string_view("bad"));
}

TEST_CASE("a PROXY header may come byte by byte, with a request behind it", "[net][proxy_header]") {
  const std::string headers[] = {"PROXY TCP4 192.0.2.1 127.0.0.1 5000 80\r\n",
                                 binary(1, 0x11, kV4 + tlv(0x04, "noop")), binary(0, 0, "")};
  for (const std::string& header : headers) {
    for (std::size_t cut = 0; cut < header.size(); ++cut) {
      CAPTURE(cut);
      CHECK(read(std::string_view(header).substr(0, cut)) == "incomplete");
    }
    ProxyHeader parsed;
    REQUIRE(parse_proxy_header(header + "GET / HTTP/1.1\r\n", parsed) == Status::kComplete);
    CHECK(parsed.size == header.size());
  }
}

TEST_CASE("what is no PROXY header is refused, and no prefix of it is taken",
          "[net][proxy_header]") {
  std::mt19937_64 random(7);
  const std::string whole = binary(1, 0x11, kV4 + tlv(0x20, std::string("\x01\0\0\0\0", 5)));
  int bad = 0;
  for (int i = 0; i < 100'000; ++i) {
    std::string text = i % 2 == 0 ? whole : "PROXY TCP4 192.0.2.1 127.0.0.1 5000 80\r\n";
    for (std::uint64_t changes = random() % 4; changes != 0; --changes) {
      text[random() % text.size()] = static_cast<char>(random());
    }
    Status before = Status::kIncomplete;
    for (std::size_t cut = 0; cut <= text.size(); ++cut) {
      ProxyHeader header;
      const Status status = parse_proxy_header(std::string_view(text).substr(0, cut), header);
      // A final status stays, whatever follows.
      if (before != Status::kIncomplete && status != before) FAIL("cut " << cut << " of " << text);
      before = status;
    }
    bad += before == Status::kBad ? 1 : 0;
  }
  CHECK(bad > 1'000);
}

}  // namespace encore::net
