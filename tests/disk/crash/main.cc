// The crash model of the disk tier, one history after the other: ./dev crash.
// Ends with 0 and a summary, or with 1 and the first fault of the lowest seed.
#include <algorithm>
#include <atomic>
#include <charconv>
#include <chrono>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "base/mutex.h"
#include "tests/disk/model/crash_model.h"

namespace encore::disk {
namespace {

constexpr std::string_view kUsage =
    "usage: encore_disk_crash [--seed N] [--histories N] [--seconds S] [--lives N] [--steps N]\n"
    "       [--subsets N] [--jobs N]\n"
    "A history is a disk's lives, by its seed: 256 of them unless told otherwise, or as many as\n"
    "fit into the time. A life has so many steps and ends in a crash or a clean stop; at each of\n"
    "its writes every prefix, torn writes and so many subsets of what is unsynced are recovered.\n";

struct Options {
  CrashOptions each;
  std::uint64_t histories = 256;
  std::uint64_t seconds = 0;
  std::uint64_t jobs = std::max(1U, std::thread::hardware_concurrency());
};

[[noreturn]] void usage() {
  std::fwrite(kUsage.data(), 1, kUsage.size(), stderr);
  std::exit(2);
}

std::uint64_t number_of(std::string_view text) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) usage();
  return value;
}

Options parse(int count, char** arguments) {
  Options options;
  for (int i = 1; i < count; i += 2) {
    const std::string_view name = arguments[i];
    if (i + 1 == count) usage();
    const std::uint64_t value = number_of(arguments[i + 1]);
    if (name == "--seed") {
      options.each.seed = value;
    } else if (name == "--histories") {
      options.histories = value;
    } else if (name == "--seconds") {
      options.seconds = value;
    } else if (name == "--lives") {
      options.each.lives = static_cast<int>(std::min<std::uint64_t>(value, 1'000'000));
    } else if (name == "--steps") {
      options.each.steps = static_cast<int>(std::min<std::uint64_t>(value, 1'000'000));
    } else if (name == "--subsets") {
      options.each.subsets = static_cast<int>(std::min<std::uint64_t>(value, 1'000'000));
    } else if (name == "--jobs") {
      options.jobs = std::clamp<std::uint64_t>(value, 1, 256);
    } else {
      usage();
    }
  }
  if (options.seconds != 0) options.histories = UINT64_MAX;
  return options;
}

// Findings of all threads so far.
class Totals {
 public:
  explicit Totals(const Options& options) : options_(options) {}

  // The next history; false: that was all.
  bool next(CrashOptions& each) {
    const std::uint64_t number = begun_.fetch_add(1);
    const auto spent = std::chrono::steady_clock::now() - begin_;
    if (number >= options_.histories || has_fault_ ||
        (options_.seconds != 0 && spent >= std::chrono::seconds(options_.seconds))) {
      return false;
    }
    each = options_.each;
    each.seed += number;
    return true;
  }
  void add(const CrashOptions& each, const CrashReport& report) {
    const MutexLock lock(mutex_);
    ++histories_;
    sum_.writes += report.writes;
    sum_.images += report.images;
    sum_.records += report.records;
    sum_.heads += report.heads;
    sum_.scanned += report.scanned;
    sum_.turns += report.turns;
    sum_.moved += report.moved;
    sum_.moved_parts += report.moved_parts;
    sum_.purges += report.purges;
    if (!report.fault) return;
    has_fault_ = true;
    if (sum_.fault && each.seed > fault_seed_) return;
    fault_seed_ = each.seed;
    sum_.fault = report.fault;
  }
  int print() {
    const MutexLock lock(mutex_);
    const std::chrono::duration<double> spent = std::chrono::steady_clock::now() - begin_;
    std::printf("%" PRIu64 " histories from seed %" PRIu64 ", %" PRIu64 " writes, %" PRIu64
                " turns of segments, %" PRIu64 " moves and %" PRIu64 " of parts, %" PRIu64
                " purges\n",
                histories_, options_.each.seed, sum_.writes, sum_.turns, sum_.moved,
                sum_.moved_parts, sum_.purges);
    std::printf("%" PRIu64 " images recovered in %.0f s, %" PRIu64 " segments scanned, %" PRIu64
                " records found and compared, %" PRIu64 " of them in parts\n",
                sum_.images, spent.count(), sum_.scanned, sum_.records, sum_.heads);
    std::printf("%s\n", sum_.fault ? ("FAULT: " + *sum_.fault).c_str() : "no fault");
    return sum_.fault ? 1 : 0;
  }

 private:
  const Options& options_;
  const std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
  std::atomic<std::uint64_t> begun_ = 0;
  std::atomic<bool> has_fault_ = false;
  Mutex mutex_;
  CrashReport sum_ ENCORE_GUARDED_BY(mutex_);
  std::uint64_t fault_seed_ ENCORE_GUARDED_BY(mutex_) = 0;
  std::uint64_t histories_ ENCORE_GUARDED_BY(mutex_) = 0;
};

int run(int count, char** arguments) {
  const Options options = parse(count, arguments);
  Totals totals(options);
  std::vector<std::thread> threads;
  for (std::uint64_t i = 0; i < options.jobs; ++i) {
    threads.emplace_back([&] {
      CrashOptions each;
      while (totals.next(each)) totals.add(each, run_crash_model(each));
    });
  }
  for (std::thread& thread : threads) thread.join();
  return totals.print();
}

}  // namespace
}  // namespace encore::disk

int main(int count, char** arguments) { return encore::disk::run(count, arguments); }
