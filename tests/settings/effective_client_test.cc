// The sender of a request, by the fields of trusted proxies.
#include "proxy/settings/effective_client.h"

#include <algorithm>
#include <cstdint>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tests/catch.h"

namespace encore::server {
namespace {

using FieldLines = std::vector<std::pair<std::string, std::string>>;

config::Listen behind(std::vector<config::CidrText> trusted, config::TrustedField field) {
  config::Listen listen;
  listen.trusted_proxies = std::move(trusted);
  listen.trusted_field = field;
  return listen;
}

net::Address hop_address(std::string_view text) { return net::Address::parse_ip(text, 0).value(); }

bool same_ips(const std::vector<net::Address>& a, const std::vector<net::Address>& b) {
  return std::ranges::equal(a, b, [](const auto& x, const auto& y) { return x.same_ip(y); });
}

struct Behind {
  explicit Behind(std::vector<config::CidrText> trusted,
                  config::TrustedField field = config::TrustedField::kXForwardedFor)
      : policy(ListenerPolicy::make(behind(std::move(trusted), field)).value()) {}

  std::string client(std::string_view from, const FieldLines& lines) {
    http::Fields fields;
    for (const auto& [name, value] : lines) fields.add(name, value);
    hops.clear();
    sender = find_effective_client(*policy, hop_address(from), fields, &hops);
    return is_unidentified(sender.client) ? "nobody" : sender.client.ip_string();
  }

  std::unique_ptr<const ListenerPolicy> policy;
  EffectiveClient sender;
  std::vector<net::Address> hops;
};

}  // namespace

TEST_CASE("the client is the first from the right that is no trusted proxy", "[settings][sender]") {
  Behind proxies({"10.0.0.0/8", "2001:db8::/32"});
  const auto xff = [](std::string value) {
    return FieldLines{{"X-Forwarded-For", std::move(value)}};
  };
  // Nobody else is believed.
  CHECK(proxies.client("192.0.2.9", xff("127.0.0.1")) == "192.0.2.9");
  CHECK_FALSE(proxies.sender.through_proxy);
  CHECK(proxies.client("10.0.0.1", {}) == "10.0.0.1");
  CHECK(proxies.client("10.0.0.1", xff("")) == "10.0.0.1");
  CHECK(proxies.client("10.0.0.1", xff("192.0.2.1")) == "192.0.2.1");
  CHECK(proxies.sender.through_proxy);
  CHECK(proxies.client("10.0.0.1", xff("127.0.0.1, 192.0.2.1")) == "192.0.2.1");
  CHECK(proxies.client("10.0.0.1", xff("127.0.0.1,192.0.2.1 , 10.0.0.2")) == "192.0.2.1");
  CHECK(proxies.hops == std::vector{hop_address("10.0.0.2"), hop_address("10.0.0.1")});
  CHECK(proxies.client("2001:db8::1", xff("192.0.2.1:4711")) == "192.0.2.1");
  CHECK(proxies.client("10.0.0.1", xff("[2001:db9::1]:80, 2001:db8::7")) == "2001:db9::1");
  CHECK(proxies.client("10.0.0.1", xff("::ffff:192.0.2.1")) == "192.0.2.1");
  CHECK(proxies.client("10.0.0.1", xff("10.0.0.3, 10.0.0.2")) == "10.0.0.3");
  // Several lines are one list.
  CHECK(proxies.client("10.0.0.1", {{"X-Forwarded-For", "192.0.2.1"},
                                    {"Via", "1.1 a"},
                                    {"x-forwarded-for", "192.0.2.2, 10.0.0.2"}}) == "192.0.2.2");
  // The field that they do not write is the client's own.
  CHECK(proxies.client("10.0.0.1", {{"Forwarded", "for=127.0.0.1"}}) == "10.0.0.1");
}

TEST_CASE("whom a trusted proxy does not name so that it can be believed is nobody",
          "[settings][sender]") {
  Behind proxies({"10.0.0.0/8", "127.0.0.0/8"});
  const auto client = [&](const char* from, std::string value) {
    return proxies.client(from, {{"X-Forwarded-For", std::move(value)}});
  };
  CHECK(client("10.0.0.1", "unknown") == "nobody");
  CHECK(client("10.0.0.1", "192.0.2.1, _hidden") == "nobody");
  CHECK(client("10.0.0.1", "192.0.2.1, \"") == "nobody");
  CHECK(client("10.0.0.1", "\", 192.0.2.1") == "192.0.2.1");
  CHECK(client("10.0.0.1", "192.0.2.1:") == "nobody");
  CHECK(client("10.0.0.1", "192.0.2.1:65536") == "nobody");
  CHECK(client("10.0.0.1", "192.0.2.1:80x") == "nobody");
  CHECK(client("10.0.0.1", "192.0.2") == "nobody");
  CHECK(client("10.0.0.1", "[192.0.2.1]") == "nobody");
  CHECK(client("10.0.0.1", "fe80::1%eth0") == "nobody");
  CHECK(client("10.0.0.1", "0.0.0.0") == "nobody");
  CHECK(client("10.0.0.1", "255.255.255.255, 224.0.0.1") == "nobody");
  CHECK_FALSE(proxies.sender.client.is_loopback());
  // Another machine's loopback is not ours, in whatever form; one's own is.
  CHECK(client("10.0.0.1", "127.0.0.1") == "nobody");
  CHECK(client("10.0.0.1", "::1") == "nobody");
  CHECK(client("10.0.0.1", "::ffff:127.0.0.1") == "nobody");
  CHECK(client("127.0.0.1", "127.0.0.5") == "127.0.0.5");
  CHECK(client("127.0.0.1", "127.0.0.5, 10.0.0.1") == "nobody");
  // At the most hops that are checked, and one past it.
  std::string chain = "192.0.2.1";
  for (std::size_t i = 1; i < kHopsMax; ++i) chain += ", 10.0.0.2";
  CHECK(client("10.0.0.1", chain) == "192.0.2.1");
  CHECK(client("10.0.0.1", chain + ", 10.0.0.2") == "nobody");
}

TEST_CASE("Forwarded is read as RFC 7239 has it", "[settings][sender][rfc7239]") {
  Behind proxies({"10.0.0.0/8"}, config::TrustedField::kForwarded);
  const auto client = [&](std::string value) {
    return proxies.client("10.0.0.1", {{"Forwarded", std::move(value)}});
  };
  CHECK(client("for=192.0.2.1") == "192.0.2.1");
  CHECK(client("For=\"[2001:db8:cafe::17]:4711\"") == "2001:db8:cafe::17");
  CHECK(client("for=192.0.2.43, for=192.0.2.60;proto=https;by=10.0.0.1") == "192.0.2.60");
  CHECK(proxies.sender.secure);
  CHECK(client("proto=http; for=192.0.2.43") == "192.0.2.43");
  CHECK_FALSE(proxies.sender.secure);
  CHECK(client("for=127.0.0.1;host=\"a,b;c\", for=10.0.0.2") == "nobody");
  CHECK(client("for=192.0.2.1;host=\"a,b;for=c\", for=10.0.0.2") == "192.0.2.1");
  CHECK(client("for=unknown") == "nobody");
  CHECK(client("for=_secret") == "nobody");
  CHECK(client("host=a") == "nobody");
  CHECK(client("for=192.0.2.1;for=192.0.2.2") == "nobody");
  CHECK(client("for=\"192.0.2.1") == "nobody");
  CHECK(client("for=192.0.2.1\"") == "nobody");
  CHECK(client("for") == "nobody");
  CHECK(proxies.client("10.0.0.1", {{"X-Forwarded-For", "127.0.0.1"}}) == "10.0.0.1");
}

TEST_CASE("whether a client speaks TLS is the nearest proxy's to say", "[settings][sender]") {
  Behind proxies({"10.0.0.0/8"});
  const auto secure = [&](const char* from, std::string scheme) {
    (void)proxies.client(
        from, {{"X-Forwarded-For", "192.0.2.1"}, {"X-Forwarded-Proto", std::move(scheme)}});
    return proxies.sender.secure;
  };
  CHECK(secure("10.0.0.1", "https"));
  CHECK(secure("10.0.0.1", "http, HTTPS"));
  CHECK_FALSE(secure("10.0.0.1", "https, http"));
  CHECK_FALSE(secure("10.0.0.1", ""));
  CHECK_FALSE(secure("192.0.2.9", "https"));
}

// The rule as it is said, over chains that are made hop by hop: each proxy names who has spoken to
// it, so that what the first trusted one has seen must come out, whatever was said before.
TEST_CASE("who has spoken to the first trusted proxy is found in any chain", "[settings][sender]") {
  std::mt19937_64 random(20'251);
  const std::vector<std::string> trusted = {"10.0.0.1", "10.9.9.9", "2001:db8::5", "172.16.0.1"};
  const std::vector<std::string> others = {"192.0.2.1", "198.51.100.7", "2001:db9::1", "8.8.8.8"};
  const std::vector<std::string> spoofs = {"127.0.0.1",   "::1", "10.0.0.1", "unknown", "\"",
                                           "192.0.2.200", ",",   "for=::1",  "_x",      "[::1]:8"};
  const auto any = [&](const std::vector<std::string>& of) { return of[random() % of.size()]; };
  constexpr int kRounds = 20'000;
  int found = 0;
  for (int round = 0; round < kRounds; ++round) {
    const bool x_forwarded = round % 2 == 0;
    Behind proxies(
        {"10.0.0.0/8", "2001:db8::/32", "172.16.0.0/12"},
        x_forwarded ? config::TrustedField::kXForwardedFor : config::TrustedField::kForwarded);
    const std::string name = x_forwarded ? "X-Forwarded-For" : "Forwarded";
    const std::string client = any(others);
    FieldLines lines;
    // A line of its own: what is malformed in a Forwarded would take what is appended to it along.
    for (std::uint64_t i = random() % 3; i != 0; --i) lines.emplace_back(name, any(spoofs));
    std::string speaker = client;
    std::vector<net::Address> hops;
    bool own_line = true;
    for (std::uint64_t i = 1 + random() % 4; i != 0; --i) {
      const bool v6 = speaker.find(':') != std::string::npos;
      std::string node = v6 ? "[" + speaker + "]" : speaker;
      if (random() % 2 == 0) node += ":1234";
      if (x_forwarded && v6 && random() % 2 == 0) node = speaker;
      const std::string said = x_forwarded ? node : "proto=http;for=\"" + node + "\"";
      if (!own_line && random() % 2 == 0) {
        lines.back().second += (random() % 2 == 0 ? ", " : ",") + said;
      } else {
        lines.emplace_back(name, said);
      }
      own_line = false;
      speaker = any(trusted);
      hops.push_back(hop_address(speaker));
    }
    if (proxies.client(speaker, lines) == client && same_ips(proxies.hops, hops)) {
      ++found;
      continue;
    }
    std::string text;
    for (const auto& [field, value] : lines) text += field + ": " + value + "\n";
    FAIL("round " << round << ", from " << speaker << ", not " << client << ":\n" << text);
  }
  CHECK(found == kRounds);
}

}  // namespace encore::server
