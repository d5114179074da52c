// Monitor: how long work tells how far it is, and hears that it should stop early. Thread-safe:
// the work adds, whoever shows the progress reads. The work itself never reads a clock.
#pragma once

#include <atomic>
#include <cstdint>

namespace encore::sim {

struct Monitor {
  std::atomic<std::uint64_t> done{0};   // in the work's own unit
  std::atomic<std::uint64_t> total{0};  // 0: not known
  std::atomic<bool> stop{false};

  // Counts and answers whether to go on.
  bool advance(std::uint64_t count) {
    done.fetch_add(count, std::memory_order_relaxed);
    return !stop.load(std::memory_order_relaxed);
  }
};

}  // namespace encore::sim
