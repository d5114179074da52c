// The cost of a start with a disk of many small objects, after the process that wrote them was
// killed: the time until it can respond, the time until all are found, and the index's bytes for
// each.
//
//   disk_start_bench [directory] [objects] [starts]
//
// /var/tmp, 10000000 and 1 unless given; 700 bytes each. Each start is a process that is killed,
// too.
#include <malloc.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cinttypes>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/check.h"
#include "base/units.h"
#include "cache/kernel.h"
#include "filter/hash.h"
#include "proxy/disk/disks.h"
#include "proxy/disk/record.h"

namespace {

using namespace encore;        // NOLINT(google-build-using-namespace): a program, no header
using namespace encore::disk;  // NOLINT(google-build-using-namespace)
using Seconds = std::chrono::duration<double>;

constexpr filter::Seed kSeed{1, 2};
constexpr WallSeconds kKept = 4'000'000'000U;
constexpr std::uint64_t kObjectBytes = 700;  // on disk, at most

template <typename T>
T expected(Result<T> result) {
  if (!result) {
    std::fprintf(stderr, "disk_start_bench: %s\n", result.error().message.c_str());
    std::exit(1);
  }
  return std::move(*result);
}

// A response of 60 bytes, with the text that goes with it.
class Small final : public RecordSource {
 public:
  Small(std::string text, const filter::Hash128& key) : text_(std::move(text)), key_(key) {}
  Record record() const override {
    Record record{};
    record.fields.key = key_;
    record.fields.fresh_until = record.fields.keep_until = kKept;
    record.fields.stored_at = 1'700'000'000U;
    record.fields.body_bytes = kBody.iov_len;
    record.text = {.key = text_, .names = {}, .meta = kMeta, .head = kHead};
    record.body = {&kBody, 1};
    return record;
  }
  static std::uint64_t bytes(const std::string& text) {
    return record_bytes({.key_bytes = static_cast<std::uint32_t>(text.size()),
                         .names_bytes = 0,
                         .meta_bytes = static_cast<std::uint32_t>(kMeta.size()),
                         .head_bytes = static_cast<std::uint32_t>(kHead.size()),
                         .body_bytes = kBody.iov_len});
  }

 private:
  static inline const std::string kMeta = std::string(112, 'm');
  static inline const std::string kHead = std::string(240, 'h');
  static constexpr std::array<char, 60> kBytes{};
  static inline const iovec kBody{const_cast<char*>(kBytes.data()),
                                  kBytes.size()};  // not written to
  std::string text_;
  filter::Hash128 key_;
};

struct Cache {
  std::unique_ptr<Disks> disks;
  std::unique_ptr<cache::Kernel> kernel;
};

std::string text_of(std::uint64_t number) {
  return "https://www.example.org/objects/of/a/small/kind/" + std::to_string(number);
}

Cache open(const std::string& path, std::uint64_t objects) {
  DisksOptions options;
  options.identity_seed = kSeed;
  // Room for what is only begun in each segment, so that nothing is reclaimed.
  options.disks = {{path, objects * kObjectBytes + 512 * kMiB, 0}};
  Cache cache{.disks = expected(Disks::open(options)), .kernel = nullptr};
  cache::KernelOptions kernel;
  // The index may take half of it.
  kernel.capacity_bytes = objects * 112 + 64 * kMiB;
  kernel.shards = 16;
  kernel.admission.policy = cache::AdmissionPolicy::kAlways;
  kernel.identity_seed = kSeed;
  kernel.disks = cache.disks->kernel_disks();
  cache.kernel = expected(cache::Kernel::create(kernel, {}, monotonic_now()));
  return cache;
}

// Writes them all, waits until all are on the disk, and does not end by itself.
[[noreturn]] void fill_and_be_killed(const std::string& path, std::uint64_t objects) {
  const Cache cache = open(path, objects);
  cache.disks->start(*cache.kernel);
  for (std::uint64_t number = 0; number < objects; ++number) {
    while (cache.disks->is_queue_full()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    const std::string text = text_of(number);
    const cache::Key key = filter::identify(kSeed, text);
    cache::DiskDecision decision;
    const auto outcome = cache.kernel->commit(
        key, {.disk_bytes = Small::bytes(text), .disk_only = true}, 0, monotonic_now(), &decision);
    ENCORE_CHECK(outcome == cache::CommitOutcome::kStored, "there is room for all");
    cache.disks->decided(key, decision, std::make_unique<Small>(text, key.hash));
    if (number % 1'000'000 == 999'999) std::fprintf(stderr, "written: %" PRIu64 "\n", number + 1);
  }
  // Waiting records are flushed within a second.
  while (cache.disks->statistics().disks[0].waiting_bytes != 0) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  std::this_thread::sleep_for(std::chrono::seconds(2));
  ::kill(::getpid(), SIGKILL);
  std::abort();
}

std::uint64_t resident_bytes() {
  std::ifstream file("/proc/self/statm");
  std::uint64_t all = 0;
  std::uint64_t resident = 0;
  file >> all >> resident;
  return resident * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
}

[[noreturn]] void start_again_and_be_killed(const std::string& path, std::uint64_t objects) {
  const auto begin = std::chrono::steady_clock::now();
  const auto since = [&] { return Seconds(std::chrono::steady_clock::now() - begin).count(); };
  const std::uint64_t before = resident_bytes();
  const Cache cache = open(path, objects);
  cache.disks->start(*cache.kernel);
  std::printf("can answer after          %8.3f s\n", since());
  while (true) {
    const DiskReport report = cache.disks->statistics().disks[0];
    if (report.condition != DiskCondition::kLoading) break;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  const double took = since();
  const std::uint64_t found = cache.kernel->statistics().disk.entries;
  std::printf("all loaded after          %8.3f s, %.0f a second\n", took, double(found) / took);
  std::printf("found                     %8" PRIu64 " of %" PRIu64 "\n", found, objects);
  std::printf("charged                   %8.2f bytes each\n",
              double(cache.kernel->statistics().used_bytes) / double(found));
  // Returns the memory of the read to the system.
  ::malloc_trim(0);
  std::printf("resident memory           %8.2f bytes each\n",
              double(resident_bytes() - before) / double(found));
  std::uint64_t missed = 0;
  const std::uint64_t step = std::max<std::uint64_t>(objects / 100'000, 1);
  for (std::uint64_t number = 0; number < objects; number += step) {
    const std::string text = text_of(number);
    cache::DiskView view;
    const auto result =
        cache.kernel->lookup(filter::identify(kSeed, text), monotonic_now(), 0, &view);
    missed += result.on_disk() ? 0U : 1U;
  }
  std::printf("of every %" PRIu64 "th, missed     %8" PRIu64 "\n", step, missed);
  std::fflush(stdout);
  ::kill(::getpid(), SIGKILL);
  std::abort();
}

// In a process of its own; false if it ended otherwise than it should.
template <typename Work>
bool was_killed_at(Work work) {
  const pid_t child = ::fork();
  if (child == 0) work();
  int status = 0;
  ENCORE_CHECK(child > 0 && ::waitpid(child, &status, 0) == child, "a process of its own");
  return WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
}

}  // namespace

int main(int count, char** arguments) {
  const std::string directory = count > 1 ? arguments[1] : "/var/tmp";
  const std::uint64_t objects = count > 2 ? std::strtoull(arguments[2], nullptr, 10) : 10'000'000;
  std::uint64_t starts = count > 3 ? std::strtoull(arguments[3], nullptr, 10) : 1;
  if (count > 4 || objects == 0 || starts == 0) {
    std::fputs("usage: disk_start_bench [directory] [objects] [starts]\n", stderr);
    return 2;
  }
  const std::string path = directory + "/disk_start_bench-" + std::to_string(::getpid());
  bool was_killed = was_killed_at([&] { fill_and_be_killed(path, objects); });
  for (; was_killed && starts > 0; --starts) {
    was_killed = was_killed_at([&] { start_again_and_be_killed(path, objects); });
  }
  ::unlink(path.c_str());
  return was_killed ? 0 : 1;
}
