// The state that units of one disk share, each part against a plain list: rules of purges, places
// that are read or moved, turns; and records that are purged while they are read.
#include "proxy/disk/disk_state.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <limits>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "base/units.h"
#include "proxy/disk/disk_loads.h"
#include "proxy/disk/segment_writer.h"
#include "tests/catch.h"
#include "tests/disk/model/made_record.h"
#include "tests/disk/model/memory_file.h"

namespace encore::disk {
namespace {

// A rule's pattern is of a record whose key begins with it.
bool is_pattern_of(const Purge& rule, const RecordFront& front) {
  return front.text.key.starts_with(rule.pattern);
}

RecordFront front_of(std::uint64_t key, std::string_view text, cache::DiskVersion version) {
  RecordFront front;
  front.fields.key = {key, key};
  front.fields.version = version;
  front.text.key = text;
  return front;
}

struct StateOfDisk {
  Superblock superblock = *lay_out(12 * kMiB, 1 * kMiB);
  CountedFile file{std::make_unique<MemoryFile>()};
  std::shared_ptr<DiskCommon> common = std::make_shared<DiskCommon>();
  DiskState state{3, common, file, superblock, is_pattern_of};
};

}  // namespace

TEST_CASE("a record is dead by any purge of it that is newer, until that is forgotten", "[disk]") {
  constexpr std::array<std::string_view, 4> kTexts = {"a/1", "a/2", "b/1", "b/2"};
  constexpr std::array<std::string_view, 5> kPatterns = {"a", "a/1", "b/", "c", ""};
  for (unsigned seed = 1; seed <= 30; ++seed) {
    std::mt19937_64 random(seed);
    PurgeRules rules(is_pattern_of);
    std::vector<Purge> told;
    std::uint64_t sequence = 1;
    std::uint64_t forgotten_below = 0;
    for (int step = 0; step < 60; ++step) {
      const auto what = random() % 10;
      sequence += random() % 2;
      if (what == 0) {
        forgotten_below =
            std::max(forgotten_below, sequence - random() % std::min<std::uint64_t>(sequence, 4));
        rules.forget_below(forgotten_below);
      } else {
        Purge purge;
        purge.kind = what < 5 ? PurgeKind::kKey : what < 8 ? PurgeKind::kBan : PurgeKind::kPrefix;
        purge.version = 1 + random() % 40;
        purge.sequence = sequence;
        if (purge.kind == PurgeKind::kKey) {
          const std::uint64_t key = random() % kTexts.size();
          purge.key = {key, key};
          // One of a key is kept as long as the latest of that key.
          for (Purge& other : told) {
            if (other.kind == purge.kind && other.key == purge.key) other.sequence = sequence;
          }
        } else {
          // The empty one is of all, and rare.
          purge.pattern = kPatterns[random() % (random() % 8 == 0 ? 5 : 4)];
        }
        told.push_back(purge);
        rules.add(purge);
      }
      std::erase_if(told, [&](const Purge& each) { return each.sequence < forgotten_below; });
      for (std::uint64_t key = 0; key < kTexts.size(); ++key) {
        for (cache::DiskVersion version = 0; version <= 41; version += 1 + random() % 3) {
          const RecordFront front = front_of(key, kTexts[key], version);
          bool is_dead = false;
          bool is_dead_by_key = false;
          for (const Purge& each : told) {
            if (version >= each.version) continue;
            const bool is_all = each.kind == PurgeKind::kPrefix && each.pattern.empty();
            const bool by_key =
                each.kind == PurgeKind::kKey ? each.key == front.fields.key : is_all;
            is_dead =
                is_dead || by_key || (each.kind != PurgeKind::kKey && is_pattern_of(each, front));
            is_dead_by_key = is_dead_by_key || by_key;
          }
          CAPTURE(seed, step, key, version);
          REQUIRE(rules.is_dead(front) == is_dead);
          REQUIRE(rules.is_dead(front.fields.key, version) == is_dead_by_key);
          RecordFront part = front;
          part.fields.kind = RecordKind::kPart;
          REQUIRE_FALSE(rules.is_dead(part));
        }
      }
      REQUIRE((rules.size() == 0) == told.empty());
      // The same expression again counts once.
      const auto bans =
          static_cast<std::size_t>(std::ranges::count(told, PurgeKind::kBan, &Purge::kind));
      REQUIRE(rules.bans() <= bans);
      REQUIRE((rules.bans() == 0) == (bans == 0));
    }
  }
}

TEST_CASE("the oldest turn is the lowest of those that segments have", "[disk]") {
  StateOfDisk disk;
  DiskState& state = disk.state;
  CHECK(state.oldest_sequence() == 0);
  std::mt19937_64 random(5);
  std::map<std::uint32_t, std::uint64_t> told;
  for (int step = 0; step < 200; ++step) {
    const auto segment = static_cast<std::uint32_t>(random() % disk.superblock.segments);
    const std::uint64_t sequence = random() % 3 == 0 ? 0 : 1 + random() % 50;
    state.set_sequence(segment, sequence);
    told[segment] = sequence;
    std::uint64_t oldest = 0;
    for (const auto& [of, each] : told) {
      CHECK(state.sequence(of) == each);
      if (each != 0 && (oldest == 0 || each < oldest)) oldest = each;
    }
    CHECK(state.oldest_sequence() == oldest);
  }
  CHECK(state.sequence(disk.superblock.segments) == 0);
}

TEST_CASE("a time on a disk is that of this run's clock, and its last one is never", "[disk]") {
  using std::chrono::seconds;
  constexpr WallSeconds kLast = std::numeric_limits<WallSeconds>::max();
  const WallTime wall{seconds(1'000'000)};
  const MonotonicTime now{seconds(500)};
  CHECK(monotonic_of(1'000'000, now, wall) == now);
  CHECK(monotonic_of(1'000'007, now, wall) == now + seconds(7));
  CHECK(monotonic_of(999'990, now, wall) == now - seconds(10));
  // Not before the clock's begin.
  CHECK(monotonic_of(999'500, now, wall) == MonotonicTime{});
  CHECK(monotonic_of(999'499, now, wall) == MonotonicTime{});
  CHECK(monotonic_of(kLast, now, wall) == MonotonicTime::max());
  CHECK(monotonic_of(kLast - 1, now, wall) == now + seconds(kLast - 1 - 1'000'000));
  CHECK(monotonic_of(kLast - 1, MonotonicTime::max() - seconds(9), wall) == MonotonicTime::max());
  CHECK(monotonic_of(1'000'009, MonotonicTime::max() - seconds(9), wall) == MonotonicTime::max());
  DiskClocks clocks;
  clocks.wall = [] { return WallTime{seconds(77) + std::chrono::milliseconds(900)}; };
  CHECK(clocks.wall_seconds() == 77);
  clocks.wall = [] { return WallTime{-seconds(77)}; };
  CHECK(clocks.wall_seconds() == 0);
  clocks.wall = [] { return WallTime{seconds(5'000'000'000)}; };
  CHECK(clocks.wall_seconds() == kLast);
}

TEST_CASE("places that are read or moved are those that were told, as often as they were",
          "[disk]") {
  std::mt19937_64 random(9);
  Readings readings;
  Relocations moves(readings);
  std::vector<cache::DiskPlace> read;
  std::vector<std::pair<cache::DiskPlace, cache::DiskPlace>> moved;  // to and from
  std::uint32_t next_unit = 100;
  const auto random_place = [&] {
    return cache::DiskPlace{.disk = 0,
                            .segment = static_cast<std::uint32_t>(random() % 4),
                            .unit = static_cast<std::uint32_t>(8 + random() % 3),
                            .bytes = 512};
  };
  for (int step = 0; step < 2000; ++step) {
    switch (random() % 6) {
      case 0: {
        cache::DiskReclaim step_of_kernel;
        cache::DiskRelocation move{};
        move.from = random_place();
        move.to = {.disk = 0, .segment = 5, .unit = ++next_unit, .bytes = 512};
        step_of_kernel.moves = {move};
        CHECK(moves.decide([&] { return step_of_kernel; }).moves.size() == 1);
        moved.emplace_back(move.to, move.from);
        break;
      }
      case 1:
        if (moved.empty()) break;
        moves.end(moved.front().first);
        moved.erase(moved.begin());
        break;
      case 2:
        read.push_back(random_place());
        readings.begin(read.back());
        break;
      case 3: {
        const bool is_moved = !moved.empty() && random() % 2 == 0;
        const cache::DiskPlace place = is_moved ? moved.back().first : random_place();
        read.push_back(is_moved ? moved.back().second : place);
        CHECK(moves.begin_reading(place) == read.back());
        break;
      }
      default:
        if (read.empty()) break;
        const auto pick = read.begin() + static_cast<std::ptrdiff_t>(random() % read.size());
        readings.end(*pick);
        read.erase(pick);
    }
    const std::vector<cache::DiskPlace> places = readings.places();
    for (const cache::DiskPlace& place : read) {
      REQUIRE(std::ranges::count(places, place) == 1);
    }
    for (const cache::DiskPlace& place : places) REQUIRE(std::ranges::count(read, place) != 0);
    for (std::uint32_t segment = 0; segment < 6; ++segment) {
      REQUIRE(readings.has(segment) ==
              (std::ranges::count(read, segment, &cache::DiskPlace::segment) != 0));
    }
    REQUIRE(moves.empty() == moved.empty());
  }
}

TEST_CASE("a record that is purged before or while it is read is lost", "[disk]") {
  enum class When : std::uint8_t { kNever, kBefore, kWhile, kOfAnother, kOfOlder };
  const When when =
      GENERATE(When::kNever, When::kBefore, When::kWhile, When::kOfAnother, When::kOfOlder);
  const PurgeKind kind = GENERATE(PurgeKind::kKey, PurgeKind::kBan);
  CAPTURE(static_cast<int>(when), static_cast<int>(kind));
  std::mt19937_64 random(1);
  auto owned = std::make_unique<MemoryFile>();
  MemoryFile& memory = *owned;
  Superblock superblock = *lay_out(12 * kMiB, 1 * kMiB);
  superblock.uuid = {7, 8};
  REQUIRE(memory.allocate(superblock.disk_bytes()));
  SegmentWriter writer(memory, superblock, {});
  REQUIRE(writer.open({.disk = 0, .segment = 0, .sequence = 1}, 1).has_value());
  MadeRecord made = made_record(random, {.body_bytes = 3000});
  made.fields.version = 10;
  const cache::DiskPlace place{
      .disk = 0,
      .segment = 0,
      .unit = static_cast<std::uint32_t>(cache::kSegmentHeaderBytes / cache::kDiskUnit),
      .bytes = cache::disk_room(record_bytes(shape_of(made.view())))};
  writer.add(made.view(), place);
  REQUIRE(writer.flush().has_value());
  CountedFile file(std::move(owned));
  const auto common = std::make_shared<DiskCommon>();
  DiskState state(0, common, file, superblock, is_pattern_of);
  state.set_sequence(0, 1);
  Purge purge;
  purge.kind = kind;
  purge.version = when == When::kOfOlder ? 10 : 11;
  purge.key = made.fields.key;
  purge.pattern = made.key;
  if (when == When::kOfAnother) {
    purge.key.lo ^= 1;
    purge.pattern += "?";
  }
  if (when != When::kNever && when != When::kWhile) state.rules.add(purge);

  struct Heard {
    int reads = 0;
    int ends = 0;
    LoadEnd how{};
    std::size_t places = 0;
  } heard;
  struct Load final : public DiskLoad {
    Load(DiskState& of, Heard& to, const Purge* meanwhile)
        : state(of), heard(to), purge(meanwhile) {}
    std::expected<void, Damage> read(const RecordFront&, RecordReader&) override {
      ++heard.reads;
      heard.places = state.readings.places().size();
      if (purge != nullptr) state.rules.add(*purge);
      return {};
    }
    void end(LoadEnd how) override {
      ++heard.ends;
      heard.how = how;
    }
    DiskState& state;
    Heard& heard;
    const Purge* purge;
  };
  DiskLoads loads(state);
  const auto engine = make_inline_engine();
  for (int round = 0; round < 2; ++round) {
    heard = {};
    loads.load(
        *engine, made.fields.key, place,
        std::make_unique<Load>(state, heard, when == When::kWhile && round == 0 ? &purge : nullptr),
        nullptr);
    const bool is_there = when != When::kBefore && when != When::kWhile;
    CHECK(heard.ends == 1);
    CHECK(heard.how == (is_there ? LoadEnd::kDone : LoadEnd::kLost));
    // A record that is known to be purged is not read; one that was purged meanwhile no more.
    CHECK(heard.reads == (is_there || (when == When::kWhile && round == 0) ? 1 : 0));
    if (heard.reads != 0) CHECK(heard.places == 1);
    CHECK(state.readings.places().empty());
    CHECK(state.damaged.load() == 0);
  }
}

}  // namespace encore::disk
