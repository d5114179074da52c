#include "tests/simulate/slow_disk.h"

#include <algorithm>
#include <list>
#include <utility>

#include "tests/simulate/poller.h"

namespace encore::simulate {

// An urgent call is done immediately: its caller has no turn to wait in.
class SlowDisk::Engine final : public disk::DiskEngine {
 public:
  explicit Engine(SlowDisk& disk) : disk_(disk), poller_(disk.system_, [this] { run_due(); }) {}
  ~Engine() override { Engine::stop(Nanoseconds(0)); }
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  disk::Submitted submit(disk::DiskLane lane, std::uint64_t bytes, disk::DiskTask task) override {
    if (stopped_) return disk::Submitted::kStopped;
    if (lane == disk::DiskLane::kUrgentWrite || disk_.longest_ == 0) {
      task(disk::DiskRun::kRun);
      return disk::Submitted::kAccepted;
    }
    const bool reads = lane == disk::DiskLane::kRead;
    std::int64_t due = disk_.system_.now() + disk_.draw();
    if (!reads) due = last_write_ = std::max(due, last_write_ + 1);
    ++(reads ? disk_.reads_ : disk_.writes_);
    waiting_.push_back({.due = due, .bytes = bytes, .reads = reads, .task = std::move(task)});
    ask_for_turn();
    return disk::Submitted::kAccepted;
  }
  bool stop(Nanoseconds /*patience*/) override {
    stopped_ = true;
    while (!waiting_.empty()) {
      run(waiting_.begin(),
          waiting_.front().reads ? disk::DiskRun::kCancelled : disk::DiskRun::kRun);
    }
    return true;
  }
  std::uint64_t waiting_bytes(disk::DiskLane lane) const override {
    std::uint64_t bytes = 0;
    for (const Waiting& each : waiting_) {
      if (each.reads == (lane == disk::DiskLane::kRead)) bytes += each.bytes;
    }
    return bytes;
  }

 private:
  struct Waiting {
    std::int64_t due = 0;
    std::uint64_t bytes = 0;
    bool reads = false;
    disk::DiskTask task;
  };

  void run(std::list<Waiting>::iterator which, disk::DiskRun how) {
    Waiting next = std::move(*which);
    waiting_.erase(which);
    --(next.reads ? disk_.reads_ : disk_.writes_);
    next.task(how);
    if (!stopped_ && disk_.on_done) disk_.on_done(next.reads ? Done::kRead : Done::kWrite);
  }
  std::list<Waiting>::iterator first() {
    return std::ranges::min_element(waiting_, {}, &Waiting::due);
  }
  void run_due() {
    while (!waiting_.empty()) {
      const auto next = first();
      if (next->due > disk_.system_.now()) break;
      run(next, disk::DiskRun::kRun);
    }
    ask_for_turn();
  }
  void ask_for_turn() {
    if (!waiting_.empty()) disk_.system_.schedule_wake(poller_, first()->due);
  }

  SlowDisk& disk_;
  Poller poller_;
  std::list<Waiting> waiting_;  // in the order in which they came
  std::int64_t last_write_ = 0;
  bool stopped_ = false;
};

class SlowDisk::Device final : public disk::File {
 public:
  Device(const SlowDisk& disk, std::shared_ptr<disk::MemoryFile> file)
      : disk_(disk), file_(std::move(file)) {}
  Result<void> read(std::span<std::byte> out, std::uint64_t offset) override {
    if (disk_.failing_.reads) return fail("a read failed");
    return file_->read(out, offset);
  }
  Result<void> write(std::span<const std::byte> bytes, std::uint64_t offset) override {
    if (disk_.failing_.writes) return fail("a write failed");
    return file_->write(bytes, offset);
  }
  Result<void> sync() override {
    if (disk_.failing_.writes) return fail("a sync failed");
    return file_->sync();
  }
  Result<void> allocate(std::uint64_t bytes) override { return file_->allocate(bytes); }
  Result<void> truncate(std::uint64_t bytes) override { return file_->truncate(bytes); }
  Result<std::uint64_t> size() override { return file_->size(); }
  const std::string& path() const override { return file_->path(); }

 private:
  const SlowDisk& disk_;
  std::shared_ptr<disk::MemoryFile> file_;
};

std::int64_t SlowDisk::draw() {
  // Most are quick.
  const std::uint64_t drawn = random_.below(1024);
  return 1 + static_cast<std::int64_t>(static_cast<std::uint64_t>(longest_) * drawn / 1024 * drawn /
                                       1024 * drawn / 1024);
}

void SlowDisk::prepare(disk::DisksOptions& options) {
  if (std::exchange(has_failed_, false)) {
    file_ = std::make_shared<disk::MemoryFile>();
    graves.forget();
  }
  failing_ = {};
  constexpr std::uint64_t kLittle = 64U << 10U;
  if (in_small_steps_) options.engine.write_bytes_max = kLittle;
  options.make_engine = [this](const disk::EngineOptions&) -> std::unique_ptr<disk::DiskEngine> {
    return std::make_unique<Engine>(*this);
  };
  options.open_file = [this](const std::string&) -> Result<std::unique_ptr<disk::File>> {
    return std::make_unique<Device>(*this, file_);
  };
}

}  // namespace encore::simulate
