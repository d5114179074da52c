#include "cache/journal.h"

#include <sstream>
#include <thread>
#include <vector>

#include "cache/replay.h"
#include "cache/saved_admission.h"
#include "tests/cache/journal_worker.h"

namespace encore::cache::test {

TEST_CASE("The journal of every policy replays with every decision equal",
          "[cache][journal][threads]") {
  // Each eviction policy with one admission policy, and the other way round.
  const auto number = GENERATE(range(std::size_t{0}, kEvictionPolicyCount));
  KernelOptions options = busy_options();
  options.eviction = static_cast<EvictionPolicy>(number);
  options.admission.policy = static_cast<AdmissionPolicy>(number % kAdmissionPolicyCount);
  options.admission.size_threshold_bytes = 300;
  if (number >= kAdmissionPolicyCount) {
    options.admission.policy = AdmissionPolicy::kTinyLfu;  // uses the order of eviction itself
  }
  INFO(to_string(options.eviction) << ", " << to_string(options.admission.policy));
  JournalRecorder recorder(journal_head(options, at(0)));
  const auto kernel = make_kernel(options, {.observer = &recorder});
  {
    const std::jthread beside([&kernel] { Worker(*kernel, 1).run(1500); });
    Worker(*kernel, 2).run(1500);
  }
  ReloadOptions reload = reload_options(options);
  reload.admission.filter.capacity = 70;
  reload.admission.min_requests = 2;
  reload.admission.probability = 0.125;
  REQUIRE(kernel->reconfigure(reload, at(500)));
  Worker(*kernel, 3).run(500);
  const Outcome outcome = replay(recorder.take(), filter::Seed{});
  INFO(outcome.first);
  CHECK(outcome.differences == 0);
  CHECK(outcome.records > 3500);
}

TEST_CASE("A search for room that has not found any is in the journal", "[cache][journal]") {
  KernelOptions options = plain_options(1'000'000);
  options.eviction = EvictionPolicy::kSieve;
  JournalRecorder recorder(journal_head(options, at(0)));
  const auto kernel = make_kernel(options, {.observer = &recorder});
  for (std::uint64_t i = 0; i < 1000; ++i) {
    REQUIRE(store(*kernel, key(i), {.charge_bytes = 10}, at(0)) == CommitOutcome::kStored);
    REQUIRE(kernel->lookup(key(i), at(0)).state == LookupState::kFresh);
  }
  int searches = 1;
  while (kernel->make_room({.bytes = 1, .victims_max = 1}, at(1)).victims == 0) ++searches;
  CHECK(searches > 2);
  CHECK(replay(recorder.take(), kSeed).differences == 0);
}

TEST_CASE("The journal of many threads replays with every decision equal",
          "[cache][journal][threads]") {
  const auto eviction =
      GENERATE(EvictionPolicy::kSieve, EvictionPolicy::kLru, EvictionPolicy::kFifo);
  INFO(to_string(eviction));
  KernelOptions options = busy_options();
  options.eviction = eviction;
  JournalRecorder recorder(journal_head(options, at(0)));
  const auto kernel = make_kernel(options, {.observer = &recorder});
  std::string bytes;
  constexpr int kThreads = 4;
  {
    std::vector<std::jthread> threads;
    for (std::uint64_t i = 0; i < kThreads; ++i) {
      threads.emplace_back([&kernel, i] { Worker(*kernel, 100 + i).run(4000); });
    }
    threads.emplace_back([&] { operate(*kernel, options); });
    for (int i = 0; i < 50; ++i) {
      bytes += recorder.take();
      std::this_thread::yield();
    }
  }
  // Once more alone, so that every kind of event is there however the threads ran.
  Worker(*kernel, 99).run(2000);
  operate(*kernel, options);
  bytes += recorder.take();
  const KernelStatistics statistics = kernel->statistics();
  CHECK(statistics.reserved_bytes == 0);
  const Outcome outcome = replay(bytes, GENERATE(filter::Seed(kSeed), filter::Seed{}));
  INFO(outcome.first);
  CHECK(outcome.differences == 0);
  CHECK(outcome.records > kThreads * 4000);
  CHECK(outcome.evicted > 100);
  for (std::size_t kind = 0; kind < kEventKindCount; ++kind) {
    INFO(to_string(static_cast<EventKind>(kind)));
    const auto each = static_cast<EventKind>(kind);
    const bool rare =
        each == EventKind::kRestore || (each >= EventKind::kAdopt && each != EventKind::kGrow);
    CHECK((outcome.kinds[kind] > 0) == !rare);
  }
}

TEST_CASE("A filter that hashes the keys' text replays from the text in the journal",
          "[cache][journal]") {
  KernelOptions options = busy_options();
  options.admission.filter.hash = filter::HashFamily::kMurmur3;
  JournalRecorder recorder(journal_head(options, at(0)));
  const auto kernel = make_kernel(options, {.observer = &recorder});
  Worker(*kernel, 5).run(3000);
  const std::string bytes = recorder.take();
  CHECK(replay(bytes, kSeed).differences == 0);
  std::istringstream stream(bytes);
  const auto reader = JournalReader::open(stream);
  REQUIRE(reader);
  CHECK_FALSE(Replay::create(reader->head(), {}, {}));
  CHECK_FALSE(Replay::create(reader->head(), {1, 2}, {}));
}

TEST_CASE("A restored memory replays if the saved state is at hand", "[cache][journal]") {
  const KernelOptions options = busy_options();
  const auto before = make_kernel(options);
  Worker(*before, 6).run(2000);
  const std::string saved = before->save_admission(at(1));
  JournalRecorder recorder(journal_head(options, at(0)));
  const auto kernel = make_kernel(options, {.observer = &recorder});
  REQUIRE(kernel->restore_admission(saved, at(1)));
  Worker(*kernel, 7).run(2000);
  const std::string bytes = recorder.take();
  const auto decoded = decode_admission(saved);
  REQUIRE(decoded);
  const Outcome outcome = replay(bytes, kSeed, [&](std::uint64_t checksum) -> std::string {
    for (const std::string& shard : decoded->shards) {
      if (state_checksum(shard) == checksum) {
        return shard;
      }
    }
    return {};
  });
  CHECK(outcome.differences == 0);
  CHECK(outcome.kinds[static_cast<std::size_t>(EventKind::kRestore)] == options.shards);

  std::istringstream stream(bytes);
  auto reader = JournalReader::open(stream);
  REQUIRE(reader);
  auto player = Replay::create(reader->head(), kSeed, {});
  REQUIRE(player);
  Event event;
  REQUIRE(reader->next(event));
  CHECK_FALSE((*player)->apply(event));
}

namespace {

// Another cache, of another seed and number of shards, that has been busy.
std::string busy_elsewhere(std::uint64_t seed) {
  KernelOptions options = busy_options();
  options.shards = 32;
  options.identity_seed = {seed, 0xe15e};
  options.admission.filter = {.layout = filter::Layout::kClassic,
                              .hash = filter::HashFamily::kSiphash,
                              .bits = 2000,
                              .hashes = 5,
                              .capacity = 100,
                              .seed = {seed, seed}};
  const auto kernel = make_kernel(options);
  for (std::uint64_t id = 0; id < 4000; id += 2) {
    const Key own = key(id);
    kernel->admit({filter::identify(options.identity_seed, own.bytes).hash, own.bytes}, {}, at(0));
  }
  return kernel->save_admission(at(1));
}

Replay::FindState find_among(std::vector<std::string> states) {
  return [states = std::move(states)](std::uint64_t checksum) -> std::string {
    for (const std::string& state : states) {
      if (state_checksum(state) == checksum) {
        return state;
      }
    }
    return {};
  };
}

}  // namespace

TEST_CASE("Memories that many threads meet while they are adopted replay without a difference",
          "[cache][journal][threads]") {
  KernelOptions options = busy_options();
  options.admission.policy = GENERATE(AdmissionPolicy::kSecondHit, AdmissionPolicy::kNthHit);
  const std::vector<std::string> states{busy_elsewhere(1), busy_elsewhere(2)};
  JournalRecorder recorder(journal_head(options, at(0)));
  const auto kernel = make_kernel(options, {.observer = &recorder});
  {
    std::vector<std::jthread> threads;
    for (std::uint64_t i = 0; i < 3; ++i) {
      threads.emplace_back([&kernel, i] { Worker(*kernel, 200 + i).run(4000); });
    }
    for (const std::string& state : states) {
      const auto adoptable = read_adoptable(state);
      REQUIRE(adoptable);
      REQUIRE(kernel->adopt(*adoptable, UINT64_MAX, at(1)));
      static_cast<void>(kernel->admission_statistics());
      kernel->release_adopted();
    }
  }
  // Once more alone, so that adopted keys are met however the threads ran.
  const auto adoptable = read_adoptable(states[0]);
  REQUIRE(adoptable);
  REQUIRE(kernel->adopt(*adoptable, UINT64_MAX, at(2)));
  Worker(*kernel, 203).run(3000);
  const std::string bytes = recorder.take();
  CHECK(kernel->admission_statistics().adopted.answers > 0);
  // The key's text is in the journal from the adoption on: no seed of ours is needed to replay.
  const Outcome outcome = replay(bytes, filter::Seed{}, find_among(states));
  INFO(outcome.first);
  CHECK(outcome.differences == 0);
  CHECK(outcome.kinds[static_cast<std::size_t>(EventKind::kAdopt)] == 3 * options.shards);

  // Without the memory it is no replay, and with another in its place neither.
  std::istringstream stream(bytes);
  auto reader = JournalReader::open(stream);
  REQUIRE(reader);
  auto player = Replay::create(reader->head(), {}, [&](std::uint64_t) { return states[1] + "x"; });
  REQUIRE(player);
  Event event;
  Result<std::optional<Replay::Difference>> applied;
  while (applied && *reader->next(event) == JournalReader::Next::kEvent) {
    applied = (*player)->apply(event);
  }
  REQUIRE_FALSE(applied);
  CHECK(applied.error().message.find("DECISIONS.adopted.") != std::string::npos);
}

TEST_CASE("A replay under other options shows where it differs", "[cache][journal]") {
  const KernelOptions options = busy_options();
  JournalRecorder recorder(journal_head(options, at(0)));
  const auto kernel = make_kernel(options, {.observer = &recorder});
  Worker(*kernel, 8).run(2000);
  const std::string bytes = recorder.take();
  std::istringstream stream(bytes);
  auto reader = JournalReader::open(stream);
  REQUIRE(reader);
  JournalHead head = reader->head();
  const auto check_that_it_differs = [&] {
    auto player = Replay::create(head, kSeed, {});
    REQUIRE(player);
    Event event;
    std::string difference;
    while (difference.empty() && *reader->next(event) == JournalReader::Next::kEvent) {
      const auto applied = (*player)->apply(event);
      REQUIRE(applied);
      if (applied->has_value()) {
        difference = describe(**applied);
      }
    }
    CHECK(difference.find("recorded") != std::string::npos);
    CHECK(difference.find("replayed") != std::string::npos);
  };
  SECTION("a smaller cache") {
    head.options.capacity_bytes -= 1000;
    check_that_it_differs();
  }
  SECTION("another eviction policy") {
    head.options.eviction = EvictionPolicy::kFifo;
    check_that_it_differs();
  }
  SECTION("a filter that forgets earlier") {
    head.options.admission.filter.capacity = 20;
    check_that_it_differs();
  }
}

TEST_CASE("A difference is told with all that its event has, and nothing that it has not",
          "[cache][journal]") {
  Event recorded;
  recorded.kind = EventKind::kPartFound;
  recorded.sequence = 1;
  Event replayed = recorded;
  replayed.outcome = kPartIsWritten;
  replayed.variant = 7;
  replayed.version = 9;
  replayed.disk_entries = 3;
  replayed.removed = 2;
  replayed.freed_bytes = 50;
  replayed.place.segment = 4;
  const std::string text = describe({.recorded = recorded, .replayed = replayed});
  CAPTURE(text);
  const std::size_t middle = text.find("replayed");
  REQUIRE(middle != std::string::npos);
  REQUIRE(text.find("recorded") < middle);
  const std::string first = text.substr(0, middle);
  const std::string second = text.substr(middle);
  CHECK(first.find("absent") != std::string::npos);
  CHECK(second.find("written, variant 7, disk 0 segment 4 offset 0, version 9, 3 entries on disk, "
                    "2 removed with 50 bytes") != std::string::npos);
  for (const char* word : {"variant", "segment", "version", "entries", "removed", "generations"}) {
    CHECK(first.find(word) == std::string::npos);
  }
}

TEST_CASE("A record comes back from the journal as it went in", "[cache][journal]") {
  const KernelOptions options = busy_options();
  JournalRecorder recorder(journal_head(options, at(3)));
  std::vector<Event> events;
  for (std::uint64_t i = 0; i < 40; ++i) {
    Event event{.sequence = i + 1,
                .kind = static_cast<EventKind>(i % kEventKindCount),
                .outcome = static_cast<std::uint8_t>(i % 3),
                .any_resident = i % 2 == 0,
                .shard = static_cast<std::uint32_t>(i % 8),
                .now = at(static_cast<std::int64_t>(100 - i)),
                .key = key(i).hash,
                .variant = i * 0x9e3779b97f4a7c15U,
                .charge_bytes = i << 20U,
                .reserved_bytes = i * 3,
                .requests = static_cast<std::uint32_t>(i / 2),
                .fresh_until = i % 5 == 0 ? MonotonicTime::max() : at(7),
                .keep_until = i % 7 == 0 ? MonotonicTime::min() : at(1000),
                .removed = static_cast<std::uint32_t>(i % 4),
                .freed_bytes = ~i,
                .removed_digest = i << 60U};
    if (event.kind == EventKind::kReload) {
      event.kind = EventKind::kLookup;
    }
    events.push_back(event);
  }
  // Recorded out of order: they are written in the order of their numbers, and only without gaps.
  for (std::size_t i = 1; i < events.size(); i += 2) {
    recorder.record(events[i]);
  }
  std::string bytes = recorder.take();
  for (std::size_t i = 0; i < events.size(); i += 2) {
    recorder.record(events[i]);
  }
  bytes += recorder.take();
  std::istringstream stream(bytes);
  auto reader = JournalReader::open(stream);
  REQUIRE(reader);
  CHECK(reader->head().started == at(3));
  CHECK(reader->head().options.capacity_bytes == options.capacity_bytes);
  CHECK(reader->head().options.admission.filter.capacity == 50);
  CHECK(reader->head().options.admission.filter.seed == filter::Seed{});
  CHECK(reader->head().seed_fingerprint == filter::fingerprint(kSeed));
  CHECK(bytes.find(std::string_view("\x34\x12\0\0\0\0\0\0", 8)) == std::string::npos);  // no seed
  for (const Event& event : events) {
    Event read;
    REQUIRE(reader->next(read) == JournalReader::Next::kEvent);
    REQUIRE(read == event);
  }
  Event none;
  CHECK(reader->next(none) == JournalReader::Next::kEnd);
}

TEST_CASE("A damaged or truncated journal ends with an error, never worse",
          "[cache][journal][long]") {
  const KernelOptions options = GENERATE(busy_options(), disk_options());
  JournalRecorder recorder(journal_head(options, at(0)));
  const auto kernel = make_kernel(options, {.observer = &recorder});
  Worker(*kernel, 9).run(200);
  reclaim_disks(*kernel, at(60));
  const std::string bytes = recorder.take();
  const auto read_all = [](const std::string& from) {
    std::istringstream stream(from);
    auto reader = JournalReader::open(stream);
    if (!reader) {
      return reader.error().message;
    }
    auto player = Replay::create(reader->head(), {}, {});
    if (!player) {
      return player.error().message;
    }
    Event event;
    for (;;) {
      const auto next = reader->next(event);
      if (!next) {
        return next.error().message;
      }
      if (*next == JournalReader::Next::kEnd) {
        return std::string();
      }
      static_cast<void>((*player)->apply(event));
    }
  };
  CHECK(read_all(bytes).empty());
  CHECK(read_all("") ==
        "not a decision journal: it does not begin with ENCJRNL5, ENCJRNL4, ENCJRNL3 or ENCJRNL2");
  CHECK(read_all(bytes.substr(0, 20)) == "a decision journal that ends within its head");
  CHECK(read_all(bytes.substr(0, bytes.size() - 1))
            .starts_with("a decision journal that is damaged or cut off after record "));
  std::mt19937_64 random(4);
  for (int i = 0; i < 300; ++i) {
    std::string damaged = bytes;
    // Beyond the options, which may legally ask for filters of any size.
    damaged[90 + random() % (damaged.size() - 90)] ^= static_cast<char>(1U << (random() % 8));
    static_cast<void>(read_all(damaged));
  }
}

}  // namespace encore::cache::test
