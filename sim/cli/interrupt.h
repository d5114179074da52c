// Interrupt: handling of Ctrl-C (SIGINT) and SIGTERM. The first one asks the work to end with its
// results so far; if it does not notice within kGrace, because it computes, writes or waits in a
// place that cannot be stopped, the process ends without it. The second one ends the process
// immediately.
#pragma once

#include <atomic>
#include <chrono>
#include <string>
#include <thread>

#include "base/cli/monitor.h"
#include "base/mutex.h"
#include "base/time.h"

namespace encore::sim {

inline constexpr int kExitInterrupted = 130;

// The texts that are written if the work is abandoned.
struct FinalOutput {
  std::string out;        // to standard output
  std::string err;        // to standard error
  std::string file_path;  // "": no file
  std::string file;       // content of the file
};

// One at a time in a process; made before any other thread, so that the signals' handlers are
// there. Confined to one thread.
class Interrupt {
 public:
  static constexpr std::chrono::milliseconds kGrace{130};
  // For work that has noticed and is putting together what it knows.
  static constexpr std::chrono::milliseconds kGraceNoticed{2000};

  // `monitor` must outlive it: an interrupt sets its `stop`.
  explicit Interrupt(Monitor& monitor);
  ~Interrupt();
  Interrupt(const Interrupt&) = delete;
  Interrupt& operator=(const Interrupt&) = delete;

  void set_final_output(FinalOutput words);
  // The report is being written: that takes no time, or waits for a reader.
  void writing();

 private:
  void watch();
  bool is_time_over(MonotonicTime signalled_at) const;
  [[noreturn]] void abandon();

  Monitor& monitor_;
  Mutex mutex_;
  FinalOutput words_ ENCORE_GUARDED_BY(mutex_);
  std::atomic<bool> ended_{false};
  std::atomic<MonotonicTime> writing_since_{MonotonicTime{}};  // none: not yet
  std::thread watcher_;
};

}  // namespace encore::sim
