#include "proxy/transfer/transfer_home.h"

#include <memory>
#include <optional>
#include <random>
#include <thread>
#include <vector>

#include "tests/catch.h"

namespace encore::server {
namespace {

struct CountingTarget final : public WakeTarget {
  void on_wake_up() override { ++calls; }
  int calls = 0;
};

struct HomeFixture {
  HomeFixture() {
    auto made = net::Loop::create();
    REQUIRE(made.has_value());
    loop = std::move(*made);
    home = std::make_unique<TransferHome>(*loop);
    turn.emplace(*home);
  }
  // Runs the functions posted so far.
  void run_posted() {
    home->post([this] { loop->stop(); });
    loop->run();
  }
  std::unique_ptr<net::Loop> loop;
  std::unique_ptr<TransferHome> home;
  std::optional<TransferHome::Turn> turn;
};

TEST_CASE("a wake-up reaches who holds the ticket, on the home's loop", "[transfer][home]") {
  HomeFixture f;
  CountingTarget one;
  CountingTarget other;
  const auto ticket = f.home->enter(one);
  const auto others = f.home->enter(other);
  CHECK(f.home->size() == 2);
  CHECK_FALSE(ticket == others);
  std::thread([&] { f.home->wake(ticket); }).join();
  CHECK(one.calls == 0);
  f.run_posted();
  CHECK(one.calls == 1);
  CHECK(other.calls == 0);
  f.home->leave(ticket);
  f.home->leave(others);
  CHECK(f.home->size() == 0);
}

TEST_CASE("a wake-up is for one stay: who comes to the place next is not called",
          "[transfer][home]") {
  HomeFixture f;
  CountingTarget one;
  auto ticket = f.home->enter(one);
  for (int round = 0; round < 100; ++round) {
    f.home->wake(ticket);
    f.home->leave(ticket);
    CHECK(f.home->find(ticket) == nullptr);
    const auto next = f.home->enter(one);  // the same place, and the same address
    CHECK(next.place == ticket.place);
    CHECK(f.home->find(ticket) == nullptr);
    CHECK(f.home->find(next) == &one);
    f.run_posted();
    REQUIRE(one.calls == 0);
    ticket = next;
  }
  f.home->leave(ticket);
  CHECK(f.home->find({}) == nullptr);
}

TEST_CASE("places of readers that have left are taken again, all of them", "[transfer][home]") {
  constexpr std::size_t kTogether = 5;
  HomeFixture f;
  CountingTarget reader;
  std::mt19937_64 random(1);
  std::vector<TransferHome::Ticket> inside;
  for (int i = 0; i < 1000; ++i) {
    const bool enters = inside.size() < kTogether && (inside.empty() || random() % 2 == 0);
    if (enters) {
      inside.push_back(f.home->enter(reader));
      REQUIRE(inside.back().place < kTogether);
    } else {
      const auto one = inside.begin() + static_cast<std::ptrdiff_t>(random() % inside.size());
      f.home->leave(*one);
      inside.erase(one);
    }
  }
  for (const auto& ticket : inside) f.home->leave(ticket);
}

TEST_CASE("homes may take turns on one thread", "[transfer][home]") {
  HomeFixture f;
  TransferHome other(*f.loop);
  CHECK(f.home->is_here());
  CHECK_FALSE(other.is_here());
  {
    const TransferHome::Turn turn(other);
    CHECK(other.is_here());
    CHECK_FALSE(f.home->is_here());
  }
  CHECK(f.home->is_here());
  bool elsewhere = true;
  std::thread([&] { elsewhere = f.home->is_here(); }).join();
  CHECK_FALSE(elsewhere);
}

}  // namespace
}  // namespace encore::server
