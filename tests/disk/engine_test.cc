#include "proxy/disk/engine.h"

#include <sys/resource.h>

#include <algorithm>
#include <atomic>
#include <latch>
#include <random>
#include <semaphore>
#include <string>
#include <thread>
#include <vector>

#include "base/mutex.h"
#include "proxy/disk/open.h"
#include "proxy/disk/record_reader.h"
#include "proxy/disk/segment_writer.h"
#include "tests/catch.h"
#include "tests/disk/model/made_record.h"
#include "tests/temporary_directory.h"

namespace encore::disk {
namespace {

using namespace std::chrono_literals;

constexpr Nanoseconds kLong = 60s;

// The tasks that ran, in their order, on any thread.
class Notes {
 public:
  void add(const std::string& what) {
    const MutexLock lock(mutex_);
    all_ += what;
  }
  std::string all() const {
    const MutexLock lock(mutex_);
    return all_;
  }

 private:
  mutable Mutex mutex_;
  std::string all_ ENCORE_GUARDED_BY(mutex_);
};

// A task that keeps its thread until it is let go.
struct Gate {
  std::latch entered{1};
  std::latch open{1};
  DiskTask task() {
    return [this](DiskRun) {
      entered.count_down();
      open.wait();
    };
  }
};

}  // namespace

TEST_CASE("readers go behind the workers whose CPUs they share, and the writer does not",
          "[disk][engine][threads]") {
  const auto engine = make_threaded_engine({.read_threads = 1});
  const int ours = getpriority(PRIO_PROCESS, 0);
  for (const DiskLane lane : {DiskLane::kRead, DiskLane::kWrite}) {
    CAPTURE(lane);
    std::latch ended(1);
    int priority = 0;
    REQUIRE(engine->submit(lane, 1, [&](DiskRun) {
      priority = getpriority(PRIO_PROCESS, 0);
      ended.count_down();
    }) == Submitted::kAccepted);
    ended.wait();
    CHECK(priority == (lane == DiskLane::kRead ? std::min(ours + 10, 19) : ours));
  }
  CHECK(getpriority(PRIO_PROCESS, 0) == ours);
}

TEST_CASE("writes are done in their order, but for what is urgent", "[disk][engine][threads]") {
  const auto engine = make_threaded_engine({.read_threads = 2});
  Notes notes;
  Gate gate;
  REQUIRE(engine->submit(DiskLane::kWrite, 1, gate.task()) == Submitted::kAccepted);
  gate.entered.wait();
  const auto note = [&](const char* name) {
    return [&notes, name](DiskRun run) { notes.add(run == DiskRun::kRun ? name : "cancelled "); };
  };
  for (const char* name : {"a ", "b ", "c "}) engine->submit(DiskLane::kWrite, 1, note(name));
  for (const char* name : {"u ", "v "}) engine->submit(DiskLane::kUrgentWrite, 1, note(name));
  CHECK(engine->waiting_bytes(DiskLane::kWrite) == 3);
  gate.open.count_down();
  CHECK(engine->stop(kLong));
  CHECK(notes.all() == "u v a b c ");
}

TEST_CASE("what waits is bounded, and who would wait is told at once", "[disk][engine][threads]") {
  const auto engine =
      make_threaded_engine({.read_threads = 1, .read_bytes_max = 100, .write_bytes_max = 50});
  Gate read;
  Gate write;
  engine->submit(DiskLane::kRead, 1000, read.task());  // one alone may be larger
  engine->submit(DiskLane::kWrite, 1000, write.task());
  read.entered.wait();
  write.entered.wait();
  std::atomic<int> done = 0;
  const auto count = [&](DiskRun) { ++done; };
  CHECK(engine->submit(DiskLane::kRead, 60, count) == Submitted::kAccepted);
  CHECK(engine->submit(DiskLane::kRead, 41, count) == Submitted::kFull);
  CHECK(engine->submit(DiskLane::kRead, 40, count) == Submitted::kAccepted);
  CHECK(engine->submit(DiskLane::kWrite, 50, count) == Submitted::kAccepted);
  CHECK(engine->submit(DiskLane::kUrgentWrite, 1, count) == Submitted::kFull);
  CHECK(engine->submit(DiskLane::kWrite, UINT64_MAX, count) == Submitted::kFull);
  read.open.count_down();
  write.open.count_down();
  CHECK(engine->stop(kLong));
  CHECK(engine->submit(DiskLane::kRead, 1, count) == Submitted::kStopped);
  CHECK(engine->waiting_bytes(DiskLane::kRead) == 0);
}

TEST_CASE("reads are done side by side, and not behind writes", "[disk][engine][threads]") {
  const auto engine = make_threaded_engine({.read_threads = 3});
  Gate write;
  engine->submit(DiskLane::kWrite, 1, write.task());
  // None of them goes on before all have begun.
  std::latch together(3);
  std::latch done(3);
  for (int i = 0; i < 3; ++i) {
    engine->submit(DiskLane::kRead, 1, [&](DiskRun) {
      together.arrive_and_wait();
      done.count_down();
    });
  }
  done.wait();
  write.open.count_down();
  CHECK(engine->stop(kLong));
}

TEST_CASE("a stop cancels the reads that wait and does the writes", "[disk][engine][threads]") {
  const auto engine = make_threaded_engine({.read_threads = 1});
  Gate read;
  Gate write;
  Notes notes;
  engine->submit(DiskLane::kRead, 1, read.task());
  engine->submit(DiskLane::kWrite, 1, write.task());
  read.entered.wait();
  write.entered.wait();
  std::binary_semaphore cancelled(0);
  engine->submit(DiskLane::kRead, 1, [&](DiskRun run) {
    notes.add(run == DiskRun::kRun ? "read " : "read-cancelled ");
    cancelled.release();
  });
  engine->submit(DiskLane::kWrite, 1, [&](DiskRun run) {
    notes.add(run == DiskRun::kRun ? "write " : "write-cancelled ");
  });
  std::thread stopper([&] { CHECK(engine->stop(kLong)); });
  cancelled.acquire();
  read.open.count_down();
  write.open.count_down();
  stopper.join();
  CHECK(notes.all() == "read-cancelled write ");
}

TEST_CASE("a disk that never answers does not keep a process from ending",
          "[disk][engine][threads]") {
  // Shared with threads that outlive the engine.
  struct Stuck {
    Gate read;
    Gate write;
    std::latch ended{2};
  };
  const auto stuck = std::make_shared<Stuck>();
  Notes notes;
  auto engine = make_threaded_engine({.read_threads = 1});
  engine->submit(DiskLane::kRead, 1, [stuck](DiskRun run) {
    stuck->read.task()(run);
    stuck->ended.count_down();
  });
  engine->submit(DiskLane::kWrite, 1, [stuck](DiskRun run) {
    stuck->write.task()(run);
    stuck->ended.count_down();
  });
  stuck->read.entered.wait();
  stuck->write.entered.wait();
  engine->submit(DiskLane::kWrite, 1,
                 [&](DiskRun run) { notes.add(run == DiskRun::kRun ? "write" : "cancelled"); });
  CHECK_FALSE(engine->stop(Nanoseconds(0)));
  CHECK(notes.all() == "cancelled");
  CHECK(engine->stop(Nanoseconds(0)) == false);
  engine.reset();
  stuck->read.open.count_down();
  stuck->write.open.count_down();
  stuck->ended.wait();
}

TEST_CASE("every task that was accepted is called once, whoever submits and stops",
          "[disk][engine][threads]") {
  for (int round = 0; round < 20; ++round) {
    std::atomic<int> accepted = 0;
    std::atomic<int> called = 0;
    const auto engine =
        make_threaded_engine({.read_threads = 3, .read_bytes_max = 50, .write_bytes_max = 50});
    std::vector<std::thread> threads;
    for (unsigned i = 0; i < 3; ++i) {
      threads.emplace_back([&, i] {
        std::mt19937 random(i);
        for (;;) {
          const auto lane = static_cast<DiskLane>(random() % 3);
          const auto got = engine->submit(lane, random() % 10, [&](DiskRun) { ++called; });
          if (got == Submitted::kStopped) return;
          if (got == Submitted::kAccepted) ++accepted;
        }
      });
    }
    while (called < 50) std::this_thread::yield();
    CHECK(engine->stop(kLong));
    for (std::thread& thread : threads) thread.join();
    CHECK(called == accepted);
  }
}

TEST_CASE("the inline engine has done everything when submit returns", "[disk][engine]") {
  const auto engine = make_inline_engine();
  Notes notes;
  engine->submit(DiskLane::kWrite, 1, [&](DiskRun) {
    notes.add("a ");
    engine->submit(DiskLane::kRead, 1, [&](DiskRun) { notes.add("b "); });
    notes.add("c ");
  });
  CHECK(notes.all() == "a b c ");
  CHECK(engine->stop(Nanoseconds(0)));
  CHECK(engine->submit(DiskLane::kRead, 1, [](DiskRun) {}) == Submitted::kStopped);
}

TEST_CASE("records are written on one thread and read on others, on a real file",
          "[disk][engine][threads]") {
  const server::TemporaryDirectory place;
  const auto file = open_file(place / "disk", FileUse::kMake);
  REQUIRE(file);
  OpenOptions options;
  options.disk_bytes = 8U << 20U;
  options.segment_bytes = 1U << 20U;
  const auto superblock = open_disk(**file, options);
  REQUIRE(superblock);
  SegmentWriter writer(**file, *superblock, {});
  const auto engine = make_threaded_engine({.read_threads = 3});
  std::mt19937_64 random(1);
  std::vector<MadeRecord> records;
  std::vector<cache::DiskPlace> places;
  std::uint32_t unit = cache::kSegmentHeaderBytes / cache::kDiskUnit;
  for (std::size_t i = 0; i < 40; ++i) {
    records.push_back(made_record(random, {RecordKind::kObject, random() % 20'000, 2}));
    const std::uint64_t room = cache::disk_room(record_bytes(shape_of(records[i].view())));
    places.push_back({0, 0, unit, room});
    unit += static_cast<std::uint32_t>(room / cache::kDiskUnit);
  }
  std::atomic<int> good = 0;
  std::latch read(40);
  engine->submit(DiskLane::kWrite, 1, [&](DiskRun) { (void)writer.open({0, 0, 1}, 1); });
  for (std::size_t i = 0; i < 40; ++i) {
    engine->submit(DiskLane::kWrite, 1, [&, i](DiskRun) {
      writer.add(records[i].view(), places[i]);
      if (!writer.flush()) return;
      // It may be read from now on.
      engine->submit(DiskLane::kRead, 1, [&, i](DiskRun) {
        RecordReader reader(**file, *superblock);
        const auto front = reader.open({places[i], 1, records[i].fields.key, records[i].key});
        std::string body;
        while (front && body.size() < records[i].body.size()) {
          const auto piece = reader.read(body.size(), records[i].body.size());
          if (!piece) break;
          body.append(reinterpret_cast<const char*>(piece->data()), piece->size());
        }
        if (front && body == records[i].body) ++good;
        read.count_down();
      });
    });
  }
  read.wait();
  CHECK(good == 40);
  CHECK(engine->stop(kLong));
}

}  // namespace encore::disk
