#include "proxy/transfer/transfer_memory.h"

#include <atomic>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "tests/catch.h"

namespace encore::server {
namespace {

net::Address address(const std::string& ip) {
  const auto parsed = net::Address::parse_ip(ip, 4711);
  REQUIRE(parsed.has_value());
  return *parsed;
}

}  // namespace

TEST_CASE("What a client's connections hold is its own, over all of them", "[server]") {
  TransferMemory memory;
  TransferMemory::Holding first;
  TransferMemory::Holding second;
  TransferMemory::Holding other;
  first.set(memory, address("127.0.0.1"), 100);
  second.set(memory, address("127.0.0.1"), 50);
  other.set(memory, address("127.0.0.2"), 7);
  CHECK(first.bytes_of_client() == 150);
  CHECK(second.is_over(149));
  CHECK_FALSE(second.is_over(150));
  CHECK_FALSE(second.is_over(0));
  CHECK(other.bytes_of_client() == 7);
  CHECK(memory.bytes() == 157);
  first.set(memory, address("127.0.0.1"), 30);
  CHECK(second.bytes_of_client() == 80);
  CHECK(memory.clients() == 2);
}

TEST_CASE("An IPv6 network of 64 bits is one client, and a mapped address its IPv4 one",
          "[server]") {
  TransferMemory memory;
  TransferMemory::Holding a;
  TransferMemory::Holding b;
  TransferMemory::Holding c;
  TransferMemory::Holding d;
  TransferMemory::Holding e;
  a.set(memory, address("2001:db8:1:2::1"), 1);
  b.set(memory, address("2001:db8:1:2:ffff::9"), 2);
  c.set(memory, address("2001:db8:1:3::1"), 4);
  d.set(memory, address("::ffff:10.0.0.1"), 8);
  e.set(memory, address("10.0.0.2"), 16);
  CHECK(a.bytes_of_client() == 3);
  CHECK(c.bytes_of_client() == 4);
  CHECK(d.bytes_of_client() == 8);
  CHECK(memory.clients() == 4);
}

TEST_CASE("What was taken is given back, whatever the order, as a naive account says", "[server]") {
  const unsigned seed = std::random_device{}();
  INFO("seed " << seed);
  std::mt19937 random(seed);
  TransferMemory memory;
  struct Connection {
    int client;
    std::unique_ptr<TransferMemory::Holding> holding;
    std::uint64_t bytes;
  };
  std::vector<Connection> connections;
  const auto ip = [](int client) { return address("10.0.0." + std::to_string(client)); };
  for (int step = 0; step < 20'000; ++step) {
    if (connections.size() < 40 && random() % 4 == 0) {
      const int client = 1 + static_cast<int>(random() % 6);
      connections.push_back({client, std::make_unique<TransferMemory::Holding>(), 0});
    } else if (!connections.empty() && random() % 5 == 0) {
      std::swap(connections[random() % connections.size()], connections.back());
      connections.pop_back();
    } else if (!connections.empty()) {
      Connection& one = connections[random() % connections.size()];
      one.bytes = random() % 3 == 0 ? 0 : random() % 1'000'000;
      one.holding->set(memory, ip(one.client), one.bytes);
    }
    std::map<int, std::uint64_t> expected;
    std::uint64_t total = 0;
    for (const Connection& one : connections) {
      expected[one.client] += one.bytes;
      total += one.bytes;
    }
    REQUIRE(memory.bytes() == total);
    for (const Connection& one : connections) {
      if (one.bytes != 0) REQUIRE(one.holding->bytes_of_client() == expected[one.client]);
    }
  }
  connections.clear();
  CHECK(memory.bytes() == 0);
  CHECK(memory.clients() == 0);
}

TEST_CASE("Workers account side by side and leave nothing", "[server]") {
  TransferMemory memory;
  {
    std::vector<std::jthread> workers;
    for (unsigned worker = 0; worker < 4; ++worker) {
      workers.emplace_back([&memory, worker] {
        std::mt19937 random(worker);
        for (int round = 0; round < 2000; ++round) {
          TransferMemory::Holding holding;
          const auto client = net::Address::parse_ip("10.0.0." + std::to_string(random() % 3), 1);
          for (int i = 0; i < 5; ++i) holding.set(memory, *client, random() % 100);
        }
      });
    }
  }
  CHECK(memory.bytes() == 0);
  CHECK(memory.clients() == 0);
}

}  // namespace encore::server
