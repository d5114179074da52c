// The store of a simulated proxy: the real one, which has no room for a while where the seed wants
// it so, and which must be empty when it goes. It stands in for store::make_memory_store in this
// program.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

namespace encore::simulate {

// Conduct of the stores of the running simulation. One thread.
struct StoreConduct {
  // Every request for room is refused.
  static bool refuses;
  // Told of what is left in a store at its end.
  static std::function<void(const std::string&)> on_leak;
};

}  // namespace encore::simulate
