// The origin of a round: one server, or several of which some refuse, reset, fall silent or die
// between two bytes, and come back. One of them, always the same, is well all the time: what may be
// asked again is answered as long as it lives.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "tests/fuzz/proxy/loop.h"
#include "tests/fuzz/proxy/origin.h"
#include "tests/fuzz/proxy/world.h"

namespace encore::proxyfuzz {

class Servers {
 public:
  // Several in reverse mode alone, where an [[origin]] names them. By https where there is `tls`,
  // which has its files and outlives them.
  Servers(Loop& loop, World& world, Random& random, TlsEnds* tls);
  ~Servers();
  Servers(const Servers&) = delete;
  Servers& operator=(const Servers&) = delete;

  // Returns the only port of a forward proxy.
  std::uint16_t port() const { return servers_.front()->port(); }
  // Port of the server that is always well.
  std::uint16_t living_port() const { return servers_[living_]->port(); }
  std::size_t busy() const;
  // [[origin]] and [upstream], as lines.
  std::string text(Random& random) const;
  // From now on they come and go.
  void start();
  // All are well, and stay so.
  void stop();

 private:
  void change();
  void revive(std::size_t index);

  Loop& loop_;
  World& world_;
  TlsEnds* tls_;
  Random random_;
  std::vector<std::unique_ptr<Origin>> servers_;
  std::vector<bool> refuses_;
  std::size_t living_ = 0;
  Loop::Timer timer_{};
};

}  // namespace encore::proxyfuzz
