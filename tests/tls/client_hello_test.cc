#include "proxy/tls/client_hello.h"

#include <openssl/ssl.h>

#include <fstream>
#include <iterator>
#include <memory>

#include "tests/catch.h"

namespace encore::tls {
namespace {

using Status = HelloStatus;

struct Freed {
  void operator()(SSL_CTX* context) const { SSL_CTX_free(context); }
  void operator()(SSL* ssl) const { SSL_free(ssl); }
};

struct Wanted {
  std::string name = "packages.example";
  std::string protocols = std::string("\x02h2\x08http/1.1");
  int version_max = TLS1_3_VERSION;
};

// The first message of OpenSSL.
std::string openssl_hello(const Wanted& wanted) {
  const std::unique_ptr<SSL_CTX, Freed> context(SSL_CTX_new(TLS_client_method()));
  SSL_CTX_set_max_proto_version(context.get(), wanted.version_max);
  const std::unique_ptr<SSL, Freed> ssl(SSL_new(context.get()));
  BIO* const out = BIO_new(BIO_s_mem());
  SSL_set_bio(ssl.get(), BIO_new(BIO_s_mem()), out);
  SSL_set_connect_state(ssl.get());
  if (!wanted.name.empty()) SSL_set_tlsext_host_name(ssl.get(), wanted.name.c_str());
  SSL_set_alpn_protos(ssl.get(), reinterpret_cast<const unsigned char*>(wanted.protocols.data()),
                      static_cast<unsigned>(wanted.protocols.size()));
  (void)SSL_do_handshake(ssl.get());
  std::string bytes(static_cast<std::size_t>(BIO_pending(out)), '\0');
  REQUIRE(BIO_read(out, bytes.data(), static_cast<int>(bytes.size())) ==
          static_cast<int>(bytes.size()));
  return bytes;
}

std::string number(std::size_t value, int size) {
  std::string text;
  for (int shift = 8 * (size - 1); shift >= 0; shift -= 8) {
    text += static_cast<char>(value >> static_cast<unsigned>(shift) & 0xffU);
  }
  return text;
}

std::string vector(const std::string& content, int length_size) {
  return number(content.size(), length_size) + content;
}

std::string record(const std::string& content) { return "\x16\x03\x01" + vector(content, 2); }

std::string extension(std::size_t type, const std::string& content) {
  return number(type, 2) + vector(content, 2);
}

std::string name_entry(const std::string& name, char kind = '\0') { return kind + vector(name, 2); }

std::string server_name(const std::string& name) {
  return extension(0, vector(name_entry(name), 2));
}

// The message with these extensions, without a record around it.
std::string message(const std::string& extensions) {
  const std::string body = "\x03\x03" + std::string(32, 'r') + vector("", 1) +
                           vector("\x13\x01", 2) + vector(std::string(1, '\0'), 1) +
                           vector(extensions, 2);
  return "\x01" + vector(body, 3);
}

std::string hello_of(const std::string& extensions) { return record(message(extensions)); }

Status parse(std::string_view bytes) {
  ClientHello hello;
  return parse_client_hello(bytes, hello);
}

std::string in_records(const std::string& bytes, std::size_t size) {
  std::string records;
  for (std::size_t at = 0; at < bytes.size(); at += size) records += record(bytes.substr(at, size));
  return records;
}

std::string recorded(const std::string& name) {
  std::ifstream file(ENCORE_HELLOS "/" + name, std::ios::binary);
  REQUIRE(file.is_open());
  return {std::istreambuf_iterator<char>(file), {}};
}

}  // namespace

TEST_CASE("a ClientHello says host, protocols and versions", "[tls]") {
  ClientHello hello;
  REQUIRE(parse_client_hello(openssl_hello({}), hello) == Status::kComplete);
  CHECK(hello.server_name == "packages.example");
  CHECK(hello.protocols == std::vector<std::string>{"h2", "http/1.1"});
  CHECK(hello.offers("http/1.1"));
  CHECK_FALSE(hello.offers("http/1.0"));
  CHECK(hello.speaks(kTls13));
  CHECK(hello.speaks(kTls12));
  REQUIRE(parse_client_hello(
              openssl_hello({.name = "", .protocols = "", .version_max = TLS1_2_VERSION}), hello) ==
          Status::kComplete);
  CHECK(hello.server_name.empty());
  CHECK(hello.protocols.empty());
  CHECK(hello.versions == std::vector<std::uint16_t>{kTls12});
}

TEST_CASE("what programs have sent is read", "[tls]") {
  for (const char* const program : {"curl", "node", "go", "chromium", "gnutls"}) {
    CAPTURE(program);
    ClientHello hello;
    REQUIRE(parse_client_hello(recorded(program), hello) == Status::kComplete);
    CHECK(hello.server_name ==
          (std::string_view(program) == "gnutls" ? "localhost" : "packages.example"));
    CHECK(hello.speaks(kTls13));
    CHECK((hello.protocols.empty() || hello.offers("http/1.1")));
  }
}

TEST_CASE("a name in capitals is told in small letters", "[tls]") {
  ClientHello hello;
  REQUIRE(parse_client_hello(openssl_hello({.name = "Packages.EXAMPLE"}), hello) ==
          Status::kComplete);
  CHECK(hello.server_name == "packages.example");
}

TEST_CASE("a ClientHello that is cut anywhere is waited for", "[tls]") {
  for (const std::string& bytes :
       {openssl_hello({}), recorded("chromium"), in_records(message(server_name("a.test")), 7)}) {
    for (std::size_t cut = 0; cut < bytes.size(); ++cut) {
      CAPTURE(cut);
      REQUIRE(parse(std::string_view(bytes).substr(0, cut)) == Status::kIncomplete);
    }
    REQUIRE(parse(bytes) == Status::kComplete);
    // Bytes behind it do not matter.
    CHECK(parse(bytes + "\x17\x03\x03") == Status::kComplete);
    CHECK(parse(bytes + "GET / HTTP/1.1") == Status::kComplete);
  }
}

TEST_CASE("records may cut a ClientHello anywhere", "[tls]") {
  const std::string whole = openssl_hello({}).substr(kRecordHeaderBytes);
  for (std::size_t cut = 1; cut < whole.size(); ++cut) {
    CAPTURE(cut);
    const std::string bytes = record(whole.substr(0, cut)) + record(whole.substr(cut));
    ClientHello hello;
    REQUIRE(parse_client_hello(bytes, hello) == Status::kComplete);
    REQUIRE(hello.server_name == "packages.example");
    REQUIRE(hello.protocols.size() == 2);
  }
}

TEST_CASE("a ClientHello has a limit of records and of bytes", "[tls]") {
  const std::string small = message(server_name("a.test") + extension(7, std::string(20, 'x')));
  const std::size_t size = (small.size() + kHelloRecordsMax - 1) / kHelloRecordsMax;
  REQUIRE(size == 2);
  CHECK(parse(in_records(small, size)) == Status::kComplete);
  CHECK(parse(in_records(small, 1)) == Status::kMalformed);

  const std::size_t overhead = message(extension(7, "")).size();
  const auto sized = [&](std::size_t bytes) {
    return message(extension(7, std::string(bytes - overhead, 'x')));
  };
  REQUIRE(sized(kHelloBytesMax).size() == kHelloBytesMax);
  CHECK(parse(in_records(sized(kHelloBytesMax), 16384)) == Status::kComplete);
  const std::string longest = in_records(sized(kHelloBytesMax), kHelloBytesMax / kHelloRecordsMax);
  CHECK(longest.size() == kHelloInputMax);
  CHECK(parse(longest) == Status::kComplete);
  CHECK(parse(in_records(sized(kHelloBytesMax + 1), 8192)) == Status::kMalformed);
  // Its first bytes are enough to know.
  CHECK(parse(record(sized(kHelloBytesMax + 1).substr(0, 4))) == Status::kMalformed);
}

TEST_CASE("what is no handshake of TLS is known by its first bytes", "[tls]") {
  CHECK(parse("G") == Status::kNotTls);
  CHECK(parse("SSH-2.0-OpenSSH_9.2\r\n") == Status::kNotTls);
  CHECK(parse("\x17") == Status::kNotTls);
  CHECK(parse(std::string_view("\x80\x2e\x01\x00\x02", 5)) == Status::kNotTls);  // SSL 2
  CHECK(parse("\x16\x02") == Status::kNotTls);
  CHECK(parse("") == Status::kIncomplete);
  CHECK(parse("\x16") == Status::kIncomplete);
  CHECK(parse("\x16\x03") == Status::kIncomplete);
}

TEST_CASE("a length that does not fit is malformed", "[tls]") {
  const std::string whole = message(server_name("a.test"));
  CHECK(parse(record("")) == Status::kMalformed);
  CHECK(parse(std::string_view("\x16\x03\x01\x40\x01", 5)) == Status::kMalformed);
  CHECK(parse(record("\x02" + whole.substr(1))) == Status::kMalformed);  // a ServerHello
  CHECK(parse(record(whole + whole)) == Status::kMalformed);
  CHECK(parse(record(whole + "x")) == Status::kMalformed);
  CHECK(parse(record(whole.substr(0, 9)) + record(whole.substr(9) + "x")) == Status::kMalformed);
  // Another kind of record between its parts.
  CHECK(parse(record(whole.substr(0, 9)) + std::string("\x14\x03\x03\x00\x01\x01", 6) +
              record(whole.substr(9))) == Status::kMalformed);
  // Each number of the body, one more and one less.
  for (std::size_t at = 3; at < whole.size(); ++at) {
    // Not the random, nor what a cipher or a letter of the name is.
    const bool is_length =
        at == 3 || at == 38 || at == 40 || at == 43 || at == 46 || at == 50 || at == 52 || at == 55;
    if (!is_length) continue;
    for (const int step : {-1, 1}) {
      CAPTURE(at, step);
      std::string changed = whole;
      changed[at] = static_cast<char>(changed[at] + step);
      const Status status = parse(record(changed));
      // A message that says it is longer is waited for, for it may go on in another record.
      if (at == 3 && step == 1) {
        CHECK(status == Status::kIncomplete);
        CHECK(parse(record(changed) + record("x")) == Status::kMalformed);
      } else {
        CHECK(status == Status::kMalformed);
      }
    }
  }
}

TEST_CASE("an extension comes once, and is what it says", "[tls]") {
  CHECK(parse(hello_of("")) == Status::kComplete);
  CHECK(parse(hello_of(extension(99, "") + extension(99, ""))) == Status::kMalformed);
  CHECK(parse(hello_of(server_name("a.test") + server_name("b.test"))) == Status::kMalformed);
  CHECK(parse(hello_of(extension(99, "") + "\x01")) == Status::kMalformed);
  CHECK(parse(hello_of(extension(0, ""))) == Status::kMalformed);
  CHECK(parse(hello_of(extension(0, vector("", 2)))) == Status::kMalformed);
  const std::string two = name_entry("a.test") + name_entry("b.test");
  CHECK(parse(hello_of(extension(0, vector(two, 2)))) == Status::kMalformed);
  CHECK(parse(hello_of(extension(0, vector(name_entry("a.test", '\x01'), 2)))) ==
        Status::kMalformed);
  CHECK(parse(hello_of(extension(16, vector("", 2)))) == Status::kMalformed);
  CHECK(parse(hello_of(extension(16, vector(vector("", 1), 2)))) == Status::kMalformed);
  CHECK(parse(hello_of(extension(43, vector("\x03", 1)))) == Status::kMalformed);
  CHECK(parse(hello_of(extension(43, vector("", 1)))) == Status::kMalformed);

  std::string many;
  for (int i = 0; i < 64; ++i) many += vector("h", 1);
  CHECK(parse(hello_of(extension(16, vector(many, 2)))) == Status::kComplete);
  CHECK(parse(hello_of(extension(16, vector(many + vector("h", 1), 2)))) == Status::kMalformed);

  // There is a body without any.
  const std::string old = "\x03\x03" + std::string(32, 'r') + vector("", 1) + vector("ab", 2) +
                          vector(std::string(1, '\0'), 1);
  ClientHello hello;
  CHECK(parse_client_hello(record("\x01" + vector(old, 3)), hello) == Status::kComplete);
  CHECK(hello.versions == std::vector<std::uint16_t>{kTls12});
}

TEST_CASE("the name of a server is that of a host", "[tls]") {
  const std::string label(63, 'a');
  const std::string longest = label + "." + label + "." + label + "." + std::string(61, 'a');
  for (const std::string& name :
       {std::string("a"), std::string("localhost"), std::string("a.b-c.example"),
        std::string("xn--bcher-kva.example"), std::string("_dmarc.example"),
        std::string("1.2.3.a4"), std::string("4chan.example"), label + ".a", longest}) {
    CAPTURE(name);
    CHECK(is_server_name(name));
    CHECK(parse(hello_of(server_name(name))) == Status::kComplete);
  }
  for (const std::string& name :
       {std::string(""), std::string("127.0.0.1"), std::string("2130706433"), std::string("a.0x7f"),
        std::string("::1"), std::string("[::1]"), std::string("a.test."), std::string(".a.test"),
        std::string("a..test"), std::string("-a.test"), std::string("a-.test"),
        std::string("*.a.test"), std::string("a test"), std::string("a.test\0.b.test", 14),
        std::string("b\xc3\xbc"
                    "cher.example"),
        std::string("a.test/"), std::string("a:443"), label + "a.a", longest + "a"}) {
    CAPTURE(name);
    CHECK_FALSE(is_server_name(name));
    CHECK(parse(hello_of(server_name(name))) == Status::kMalformed);
  }
  CHECK_FALSE(is_server_name("A.test"));
}

TEST_CASE("a ClientHello that is none leaves what was known", "[tls]") {
  ClientHello hello;
  hello.server_name = "before.test";
  CHECK(parse_client_hello(hello_of(server_name("127.0.0.1")), hello) == Status::kMalformed);
  CHECK(hello.server_name == "before.test");
}

}  // namespace encore::tls
