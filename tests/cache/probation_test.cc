// Probation and its parts, rule by rule.
#include "cache/probation.h"

#include <map>
#include <random>

#include "cache/probation_samples.h"
#include "cache/visited_log.h"
#include "tests/cache/support.h"

namespace encore::cache::test {
namespace {

using namespace std::chrono_literals;

filter::Hash128 hash(std::uint64_t i) { return key(i).hash; }

Probation make(std::uint64_t memory_bytes, const ProbationRule& rule = {}, bool fill = false,
               Nanoseconds wait_max = 0ns) {
  auto probation = Probation::create({.memory_bytes = memory_bytes,
                                      .keys = {.layout = filter::Layout::kSplit,
                                               .hash = filter::HashFamily::kXxh3,
                                               .bits = 1U << 20U,
                                               .hashes = filter::kSplitHashes,
                                               .capacity = 1000,
                                               .seed = kSeed},
                                      .rule = rule,
                                      .fill = fill,
                                      .wait_max = wait_max},
                                     at(0));
  REQUIRE(probation);
  return std::move(*probation);
}

// A disk that is half full: 100 objects would fill it.
constexpr DiskLoad kDisk{.objects = 50, .bytes = 50'000, .size_bytes = 100'000, .full_once = true};

ProbationVerdict fetch(Probation& probation, std::uint64_t i, std::uint64_t size_bytes,
                       const DiskLoad& disk = kDisk) {
  const ProbationVerdict verdict =
      probation.fetched({.key = hash(i), .size_bytes = size_bytes}, disk, at(0));
  while (probation.leave(disk, at(0))) {
  }
  return verdict;
}

ProbationCacheSettings small_cache() {
  return {.memory_bytes = 10'000,
          .disk_bytes = 150'000,
          .keys = {.layout = filter::Layout::kSplit,
                   .hash = filter::HashFamily::kXxh3,
                   .bits = 1U << 20U,
                   .hashes = filter::kSplitHashes,
                   .capacity = 4000,
                   .seed = kSeed}};
}

}  // namespace

TEST_CASE("an object waits, its key is remembered when it leaves, and the next miss admits it",
          "[cache][probation]") {
  Probation probation = make(8000);
  CHECK(fetch(probation, 1, 1000) == ProbationVerdict::kWaits);
  REQUIRE(probation.find(hash(1)) != nullptr);
  for (std::uint64_t i = 2; i <= 8; ++i) {
    CHECK(fetch(probation, i, 1000) == ProbationVerdict::kWaits);
  }
  CHECK(probation.find(hash(1)) != nullptr);  // eight fill it
  CHECK_FALSE(probation.keys().test({hash(1), {}}));
  fetch(probation, 9, 1000);
  CHECK(probation.find(hash(1)) == nullptr);
  CHECK(probation.keys().test({hash(1), {}}));
  CHECK(fetch(probation, 1, 1000) == ProbationVerdict::kAdmitted);
  CHECK(probation.find(hash(1)) == nullptr);  // it is on disk, not in memory
}

TEST_CASE("a key waits in the place of an object that is too large for the memory",
          "[cache][probation]") {
  Probation probation = make(8000);
  fetch(probation, 1, 1000);
  CHECK(fetch(probation, 2, 1001) == ProbationVerdict::kKeyWaits);
  CHECK(probation.find(hash(2)) == nullptr);
  CHECK(probation.queue().bytes() == 1000 + WaitingQueue::kKeyBytes);
  CHECK(fetch(probation, 2, 1001) == ProbationVerdict::kKeyStillWaits);
  for (std::uint64_t i = 3; i <= 12; ++i) {
    fetch(probation, i, 1000);
  }
  CHECK(fetch(probation, 2, 900) == ProbationVerdict::kAdmitted);
  // In an empty memory it would wait only for its like.
  Probation alone = make(8000);
  CHECK(fetch(alone, 1, 4000) == ProbationVerdict::kKeyWaits);
  CHECK(alone.queue().empty());
  CHECK(fetch(alone, 1, 4000) == ProbationVerdict::kAdmitted);
  CHECK(fetch(alone, 2, 12'501) == ProbationVerdict::kKeyWaits);
  CHECK(fetch(alone, 2, 12'501) == ProbationVerdict::kKnownTooLarge);
  CHECK(fetch(alone, 2, 12'500) == ProbationVerdict::kAdmitted);  // an eighth of the disks
}

TEST_CASE("larger objects than the mean need the newer generation of the pair",
          "[cache][probation]") {
  for (const bool large : {false, true}) {
    // A window of ten keys.
    Probation probation = make(800, {.window = .1});
    fetch(probation, 1, 100);
    std::uint64_t i = 100;
    while (!probation.keys().test({hash(1), {}})) {
      fetch(probation, i++, 100);
    }
    while (probation.keys().find({hash(1), {}}) != filter::Seen::kOlder) {
      fetch(probation, i++, 100);
    }
    CHECK(fetch(probation, 1, large ? 101 : 100) ==
          (large ? ProbationVerdict::kKeyWaits : ProbationVerdict::kAdmitted));
  }
}

TEST_CASE("a generation takes a window of the objects that the full disks would hold",
          "[cache][probation]") {
  for (const auto& [window, capacity] :
       std::map<double, std::uint64_t>{{.25, 25}, {1, 100}, {2, 200}}) {
    Probation probation = make(800, {.window = window});
    for (std::uint64_t i = 0; i < 8 + capacity; ++i) {
      fetch(probation, i, 100);
    }
    CHECK(probation.keys().current_insertions() == capacity);
    CHECK(probation.keys().rotations() == 0);
    fetch(probation, 1000, 100);
    CHECK(probation.keys().current_insertions() == 1);
    // With fewer and larger objects on disk the generation is full sooner, and with more it goes
    // on.
    const DiskLoad half{.objects = 25, .bytes = 50'000, .size_bytes = 100'000, .full_once = true};
    for (std::uint64_t i = 1; i < capacity / 2; ++i) {
      fetch(probation, 2000 + i, 100, half);
    }
    CHECK(probation.keys().rotations() == 1);
    fetch(probation, 3000, 100, kDisk);
    CHECK(probation.keys().rotations() == 1);
    fetch(probation, 3001, 100, half);
    fetch(probation, 3002, 100, half);
    CHECK(probation.keys().rotations() == 2);
  }
}

TEST_CASE("until the disks are full once all that leaves memory is written, keys are not",
          "[cache][probation]") {
  const DiskLoad filling{.objects = 50, .bytes = 50'000, .size_bytes = 100'000};
  Probation probation = make(800, {}, true);
  probation.fetched({.key = hash(1), .size_bytes = 100}, filling, at(0));
  probation.fetched({.key = hash(2), .size_bytes = 5000}, filling, at(0));
  CHECK_FALSE(probation.leave(filling, at(0)));
  for (std::uint64_t i = 3; i < 12; ++i) {
    probation.fetched({.key = hash(i), .size_bytes = 100, .payload = i}, filling, at(0));
  }
  const auto first = probation.leave(filling, at(0));
  REQUIRE(first);
  CHECK(first->entry.key == hash(1));
  CHECK(first->fate == Probation::Fate::kFills);
  const auto second = probation.leave(filling, at(0));
  REQUIRE(second);
  CHECK(second->entry.only_key);
  CHECK(second->fate == Probation::Fate::kRemembered);
  const auto third = probation.leave(kDisk, at(0));
  REQUIRE(third);
  CHECK(third->entry.payload == 3);
  CHECK(third->fate == Probation::Fate::kRemembered);
  CHECK_FALSE(probation.leave(kDisk, at(0)));
  probation.set_rule({.all = true});
  probation.fetched({.key = hash(20), .size_bytes = 100}, kDisk, at(0));
  CHECK(probation.leave(kDisk, at(0))->fate == Probation::Fate::kWritten);
}

TEST_CASE("nothing waits for longer than its bound, and what is purged leaves no key",
          "[cache][probation]") {
  Probation probation = make(8000, {}, false, 10s);
  probation.fetched({.key = hash(1), .size_bytes = 100}, kDisk, at(0));
  probation.fetched({.key = hash(2), .size_bytes = 100}, kDisk, at(5));
  probation.fetched({.key = hash(3), .size_bytes = 100}, kDisk, at(5));
  CHECK_FALSE(probation.leave(kDisk, at(9)));
  CHECK(probation.leave(kDisk, at(10))->entry.key == hash(1));
  CHECK_FALSE(probation.leave(kDisk, at(10)));
  CHECK(probation.erase(hash(2)));
  CHECK_FALSE(probation.erase(hash(2)));
  CHECK(probation.leave(kDisk, at(15))->entry.key == hash(3));
  CHECK_FALSE(probation.leave(kDisk, at(15)));
  CHECK_FALSE(probation.keys().test({hash(2), {}}));
}

TEST_CASE("probation refuses what it cannot run with", "[cache][probation]") {
  const auto refused = [](const Probation::Settings& settings) {
    return Probation::create(settings, at(0)).error().message;
  };
  const filter::FilterParameters keys = small_cache().keys;
  CHECK(refused({.memory_bytes = 0, .keys = keys}).find("accepted: 1 or more") !=
        std::string::npos);
  CHECK(refused({.memory_bytes = 1, .keys = keys, .rule = {.window = 2.1}})
            .find("accepted: above 0, up to 2") != std::string::npos);
  CHECK(refused({.memory_bytes = 1, .keys = keys, .rule = {.chance = 0}})
            .find("accepted: above 0, up to 1") != std::string::npos);
  filter::FilterParameters digests = keys;
  digests.hash = filter::HashFamily::kMd5;
  CHECK(refused({.memory_bytes = 1, .keys = digests}).find("accepted: xxh3") != std::string::npos);
  const auto samples = ProbationSamples::create({.whole = small_cache(), .write_cost = 101}, at(0));
  REQUIRE_FALSE(samples);
  CHECK(samples.error().message.find("accepted: 0 to 100") != std::string::npos);
}

TEST_CASE("a reclaimed segment moves what is visited most, with half of the visits",
          "[cache][probation]") {
  // Segments of ten objects.
  VisitedLog log({.size_bytes = 40'000, .segment_bytes = 10'000, .move_share = .5});
  const auto write = [&](std::uint64_t i) {
    log.write({.key = hash(i), .size_bytes = 1000}, WrittenFor::kAdmission);
  };
  const auto visit = [&](std::uint64_t i, int times) {
    for (int n = 0; n < times; ++n) VisitedLog::visit(*log.find(hash(i)));
  };
  for (std::uint64_t i = 0; i < 40; ++i) write(i);
  CHECK_FALSE(log.has_been_full());
  visit(0, 1);
  for (std::uint64_t i = 1; i <= 6; ++i) visit(i, 2);
  visit(7, 20);
  CHECK(log.find(hash(7))->visits == VisitedLog::kVisitsMax);
  CHECK(log.erase(hash(9)));
  write(40);
  CHECK(log.has_been_full());
  // Half a segment: the most visited first, then the first four of those with two visits.
  for (const std::uint64_t moved : {7U, 1U, 2U, 3U, 4U}) {
    REQUIRE(log.find(hash(moved)) != nullptr);
    CHECK(log.find(hash(moved))->visits == (moved == 7 ? 3 : 1));
  }
  for (const std::uint64_t gone : {0U, 5U, 6U, 8U, 9U}) {
    CHECK(log.find(hash(gone)) == nullptr);
  }
  CHECK(log.counts().moved_bytes == 5000);
  CHECK(log.counts().objects_dropped == 4);  // and one was purged
  CHECK(log.counts().admitted_visited == 3);
  CHECK(log.objects() == 36);
}

TEST_CASE("samples follow the rule that costs least, in a loop one that writes seldom",
          "[cache][probation]") {
  // A loop a half larger than the cache: a rule that writes all, or all that is known, has few
  // hits; one that writes seldom keeps a part of the loop.
  auto tuned = TunedProbation::create(small_cache(), 0.3, at(0));
  REQUIRE(tuned);
  std::uint64_t late_hits = 0;
  for (std::uint64_t n = 0; n < 400'000; ++n) {
    const auto answer = tuned->request({.key = hash(n % 2400), .size_bytes = 100});
    late_hits += n >= 200'000 && answer.found != ProbationPlace::kNowhere ? 1 : 0;
  }
  REQUIRE(tuned->samples() != nullptr);
  CHECK(tuned->samples()->rate() == ProbationSamples::kRateMax);
  const ProbationSample followed = tuned->samples()->followed();
  CHECK((followed == ProbationSample::kSeldom || followed == ProbationSample::kQuarter));
  CHECK(tuned->cache().probation().rule() == rule_of(followed));
  auto fixed = TunedProbation::create(small_cache(), std::nullopt, at(0));
  std::uint64_t fixed_hits = 0;
  for (std::uint64_t n = 0; n < 400'000; ++n) {
    const auto answer = fixed->request({.key = hash(n % 2400), .size_bytes = 100});
    fixed_hits += n >= 200'000 && answer.found != ProbationPlace::kNowhere ? 1 : 0;
  }
  CHECK(fixed->samples() == nullptr);
  CHECK(late_hits > fixed_hits);
  CHECK(tuned->cache().log().counts().written_bytes() <
        fixed->cache().log().counts().written_bytes() / 2);
}

TEST_CASE(
    "each object twice, farther apart than the pair remembers: samples find the rule to write all",
    "[cache][probation]") {
  auto tuned = TunedProbation::create(small_cache(), 0.3, at(0));
  REQUIRE(tuned);
  std::uint64_t hits = 0;
  constexpr std::uint64_t kApart = 1000;
  for (std::uint64_t n = 0; n < 100'000; ++n) {
    const std::uint64_t object = n / (2 * kApart) * kApart + n % kApart;
    const auto answer = tuned->request({.key = hash(object), .size_bytes = 100});
    hits += answer.found != ProbationPlace::kNowhere ? 1 : 0;
  }
  CHECK(tuned->samples()->followed() == ProbationSample::kAll);
  CHECK(hits > 40'000);  // half of the requests are second ones
}

TEST_CASE("copies of what is hit on disk again save reads and change no decision",
          "[cache][probation]") {
  ProbationCacheSettings settings = small_cache();
  auto plain = ProbationCache::create(settings, at(0));
  settings.copies_bytes = 5000;
  auto copying = ProbationCache::create(settings, at(0));
  REQUIRE((plain && copying));
  std::mt19937_64 random(1);
  bool equal = true;
  for (int n = 0; n < 60'000; ++n) {
    const std::uint64_t i = random() % (1 + random() % (1 + random() % 5000));
    const ProbationRequest request{.key = hash(i), .size_bytes = 20 + i % 150};
    const ProbationAnswer one = plain->request(request);
    const ProbationAnswer other = copying->request(request);
    const auto is_hit = [](const ProbationAnswer& answer) {
      return answer.found != ProbationPlace::kNowhere;
    };
    equal = equal && is_hit(one) == is_hit(other) && one.verdict == other.verdict;
  }
  CHECK(equal);
  CHECK(plain->log().counts() == copying->log().counts());
  CHECK(plain->counts().memory_hits + plain->counts().disk_hits ==
        copying->counts().memory_hits + copying->counts().disk_hits);
  CHECK(copying->counts().memory_hits > 4 * plain->counts().memory_hits);
}

TEST_CASE("the least recently used copy leaves", "[cache][probation]") {
  DiskCopies copies(300);
  for (std::uint64_t i = 1; i <= 3; ++i) copies.add(hash(i), 100);
  CHECK(copies.use(hash(1)));
  copies.add(hash(4), 120);
  CHECK(copies.bytes() == 220);
  CHECK(copies.objects() == 2);
  CHECK(copies.use(hash(1)));
  CHECK_FALSE(copies.use(hash(2)));
  CHECK_FALSE(copies.use(hash(3)));
  copies.add(hash(5), 301);
  CHECK_FALSE(copies.use(hash(5)));
  CHECK(copies.objects() == 2);
}

TEST_CASE("samples are made anew where the objects are of another size", "[cache][probation]") {
  ProbationCacheSettings settings = small_cache();
  settings.memory_bytes *= 10;
  settings.disk_bytes *= 10;
  settings.keys.capacity *= 10;
  auto tuned = TunedProbation::create(settings, 0.3, at(0));
  REQUIRE(tuned);
  std::mt19937_64 random(1);
  for (std::uint64_t n = 0; n < 300; ++n) tuned->request({.key = hash(n), .size_bytes = 100});
  const double rate = tuned->samples()->rate();
  CHECK(rate == Approx(ProbationSamples::kObjects / 16'000).epsilon(.02));
  for (std::uint64_t n = 0; n < 40'000; ++n) {
    tuned->request({.key = hash(1000 + n % 9000), .size_bytes = 1000});
  }
  CHECK(tuned->samples()->rate() > 2 * rate);
}

}  // namespace encore::cache::test
