#include "cache/disk_table.h"

#include <algorithm>
#include <list>
#include <set>
#include <vector>

#include "tests/cache/support.h"

namespace encore::cache::test {
namespace {

MixedKey mixed(std::uint64_t id) { return EntryKeys::mixed_key(key(id).hash); }

constexpr DiskOptions kDiskOptions{.segments = 6, .segment_bytes = 1U << 20U};

// The stored times: floors of seconds, and the time beyond freshness with five binary digits.
std::int64_t seconds(MonotonicTime time) {
  return std::chrono::duration_cast<std::chrono::seconds>(time.time_since_epoch()).count();
}
std::int64_t kept(std::int64_t beyond) {
  std::int64_t step = 1;
  while (beyond / step >= 32) {
    step *= 2;
  }
  return std::max<std::int64_t>(beyond, 0) / step * step;
}

// Lists, nothing clever; the latest first.
struct TableModel {
  struct Entry {
    std::uint64_t id = 0;
    DiskTable::Record record;
  };
  std::list<Entry> entries;
  auto find(std::uint64_t id, std::uint32_t variant) {
    return std::ranges::find_if(entries, [&](const Entry& entry) {
      return entry.id == id && entry.record.variant == variant;
    });
  }
};

class TableDriver {
 public:
  explicit TableDriver(std::uint64_t seed) : random_(seed) {}

  bool step() {
    const std::uint64_t id = random_() % 60;
    const auto variant = static_cast<std::uint32_t>(random_() % 4);
    const auto entry = model_.find(id, variant);
    const EntryRef ref = table_.find(mixed(id), variant);
    if ((ref == kNoEntry) != (entry == model_.entries.end())) {
      return false;
    }
    if (ref == kNoEntry) {
      insert(id, variant);
    } else {
      change(ref, entry);
    }
    return agrees(id) && table_.size() == model_.entries.size();
  }
  bool segments_agree() {
    std::size_t seen = 0;
    for (std::uint32_t segment = 0; segment < kDiskOptions.segments; ++segment) {
      // Taking the first out again and again comes upon each.
      while (table_.first_of(0, segment) != kNoEntry) {
        const EntryRef ref = table_.first_of(0, segment);
        if (table_.place(ref).segment != segment) {
          return false;
        }
        table_.erase(ref);
        ++seen;
      }
    }
    return seen == model_.entries.size() && table_.size() == 0;
  }

 private:
  DiskPlace random_place() {
    // Each place once.
    const std::uint32_t unit = next_unit_++ % 16'384;
    return {.disk = 0,
            .segment = static_cast<std::uint32_t>(random_() % kDiskOptions.segments),
            .unit = unit,
            .bytes = disk_room(1 + random_() % 300'000)};
  }
  MonotonicTime random_time() {
    return random_() % 8 == 0 ? MonotonicTime::max()
                              : at(static_cast<std::int64_t>(random_() % 100'000)) +
                                    Nanoseconds(random_() % 1'000'000'000);
  }
  void insert(std::uint64_t id, std::uint32_t variant) {
    const DiskTable::Record record{.key = mixed(id),
                                   .variant = variant,
                                   .names = static_cast<std::uint16_t>(random_() % 4096),
                                   .place = random_place(),
                                   .fresh_until = random_time(),
                                   .keep_until = random_time(),
                                   .written = random_() % 2 == 0,
                                   .visited = random_() % 2 == 0};
    table_.insert(record);
    model_.entries.push_front({id, record});
  }
  void change(EntryRef ref, std::list<TableModel::Entry>::iterator entry) {
    DiskTable::Record& record = entry->record;
    switch (random_() % 6) {
      case 0:
        table_.erase(ref);
        model_.entries.erase(entry);
        break;
      case 1:
        record.place = random_place();
        table_.move(ref, record.place);
        break;
      case 2:
        record.fresh_until = random_time();
        record.keep_until = random_time();
        table_.set_times(ref, record.fresh_until, record.keep_until);
        break;
      case 3: {
        const MonotonicTime now = random_time();
        table_.mark_stale(ref, now);
        if (seconds(now) < seconds(record.fresh_until) && now != MonotonicTime::max()) {
          record.keep_until = table_.view(ref).keep_until;  // rounded once more
          record.fresh_until = now;
        }
        break;
      }
      case 4:
        record.written = true;
        table_.set_written(ref);
        break;
      default:
        record.visited = !record.visited;
        table_.set_visits(ref, record.visited ? 1 : 0);
    }
  }
  static bool same(const DiskView& view, const DiskTable::Record& record) {
    const bool forever = record.fresh_until == MonotonicTime::max();
    const std::int64_t fresh = seconds(record.fresh_until);
    const std::int64_t keep = std::max(
        fresh, record.keep_until == MonotonicTime::max() ? fresh : seconds(record.keep_until));
    const bool keeps = forever || record.keep_until == MonotonicTime::max();
    return view.variant == record.variant && view.names == record.names &&
           view.place == record.place && view.visited == record.visited &&
           (forever ? view.fresh_until == MonotonicTime::max() : view.fresh_until == at(fresh)) &&
           (keeps ? view.keep_until == MonotonicTime::max()
                  : view.keep_until == at(fresh + kept(keep - fresh)));
  }
  bool agrees(std::uint64_t id) {
    EntryRef ref = table_.find(mixed(id));
    std::uint32_t variants = 0;
    for (const TableModel::Entry& entry : model_.entries) {
      if (entry.id != id) {
        continue;
      }
      ++variants;
      if (ref == kNoEntry || !same(table_.view(ref), entry.record) ||
          table_.written(ref) != entry.record.written || table_.key(ref) != mixed(id) ||
          table_.find_at(mixed(id), entry.record.place) != ref) {
        return false;
      }
      ref = table_.next(ref);
    }
    return ref == kNoEntry && table_.variants(mixed(id)) == variants;
  }

  std::mt19937_64 random_;
  DiskTable table_{std::span(&kDiskOptions, 1)};
  TableModel model_;
  std::uint32_t next_unit_ = 0;
};

}  // namespace

TEST_CASE("The table of a disk does what the naive model does, whatever is asked of it",
          "[cache][disk]") {
  const auto seed = GENERATE(range(std::uint64_t{1}, std::uint64_t{5}));
  INFO("seed " << seed);
  TableDriver driver(seed);
  int steps = 0;
  bool same = true;
  for (; same && steps < 15'000; ++steps) {
    same = driver.step();
  }
  INFO("after " << steps << " operations");
  CHECK(same);
  CHECK(driver.segments_agree());
}

TEST_CASE("An entry on disk costs at most 46 bytes, at every size of the table", "[cache][disk]") {
  // A million objects of some 10 KiB; one table, so that its index grows through every fill.
  const DiskOptions disk{.segments = 200, .segment_bytes = 64ULL << 20U};
  DiskTable table(std::span(&disk, 1));
  std::mt19937_64 random(3);
  double most = 0;
  constexpr std::uint32_t kObjects = 1'000'000;
  for (std::uint32_t i = 0; i < kObjects; ++i) {
    const MixedKey key{random(), static_cast<std::uint8_t>(0x80U | (random() & 0x7fU))};
    REQUIRE(
        table.insert(
            {.key = key,
             .place = {.disk = 0, .segment = i / 6500, .unit = i % 6500 * 160, .bytes = 10'240}}) !=
        kNoEntry);
    if (i > 100'000 && i % 1000 == 0) {
      most = std::max(most, static_cast<double>(table.memory_bytes()) / table.size());
    }
  }
  REQUIRE(table.size() == kObjects);
  const double at_last = static_cast<double>(table.memory_bytes()) / kObjects;
  INFO("at last " << at_last << ", at most " << most);
  CHECK(at_last <= kDiskEntryBytes);
  CHECK(most <= kDiskEntryBytes);
}

TEST_CASE("Memory of a table that has become smaller is given back", "[cache][disk]") {
  DiskTable table(std::span(&kDiskOptions, 1));
  std::mt19937_64 random(4);
  std::vector<EntryRef> refs;
  for (std::uint32_t i = 0; i < 50'000; ++i) {
    refs.push_back(
        table.insert({.key = {random(), 0x80},
                      .place = {.disk = 0, .segment = i % 6, .unit = i % 16'384, .bytes = 64}}));
  }
  const std::uint64_t full = table.memory_bytes();
  for (std::uint32_t i = 500; i < 50'000; ++i) {
    table.erase(refs[i]);
  }
  CHECK(table.size() == 500);
  CHECK(table.memory_bytes() < full / 10);
}

TEST_CASE("What the memory's index knows of a key finds the same key on disk", "[cache][disk]") {
  EntrySlab slab;
  Index index(slab);
  std::vector<EntryRef> refs;
  for (std::uint64_t id = 0; id < 3000; ++id) {
    refs.push_back(slab.allocate());
    slab.hot(refs.back()).key = key(id).hash;
    index.insert(key(id).hash, refs.back());
  }
  std::uint64_t wrong = 0;
  for (std::uint64_t id = 0; id < 6000; ++id) {
    wrong += index.find_mixed(mixed(id)) != (id < 3000 ? refs[id] : kNoEntry) ? 1U : 0U;
  }
  CHECK(wrong == 0);
}

}  // namespace encore::cache::test
