// Jobs: a thread for what takes long and no request waits for, such as a purge of a million objects
// or the saving of state. One job at a time, in the order of submitting. Confined to its loop's
// thread; only the work itself is done elsewhere.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <thread>

#include "base/mutex.h"
#include "proxy/net/loop.h"

namespace encore::server {

class Jobs {
 public:
  // Calls `on_idle` on the loop whenever the last job is done. `loop` is borrowed.
  Jobs(net::Loop& loop, net::Loop::Function on_idle);
  Jobs(const Jobs&) = delete;
  Jobs& operator=(const Jobs&) = delete;
  // Waits for the work in progress; jobs that have not begun are dropped, and nothing is done
  // afterwards.
  ~Jobs();

  // Runs `work` on the thread, then `done` on the loop. How many may wait is the caller's to bound.
  void submit(net::Loop::Function work, net::Loop::Function done);
  // Submitted and not done, the one in progress included.
  std::size_t count() const { return count_; }

 private:
  struct Job {
    net::Loop::Function work;
    net::Loop::Function done;
  };
  void run();
  void finish(net::Loop::Function done);

  net::Loop& loop_;
  net::Loop::Function on_idle_;
  std::size_t count_ = 0;
  Mutex mutex_;
  std::condition_variable_any wake_;
  std::deque<Job> waiting_ ENCORE_GUARDED_BY(mutex_);
  bool stop_ ENCORE_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace encore::server
