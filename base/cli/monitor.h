// Monitor: long work reports its progress here, and learns that it should stop early. Thread-safe:
// the work adds, the display reads. The work itself never reads a clock.
#pragma once

#include <atomic>
#include <cstdint>

namespace encore {

struct Monitor {
  std::atomic<const char*> phase{""};   // present step, a literal; empty: the work has one
  std::atomic<std::uint64_t> done{0};   // in the phase's own unit
  std::atomic<std::uint64_t> total{0};  // 0: not known
  std::atomic<bool> in_bytes{false};    // the unit
  std::atomic<bool> stop{false};        // set from outside: the work should end
  std::atomic<bool> heard{false};       // the work knows, and has left something out
  // The work that this is a part of: its stop is this one's, too. Borrowed; null: none.
  Monitor* whole = nullptr;

  // A phase of so many units begins.
  void begin(const char* what, std::uint64_t units) {
    total = 0;
    done = 0;
    in_bytes = false;
    phase = what;
    total = units;
  }
  // True if the work is to end with its results so far. REQUIRES: the caller leaves something out
  // then.
  bool stopped() {
    if (!stop.load(std::memory_order_relaxed) &&
        (whole == nullptr || !whole->stop.load(std::memory_order_relaxed))) {
      return false;
    }
    heard.store(true, std::memory_order_relaxed);
    if (whole != nullptr) {
      whole->heard.store(true, std::memory_order_relaxed);
    }
    return true;
  }
  // Counts, and returns whether to go on.
  bool advance(std::uint64_t count) {
    done.fetch_add(count, std::memory_order_relaxed);
    return !stopped();
  }
};

}  // namespace encore
