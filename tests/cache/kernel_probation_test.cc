// Probation as a kernel runs it in front of disks: what waits, what leaves, what is written.
#include <algorithm>
#include <deque>
#include <map>
#include <random>
#include <set>
#include <thread>
#include <vector>

#include "tests/cache/journal_worker.h"

namespace encore::cache::test {
namespace {

using namespace std::chrono_literals;

constexpr std::uint64_t kMemory = 20'000;
constexpr std::uint64_t kLargest = kMemory / 8;

KernelOptions probation_options(std::uint32_t shards = 1) {
  KernelOptions options = plain_options(kMemory);
  options.shards = shards;
  options.max_object_share = 8;
  options.admission.policy = AdmissionPolicy::kProbation;
  options.admission.filter.bits = 1 << 18;
  options.admission.fill = false;
  options.disks = {{.segments = 32, .segment_bytes = 64 * 1024}};
  return options;
}

void reclaim_all(Kernel& kernel, MonotonicTime now) {
  for (std::uint16_t disk = 0; disk < kernel.disks(); ++disk) {
    while (true) {
      const DiskReclaim done = kernel.reclaim_disk(disk, {}, now);
      if (done.state == DiskReclaim::State::kNothing) break;
      if (done.state == DiskReclaim::State::kDone) {
        REQUIRE(kernel.free_segment(disk, done.segment, now));
      }
    }
  }
}

struct Answer {
  LookupState found = LookupState::kMiss;
  DiskHit disk = DiskHit::kNone;
  AdmitReason reason = AdmitReason::kPolicyRefuses;  // for a miss
  DiskOutcome written = DiskOutcome::kNotWanted;
};

// One request, as the proxy does it: what is admitted goes to memory and disk, what waits to
// memory.
Answer request(Kernel& kernel, std::uint64_t i, std::uint64_t bytes, MonotonicTime now = at(1)) {
  Answer answer;
  const LookupResult result = kernel.lookup(key(i), now);
  answer.found = result.state;
  answer.disk = result.disk;
  if (result.state != LookupState::kMiss) return answer;
  const bool alone = bytes > kLargest;
  answer.reason = kernel.admit(key(i), {.size_bytes = bytes, .disk_only = alone}, now);
  if (!is_stored(answer.reason)) return answer;
  const bool is_written = answer.reason != AdmitReason::kWaits;
  DiskDecision decision;
  kernel.commit(key(i),
                {.charge_bytes = alone ? 0 : bytes,
                 .payload = alone ? 0 : i + 1,
                 .disk_bytes = is_written ? bytes : 0,
                 .disk_only = alone,
                 .waits = is_on_probation(answer.reason)},
                0, now, &decision);
  answer.written = decision.outcome;
  if (decision.outcome == DiskOutcome::kPlaced) {
    kernel.written(key(i), decision.place, Kernel::Write::kDone, now);
  }
  reclaim_all(kernel, now);
  return answer;
}

// Others, each for the first time, so that all that waited has left.
void flush(Kernel& kernel, MonotonicTime now = at(1)) {
  static std::uint64_t next = 1'000'000;
  for (std::uint64_t bytes = 0; bytes < 2 * kMemory; bytes += 500) {
    CHECK(request(kernel, next++, 500, now).reason == AdmitReason::kWaits);
  }
}

// In which order payloads are given back.
class OrderedOwner final : public PayloadOwner {
 public:
  void release(std::span<const Payload> payloads) override {
    released.insert(released.end(), payloads.begin(), payloads.end());
  }
  std::vector<Payload> released;
};

}  // namespace

TEST_CASE("What comes waits in memory, and what is known after that goes to disk",
          "[cache][probation]") {
  const auto kernel = make_kernel(probation_options(GENERATE(1U, 8U)));
  CHECK(kernel->would_admit(key(1), at(1)));
  const Answer first = request(*kernel, 1, 500);
  CHECK(first.reason == AdmitReason::kWaits);
  CHECK(first.written == DiskOutcome::kNotWanted);
  // A burst is answered by the memory, and admits nothing.
  for (int i = 0; i < 5; ++i) {
    CHECK(request(*kernel, 1, 500).found == LookupState::kFresh);
  }
  CHECK(kernel->statistics().waiting_objects == 1);
  CHECK(kernel->statistics().waiting_bytes == 500);
  CHECK(kernel->statistics().waiting_hits == 5);
  CHECK(kernel->recall(key(1)).requests == 0);
  flush(*kernel);
  CHECK(kernel->recall(key(1)).requests == 1);
  const Answer second = request(*kernel, 1, 500);
  CHECK(second.found == LookupState::kMiss);
  CHECK(second.reason == AdmitReason::kSecondRequest);
  CHECK(second.written == DiskOutcome::kPlaced);
  CHECK(kernel->statistics().disk.entries == 1);
  CHECK(request(*kernel, 1, 500).found == LookupState::kFresh);
  // The copy in memory does not wait, and does not leave with what does.
  flush(*kernel);
  CHECK(kernel->statistics().objects > kernel->statistics().waiting_objects);
}

TEST_CASE(
    "Of what is in memory the newer one waits on if the older one waits, and is resident else",
    "[cache][probation]") {
  const auto kernel = make_kernel(probation_options(GENERATE(1U, 8U)));
  CHECK(request(*kernel, 1, 500).reason == AdmitReason::kWaits);
  CHECK(kernel->admit(key(1), {.size_bytes = 600}, at(1)) == AdmitReason::kWaits);
  // It would not fit into memory.
  CHECK(kernel->admit(key(1), {.size_bytes = kLargest + 1, .disk_only = true}, at(1)) ==
        AdmitReason::kResident);
  kernel->commit(key(2), {.charge_bytes = 500, .payload = 3}, 0, at(1));
  CHECK(kernel->admit(key(2), {.size_bytes = 600}, at(1)) == AdmitReason::kResident);
}

TEST_CASE("A hint spares the probation, but not the disk's bound of sizes", "[cache][probation]") {
  const auto kernel = make_kernel(probation_options(GENERATE(1U, 8U)));
  CHECK(kernel->admit(key(1), {.size_bytes = 500, .hinted = true}, at(1)) ==
        AdmitReason::kParentHint);
  CHECK(kernel->recall(key(1)).requests == 1);
  CHECK(kernel->admit(key(2), {.size_bytes = 500}, at(1)) == AdmitReason::kWaits);
  constexpr std::uint64_t kDisk = 32 * 64 * 1024;
  CHECK(kernel->admit(key(3), {.size_bytes = kDisk, .disk_only = true, .hinted = true}, at(1)) ==
        AdmitReason::kKeyWaits);
}

TEST_CASE("What is purged while it waits is forgotten", "[cache][probation]") {
  const auto kernel = make_kernel(probation_options());
  request(*kernel, 1, 500);
  request(*kernel, 2, 500);
  request(*kernel, 3, kLargest + 1);
  CHECK(kernel->invalidate(key(1), at(1)) == 1);
  CHECK(kernel->remove(key(2), 0, at(1)));
  CHECK(kernel->invalidate(key(3), at(1)) == 0);
  CHECK(kernel->statistics().waiting_objects == 0);
  CHECK(kernel->statistics().used_bytes == 0);
  flush(*kernel);
  for (std::uint64_t i = 1; i <= 3; ++i) {
    CHECK(kernel->recall(key(i)).requests == 0);
  }
}

TEST_CASE("All shards have one order of what waits", "[cache][probation]") {
  OrderedOwner owner;
  const auto kernel = make_kernel(probation_options(8), {.owner = &owner});
  for (std::uint64_t i = 0; i < 500; ++i) {
    request(*kernel, i, 100 + i % 7 * 50);
  }
  REQUIRE(owner.released.size() > 300);
  for (std::size_t i = 0; i < owner.released.size(); ++i) {
    CHECK(owner.released[i] == i + 1);
  }
}

TEST_CASE("The key of what is too large for the memory waits in its stead", "[cache][probation]") {
  const auto kernel = make_kernel(probation_options());
  request(*kernel, 9, 500);
  CHECK(request(*kernel, 1, kLargest + 1).reason == AdmitReason::kKeyWaits);
  CHECK_FALSE(kernel->would_admit(key(1), at(1)));
  CHECK(request(*kernel, 1, kLargest + 1).reason == AdmitReason::kKeyWaits);
  CHECK(kernel->admission_statistics().keys_waiting == 1);
  flush(*kernel);
  CHECK(kernel->admission_statistics().keys_waiting == 0);
  CHECK(kernel->would_admit(key(1), at(1)));
  const Answer known = request(*kernel, 1, kLargest + 1);
  CHECK(known.reason == AdmitReason::kSecondRequest);
  CHECK(known.written == DiskOutcome::kPlaced);
  CHECK(kernel->statistics().disk.counters.stored_alone == 1);
}

TEST_CASE("Where nothing else waits a key that is too large is remembered at once",
          "[cache][probation]") {
  const auto kernel = make_kernel(probation_options());
  CHECK(request(*kernel, 1, kLargest + 1).reason == AdmitReason::kKeyWaits);
  CHECK(request(*kernel, 1, kLargest + 1).reason == AdmitReason::kSecondRequest);
}

TEST_CASE("Keys alone take a bounded part of the memory", "[cache][probation]") {
  const auto kernel = make_kernel(probation_options());
  request(*kernel, 0, 500);
  for (std::uint64_t i = 1; i < 200; ++i) {
    CHECK(request(*kernel, i, kLargest + 1).reason == AdmitReason::kKeyWaits);
  }
  // An eighth of seven eighths of 20,000 bytes, 64 each.
  CHECK(kernel->admission_statistics().keys_waiting == 34);
  CHECK(request(*kernel, 1, kLargest + 1).reason == AdmitReason::kSecondRequest);
}

TEST_CASE("Until a disk was full once all that comes is written as well", "[cache][probation]") {
  KernelOptions options = probation_options();
  options.admission.fill = true;
  options.capacity_bytes = 400'000;  // half of it for the index of the disk
  const auto kernel = make_kernel(options);
  std::uint64_t filled = 0;
  Answer answer = request(*kernel, 0, 500);
  while (answer.reason == AdmitReason::kFill) {
    CHECK(answer.written == DiskOutcome::kPlaced);
    answer = request(*kernel, ++filled, 500);
  }
  CHECK(answer.reason == AdmitReason::kWaits);
  // 28 of the 32 segments at least, for some are kept free.
  CHECK(filled > 28 * 64 * 1024 / 600);
  CHECK(kernel->statistics().waiting_objects > 0);
  CHECK(kernel->statistics().disk.counters.segments_reclaimed == 1);
  // A written object waits as well, and is not remembered when it leaves.
  CHECK(kernel->recall(key(filled / 2)).requests == 0);
}

TEST_CASE("A disk that was full before the start is not filled again", "[cache][probation]") {
  KernelOptions options = probation_options();
  options.admission.fill = true;
  std::vector<std::uint64_t> sequences(32, 0);
  for (std::size_t i = 0; i < 30; ++i) sequences[i] = i + 1;
  {
    const auto kernel = make_kernel(options);
    REQUIRE(kernel->attach(0, sequences, 1, at(0)));
    CHECK(request(*kernel, 1, 500).reason == AdmitReason::kWaits);
  }
  sequences[7] = 0;
  const auto kernel = make_kernel(options);
  REQUIRE(kernel->attach(0, sequences, 1, at(0)));
  CHECK(request(*kernel, 1, 500).reason == AdmitReason::kFill);
}

TEST_CASE("A rule that writes all does so, and one with a chance seldom", "[cache][probation]") {
  const auto kernel = make_kernel(probation_options());
  REQUIRE(kernel->follow({.all = true}, at(1)));
  const Answer all = request(*kernel, 1, 500);
  CHECK(all.reason == AdmitReason::kWritesAll);
  CHECK(all.written == DiskOutcome::kPlaced);
  CHECK_FALSE(kernel->follow({.window = 3}, at(1)));
  CHECK(kernel->statistics().rule == ProbationRule{.all = true});
  REQUIRE(kernel->follow({.window = 2, .chance = 1.0 / 8}, at(1)));
  for (std::uint64_t i = 100; i < 130; ++i) request(*kernel, i, 500);
  flush(*kernel);
  int admitted = 0;
  for (std::uint64_t i = 100; i < 130; ++i) {
    admitted += request(*kernel, i, 500).reason == AdmitReason::kSecondRequest ? 1 : 0;
  }
  CHECK(admitted < 15);
}

TEST_CASE("Without a disk in service it is second-hit in memory", "[cache][probation]") {
  const auto kernel = make_kernel(probation_options());
  CHECK(request(*kernel, 1, 500).reason == AdmitReason::kWaits);
  kernel->take_offline(0, at(1));
  CHECK_FALSE(kernel->would_admit(key(2), at(1)));
  CHECK(request(*kernel, 2, 500).reason == AdmitReason::kFirstRequest);
  CHECK(kernel->would_admit(key(2), at(1)));
  CHECK(request(*kernel, 2, 500).reason == AdmitReason::kSecondRequest);
  CHECK(request(*kernel, 2, 500).found == LookupState::kFresh);
  CHECK(kernel->statistics().waiting_objects == 1);
  // Entries that still wait leave first.
  for (std::uint64_t i = 10; i < 49; ++i) {
    request(*kernel, i, 500);
    request(*kernel, i, 500);
  }
  CHECK(kernel->statistics().waiting_objects == 0);
  CHECK(request(*kernel, 2, 500).found == LookupState::kFresh);
  CHECK(request(*kernel, 1, 500).reason == AdmitReason::kSecondRequest);
}

TEST_CASE("Nothing waits for longer than it may", "[cache][probation]") {
  KernelOptions options = probation_options(4);
  options.admission.wait_max = 1h;
  const auto kernel = make_kernel(options);
  for (std::uint64_t i = 0; i < 10; ++i) request(*kernel, i, 500, at(10));
  for (std::uint64_t i = 10; i < 20; ++i) request(*kernel, i, 500, at(11));
  CHECK_FALSE(kernel->end_waits(at(3609)));
  CHECK(kernel->statistics().waiting_objects == 20);
  CHECK_FALSE(kernel->end_waits(at(3610)));
  CHECK(kernel->statistics().waiting_objects == 10);
  CHECK(kernel->statistics().used_bytes == 5000);
  CHECK(kernel->recall(key(9)).requests == 1);
  CHECK(kernel->recall(key(10)).requests == 0);
  kernel->end_all_waits(at(3611));
  CHECK(kernel->statistics().waiting_objects == 0);
  CHECK(kernel->recall(key(10)).requests == 1);
}

TEST_CASE("A clean stop keeps the keys of what waited", "[cache][probation]") {
  std::string saved;
  {
    const auto kernel = make_kernel(probation_options());
    request(*kernel, 1, 500);
    kernel->end_all_waits(at(2));
    saved = kernel->save_admission(at(2));
  }
  const auto kernel = make_kernel(probation_options());
  REQUIRE(kernel->restore_admission(saved, at(0)));
  CHECK(request(*kernel, 1, 500).reason == AdmitReason::kSecondRequest);
}

TEST_CASE("What waits keeps its place when it is validated", "[cache][probation]") {
  OrderedOwner owner;
  const auto kernel = make_kernel(probation_options(), {.owner = &owner});
  for (std::uint64_t i = 0; i < 20; ++i) request(*kernel, i, 500);
  CHECK(kernel->freshen(key(0), {.charge_bytes = 700, .payload = 77}, at(1)) ==
        FreshenOutcome::kFreshened);
  CHECK(kernel->statistics().used_bytes == 20 * 500 + 200);
  flush(*kernel);
  REQUIRE(owner.released.size() > 3);
  CHECK(owner.released[0] == 1);
  CHECK(owner.released[1] == 77);
  CHECK(owner.released[2] == 2);
}

TEST_CASE("Reclaim moves what was asked for twice, the most visited first", "[cache][probation]") {
  KernelOptions options = probation_options();
  options.capacity_bytes = 200'000;
  options.disks = {{.segments = 4, .segment_bytes = 64 * 1024}};
  options.disk_rules.reinsert_percent = 50;
  const auto kernel = make_kernel(options);
  REQUIRE(kernel->follow({.all = true}, at(1)));
  // On disk and not in memory: 28 of 2 KiB fill a segment.
  std::map<std::uint32_t, std::uint64_t> whose;  // by the unit of its place
  std::uint64_t next = 0;
  const auto write = [&] {
    DiskDecision decision;
    const Key wanted = key(next);
    kernel->commit(wanted, {.disk_bytes = 2048, .disk_only = true}, 0, at(1), &decision);
    if (decision.outcome != DiskOutcome::kPlaced) return false;
    kernel->written(wanted, decision.place, Kernel::Write::kDone, at(1));
    if (decision.place.segment == 0) whose[decision.place.unit] = next;
    ++next;
    return true;
  };
  while (next < 29) REQUIRE(write());
  // 0 to 9 once, 10 to 19 twice, 20 to 27 nine times.
  for (std::uint64_t i = 0; i < 29; ++i) {
    for (std::uint64_t n = 0; n < (i < 10 ? 1 : i < 20 ? 2 : 9); ++n) {
      CHECK(kernel->lookup(key(i), at(2)).on_disk());
    }
  }
  while (write()) {
  }
  std::vector<std::uint64_t> moved;
  // First it is counted what could move, then it moves.
  DiskReclaim done = kernel->reclaim_disk(0, {}, at(3));
  REQUIRE(done.segment == 0);
  CHECK(done.state == DiskReclaim::State::kMore);
  CHECK(done.moves.empty());
  CHECK(done.dropped == 0);
  done = kernel->reclaim_disk(0, {}, at(3));
  for (const DiskRelocation& move : done.moves) {
    const std::uint64_t id = whose.at(move.from.unit);
    moved.push_back(id);
    kernel->written(key(id), move.to, Kernel::Write::kDone, at(3));
  }
  // Half a segment: 16 of them, those with the most visits in the order of the log.
  const std::vector<std::uint64_t> wanted = {20, 21, 22, 23, 24, 25, 26, 27,
                                             10, 11, 12, 13, 14, 15, 16, 17};
  CHECK(moved == wanted);
  CHECK(done.dropped == whose.size() - wanted.size());
}

TEST_CASE("Another policy lets what waits leave first, and the way back begins anew",
          "[cache][probation]") {
  const auto kernel = make_kernel(probation_options());
  for (std::uint64_t i = 0; i < 20; ++i) request(*kernel, i, 500);
  ReloadOptions other = reload_options(probation_options());
  other.admission.policy = AdmissionPolicy::kAlways;
  REQUIRE(kernel->reconfigure(other, at(1)));
  CHECK(request(*kernel, 3, 500).found == LookupState::kFresh);  // takes a place among the others
  for (std::uint64_t i = 100; i < 130; ++i) {
    CHECK(request(*kernel, i, 500).reason == AdmitReason::kPolicyAlways);
  }
  CHECK(request(*kernel, 3, 500).found == LookupState::kFresh);
  CHECK(kernel->statistics().used_bytes <= kMemory);
  other.admission = probation_options().admission;
  REQUIRE(kernel->reconfigure(other, at(1)));
  CHECK(request(*kernel, 500, 500).reason == AdmitReason::kWaits);
  flush(*kernel);
  CHECK(request(*kernel, 500, 500).reason == AdmitReason::kSecondRequest);
}

TEST_CASE("The journal of many threads on probation replays with every decision equal",
          "[cache][probation][journal][threads]") {
  KernelOptions options = disk_options();
  options.shards = GENERATE(1U, 8U);
  options.admission.policy = AdmissionPolicy::kProbation;
  options.admission.wait_max = 2s;
  options.admission.fill = GENERATE(false, true);
  JournalRecorder recorder(journal_head(options, at(0)));
  const auto kernel = make_kernel(options, {.observer = &recorder});
  std::string bytes;
  {
    std::vector<std::jthread> threads;
    for (std::uint64_t i = 0; i < 3; ++i) {
      threads.emplace_back([&kernel, i] { Worker(*kernel, 200 + i).run(3000); });
    }
    threads.emplace_back([&] {
      for (int i = 0; i < 100; ++i) {
        REQUIRE(kernel->follow({.window = i % 2 == 0 ? 1 : 0.25, .all = i % 7 == 0}, at(i)));
        kernel->end_waits(at(i));
        reclaim_all(*kernel, at(i));
        std::this_thread::yield();
      }
    });
    for (int i = 0; i < 50; ++i) {
      bytes += recorder.take();
      std::this_thread::yield();
    }
  }
  ReloadOptions other = reload_options(options);
  other.admission.policy = AdmissionPolicy::kSecondHit;
  REQUIRE(kernel->reconfigure(other, at(400)));
  Worker(*kernel, 300).run(300);
  other.admission = options.admission;
  other.capacity_bytes = options.capacity_bytes / 2;
  REQUIRE(kernel->reconfigure(other, at(400)));
  while (kernel->reclaim(16, at(400)) == Kernel::Reclaimed::kSome) {
  }
  Worker(*kernel, 301).run(300);
  kernel->end_all_waits(at(500));
  bytes += recorder.take();
  const KernelStatistics statistics = kernel->statistics();
  CHECK(statistics.reserved_bytes == 0);
  CHECK(statistics.waiting_objects == 0);
  CHECK(statistics.waiting_bytes == 0);
  CHECK(statistics.counters.admissions[static_cast<std::size_t>(AdmitReason::kWaits)] > 100);
  const Outcome outcome = replay(bytes, filter::Seed{});
  INFO(outcome.first);
  CHECK(outcome.differences == 0);
  CHECK(outcome.records > 3 * 3000);
  CHECK(outcome.kinds[static_cast<std::size_t>(EventKind::kFollow)] == 100);
  CHECK(outcome.kinds[static_cast<std::size_t>(EventKind::kLeave)] > 0);
}

}  // namespace encore::cache::test
