#include "proxy/net/resolver.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <deque>
#include <fstream>
#include <map>
#include <optional>

#include "proxy/net/timer.h"
#include "tests/catch.h"
#include "tests/net/certificates.h"
#include "tests/net/dns_server.h"
#include "tests/net/net_test_support.h"

namespace encore::net {
namespace {

using ResolveResult = std::expected<Resolved, ResolveFailure>;

struct Asking {
  explicit Asking(const std::string& hosts_file = {}) : dns(*loop) {
    options.nameservers = {dns.address};
    options.hosts_file = hosts_file;
    // The server lives on the same loop: one that is late is not to count as silent.
    options.timeout = std::chrono::milliseconds(200);
    options.attempts = 1;
    auto created = Resolver::create(*loop, options, [this](ResolveEvent e) { ++events[e]; });
    REQUIRE(created.has_value());
    resolver = std::move(*created);
  }
  // Takes over what was changed in `options`.
  void set() { REQUIRE(resolver->set_options(options).has_value()); }
  std::unique_ptr<Resolver::Query> start(std::string_view host, Resolver::OnDone on_done) {
    return resolver->resolve({.host = host, .port = 80}, std::move(on_done));
  }
  ResolveResult ask(std::string_view host, const std::optional<Address>& client = {}) {
    std::optional<ResolveResult> result;
    const auto query = resolver->resolve({.host = host, .port = 80, .client = client},
                                         [&](ResolveResult r) { result = std::move(r); });
    CHECK_FALSE(result.has_value());
    loop.run_until([&] { return result.has_value(); });
    return std::move(*result);
  }
  static std::string text_of(const ResolveResult& result) {
    if (!result) return std::string(to_string(result.error().outcome));
    std::string all;
    for (const Address& address : result->addresses) all += address.to_string() + " ";
    return all;
  }
  std::string text(std::string_view host) { return text_of(ask(host)); }
  void wait(Nanoseconds time) {
    bool over = false;
    Timer timer(*loop, [&] { over = true; });
    timer.start(time);
    loop.run_until([&] { return over; });
  }
  int under_way() { return events[ResolveEvent::kBegun] - events[ResolveEvent::kEnded]; }

  TestLoop loop;
  DnsServer dns;
  Resolver::Options options;
  std::map<ResolveEvent, int> events;
  std::unique_ptr<Resolver> resolver;
};

// Lookups that are in progress, and their results.
struct Several {
  explicit Several(Asking& asking) : a(asking) {}
  void start(const std::string& host, const std::optional<Address>& client = {}) {
    const std::size_t index = queries.size();
    results.emplace_back();
    queries.push_back(a.resolver->resolve(
        {.host = host, .port = 80, .client = client},
        [this, index](ResolveResult result) { results[index] = Asking::text_of(result); }));
  }
  std::size_t done() const {
    return static_cast<std::size_t>(
        std::ranges::count_if(results, [](const std::string& text) { return !text.empty(); }));
  }
  void finish() {
    a.loop.run_until([&] { return done() == queries.size(); });
  }

  Asking& a;
  std::vector<std::unique_ptr<Resolver::Query>> queries;
  std::deque<std::string> results;  // empty: none yet
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
  using namespace std::string_literals;
  const std::string long_label = std::string(64, 'a');
  for (const std::string& name : {
           ""s,
           "."s,
           "a..b"s,
           ".a"s,
           "a b"s,
           "a/b"s,
           "a\0b"s,
           "a%2e"s,
           "127.1"s,
           "0x7f.1"s,
           "2130706433"s,
           "a.0x7f000001"s,
           "a.1"s,
           "\xc3\xa4.test"s,
           long_label,
           "b." + long_label,
           "[::1"s,
           std::string(254, 'a'),
       }) {
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
  // Which family comes first depends on the ways that this machine has.
  const auto two = a.ask("two.test");
  const std::string text = Asking::text_of(two);
  if (two->addresses.front().is_v4()) {
    CHECK(text == "192.0.2.1:80 [2001:db8::1]:80 192.0.2.2:80 192.0.2.3:80 ");
  } else {
    CHECK(text == "[2001:db8::1]:80 192.0.2.1:80 192.0.2.2:80 192.0.2.3:80 ");
  }
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
  CHECK(a.text("broken.test") == "refused");
  a.dns.failures["forbidden.test"] = 5;
  CHECK(a.text("forbidden.test") == "refused");
  a.dns.silent.insert("silent.test");
  const auto silent = a.ask("silent.test");
  REQUIRE_FALSE(silent.has_value());
  CHECK(silent.error().outcome == ResolveOutcome::kTimeout);
  CHECK(silent.error().message == "silent.test: the name server does not respond");
}

TEST_CASE("one family's silence does not hold up the other", "[net][resolver]") {
  Asking a;
  a.dns.names["half.test"] = {"192.0.2.1", "2001:db8::1"};
  a.dns.silent_types = {28};
  CHECK(a.text("half.test") == "192.0.2.1:80 ");
}

// The other family might have had addresses.
TEST_CASE("that one family is said not to exist does not make up for the other's silence",
          "[net][resolver]") {
  for (const int silent : {1, 28}) {
    for (const bool knows_other : {false, true}) {
      CAPTURE(silent, knows_other);
      Asking a;
      a.dns.silent_types = {silent};
      if (knows_other) {  // an answer without addresses instead of no such name
        a.dns.names["half.test"] = {silent == 1 ? "192.0.2.1" : "2001:db8::1"};
      }
      CHECK(a.text("half.test") == "timeout");
      CHECK(a.events[ResolveEvent::kFailure] == 1);
      // For as long as failures are remembered it is that failure.
      a.dns.silent_types = {};
      CHECK(a.text("half.test") == "timeout");
      a.options.negative_ttl = Nanoseconds(0);
      a.set();
      a.dns.names["half.test"] = {"192.0.2.1"};
      CHECK(a.text("half.test") == "192.0.2.1:80 ");
    }
  }
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

TEST_CASE("servers and search list come from resolv.conf where none are given", "[net][resolver]") {
  const TestCertificates directory;
  Asking a;
  // That file knows no ports: the server needs an address of its own, and the right to its port.
  DnsServer dns(*a.loop,
                *Address::parse_ip("127.53.0." + std::to_string(1 + ::getpid() % 254), 53));
  if (!dns.is_there()) {
    WARN("port 53 is not to be had: not tested");
    return;
  }
  a.options.resolv_conf = directory.directory() + "/resolv.conf";
  std::ofstream(a.options.resolv_conf) << "# comment\nnameserver " << dns.address.ip_string()
                                       << "\nsearch one.test two.test\noptions ndots:2\n";
  a.options.nameservers.clear();
  a.set();
  dns.names["box.two.test"] = {"192.0.2.1", "2001:db8::1"};
  dns.names["a.b.c"] = {"192.0.2.2"};
  dns.names["d.e.f.one.test"] = {"192.0.2.3"};
  CHECK(a.ask("box")->addresses.size() == 2);
  CHECK(dns.asked == std::map<std::string, int>{{"box.one.test", 2}, {"box.two.test", 2}});
  CHECK(a.text("box.") == "not-found");
  CHECK(a.text("a.b.c") == "192.0.2.2:80 ");
  CHECK(dns.asked["a.b.c.one.test"] == 0);
  CHECK(a.text("d.e.f") == "192.0.2.3:80 ");
  CHECK(a.text("absent") == "not-found");
  CHECK(dns.asked["absent"] == 2);
  // A server that is silent is not a name that does not exist.
  dns.silent = {"quiet.one.test"};
  CHECK(a.text("quiet") == "timeout");
  CHECK(dns.asked["quiet.two.test"] == 0);
}

TEST_CASE("a query that is destroyed never calls, whatever it waits for", "[net][resolver]") {
  Asking a;
  a.dns.names["two.test"] = {"192.0.2.1"};
  a.dns.silent_types = {28};
  int calls = 0;
  const auto count = [&](ResolveResult) { ++calls; };
  auto numeric = a.start("10.0.0.1", count);
  auto asked = a.start("two.test", count);
  auto half = a.start("two.test", count);
  numeric.reset();
  asked.reset();
  a.loop.run_until([&] { return a.dns.questions >= 2; });
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
  query = a.start(host, [&](ResolveResult) {
    called = true;
    query.reset();
  });
  a.loop.run_until([&] { return called; });
  CHECK(query == nullptr);
}

TEST_CASE("a resolver may go while DNS is being asked", "[net][resolver]") {
  Asking a;
  a.dns.silent.insert("silent.test");
  auto query = a.start("silent.test", [](ResolveResult) {});
  a.loop.run_until([&] { return a.dns.questions >= 2; });
  query.reset();
  a.resolver.reset();
  a.loop.run_turns(3);
  CHECK(a.dns.questions >= 2);
}

TEST_CASE("an answer that is cut short is asked for again over TCP", "[net][resolver]") {
  Asking a;
  a.dns.names["many.test"] = {"192.0.2.1", "2001:db8::1"};
  a.dns.truncated = {"many.test"};
  CHECK(a.ask("many.test")->addresses.size() == 2);
  CHECK(a.dns.tcp_questions == 2);
  CHECK(a.dns.questions == 4);
  a.dns.answers_tcp = false;
  a.dns.truncated.insert("closed.test");
  CHECK_FALSE(a.ask("closed.test").has_value());
}

TEST_CASE("of very many addresses no more are taken than can be tried", "[net][resolver]") {
  Asking a;
  for (int i = 0; i < 250; ++i) a.dns.names["many.test"].push_back("192.0.2." + std::to_string(i));
  a.dns.truncated = {"many.test"};
  const auto many = a.ask("many.test");
  REQUIRE(many.has_value());
  CHECK(many->addresses.size() == 32);
  CHECK(many->addresses.front().to_string() == "192.0.2.0:80");
}

TEST_CASE("an alias leads to its addresses and lives no longer than they", "[net][resolver]") {
  Asking a;
  a.dns.aliases = {{"www.test", "cdn.test"}, {"cdn.test", "edge.test"}};
  a.dns.names["edge.test"] = {"192.0.2.7"};
  CHECK(a.text("www.test") == "192.0.2.7:80 ");
  a.dns.aliases["short.test"] = "edge.test";
  a.dns.alias_ttl = 9;
  CHECK(a.ask("short.test")->time_to_live == std::chrono::seconds(9));
  a.dns.aliases["long.test"] = "edge.test";
  a.dns.alias_ttl = 300;
  a.dns.ttl = 8;
  CHECK(a.ask("long.test")->time_to_live == std::chrono::seconds(8));
  a.dns.aliases["loose.test"] = "nowhere.test";
  CHECK(a.text("loose.test") == "not-found");
}

TEST_CASE("answers that nobody asked for are not believed", "[net][resolver]") {
  Asking a;
  a.dns.forges = true;
  a.dns.names["true.test"] = {"192.0.2.1"};
  CHECK(a.text("true.test") == "192.0.2.1:80 ");
  CHECK(a.dns.questions == 2);
  // Nor does it help to have nothing but them.
  a.dns.silent = {"dead.test"};
  CHECK(a.text("dead.test") == "timeout");
}

TEST_CASE("questions go out from many ports", "[net][resolver]") {
  Asking a;
  for (int i = 0; i < 16; ++i) a.text("n" + std::to_string(i) + ".test");
  // Among 28,000; a second use of one is rare.
  CHECK(a.dns.ports.size() >= 12);
}

TEST_CASE("a server that fails or is silent has another one asked", "[net][resolver]") {
  Asking a;
  DnsServer second(*a.loop);
  second.names["one.test"] = {"192.0.2.2"};
  a.options.nameservers.push_back(second.address);
  a.set();
  const std::uint8_t code = GENERATE(std::uint8_t{0}, std::uint8_t{2}, std::uint8_t{5});
  if (code == 0) {
    a.dns.silent = {"one.test"};
  } else {
    a.dns.failures["one.test"] = code;  // SERVFAIL, REFUSED
  }
  CHECK(a.text("one.test") == "192.0.2.2:80 ");
  CHECK(a.dns.questions == 2);
}

TEST_CASE("equal questions are asked once", "[net][resolver]") {
  Asking a;
  a.dns.names["one.test"] = {"192.0.2.1"};
  Several several(a);
  for (int i = 0; i < 10; ++i) several.start(i % 2 == 0 ? "one.test" : "ONE.TEST");
  for (const std::size_t leaves : {0U, 4U, 9U}) {
    several.queries[leaves].reset();
    several.results[leaves] = "left";
  }
  several.finish();
  CHECK(std::ranges::count(several.results, "192.0.2.1:80 ") == 7);
  CHECK(a.dns.questions == 2);
  CHECK(a.events[ResolveEvent::kJoined] == 9);
  CHECK(a.events[ResolveEvent::kQuestion] == 2);
}

TEST_CASE("who waits may leave while others are told", "[net][resolver]") {
  Asking a;
  a.dns.names["one.test"] = {"192.0.2.1"};
  std::unique_ptr<Resolver::Query> second;
  std::unique_ptr<Resolver::Query> again;
  int calls = 0;
  const auto first = a.start("one.test", [&](ResolveResult) {
    ++calls;
    second.reset();
    again = a.start("one.test", [&](ResolveResult) { ++calls; });
  });
  second = a.start("one.test", [&](ResolveResult) { calls += 100; });
  a.loop.run_until([&] { return calls >= 2; });
  CHECK(calls == 2);
  CHECK(a.dns.questions == 2);
}

TEST_CASE("what was asked is remembered though nobody waits any more", "[net][resolver]") {
  Asking a;
  a.dns.names["one.test"] = {"192.0.2.1"};
  a.start("one.test", [](ResolveResult) { FAIL("it left"); }).reset();
  a.loop.run_until([&] { return a.under_way() == 0; });
  CHECK(a.text("one.test") == "192.0.2.1:80 ");
  CHECK(a.dns.questions == 2);
  CHECK(a.events[ResolveEvent::kCacheHit] == 1);
}

TEST_CASE("answers are remembered for their time to live, within bounds", "[net][resolver]") {
  Asking a;
  a.dns.names["one.test"] = {"192.0.2.1"};
  SECTION("as the records say") {
    a.dns.ttl = 60;
    a.ask("one.test");
    const auto again = a.ask("one.test");
    CHECK(again->addresses.at(0).to_string() == "192.0.2.1:80");
    CHECK(again->time_to_live <= std::chrono::seconds(60));
    CHECK(again->time_to_live > std::chrono::seconds(30));
    CHECK(a.dns.questions == 2);
  }
  SECTION("not at all where they say so") {
    a.dns.ttl = 0;
    a.ask("one.test");
    a.ask("one.test");
    CHECK(a.dns.questions == 4);
  }
  SECTION("no less than the lower bound") {
    a.options.ttl_min = std::chrono::hours(1);
    a.set();
    a.dns.ttl = 0;
    CHECK(a.ask("one.test")->time_to_live == std::chrono::hours(1));
    a.ask("one.test");
    CHECK(a.dns.questions == 2);
  }
  SECTION("no more than the upper bound") {
    a.options.ttl_max = std::chrono::milliseconds(1);
    a.set();
    CHECK(a.ask("one.test")->time_to_live == std::chrono::milliseconds(1));
    a.wait(std::chrono::milliseconds(2));
    a.ask("one.test");
    CHECK(a.dns.questions == 4);
  }
}

TEST_CASE("failures are remembered for a while", "[net][resolver]") {
  Asking a;
  a.dns.failures["broken.test"] = 2;
  a.dns.silent = {"dead.test"};
  for (const std::string& name :
       {std::string("absent.test"), std::string("broken.test"), std::string("dead.test")}) {
    CAPTURE(name);
    const std::string first = a.text(name);
    const int asked = a.dns.asked[name];
    CHECK(asked == 2);
    CHECK(a.text(name) == first);
    CHECK(a.dns.asked[name] == asked);
  }
  CHECK(a.events[ResolveEvent::kFailure] == 2);
  a.options.negative_ttl = Nanoseconds(0);
  a.set();
  a.text("absent.test");
  a.text("absent.test");
  CHECK(a.dns.asked["absent.test"] == 6);
}

TEST_CASE("the names used longest ago are forgotten first", "[net][resolver]") {
  Asking a;
  a.options.cache_entries = 2;
  a.set();
  for (const char* name : {"a.test", "b.test", "c.test"}) a.dns.names[name] = {"192.0.2.1"};
  for (const char* name : {"a.test", "b.test", "a.test", "c.test", "a.test", "b.test"}) a.ask(name);
  CHECK(a.dns.asked["a.test"] == 2);
  CHECK(a.dns.asked["b.test"] == 4);
  CHECK(a.dns.asked["c.test"] == 2);
}

TEST_CASE("lookups of a dead zone do not keep others waiting", "[net][resolver]") {
  Asking a;
  a.options.timeout = std::chrono::seconds(5);
  a.set();
  a.dns.silent = {"dead.test"};
  a.dns.names["alive.test"] = {"192.0.2.1"};
  Several dead(a);
  for (int i = 0; i < 1500;) {
    // The number that the server's socket can hold at a time.
    for (int batch = 0; batch < 50; ++batch, ++i) {
      dead.start("n" + std::to_string(i) + ".dead.test");
    }
    a.loop.run_until([&] { return a.dns.questions == 2 * i; });
  }
  CHECK(a.text("alive.test") == "192.0.2.1:80 ");
  CHECK(dead.done() == 0);
  CHECK(a.under_way() == 1500);
}

TEST_CASE("lookups under way are limited in all and for a client", "[net][resolver]") {
  Asking a;
  a.options.timeout = std::chrono::seconds(5);
  a.options.lookups_max = 5;
  a.options.lookups_per_client_max = 2;
  a.set();
  a.dns.silent = {"dead.test"};
  a.dns.names["one.test"] = {"192.0.2.1"};
  const auto first = Address::parse_ip("2001:db8:1:1::1", 0);
  const auto neighbour = Address::parse_ip("2001:db8:1:1::2", 0);
  const auto other = Address::parse_ip("198.51.100.7", 0);
  Several dead(a);
  dead.start("a.dead.test", first);
  dead.start("b.dead.test", neighbour);
  CHECK(a.ask("one.test", first).error().outcome == ResolveOutcome::kLimit);
  CHECK(a.ask("one.test", neighbour).error().message ==
        "one.test: too many lookups are in progress");
  // To wait for what others asked for costs nothing.
  dead.start("c.dead.test", other);
  dead.start("c.dead.test", first);
  CHECK(a.ask("one.test", other).has_value());
  CHECK(a.ask("one.test", first).has_value());  // from the cache
  a.dns.names["two.test"] = {"192.0.2.1"};
  CHECK(a.ask("two.test").has_value());  // for no client
  dead.start("d.dead.test");
  dead.start("e.dead.test");
  CHECK(a.ask("three.test").error().outcome == ResolveOutcome::kLimit);
  CHECK(a.events[ResolveEvent::kLimited] == 3);
  // A query that was cancelled still counts until the question is answered.
  dead.queries.clear();
  CHECK(a.ask("three.test", first).error().outcome == ResolveOutcome::kLimit);
}

TEST_CASE("a lookup that has ended no longer counts", "[net][resolver]") {
  Asking a;
  a.options.lookups_max = 1;
  a.options.lookups_per_client_max = 1;
  a.set();
  const auto client = Address::parse_ip("198.51.100.7", 0);
  a.dns.silent = {"dead.test"};
  CHECK(a.ask("a.dead.test", client).error().outcome == ResolveOutcome::kTimeout);
  CHECK(a.ask("b.dead.test", client).error().outcome == ResolveOutcome::kTimeout);
  CHECK(a.under_way() == 0);
}

TEST_CASE("new options hold at once, and what is under way is asked anew", "[net][resolver]") {
  Asking a;
  a.options.timeout = std::chrono::seconds(5);
  a.set();
  a.dns.names["one.test"] = {"192.0.2.1"};
  CHECK(a.text("one.test") == "192.0.2.1:80 ");
  a.dns.silent = {"dead.test"};
  Several several(a);
  several.start("x.dead.test");
  a.loop.run_until([&] { return a.dns.asked["x.dead.test"] == 2; });
  DnsServer second(*a.loop);
  second.names["one.test"] = second.names["x.dead.test"] = {"192.0.2.2"};
  a.options.nameservers = {second.address};
  a.set();
  several.finish();
  CHECK(several.results[0] == "192.0.2.2:80 ");
  CHECK(a.text("one.test") == "192.0.2.2:80 ");
}

TEST_CASE("options may change while one family is still awaited", "[net][resolver]") {
  Asking a;
  a.options.timeout = std::chrono::seconds(5);
  a.set();
  a.dns.names["half.test"] = {"192.0.2.1", "2001:db8::1"};
  a.dns.silent_types = {28};
  CHECK(a.text("half.test") == "192.0.2.1:80 ");
  CHECK(a.under_way() == 1);
  a.set();
  CHECK(a.under_way() == 0);
}

TEST_CASE("a lack of descriptors is said and not remembered", "[net][resolver]") {
  Asking a;
  a.dns.names["one.test"] = {"192.0.2.1"};
  {
    const FailCalls fail(FailCalls::Call::kSocket, 0, EMFILE, 1000);
    CHECK(a.text("one.test") == "no-descriptors");
  }
  CHECK(a.text("one.test") == "192.0.2.1:80 ");
}

}  // namespace encore::net
