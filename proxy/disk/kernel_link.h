// The kernel, as the threads of the disks have it: until it is taken from them, also from one that
// is stuck in a device and comes back later. Thread-safe.
#pragma once

#include <mutex>
#include <shared_mutex>
#include <type_traits>

#include "cache/kernel.h"

namespace encore::disk {

class KernelLink {
 public:
  // Borrowed until close().
  void open(cache::Kernel& kernel) {
    const std::unique_lock lock(mutex_);
    kernel_ = &kernel;
  }
  // Nobody uses it afterwards.
  void close() {
    const std::unique_lock lock(mutex_);
    kernel_ = nullptr;
  }

  // Returns the result of `use`, or a default value if there is no kernel. REQUIRES: no I/O and no
  // other use() in it.
  template <typename Use>
  auto use(Use&& use) -> std::invoke_result_t<Use, cache::Kernel&> {
    const std::shared_lock lock(mutex_);
    if (kernel_ == nullptr) return std::invoke_result_t<Use, cache::Kernel&>();
    return use(*kernel_);
  }

 private:
  std::shared_mutex mutex_;
  cache::Kernel* kernel_ = nullptr;
};

}  // namespace encore::disk
