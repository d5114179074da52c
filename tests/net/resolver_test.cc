#include "proxy/net/resolver.h"

#include <event2/event.h>
#include <sys/socket.h>

#include <fstream>
#include <map>
#include <optional>
#include <set>

#include "proxy/net/event.h"
#include "proxy/net/host_names.h"
#include "tests/catch.h"
#include "tests/net/certificates.h"
#include "tests/net/net_test_support.h"

namespace encore::net {
namespace {

using ResolveResult = std::expected<Resolved, ResolveFailure>;

// A DNS server on a UDP socket of the test's loop: answers A and AAAA from tables.
class DnsServer {
 public:
  explicit DnsServer(Loop& loop)
      : socket_(::socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0)) {
    Address any = Address::loopback_v4(0);
    REQUIRE(::bind(socket_.get(), any.data(), any.size()) == 0);
    sockaddr_in bound{};
    socklen_t size = sizeof bound;
    ::getsockname(socket_.get(), reinterpret_cast<sockaddr*>(&bound), &size);
    address = Address(bound);
    event_.assign(loop.base(), socket_.get(), EV_READ | EV_PERSIST, &DnsServer::on_event, this);
    event_.add();
  }

  Address address;
  std::map<std::string, std::vector<std::string>> names;  // addresses of both families
  std::map<std::string, std::uint8_t> failures;           // response code
  std::set<int> silent_types;                             // 1 A, 28 AAAA
  std::set<std::string> silent;
  std::uint32_t ttl = 300;
  int questions = 0;

 private:
  static void on_event(int, short, void* context) { static_cast<DnsServer*>(context)->answer(); }

  void answer() {
    unsigned char packet[512];
    sockaddr_storage from{};
    socklen_t from_size = sizeof from;
    const ssize_t got = ::recvfrom(socket_.get(), packet, sizeof packet, 0,
                                   reinterpret_cast<sockaddr*>(&from), &from_size);
    if (got < 17) return;
    ++questions;
    std::string name;
    std::size_t at = 12;
    while (packet[at] != 0) {
      if (!name.empty()) name += '.';
      name.append(reinterpret_cast<char*>(packet + at + 1), packet[at]);
      at += packet[at] + 1U;
    }
    name = normal_host_name(name);
    const int type = packet[at + 1] * 256 + packet[at + 2];
    if (silent.contains(name) || silent_types.contains(type)) return;
    std::string reply(reinterpret_cast<char*>(packet), at + 5);  // header and question as they came
    std::uint8_t code = failures.contains(name) ? failures[name] : std::uint8_t{0};
    if (code == 0 && !names.contains(name)) code = 3;
    reply[2] = static_cast<char>(0x84);
    reply[3] = static_cast<char>(0x80 | code);
    int count = 0;
    for (const std::string& ip : names[name]) {
      const Address address_of = *Address::parse_ip(ip, 0);
      if (address_of.is_v4() != (type == 1)) continue;
      ++count;
      const auto bytes = address_of.mapped_bytes();
      const std::size_t size = type == 1 ? 4 : 16;
      reply += std::string("\xc0\x0c\x00", 3);
      reply += static_cast<char>(type);
      reply += std::string("\x00\x01", 2);
      for (int shift = 24; shift >= 0; shift -= 8) reply += static_cast<char>(ttl >> shift);
      reply += '\0';
      reply += static_cast<char>(size);
      reply.append(reinterpret_cast<const char*>(bytes.data()) + 16 - size, size);
    }
    reply[7] = static_cast<char>(count);
    reply[9] = reply[11] = 0;
    ::sendto(socket_.get(), reply.data(), reply.size(), 0, reinterpret_cast<sockaddr*>(&from),
             from_size);
  }

  Socket socket_;
  Event event_;
};

struct Asking {
  explicit Asking(const std::string& hosts_file = {}) : dns(*loop) {
    auto created = Resolver::create(*loop, {.nameservers = {dns.address},
                                            .hosts_file = hosts_file,
                                            .timeout = std::chrono::milliseconds(20),
                                            .attempts = 1});
    REQUIRE(created.has_value());
    resolver = std::move(*created);
  }
  ResolveResult ask(std::string_view host) {
    std::optional<ResolveResult> result;
    const auto query = resolver->resolve(host, 80, [&](ResolveResult r) { result = std::move(r); });
    CHECK_FALSE(result.has_value());
    loop.run_until([&] { return result.has_value(); });
    return std::move(*result);
  }
  std::string text(std::string_view host) {
    const ResolveResult result = ask(host);
    if (!result) return std::string(to_string(result.error().outcome));
    std::string all;
    for (const Address& address : result->addresses) all += address.to_string() + " ";
    return all;
  }

  TestLoop loop;
  DnsServer dns;
  std::unique_ptr<Resolver> resolver;
};

}  // namespace

TEST_CASE("numeric hosts and localhost are answered without DNS", "[net][resolver]") {
  Asking a;
  CHECK(a.text("10.1.2.3") == "10.1.2.3:80 ");
  CHECK(a.text("::1") == "[::1]:80 ");
  CHECK(a.text("[::1]") == "[::1]:80 ");
  for (const char* name : {"localhost", "LOCALHOST", "localhost.", "a.localhost", "x.LocalHost."}) {
    CHECK(a.text(name) == "127.0.0.1:80 [::1]:80 ");
  }
  CHECK(a.dns.questions == 0);
}

TEST_CASE("what is not a host name is not asked for", "[net][resolver]") {
  Asking a;
  for (const std::string& name :
       {std::string(), std::string("."), std::string("a..b"), std::string(".a"), std::string("a b"),
        std::string("a/b"), std::string("a\0b", 3), std::string("a%2e"), std::string("127.1"),
        std::string("0x7f.1"), std::string("2130706433"), std::string("a.0x7f000001"),
        std::string("a.1"), std::string("\xc3\xa4.test"), std::string(64, 'a') + ".test",
        std::string("[::1"), std::string(254, 'a')}) {
    CAPTURE(name);
    CHECK(a.text(name) == "bad-name");
  }
  CHECK(a.dns.questions == 0);
}

TEST_CASE("a name's addresses of both families come in turns with their time to live",
          "[net][resolver]") {
  Asking a;
  a.dns.names["two.test"] = {"192.0.2.1", "192.0.2.2", "192.0.2.3", "2001:db8::1"};
  a.dns.ttl = 77;
  CHECK(a.text("two.test") == "192.0.2.1:80 [2001:db8::1]:80 192.0.2.2:80 192.0.2.3:80 ");
  CHECK(a.ask("TWO.test.")->time_to_live == std::chrono::seconds(77));
  a.dns.names["six.test"] = {"2001:db8::6"};
  CHECK(a.text("six.test") == "[2001:db8::6]:80 ");
}

TEST_CASE("each way in which DNS fails has its outcome", "[net][resolver]") {
  Asking a;
  CHECK(a.text("absent.test") == "not-found");
  a.dns.names["empty.test"] = {};
  CHECK(a.text("empty.test") == "not-found");
  a.dns.failures["broken.test"] = 2;
  CHECK(a.text("broken.test") == "timeout");  // evdns takes it for a server that is down
  a.dns.failures["forbidden.test"] = 5;
  CHECK(a.text("forbidden.test") == "refused");
  a.dns.silent.insert("silent.test");
  const auto silent = a.ask("silent.test");
  REQUIRE_FALSE(silent.has_value());
  CHECK(silent.error().outcome == ResolveOutcome::kTimeout);
  CHECK(silent.error().message == "silent.test: the name server does not answer");
}

TEST_CASE("one family's silence does not hold up the other", "[net][resolver]") {
  Asking a;
  a.dns.names["half.test"] = {"192.0.2.1", "2001:db8::1"};
  a.dns.silent_types = {28};
  CHECK(a.text("half.test") == "192.0.2.1:80 ");
}

TEST_CASE("the hosts file comes before DNS", "[net][resolver]") {
  const TestCertificates directory;
  const std::string path = directory.directory() + "/hosts";
  std::ofstream(path) << "# comment\n192.0.2.9 Box.test alias # more\n2001:db8::9 box.test\n"
                         "not-an-address nobody.test\n\n192.0.2.10\n";
  Asking a(path);
  CHECK(a.text("box.TEST") == "192.0.2.9:80 [2001:db8::9]:80 ");
  CHECK(a.text("alias") == "192.0.2.9:80 ");
  CHECK(a.dns.questions == 0);
  CHECK(a.text("nobody.test") == "not-found");
}

TEST_CASE("a query that is destroyed never calls, whatever it waits for", "[net][resolver]") {
  Asking a;
  a.dns.names["two.test"] = {"192.0.2.1"};
  a.dns.silent_types = {28};
  int calls = 0;
  const auto count = [&](ResolveResult) { ++calls; };
  auto numeric = a.resolver->resolve("10.0.0.1", 80, count);
  auto asked = a.resolver->resolve("two.test", 80, count);
  auto half = a.resolver->resolve("two.test", 80, count);
  numeric.reset();
  asked.reset();
  a.loop.run_until([&] { return a.dns.questions >= 4; });
  a.loop.run_turns(3);
  half.reset();
  // Another name goes the whole way meanwhile, past the time-outs of those that were left.
  a.dns.silent.insert("silent.test");
  CHECK(a.text("silent.test") == "timeout");
  CHECK(calls == 0);
}

TEST_CASE("a query may be destroyed by its own callback", "[net][resolver]") {
  Asking a;
  const char* host = GENERATE("10.0.0.1", "one.test", "absent.test");
  a.dns.names["one.test"] = {"192.0.2.1"};
  std::unique_ptr<Resolver::Query> query;
  bool called = false;
  query = a.resolver->resolve(host, 80, [&](ResolveResult) {
    called = true;
    query.reset();
  });
  a.loop.run_until([&] { return called; });
  CHECK(query == nullptr);
}

TEST_CASE("a resolver may go while DNS is being asked", "[net][resolver]") {
  Asking a;
  a.dns.silent.insert("silent.test");
  auto query = a.resolver->resolve("silent.test", 80, [](ResolveResult) {});
  a.loop.run_until([&] { return a.dns.questions >= 2; });
  query.reset();
  a.resolver.reset();
  a.loop.run_turns(3);
  CHECK(a.dns.questions >= 2);
}

}  // namespace encore::net
