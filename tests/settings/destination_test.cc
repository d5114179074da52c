#include "proxy/settings/destination.h"

#include <string>
#include <vector>

#include "tests/catch.h"

namespace encore::server {
namespace {

using config::PrivateDestinations;

net::Address address(std::string_view text, std::uint16_t port = 80) {
  const auto parsed = net::Address::parse_ip(text, port);
  INFO(text);
  REQUIRE(parsed.has_value());
  return *parsed;
}

DestinationPolicy policy(PrivateDestinations who) {
  config::Forward forward;
  forward.private_destinations = who;
  return {forward,
          {address("127.0.0.1", 3128), address("0.0.0.0", 3129)},
          {address("127.0.0.1", 0), address("192.0.2.7", 0), address("10.1.1.1", 0)}};
}

struct Row {
  std::string_view target;
  std::uint16_t port;
  DestinationVerdict never;     // private_destinations = never
  DestinationVerdict loopback;  // loopback-clients, asked by a client from loopback
};

constexpr auto kYes = DestinationVerdict::kAllowed;
constexpr auto kPrivate = DestinationVerdict::kPrivate;
constexpr auto kOwn = DestinationVerdict::kOwnListener;
constexpr auto kNot = DestinationVerdict::kNotUnicast;

constexpr Row kRows[] = {
    {"93.184.216.34", 80, kYes, kYes},
    {"2606:2800:220:1::1", 80, kYes, kYes},
    {"127.0.0.1", 80, kPrivate, kYes},
    {"127.255.255.254", 80, kPrivate, kYes},
    {"::1", 80, kPrivate, kYes},
    {"::ffff:127.0.0.1", 80, kPrivate, kYes},
    {"10.0.0.1", 80, kPrivate, kYes},
    {"172.16.0.1", 80, kPrivate, kYes},
    {"172.32.0.1", 80, kYes, kYes},
    {"192.168.1.1", 80, kPrivate, kYes},
    {"169.254.169.254", 80, kPrivate, kYes},
    {"100.64.0.1", 80, kPrivate, kYes},
    {"fe80::1", 80, kPrivate, kYes},
    {"fc00::1", 80, kPrivate, kYes},
    {"::ffff:10.0.0.1", 80, kPrivate, kYes},
    {"64:ff9b::7f00:1", 80, kPrivate, kYes},
    {"2002:7f00:1::", 80, kPrivate, kYes},
    {"0.0.0.0", 80, kNot, kNot},
    {"::", 80, kNot, kNot},
    {"224.0.0.1", 80, kNot, kNot},
    {"ff02::1", 80, kNot, kNot},
    {"93.184.216.34", 0, kNot, kNot},
    // Its own listeners, by every name.
    {"127.0.0.1", 3128, kOwn, kOwn},
    {"::ffff:127.0.0.1", 3128, kOwn, kOwn},
    {"64:ff9b::7f00:1", 3128, kOwn, kOwn},
    {"127.0.0.1", 3129, kOwn, kOwn},
    {"127.3.2.1", 3129, kOwn, kOwn},
    {"0.0.0.0", 3129, kOwn, kOwn},
    {"192.0.2.7", 3129, kOwn, kOwn},
    {"10.1.1.1", 3129, kOwn, kOwn},
    {"10.1.1.2", 3129, kPrivate, kYes},
};

TEST_CASE("who may be connected to where, by address", "[server][destinations]") {
  const DestinationPolicy never = policy(PrivateDestinations::kNever);
  const DestinationPolicy loopback = policy(PrivateDestinations::kLoopbackClients);
  const DestinationPolicy always = policy(PrivateDestinations::kAlways);
  const net::Address here = address("127.0.0.1", 40000);
  const net::Address elsewhere = address("198.51.100.1", 40000);
  for (const Row& row : kRows) {
    INFO(row.target << " port " << row.port);
    const net::Address target = address(row.target, row.port);
    CHECK(never.check(here, target) == row.never);
    CHECK(never.check(elsewhere, target) == row.never);
    CHECK(loopback.check(here, target) == row.loopback);
    CHECK(loopback.check(elsewhere, target) == row.never);
    CHECK(always.check(elsewhere, target) == row.loopback);
  }
}

TEST_CASE("a port of ours is ours at each address of this machine", "[server][destinations]") {
  const DestinationPolicy made = policy(PrivateDestinations::kAlways);
  for (const char* text : {"127.0.0.1", "127.3.2.1", "::1", "192.0.2.7", "10.1.1.1", "0.0.0.0",
                           "::ffff:10.1.1.1", "64:ff9b::7f00:1"}) {
    CAPTURE(text);
    CHECK(made.is_own_port_here(address(text, 3128)));
    CHECK(made.is_own_port_here(address(text, 3129)));
    CHECK_FALSE(made.is_own_port_here(address(text, 3130)));
  }
  CHECK_FALSE(made.is_own_port_here(address("10.1.1.2", 3128)));
  CHECK_FALSE(made.is_own_port_here(address("93.184.216.34", 3128)));
}

TEST_CASE("addresses and names for this machine need no lookup", "[server][destinations]") {
  const auto known = [](const char* host) { return DestinationPolicy::known_address(host, 80); };
  CHECK(known("192.0.2.7") == address("192.0.2.7"));
  CHECK(known("::1") == address("::1"));
  for (const char* host : {"localhost", "localhost.", "a.localhost"}) {
    CHECK(known(host) == net::Address::loopback_v4(80));
  }
  for (const char* host : {"localhosts", "notlocalhost", "example.com", "", "127.1"}) {
    CHECK_FALSE(known(host).has_value());
  }
}

TEST_CASE("of what a name resolves to only the allowed is left", "[server][destinations]") {
  const DestinationPolicy never = policy(PrivateDestinations::kNever);
  const net::Address client = address("127.0.0.1", 40000);
  std::vector<net::Address> mixed = {address("10.0.0.1"), address("93.184.216.34"), address("::1")};
  CHECK(never.restrict_to_allowed(client, mixed) == kYes);
  REQUIRE(mixed.size() == 1);
  CHECK(mixed[0].same_ip(address("93.184.216.34")));

  std::vector<net::Address> none = {address("10.0.0.1"), address("::1")};
  CHECK(never.restrict_to_allowed(client, none) == kPrivate);
  CHECK(none.empty());

  std::vector<net::Address> empty;
  CHECK(never.restrict_to_allowed(client, empty) != kYes);
}

TEST_CASE("a name that means us too is refused whatever else it means", "[server][destinations]") {
  const DestinationPolicy always = policy(PrivateDestinations::kAlways);
  std::vector<net::Address> mixed = {address("93.184.216.34", 3129), address("127.0.0.1", 3129)};
  CHECK(always.restrict_to_allowed(address("127.0.0.1"), mixed) == kOwn);
}

TEST_CASE("clients and CONNECT's ports are those configured", "[server][destinations]") {
  const DestinationPolicy defaults = policy(PrivateDestinations::kNever);
  CHECK(defaults.is_client_allowed(address("127.0.0.1")));
  CHECK(defaults.is_client_allowed(address("::1")));
  CHECK(defaults.is_client_allowed(address("::ffff:127.0.0.1")));
  CHECK_FALSE(defaults.is_client_allowed(address("192.0.2.1")));
  CHECK_FALSE(defaults.is_client_allowed(address("::2")));
  CHECK(defaults.is_connect_port(443));
  CHECK_FALSE(defaults.is_connect_port(444));
  CHECK_FALSE(defaults.is_connect_port(25));
}

TEST_CASE("of what another proxy is asked for the host says as much as it can",
          "[server][destination]") {
  const DestinationPolicy never = policy(PrivateDestinations::kNever);
  const net::Address client = address("127.0.0.1");
  for (const std::string host :
       {"127.0.0.1", "10.0.0.1", "::1", "fe80::1", "localhost", "a.localhost"}) {
    CAPTURE(host);
    CHECK(never.check_host(client, host, 80) == kPrivate);
  }
  for (const std::string host : {"93.184.216.34", "www.example.com", "notlocalhost"}) {
    CAPTURE(host);
    CHECK(never.check_host(client, host, 80) == kYes);
  }
  CHECK(never.check_host(client, "224.0.0.1", 80) == kNot);
  CHECK(policy(PrivateDestinations::kLoopbackClients).check_host(client, "10.0.0.1", 80) == kYes);
  CHECK(policy(PrivateDestinations::kAlways).check_host(client, "localhost", 3128) == kOwn);
}

}  // namespace
}  // namespace encore::server
