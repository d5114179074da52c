#include "tests/catch.h"

#include <netinet/in.h>

#include <cerrno>
#include <string>
#include <vector>

#include "tests/simulate/system.h"

namespace encore::simulate {
namespace {

Adversity with_splits() {
  Adversity out;
  out.split = 80;
  out.small_buffers = 100;
  out.short_write = 50;
  return out;
}

sockaddr_in port(std::uint16_t number) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(number);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

int listen_at(System& system, std::uint16_t number) {
  const int listener = system.socket(Side::kProxy, AF_INET, SOCK_STREAM);
  const sockaddr_in address = port(number);
  const int on = 1;
  system.setsockopt(listener, SOL_SOCKET, SO_REUSEPORT, &on, sizeof on);
  REQUIRE(system.bind(listener, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0);
  REQUIRE(system.listen(listener, 10) == 0);
  return listener;
}

int connect_to(System& system, std::uint16_t number) {
  const int made = system.socket(Side::kWorld, AF_INET, SOCK_STREAM);
  const sockaddr_in address = port(number);
  system.connect(made, reinterpret_cast<const sockaddr*>(&address), sizeof address);
  while (system.step()) {
  }
  return made;
}

ssize_t send_text(System& system, int descriptor, const std::string& text) {
  const iovec part{.iov_base = const_cast<char*>(text.data()), .iov_len = text.size()};
  return system.send(descriptor, std::span(&part, 1));
}

}  // namespace

TEST_CASE("Bytes arrive whole and in their order, however they are cut", "[simulate]") {
  System system(7, with_splits());
  const int listener = listen_at(system, 80);
  const int client = connect_to(system, 80);
  const int server = system.accept(Side::kProxy, listener, nullptr, nullptr);
  REQUIRE(server >= 0);
  std::string all;
  for (int i = 0; i < 20000; ++i) all += static_cast<char>('a' + i % 26);
  std::string got;
  std::size_t sent = 0;
  std::size_t pieces = 0;
  while (got.size() < all.size()) {
    if (sent < all.size()) {
      const ssize_t taken = send_text(system, client, all.substr(sent));
      if (taken > 0) sent += static_cast<std::size_t>(taken);
    }
    char room[4096];
    const ssize_t came = system.recv(server, room, sizeof room, 0);
    if (came > 0) {
      got.append(room, static_cast<std::size_t>(came));
      ++pieces;
    } else {
      REQUIRE(system.step());
    }
  }
  CHECK(got == all);
  CHECK(pieces > 10);
}

TEST_CASE("Connections are spread over the listeners of a port", "[simulate]") {
  System system(7, Adversity::none());
  const std::vector<int> listeners = {listen_at(system, 80), listen_at(system, 80)};
  for (int i = 0; i < 40; ++i) connect_to(system, 80);
  for (const int listener : listeners) {
    int count = 0;
    while (system.accept(Side::kProxy, listener, nullptr, nullptr) >= 0) ++count;
    CHECK(count >= 5);
  }
}

TEST_CASE("Nobody listens: a connection is refused", "[simulate]") {
  System system(7, Adversity::none());
  const int client = connect_to(system, 81);
  int error = 0;
  socklen_t size = sizeof error;
  CHECK(system.getsockopt(client, SOL_SOCKET, SO_ERROR, &error, &size) == 0);
  CHECK(error == ECONNREFUSED);
}

TEST_CASE("The proxy's descriptors have a limit, the world's have none", "[simulate]") {
  System system(7, Adversity::none());
  system.set_descriptors_max(1);
  CHECK(system.socket(Side::kProxy, AF_INET, SOCK_STREAM) >= 0);
  CHECK(system.socket(Side::kProxy, AF_INET, SOCK_STREAM) == -1);
  CHECK(errno == EMFILE);
  CHECK(system.socket(Side::kWorld, AF_INET, SOCK_STREAM) >= 0);
  CHECK(system.descriptors() == 1);
}

TEST_CASE("What the proxy moves behind its end of a connection is told from what it moved before",
          "[simulate]") {
  System system(7, Adversity::none());
  const int listener = listen_at(system, 80);
  const int client = connect_to(system, 80);
  const int proxys = system.accept(Side::kProxy, listener, nullptr, nullptr);
  const auto read = [&](const std::string& text) {
    REQUIRE(send_text(system, client, text) == static_cast<ssize_t>(text.size()));
    while (system.step()) {
    }
    std::string came(text.size(), ' ');
    REQUIRE(system.recv(proxys, came.data(), came.size(), 0) == static_cast<ssize_t>(came.size()));
  };
  CHECK(system.other_endings(client).empty());
  read("early");
  const std::int64_t moved = system.now();
  REQUIRE(send_text(system, proxys, "four") == 4);
  REQUIRE(system.shutdown(proxys, SHUT_WR) == 0);
  read("late");
  REQUIRE(system.now() > moved);
  REQUIRE(system.other_endings(client).size() == 1);
  const System::Ending ending = system.other_endings(client)[0];
  CHECK(ending.at == moved);
  CHECK(ending.undelivered == 4);
  CHECK(system.other_moved_before(client, ending.order) == moved);
  CHECK(system.other_moved_before(client, UINT64_MAX) == system.now());
}

TEST_CASE("What no program may do is told", "[simulate]") {
  System system(7, Adversity::none());
  std::vector<std::string> faults;
  system.on_fault = [&](const std::string& what) { faults.push_back(what); };
  const int made = system.socket(Side::kProxy, AF_INET, SOCK_STREAM);
  Poller poller(system, [] {});
  Watch watch;
  watch.poller = &poller;
  watch.descriptor = made;
  watch.wants = kReadable;
  CHECK(poller.watch(watch));
  CHECK(system.close(made) == 0);
  CHECK(faults.size() == 1);
  CHECK(system.close(made) == -1);
  CHECK(faults.size() == 2);
}

TEST_CASE("Timers are due in their order, and time goes on to them", "[simulate]") {
  System system(7, Adversity::none());
  std::vector<int> order;
  Poller* self = nullptr;
  Poller poller(system, [&] { self->turn(); });
  self = &poller;
  struct Timer : Watch {
    std::vector<int>* order = nullptr;
    int number = 0;
  };
  std::array<Timer, 20> timers;
  const std::int64_t start = system.now();
  for (int i = 0; i < 20; ++i) {
    Timer& timer = timers[static_cast<std::size_t>(i)];
    timer.poller = &poller;
    timer.order = &order;
    timer.number = (i * 7) % 20;
    timer.call = [](Watch& watch, std::uint8_t, bool) {
      auto& self_timer = static_cast<Timer&>(watch);
      self_timer.order->push_back(self_timer.number);
    };
    poller.set_time(timer, start + 1000 * timer.number);
  }
  poller.remove(timers[3]);  // number 1
  while (system.step()) {
  }
  REQUIRE(order.size() == 19);
  CHECK(std::ranges::is_sorted(order));
  CHECK(std::ranges::find(order, 1) == order.end());
  CHECK(system.now() >= start + 19000);
}

}  // namespace encore::simulate
