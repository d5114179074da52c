#include "tests/simulate/ring_loop.h"

#include <netinet/in.h>
#include <sys/epoll.h>

#include <cmath>

#include "base/check.h"

namespace encore::simulate {
namespace {

constexpr std::uint16_t kOriginPort = 8000;

sockaddr_in loopback(std::uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

System& system() {
  ENCORE_CHECK(System::current() != nullptr, "clients and origin have a system");
  return *System::current();
}

std::uint8_t wants_of(std::uint32_t events) {
  std::uint8_t wants = kNone;
  if ((events & EPOLLIN) != 0) wants |= kReadable;
  if ((events & EPOLLOUT) != 0) wants |= kWritable;
  return wants;
}

}  // namespace

RingLoop::RingLoop(System& system) : poller_(system, [this] { turn(); }) {
  timer_.poller = &poller_;
  timer_.call = [](Watch&, std::uint8_t, bool) {};
}

RingLoop::~RingLoop() { poller_.remove(timer_); }

RingLoop::Entry& RingLoop::at(int descriptor) {
  const auto slot = static_cast<std::size_t>(descriptor - kFirstDescriptor);
  if (slot >= entries_.size()) entries_.resize(slot + 1);
  if (entries_[slot] == nullptr) entries_[slot] = std::make_unique<Entry>();
  return *entries_[slot];
}

void RingLoop::call(Watch& watch, std::uint8_t ready, bool) {
  std::uint32_t events = 0;
  if ((ready & kReadable) != 0) events |= EPOLLIN;
  if ((ready & kWritable) != 0) events |= EPOLLOUT;
  static_cast<Entry&>(watch).handler->on_ready(events);
}

void RingLoop::add(int descriptor, proxyfuzz::Handler& handler, std::uint32_t events) {
  Entry& entry = at(descriptor);
  entry.poller = &poller_;
  entry.descriptor = descriptor;
  entry.persistent = true;
  entry.call = &RingLoop::call;
  entry.handler = &handler;
  entry.wants = wants_of(events);
  poller_.watch(entry);
}

void RingLoop::modify(int descriptor, std::uint32_t events) {
  Entry& entry = at(descriptor);
  const std::uint8_t wants = wants_of(events);
  if (entry.wants == wants) return;
  poller_.remove(entry);
  entry.wants = wants;
  poller_.watch(entry);
}

void RingLoop::remove(int descriptor) { poller_.remove(at(descriptor)); }

void RingLoop::first_timer_changed() {
  // One more: what is seconds there and nanoseconds here must not be a moment too early.
  const double due = std::ceil(first_due() * 1e9) + 1;
  poller_.set_time(timer_, static_cast<std::int64_t>(due));
}

void RingLoop::turn() {
  poller_.turn();
  end_turn();
  if (std::isfinite(first_due())) first_timer_changed();
}

}  // namespace encore::simulate

namespace encore::proxyfuzz {

using simulate::Side;
using simulate::System;

double now() noexcept { return static_cast<double>(simulate::system().now()) / 1e9; }

// Theirs does not step.
std::int64_t wall_seconds() noexcept {
  const System& system = simulate::system();
  return system.wall_seconds_at_start() + (system.now() - System::kMonotonicStart) / 1'000'000'000;
}

int listen_on_loopback(std::uint16_t& port) {
  System& system = simulate::system();
  if (port == 0) port = simulate::kOriginPort;
  const int descriptor = system.socket(Side::kWorld, AF_INET, SOCK_STREAM);
  const sockaddr_in address = simulate::loopback(port);
  const int bound =
      system.bind(descriptor, reinterpret_cast<const sockaddr*>(&address), sizeof address);
  ENCORE_CHECK(bound == 0 && system.listen(descriptor, 4096) == 0, "the origin has its port");
  return descriptor;
}

int accept_connection(int listener) {
  return simulate::system().accept(Side::kWorld, listener, nullptr, nullptr);
}

int connect_to_loopback(std::uint16_t port, int receive_buffer) {
  System& system = simulate::system();
  const int descriptor = system.socket(Side::kWorld, AF_INET, SOCK_STREAM);
  if (receive_buffer != 0) {
    system.setsockopt(descriptor, SOL_SOCKET, SO_RCVBUF, &receive_buffer, sizeof receive_buffer);
  }
  const sockaddr_in address = simulate::loopback(port);
  system.connect(descriptor, reinterpret_cast<const sockaddr*>(&address), sizeof address);
  return descriptor;
}

void close_with_reset(int descriptor) {
  System& system = simulate::system();
  const linger option{.l_onoff = 1, .l_linger = 0};
  system.setsockopt(descriptor, SOL_SOCKET, SO_LINGER, &option, sizeof option);
  system.close(descriptor);
}

bool was_broken(int descriptor) { return simulate::system().was_broken(descriptor); }

bool had_read_all(int descriptor) { return simulate::system().had_read_all(descriptor); }

bool was_heard(int descriptor) { return simulate::system().was_heard(descriptor); }

std::optional<std::vector<OtherEnding>> other_endings(int descriptor) {
  std::vector<OtherEnding> out;
  for (const System::Ending& each : simulate::system().other_endings(descriptor)) {
    out.push_back({.order = each.order,
                   .at = static_cast<double>(each.at) / 1e9,
                   .undelivered = each.undelivered});
  }
  return out;
}

std::optional<double> other_moved_before(int descriptor, std::uint64_t order) {
  return static_cast<double>(simulate::system().other_moved_before(descriptor, order)) / 1e9;
}

}  // namespace encore::proxyfuzz
