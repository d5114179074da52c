#include <algorithm>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "cache/disk_names.h"
#include "tests/cache/journal_worker.h"

namespace encore::cache::test {

TEST_CASE("The journal of many threads on disks replays with every decision equal",
          "[cache][disk][journal][threads]") {
  KernelOptions options = disk_options();
  options.shards = GENERATE(1U, 8U);
  JournalRecorder recorder(journal_head(options, at(0)));
  const auto kernel = make_kernel(options, {.observer = &recorder});
  const std::vector<std::uint64_t> sequences = {0, 3, 2, 0, 5};
  REQUIRE(kernel->attach(0, sequences, 77, at(0)));
  std::vector<DiskRecord> found;
  for (std::uint32_t i = 0; i < 300; ++i) {
    found.push_back({.key = key(i % 90).hash,
                     .variant = i / 90 % 2,
                     .visited = i % 7 == 0,
                     .place = {.disk = 0, .segment = 4, .unit = 64 + i, .bytes = 64},
                     .fresh_until = at(30),
                     .keep_until = at(40)});
  }
  CHECK(kernel->load(found, at(0)).inserted == 300);
  CHECK(kernel->statistics().disk.entries == 180);
  std::vector<DiskRecord> parts;
  for (std::uint32_t i = 0; i < 20; ++i) {
    parts.push_back({.key = part_key(key(1).hash, 9, i).hash,
                     .visited = i % 2 == 0,
                     .part = true,
                     .place = {.disk = 0, .segment = 4, .unit = 500 + 2 * i, .bytes = 128},
                     .fresh_until = MonotonicTime::max(),
                     .keep_until = MonotonicTime::max()});
  }
  CHECK(kernel->load(parts, at(0)).inserted == 20);
  CHECK(kernel->statistics().disk.entries == 180);
  CHECK(kernel->statistics().disk.parts == 20);
  kernel->loaded(0, at(0));
  std::string bytes;
  {
    std::vector<std::jthread> threads;
    for (std::uint64_t i = 0; i < 3; ++i) {
      threads.emplace_back([&kernel, i] { Worker(*kernel, 200 + i).run(3000); });
    }
    threads.emplace_back([&] { operate(*kernel, options); });
    for (int i = 0; i < 50; ++i) {
      bytes += recorder.take();
      std::this_thread::yield();
    }
  }
  // Once more alone, so that every kind of event is there however the threads ran.
  for (std::uint64_t i = 0; i < 60; ++i) {
    Worker(*kernel, 300 + i).run(100);
    reclaim_disks(*kernel, at(1));
  }
  operate(*kernel, options);
  kernel->take_offline(1, at(500));
  reclaim_disks(*kernel, at(500));
  CHECK(kernel->statistics().disk.disks[1].objects == 0);
  bytes += recorder.take();
  const KernelStatistics statistics = kernel->statistics();
  CHECK(statistics.reserved_bytes == 0);
  CHECK(statistics.disk.counters.moved > 0);
  CHECK(statistics.disk.counters.fresh_hits > 100);
  CHECK(statistics.disk.counters.parts_placed > 300);
  CHECK(statistics.disk.counters.stored_alone > 50);
  const Outcome outcome = replay(bytes, filter::Seed{});
  INFO(outcome.first);
  CHECK(outcome.differences == 0);
  CHECK(outcome.records > 3 * 3000);
  for (std::size_t kind = 0; kind < kEventKindCount; ++kind) {
    INFO(to_string(static_cast<EventKind>(kind)));
    const bool rare = static_cast<EventKind>(kind) == EventKind::kRestore ||
                      static_cast<EventKind>(kind) == EventKind::kAdopt ||
                      static_cast<EventKind>(kind) == EventKind::kFollow ||
                      static_cast<EventKind>(kind) == EventKind::kLeave;
    CHECK((outcome.kinds[kind] > 0) == !rare);
  }
}

TEST_CASE("A journal from before there were parts or probation is read and replayed",
          "[cache][disk][journal]") {
  const KernelOptions options = disk_options();
  JournalRecorder recorder(journal_head(options, at(0)));
  const auto kernel = make_kernel(options, {.observer = &recorder});
  const std::uint16_t names = *kernel->intern("accept", at(0));
  for (std::uint64_t i = 0; i < 40; ++i) {
    kernel->admit(key(i % 20), {.size_bytes = 100}, at(1));
    DiskDecision decision;
    kernel->commit(key(i), {.charge_bytes = 100, .disk_bytes = 300, .disk_names = names}, 0, at(1),
                   &decision);
    kernel->written(key(i), decision.place, Kernel::Write::kDone, at(2));
    kernel->lookup(key(i / 2), at(3));
  }
  std::string bytes = recorder.take();
  // Nothing but the version tells them apart.
  REQUIRE(bytes.starts_with("ENCJRNL5"));
  for (const char version : {'4', '3'}) {
    bytes[7] = version;
    const Outcome outcome = replay(bytes, filter::Seed{});
    INFO(version << outcome.first);
    CHECK(outcome.differences == 0);
    CHECK(outcome.records > 160);
  }
  bytes[7] = '6';
  std::istringstream later(bytes);
  CHECK_FALSE(JournalReader::open(later));
}

TEST_CASE("Usual names of Vary have numbers, however many others there are",
          "[cache][disk][journal]") {
  const KernelOptions options = disk_options();
  JournalRecorder recorder(journal_head(options, at(0)));
  const auto kernel = make_kernel(options, {.observer = &recorder});
  constexpr std::uint32_t kOthers = kDiskNamesMax - 1 - kUsualTexts;
  std::set<std::uint16_t> numbers;
  for (std::uint32_t i = 0; i < kOthers; ++i) {
    const auto number = kernel->intern("x-" + std::to_string(i), at(1));
    REQUIRE(number);
    numbers.insert(*number);
  }
  CHECK(kernel->statistics().disk.counters.names_refused == 0);
  CHECK_FALSE(kernel->intern("x-other", at(1)));
  CHECK_FALSE(kernel->intern("accept,x-other", at(1)));
  CHECK_FALSE(kernel->intern("accept-encoding,accept", at(1)));  // out of order: no text of ours
  CHECK_FALSE(kernel->intern("accept,accept", at(1)));
  CHECK_FALSE(kernel->intern("accept,", at(1)));
  CHECK(kernel->statistics().disk.counters.names_refused == 5);
  CHECK(kernel->intern("x-7", at(1)));
  CHECK(kernel->intern("", at(1)) == 0);
  for (std::uint32_t set = 1; set <= kUsualTexts; ++set) {
    std::string text;
    for (std::size_t i = 0; i < kUsualNames.size(); ++i) {
      if ((set >> i & 1U) == 0) continue;
      text += (text.empty() ? "" : ",") + std::string(kUsualNames[i]);
    }
    const auto number = kernel->intern(text, at(2));
    REQUIRE(number);
    numbers.insert(*number);
  }
  CHECK(numbers.size() == kDiskNamesMax - 1);
  CHECK(kernel->statistics().disk.counters.names_refused == 5);
  CHECK(std::ranges::is_sorted(kUsualNames));
  const Outcome outcome = replay(recorder.take(), filter::Seed{});
  INFO(outcome.first);
  CHECK(outcome.differences == 0);
}

TEST_CASE("A journal from before there were disks is read and replayed", "[cache][disk][journal]") {
  // Two shards of LRU under second-hit and 400 bytes, nine requests.
  constexpr std::string_view kVersion2 =
      "454e434a524e4c323b00000090030001200100030080800408e80702010080020380808080808080f03f80800401"
      "02000180e497d0121037393538363037393661306535656564001c000180a8d6b907ca47d1bff0fd80b71dc8a44b"
      "ea8c821101540101ca47d1bff0fd80b71dc8a44bea8c82115a01001c000180a8d6b90722bec9cf9f0d300b508b43"
      "1293f2e7b30154010122bec9cf9f0d300b508b431293f2e7b35a01001c000180a8d6b9077e0dd626e6b55431f2a4"
      "1b53b5ae78a5015401017e0dd626e6b55431f2a41b53b5ae78a55a01001c000180a8d6b9077e0dd626e6b55431f2"
      "a41b53b5ae78a501550101017e0dd626e6b55431f2a41b53b5ae78a55a01025400017e0dd626e6b55431f2a41b53"
      "b5ae78a5960104d406017e0dd626e6b55431f2a41b53b5ae78a59601960180e0ba84bf03fe97f7f8bcffffffff01"
      "001c000180a8d6b90722bec9cf9f0d300b508b431293f2e7b3015501010122bec9cf9f0d300b508b431293f2e7b3"
      "5a010254000122bec9cf9f0d300b508b431293f2e7b3aa0104d4060122bec9cf9f0d300b508b431293f2e7b3aa01"
      "aa0180e0ba84bf03feefa0bfb5ffffffff01001c000180a8d6b907ca47d1bff0fd80b71dc8a44bea8c8211015501"
      "0101ca47d1bff0fd80b71dc8a44bea8c82115a0102543801ca47d1bff0fd80b71dc8a44bea8c8211be0101960157"
      "817333a6d0e1a604d40601ca47d1bff0fd80b71dc8a44bea8c8211be01be0180e0ba84bf03fec7ca85aeffffffff"
      "01001f02010180a8d6b90722bec9cf9f0d300b508b431293f2e7b380908e91b003001c000180a8d6b9077e0dd626"
      "e6b55431f2a41b53b5ae78a501550101017e0dd626e6b55431f2a41b53b5ae78a55a01025438017e0dd626e6b554"
      "31f2a41b53b5ae78a5e60101be01a03b0d8b63cd49e904d406017e0dd626e6b55431f2a41b53b5ae78a5e601e601"
      "80e0ba84bf03fef79d929fffffffff01001f02010180a8d6b9077e0dd626e6b55431f2a41b53b5ae78a580b8e4ca"
      "b703";
  std::string bytes;
  for (std::size_t i = 0; i < kVersion2.size(); i += 2) {
    bytes.push_back(static_cast<char>(std::stoi(std::string(kVersion2.substr(i, 2)), nullptr, 16)));
  }
  const Outcome outcome = replay(bytes, filter::Seed{});
  INFO(outcome.first);
  CHECK(outcome.differences == 0);
  CHECK(outcome.kinds[static_cast<std::size_t>(EventKind::kLookup)] == 9);
  CHECK(outcome.kinds[static_cast<std::size_t>(EventKind::kCommit)] == 4);
  CHECK(outcome.evicted == 2);
}

}  // namespace encore::cache::test
