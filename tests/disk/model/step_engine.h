// An engine whose tasks run on command, one after the other, reads in any order: a run is the same
// each time, and reaches orders that threads hardly ever reach. Not thread-safe.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <memory>
#include <random>
#include <utility>

#include "proxy/disk/engine.h"

namespace encore::disk {

// Outlives the engine, which borrows it.
struct StepTasks {
  std::deque<DiskTask> reads;
  std::deque<DiskTask> writes;
  std::deque<DiskTask> urgent;
  bool is_stopped = false;
  bool runs_writes = false;  // when they are submitted: somebody waits for them

  bool empty() const { return reads.empty() && writes.empty() && urgent.empty(); }
  // False: there is none.
  bool run_one(std::mt19937_64& random) {
    const bool writes_next = !writes.empty() || !urgent.empty();
    if (writes_next && (reads.empty() || random() % 2 == 0)) return run_write();
    if (reads.empty()) return false;
    const auto which = static_cast<std::ptrdiff_t>(random() % reads.size());
    run(reads, which);
    return true;
  }
  bool run_read() {
    if (reads.empty()) return false;
    run(reads, 0);
    return true;
  }
  bool run_write() {
    if (writes.empty() && urgent.empty()) return false;
    run(urgent.empty() ? writes : urgent, 0);
    return true;
  }

 private:
  static void run(std::deque<DiskTask>& tasks, std::ptrdiff_t which) {
    DiskTask task = std::move(tasks[static_cast<std::size_t>(which)]);
    tasks.erase(tasks.begin() + which);
    task(DiskRun::kRun);
  }
};

class StepEngine final : public DiskEngine {
 public:
  explicit StepEngine(StepTasks& tasks) : tasks_(tasks) { tasks_.is_stopped = false; }

  Submitted submit(DiskLane lane, std::uint64_t /*bytes*/, DiskTask task) override {
    if (tasks_.is_stopped) return Submitted::kStopped;
    (lane == DiskLane::kRead    ? tasks_.reads
     : lane == DiskLane::kWrite ? tasks_.writes
                                : tasks_.urgent)
        .push_back(std::move(task));
    while (tasks_.runs_writes && tasks_.run_write()) {
    }
    return Submitted::kAccepted;
  }
  bool stop(Nanoseconds /*patience*/) override {
    if (std::exchange(tasks_.is_stopped, true)) return true;
    for (DiskTask& task : std::exchange(tasks_.reads, {})) task(DiskRun::kCancelled);
    while (tasks_.run_write()) {
    }
    return true;
  }
  std::uint64_t waiting_bytes(DiskLane /*lane*/) const override { return 0; }

 private:
  StepTasks& tasks_;
};

}  // namespace encore::disk
