#include "sim/cli/parallel.h"

#include <algorithm>
#include <atomic>
#include <thread>
#include <vector>

namespace encore::sim {

void parallel_for(std::size_t count, const std::function<void(std::size_t)>& work,
                  unsigned threads) {
  if (threads == 0) {
    threads = std::max(1U, std::thread::hardware_concurrency());
  }
  std::atomic<std::size_t> next{0};
  const auto worker = [&] {
    for (std::size_t i = next++; i < count; i = next++) {
      work(i);
    }
  };
  std::vector<std::jthread> helpers;
  for (std::size_t i = 1; i < std::min<std::size_t>(threads, count); ++i) {
    helpers.emplace_back(worker);
  }
  worker();
}

}  // namespace encore::sim
