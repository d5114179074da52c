// The loop over the system's own descriptors and clock: epoll.
#pragma once

#include <unordered_map>

#include "tests/fuzz/proxy/loop.h"

namespace encore::proxyfuzz {

class EpollLoop final : public Loop {
 public:
  EpollLoop();
  ~EpollLoop() override;

  void add(int descriptor, Handler& handler, std::uint32_t events) override;
  void modify(int descriptor, std::uint32_t events) override;
  void remove(int descriptor) override;
  // Waits for what comes first, and tells it.
  void turn();

 private:
  int epoll_;
  std::unordered_map<int, Handler*> handlers_;
};

// From that address of the loopback interface, or any: null.
int connect_from(const char* address, std::uint16_t port, int receive_buffer);

// A port that was free a moment ago, below those that the system gives to clients.
std::uint16_t free_port();

}  // namespace encore::proxyfuzz
