// ProgressBar: shows a Monitor on standard error while it lives, with the time that is left. It
// shows nothing where standard error is no terminal, or for work that is done within a second.
#pragma once

#include <condition_variable>
#include <string>
#include <thread>

#include "base/cli/monitor.h"
#include "base/mutex.h"

namespace encore {

class ProgressBar {
 public:
  // `monitor` must outlive the bar.
  ProgressBar(const Monitor& monitor, std::string title);
  ~ProgressBar();
  ProgressBar(const ProgressBar&) = delete;
  ProgressBar& operator=(const ProgressBar&) = delete;

 private:
  void show_until_done();

  const Monitor& monitor_;
  std::string title_;
  Mutex mutex_;
  std::condition_variable_any done_changed_;
  bool done_ ENCORE_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

struct Progress {
  std::string title;
  std::uint64_t done = 0;
  std::uint64_t total = 0;  // 0: not known
  bool in_bytes = false;    // the unit
  double seconds = 0;       // spent so far
};
// "blocks  [########            ]  42 %  ETA 0:37", or what is done where the total is not known.
std::string progress_line(const Progress& progress);

}  // namespace encore
