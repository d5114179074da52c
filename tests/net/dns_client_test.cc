#include "proxy/net/dns_client.h"

#include <fstream>
#include <optional>

#include "tests/catch.h"
#include "tests/net/certificates.h"
#include "tests/net/net_test_support.h"

namespace encore::net {
namespace {

using Names = std::vector<std::string>;

std::unique_ptr<DnsClient> make_client(Loop& loop, const std::string& resolv_conf) {
  auto client = DnsClient::create(
      loop, {.nameservers = {}, .resolv_conf = resolv_conf, .timeout = std::chrono::seconds(1)});
  REQUIRE(client.has_value());
  return std::move(*client);
}

}  // namespace

TEST_CASE("names are looked for where the search list says", "[net][dns]") {
  const TestCertificates directory;
  const std::string path = directory.directory() + "/resolv.conf";
  std::ofstream(path) << "nameserver 127.0.0.1\nsearch one.test two.test\noptions ndots:2\n";
  TestLoop loop;
  const auto client = make_client(*loop, path);
  CHECK(client->candidates("box") == Names{"box.one.test", "box.two.test", "box"});
  CHECK(client->candidates("a.b") == Names{"a.b.one.test", "a.b.two.test", "a.b"});
  CHECK(client->candidates("a.b.c") == Names{"a.b.c", "a.b.c.one.test", "a.b.c.two.test"});
  CHECK(client->candidates("box.") == Names{"box"});
  // A candidate that would be too long is not a name.
  const std::string longest(244, 'a');
  CHECK(client->candidates(longest) ==
        Names{longest + ".one.test", longest + ".two.test", longest});
  const std::string too_long(245, 'a');
  CHECK(client->candidates(too_long) == Names{too_long});
}

TEST_CASE("given name servers have no search list", "[net][dns]") {
  TestLoop loop;
  const auto client = DnsClient::create(
      *loop, {.nameservers = {Address::loopback_v4(53)}, .resolv_conf = {}, .timeout = {}});
  CHECK((*client)->candidates("box") == Names{"box"});
}

TEST_CASE("without a resolv.conf a name server on this machine is asked", "[net][dns]") {
  TestLoop loop;
  const auto client = make_client(*loop, "/nonexistent/resolv.conf");
  CHECK(client->candidates("box.").size() == 1);
}

TEST_CASE("a name of the onion zone is not for DNS", "[net][dns][rfc7686]") {
  TestLoop loop;
  const auto client = make_client(*loop, "/nonexistent/resolv.conf");
  std::optional<DnsStatus> status;
  client->ask("hidden.onion", DnsClient::Family::kV4,
              [&](DnsAnswer answer) { status = answer.status; });
  CHECK_FALSE(status.has_value());
  loop.run_until([&] { return status.has_value(); });
  CHECK(status == DnsStatus::kNotFound);
}

}  // namespace encore::net
