// Tries: requests under which their origin has closed a kept connection, and nothing else has
// failed: their server is not one that was tried in vain, for it may answer on another connection.
// One thread.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "proxy/process/proxy.h"
#include "tests/fuzz/proxy/world.h"

namespace encore::simulate {

class Tries {
 public:
  // `world` is borrowed.
  explicit Tries(const proxyfuzz::World& world) : world_(world) {}

  // The origin has ended a connection under it.
  void note(const proxyfuzz::Request& request);
  // For as long as such requests look for another way. Between turns.
  void look(server::Proxy& proxy, const std::function<void(const std::string& what)>& on_fault);
  bool empty() const { return watched_.empty(); }

 private:
  struct Watched {
    std::shared_ptr<proxyfuzz::Request> request;
    int looks_left = 0;
  };
  bool is_innocent(const proxyfuzz::Request& request) const;

  const proxyfuzz::World& world_;
  std::vector<Watched> watched_;
};

}  // namespace encore::simulate
