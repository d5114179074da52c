// The loop of clients and origin over a simulated system: what tests/fuzz/proxy does with sockets
// and clocks, done there.
#pragma once

#include <memory>
#include <vector>

#include "tests/fuzz/proxy/loop.h"
#include "tests/simulate/system.h"

namespace encore::simulate {

class RingLoop final : public proxyfuzz::Loop {
 public:
  explicit RingLoop(System& system);
  ~RingLoop() override;

  void add(int descriptor, proxyfuzz::Handler& handler, std::uint32_t events) override;
  void modify(int descriptor, std::uint32_t events) override;
  void remove(int descriptor) override;

 protected:
  void first_timer_changed() override;

 private:
  struct Entry : Watch {
    proxyfuzz::Handler* handler = nullptr;
  };
  static void call(Watch& watch, std::uint8_t ready, bool timed_out);
  Entry& at(int descriptor);
  void turn();

  Poller poller_;
  Watch timer_;
  std::vector<std::unique_ptr<Entry>> entries_;  // by descriptor
};

}  // namespace encore::simulate
