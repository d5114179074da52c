#include "sim/cli/progress.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <utility>

#include "base/time.h"

namespace encore::sim {

ProgressBar::ProgressBar(const Monitor& monitor, std::string title)
    : monitor_(monitor), title_(std::move(title)) {
  if (isatty(STDERR_FILENO) == 1) {
    thread_ = std::thread([this] { show_until_done(); });
  }
}

ProgressBar::~ProgressBar() {
  if (!thread_.joinable()) {
    return;
  }
  {
    const MutexLock lock(mutex_);
    done_ = true;
  }
  done_changed_.notify_all();
  thread_.join();
}

void ProgressBar::show_until_done() {
  const MonotonicTime started = monotonic_now();
  bool shown = false;
  auto pause = std::chrono::milliseconds(1000);
  const MutexLock lock(mutex_);
  while (!done_) {
    done_changed_.wait_for(mutex_, pause);
    if (done_) {
      break;
    }
    pause = std::chrono::milliseconds(200);
    const double seconds = std::chrono::duration<double>(monotonic_now() - started).count();
    const std::string line = progress_line(title_, monitor_.done, monitor_.total, seconds);
    std::fprintf(stderr, "\r%s\x1b[K", line.c_str());
    std::fflush(stderr);
    shown = true;
  }
  if (shown) {
    std::fputs("\r\x1b[K", stderr);
    std::fflush(stderr);
  }
}

std::string progress_line(const std::string& title, std::uint64_t done, std::uint64_t total,
                          double seconds) {
  std::array<char, 160> text{};
  if (total == 0 || done == 0) {
    std::snprintf(text.data(), text.size(), "%s  %llu", title.c_str(),
                  static_cast<unsigned long long>(done));
    return text.data();
  }
  const double share = std::min(1.0, static_cast<double>(done) / static_cast<double>(total));
  const auto left = std::llround(seconds * (1 - share) / share);
  std::array<char, 21> bar{};
  bar.fill(' ');
  std::fill_n(bar.begin(), static_cast<std::size_t>(share * 20), '#');
  bar.back() = '\0';
  std::snprintf(text.data(), text.size(), "%s  [%s] %3.0f %%  ETA %lld:%02lld", title.c_str(),
                bar.data(), 100 * share, left / 60, left % 60);
  return text.data();
}

}  // namespace encore::sim
