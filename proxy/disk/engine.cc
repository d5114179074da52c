#include "proxy/disk/engine.h"

#include <sys/resource.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <thread>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/mutex.h"

namespace encore::disk {
namespace {

struct Waiting {
  std::uint64_t bytes = 0;
  DiskTask task;
};

enum class Role : std::uint8_t { kReader, kWriter };

// Checking what was read takes 0.1 ms a MiB. Readers whose reads end together would have a worker
// that shares their CPU wait for all of them (docs/decisions/0624).
constexpr int kReaderNice = 10;
constexpr int kNiceMax = 19;

// Lowers the priority of the calling thread, where the system allows it.
void go_behind_workers() {
  const int now = getpriority(PRIO_PROCESS, 0);
  (void)setpriority(PRIO_PROCESS, 0, std::min(now + kReaderNice, kNiceMax));
}

// Shared state of the threads. It outlives the engine if a thread is stuck in a device.
class Shared {
 public:
  explicit Shared(const EngineOptions& options) : options_(options) {}

  void add_thread() ENCORE_EXCLUDES(mutex_) {
    const MutexLock lock(mutex_);
    ++threads_;
  }

  Submitted submit(DiskLane lane, std::uint64_t bytes, DiskTask task) ENCORE_EXCLUDES(mutex_) {
    {
      const MutexLock lock(mutex_);
      if (stopping_) return Submitted::kStopped;
      const bool is_read = lane == DiskLane::kRead;
      const std::uint64_t most = is_read ? options_.read_bytes_max : options_.write_bytes_max;
      const std::uint64_t there =
          is_read ? queue(DiskLane::kRead).bytes
                  : queue(DiskLane::kWrite).bytes + queue(DiskLane::kUrgentWrite).bytes;
      // One that is larger than all that may wait would never be taken.
      if (there != 0 && (there > most || bytes > most - there)) return Submitted::kFull;
      queue(lane).bytes += bytes;
      queue(lane).tasks.push_back({bytes, std::move(task)});
    }
    // Readers and the writer wait for different things.
    (lane == DiskLane::kRead ? read_wanted_ : write_wanted_).notify_one();
    return Submitted::kAccepted;
  }

  // A thread's life.
  void run(Role role) ENCORE_EXCLUDES(mutex_) {
    for (;;) {
      Waiting next;
      {
        const MutexLock lock(mutex_);
        auto& wanted = role == Role::kReader ? read_wanted_ : write_wanted_;
        while (!has_work(role) && !stopping_) wanted.wait(mutex_);
        if (!has_work(role)) break;
        next = take(role);
      }
      next.task(DiskRun::kRun);
      // Releases the task's resources before waiting for the next.
      next.task = nullptr;
    }
    const MutexLock lock(mutex_);
    ENCORE_CHECK(threads_ != 0, "a thread ends once");
    --threads_;
    ended_.notify_all();
  }

  bool stop(Nanoseconds patience) ENCORE_EXCLUDES(mutex_) {
    std::deque<Waiting> cancelled;
    {
      const MutexLock lock(mutex_);
      stopping_ = true;
      // Reads are of no use to anybody now. Writes are, as long as there is patience.
      cancelled = std::exchange(queue(DiskLane::kRead), {}).tasks;
    }
    read_wanted_.notify_all();
    write_wanted_.notify_all();
    cancel(cancelled);
    const auto end = std::chrono::steady_clock::now() + patience;
    bool ended = wait_for_threads(end);
    if (!ended) {
      // Those of the writer, who may be stuck; he finds none when he comes back.
      for (const DiskLane lane : {DiskLane::kUrgentWrite, DiskLane::kWrite}) {
        {
          const MutexLock lock(mutex_);
          cancelled = std::exchange(queue(lane), {}).tasks;
        }
        cancel(cancelled);
      }
      // A disk that works is done with one operation in no time.
      constexpr auto kLastOperation = std::chrono::milliseconds(100);
      ended = wait_for_threads(std::chrono::steady_clock::now() + kLastOperation);
    }
    return ended;
  }

  std::uint64_t waiting_bytes(DiskLane lane) const ENCORE_EXCLUDES(mutex_) {
    const MutexLock lock(mutex_);
    return queues_[static_cast<std::size_t>(lane)].bytes;
  }

 private:
  struct Queue {
    std::deque<Waiting> tasks;
    std::uint64_t bytes = 0;
  };

  Queue& queue(DiskLane lane) ENCORE_REQUIRES(mutex_) {
    return queues_[static_cast<std::size_t>(lane)];
  }
  bool has_work(Role role) ENCORE_REQUIRES(mutex_) {
    if (role == Role::kReader) return !queue(DiskLane::kRead).tasks.empty();
    return !queue(DiskLane::kWrite).tasks.empty() || !queue(DiskLane::kUrgentWrite).tasks.empty();
  }
  Waiting take(Role role) ENCORE_REQUIRES(mutex_) {
    const bool is_urgent = !queue(DiskLane::kUrgentWrite).tasks.empty();
    Queue& from = queue(role == Role::kReader ? DiskLane::kRead
                        : is_urgent           ? DiskLane::kUrgentWrite
                                              : DiskLane::kWrite);
    Waiting next = std::move(from.tasks.front());
    from.tasks.pop_front();
    ENCORE_CHECK(from.bytes >= next.bytes, "a task takes the bytes that it came with");
    from.bytes -= next.bytes;
    return next;
  }
  bool wait_for_threads(std::chrono::steady_clock::time_point end) ENCORE_EXCLUDES(mutex_) {
    const MutexLock lock(mutex_);
    while (threads_ != 0) {
      if (ended_.wait_until(mutex_, end) == std::cv_status::timeout) return threads_ == 0;
    }
    return true;
  }
  // Without the lock: a task may do what it likes.
  static void cancel(std::deque<Waiting>& waiting) {
    for (Waiting& each : waiting) each.task(DiskRun::kCancelled);
    waiting.clear();
  }

  const EngineOptions options_;
  mutable Mutex mutex_;
  std::condition_variable_any read_wanted_;
  std::condition_variable_any write_wanted_;
  std::condition_variable_any ended_;
  std::array<Queue, 3> queues_ ENCORE_GUARDED_BY(mutex_);
  std::uint32_t threads_ ENCORE_GUARDED_BY(mutex_) = 0;
  bool stopping_ ENCORE_GUARDED_BY(mutex_) = false;
};

class ThreadedEngine final : public DiskEngine {
 public:
  explicit ThreadedEngine(const EngineOptions& options)
      : shared_(std::make_shared<Shared>(options)) {
    for (std::uint32_t i = 0; i < options.read_threads; ++i) start(Role::kReader);
    start(Role::kWriter);
  }
  ThreadedEngine(const ThreadedEngine&) = delete;
  ThreadedEngine& operator=(const ThreadedEngine&) = delete;
  ~ThreadedEngine() override { ThreadedEngine::stop(Nanoseconds(0)); }

  Submitted submit(DiskLane lane, std::uint64_t bytes, DiskTask task) override {
    return shared_->submit(lane, bytes, std::move(task));
  }
  bool stop(Nanoseconds patience) override {
    const bool ended = shared_->stop(patience);
    const MutexLock lock(mutex_);
    for (std::thread& thread : threads_) ended ? thread.join() : thread.detach();
    threads_.clear();
    return ended;
  }
  std::uint64_t waiting_bytes(DiskLane lane) const override { return shared_->waiting_bytes(lane); }

 private:
  void start(Role role) {
    shared_->add_thread();
    const MutexLock lock(mutex_);
    threads_.emplace_back([shared = shared_, role] {
      if (role == Role::kReader) go_behind_workers();
      shared->run(role);
    });
  }

  std::shared_ptr<Shared> shared_;
  Mutex mutex_;
  std::vector<std::thread> threads_ ENCORE_GUARDED_BY(mutex_);
};

class InlineEngine final : public DiskEngine {
 public:
  Submitted submit(DiskLane /*lane*/, std::uint64_t /*bytes*/, DiskTask task) override {
    if (stopped_) return Submitted::kStopped;
    task(DiskRun::kRun);
    return Submitted::kAccepted;
  }
  bool stop(Nanoseconds /*patience*/) override {
    stopped_ = true;
    return true;
  }
  std::uint64_t waiting_bytes(DiskLane /*lane*/) const override { return 0; }

 private:
  bool stopped_ = false;
};

}  // namespace

std::unique_ptr<DiskEngine> make_threaded_engine(const EngineOptions& options) {
  return std::make_unique<ThreadedEngine>(options);
}

std::unique_ptr<DiskEngine> make_inline_engine() { return std::make_unique<InlineEngine>(); }

}  // namespace encore::disk
