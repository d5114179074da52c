#include "base/cli/progress.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <utility>

#include "base/time.h"
#include "base/units.h"

namespace encore {

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
  MonotonicTime started = monotonic_now();
  MonotonicTime phase_seen = started;
  const char* phase = "";
  bool shown = false;
  auto pause = std::chrono::milliseconds(1000);
  const MutexLock lock(mutex_);
  while (!done_) {
    done_changed_.wait_for(mutex_, pause);
    if (done_) {
      break;
    }
    pause = std::chrono::milliseconds(200);
    if (const char* now = monitor_.phase; now != phase) {
      phase = now;
      started = phase_seen;  // it began since the last look
    }
    phase_seen = monotonic_now();
    const std::string line =
        progress_line({.title = *phase == '\0' ? title_ : title_ + ": " + phase,
                       .done = monitor_.done,
                       .total = monitor_.total,
                       .in_bytes = monitor_.in_bytes,
                       .seconds = std::chrono::duration<double>(phase_seen - started).count()});
    std::fprintf(stderr, "\r%s\x1b[K", line.c_str());
    std::fflush(stderr);
    shown = true;
  }
  if (shown) {
    std::fputs("\r\x1b[K", stderr);
    std::fflush(stderr);
  }
}

std::string progress_line(const Progress& progress) {
  const auto& [title, done, total, in_bytes, seconds] = progress;
  std::array<char, 160> text{};
  if (total == 0 || done == 0) {
    return title + "  " + (in_bytes ? format_bytes(done) : std::to_string(done));
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

}  // namespace encore
