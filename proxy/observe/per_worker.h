// PerWorker: data with a separate part for each worker, so that counting costs no other worker
// anything. Readers add the parts up.
//
// A part is written by its worker alone; thread-safe where parts are.
#pragma once

#include <cstddef>
#include <vector>

#include "base/check.h"

namespace encore::server {

template <typename T>
class PerWorker {
 public:
  explicit PerWorker(std::size_t workers = 1) : parts_(workers) {}
  PerWorker(const PerWorker&) = delete;
  PerWorker& operator=(const PerWorker&) = delete;

  // WorkerStats::number says which.
  T& of(std::size_t worker) {
    ENCORE_CHECK(worker < parts_.size(), "each worker has a part");
    return parts_[worker].value;
  }
  template <typename F>
  void each(F&& look) const {
    for (const Part& part : parts_) look(part.value);
  }

 private:
  // No two workers write to one line.
  struct alignas(64) Part {
    T value;
  };
  std::vector<Part> parts_;
};

}  // namespace encore::server
