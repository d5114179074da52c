#include "proxy/process/jobs.h"

#include <utility>

#include "base/check.h"

namespace encore::server {

Jobs::Jobs(net::Loop& loop, net::Loop::Function on_idle)
    : loop_(loop), on_idle_(std::move(on_idle)), thread_([this] { run(); }) {}

Jobs::~Jobs() {
  {
    const MutexLock lock(mutex_);
    stop_ = true;
  }
  wake_.notify_one();
  thread_.join();
}

void Jobs::submit(net::Loop::Function work, net::Loop::Function done) {
  ++count_;
  {
    const MutexLock lock(mutex_);
    waiting_.push_back({std::move(work), std::move(done)});
  }
  wake_.notify_one();
}

void Jobs::run() {
  for (;;) {
    Job job;
    {
      MutexLock lock(mutex_);
      while (!stop_ && waiting_.empty()) wake_.wait(mutex_);
      if (stop_) return;
      job = std::move(waiting_.front());
      waiting_.pop_front();
    }
    job.work();
    job.work = nullptr;
    loop_.post([this, done = std::move(job.done)]() mutable { finish(std::move(done)); });
  }
}

void Jobs::finish(net::Loop::Function done) {
  ENCORE_CHECK(count_ != 0, "a job is done once");
  done();
  if (--count_ == 0) on_idle_();
}

}  // namespace encore::server
