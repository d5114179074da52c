// Two processes of Served that have the same files, one after the other.
#include <algorithm>

#include "proxy/disk/open.h"
#include "tests/disk/model/served.h"

namespace encore::disk {
namespace {

constexpr std::chrono::seconds kPatience(10);

// Writes are done while somebody waits for them.
class WritesAtOnce {
 public:
  explicit WritesAtOnce(std::array<StepTasks, 2>& tasks) : tasks_(tasks) { set(true); }
  ~WritesAtOnce() { set(false); }
  WritesAtOnce(const WritesAtOnce&) = delete;
  WritesAtOnce& operator=(const WritesAtOnce&) = delete;

 private:
  void set(bool runs_writes) {
    for (StepTasks& tasks : tasks_) tasks.runs_writes = runs_writes;
  }
  std::array<StepTasks, 2>& tasks_;
};

}  // namespace

void Served::turn_to(Process& other) {
  swap(other);
  shown_.swap(other.shown);
}

std::vector<Image> Served::images() const {
  std::vector<Image> images;
  for (const auto& file : files_) images.push_back(file->image());
  return images;
}

std::vector<RunHistory> Served::runs() const {
  std::vector<RunHistory> runs;
  for (const auto& file : files_) runs.push_back(read_superblock(*file).value().runs);
  return runs;
}

std::string Served::hand_over(Succession how) {
  end_predecessor();
  run_reads();
  uploads_.clear();
  if (random_() % 2 == 0) deliver();
  {
    const WritesAtOnce writes(*tasks_);
    if (!disks_->hold(kPatience)) return "the disks are not held";
  }
  const cache::DiskVersion held = kernel_->purge_rule(now_);
  const std::vector<Image> before = images();
  const auto places = written();
  auto next = std::make_unique<Process>();
  if (std::string why = open(*next, true); !why.empty()) return why;
  while (std::ranges::any_of(*next->tasks, [](StepTasks& tasks) { return !tasks.reads.empty(); })) {
    if (how == Succession::kEndsLoading && random_() % 16 == 0) break;
    if (random_() % 4 == 0) {
      (void)(*next->tasks)[random_() % options_.disks].run_one(random_);
    } else {
      step_held();
    }
  }
  run_reads();
  if (images() != before) return "a disk is written while it is held";
  if (how == Succession::kDone) {
    if (!next->disks->is_loaded()) return "the next process has not loaded its disks";
    if (std::string why = unequal(*next, places); !why.empty()) return why;
  }
  return how == Succession::kDone ? succeed(std::move(next), held)
                                  : roll_back(std::move(next), how);
}

// Purges wait for the end of it, and nothing is placed.
void Served::step_held() {
  const auto what = random_() % 100;
  if (what < 25) {
    const auto decision = commit(some_name(), random_() % 20'000);
    if (decision.outcome == cache::DiskOutcome::kPlaced) note("placed on a disk that is held");
  } else if (what < 45) {
    load(some_name());
  } else if (what < 55) {
    deliver_one();
  } else if (what < 65) {
    invalidate(random_() % options_.keys, false);
  } else if (what < 75) {
    tick();
  } else {
    (*tasks_)[random_() % options_.disks].run_one(random_);
  }
}

// Places of all that is written; nothing if a record is on its way, behind whose place none is. An
// object with variants may be lost with a purged one of the others.
std::map<Served::Name, cache::DiskPlace> Served::written() {
  std::map<Name, cache::DiskPlace> written;
  if (!undelivered_.empty()) return written;
  for (std::uint64_t number = 0; number < options_.keys; ++number) {
    if (has_variants(number)) continue;
    if (const auto place = find({number, 0})) written[{number, 0}] = *place;
  }
  return written;
}

// `next` finds what is still found here of what was written, and is not purged by a rule.
std::string Served::unequal(Process& next, const std::map<Name, cache::DiskPlace>& written) {
  for (const auto& [name, place] : written) {
    const std::uint64_t done = counts.done;
    if (find(name) != place || !load(name)) continue;
    run_reads();
    if (counts.done == done) continue;
    swap(next);
    const auto there = find(name);
    swap(next);
    if (there != place) return texts_[name.first] + " is not found by the next process";
  }
  return "";
}

std::string Served::succeed(std::unique_ptr<Process> next, cache::DiskVersion held) {
  const std::vector<RunHistory> before = runs();
  {
    const WritesAtOnce writes(*next->tasks);
    next->disks->take_over();
  }
  if (next->disks->is_held()) return "the next process does not have its disks";
  if (runs() == before) return "the next process has begun no run";
  deliver();
  next->shown = shown_;
  predecessor_ = std::move(next);
  turn_to(*predecessor_);
  ++counts.handed_over;
  take_tombstones();
  // Its versions begin above all that lies there, not above what the other has dealt with since.
  for (auto& [name, version] : shown_) {
    if (version > held) version = kernel_->purge_rule(now_);
  }
  for (auto& [number, version] : buried_) {
    if (version > held) version = kernel_->purge_rule(now_);
  }
  return "";
}

std::string Served::roll_back(std::unique_ptr<Process> next, Succession how) {
  const std::vector<RunHistory> before = runs();
  if (how == Succession::kEndsWithRun) {
    const WritesAtOnce writes(*next->tasks);
    next->disks->take_over();
    if (runs() == before) return "the next process has begun no run";
  }
  for (FileSwitch& device : *next->devices) device.writes_fail = true;
  next.reset();
  {
    const WritesAtOnce writes(*tasks_);
    disks_->resume();
  }
  if (disks_->is_held()) return "the disks are held after a rollback";
  if (runs() != before) return "the run of another process is left on a disk";
  ++counts.rolled_back;
  return "";
}

void Served::take_tombstones() {
  std::vector<Purge> buried;
  {
    const WritesAtOnce writes(*predecessor_->tasks);
    buried = predecessor_->disks->take_tombstones();
  }
  if (predecessor_->disks->has_noted_purge()) disks_->note_purge();
  for (const Purge& each : buried) {
    cache::DiskTombstone tombstone;
    (void)kernel_->invalidate({each.key, {}}, now_, &tombstone);
    disks_->add_tombstone(each.key, tombstone);
    ++counts.forgotten;
  }
}

void Served::purge_in_predecessor(const Purge& purge, std::optional<std::uint64_t> number) {
  if (!predecessor_) return;
  Purge same = purge;
  if (number) {
    cache::DiskTombstone tombstone;
    predecessor_->kernel->invalidate(key(*number), now_, &tombstone);
    if (!tombstone) return;
    same.version = tombstone.version;
  } else {
    same.version = predecessor_->kernel->purge_rule(now_);
  }
  bool is_done = false;
  predecessor_->disks->purge({same},
                             [&](const Result<void>& result) { is_done = result.has_value(); });
  if (!is_done) note("a purge waits in a process that no longer writes");
}

void Served::step_predecessor() {
  if (!predecessor_) return;
  const std::vector<Image> before = images();
  turn_to(*predecessor_);
  disks_->tick();
  load(some_name());
  run();
  turn_to(*predecessor_);
  if (images() != before) note("a process writes to disks that another one has");
  take_tombstones();
}

void Served::end_predecessor() {
  if (!predecessor_) return;
  take_tombstones();
  const std::vector<Image> before = images();
  predecessor_.reset();
  if (images() != before) note("a process that ends writes to disks that another one has");
}

}  // namespace encore::disk
