#include "cache/segment_log.h"

#include <map>
#include <set>
#include <vector>

#include "tests/cache/support.h"

namespace encore::cache::test {
namespace {

constexpr std::uint64_t kSegmentBytes = 65'536 * 8;

// The same disk as lists of records, with every rule written out.
class LogModel {
 public:
  struct Record {
    std::uint64_t offset = 0;
    std::uint64_t room = 0;
    bool live = true;
  };
  struct Segment {
    std::uint64_t sequence = 0;  // 0: free
    bool sealed = false;
    bool reclaimed = false;
    std::vector<Record> records;
    std::map<std::uint16_t, std::uint32_t> names;
  };
  explicit LogModel(std::uint32_t segments) : wanted_(segments) {
    for (std::uint32_t i = 0; i < segments; ++i) {
      segments_[i] = {};
    }
  }

  std::uint64_t sequence() const { return sequence_; }
  std::uint32_t free() const {
    std::uint32_t count = 0;
    for (const auto& [number, segment] : segments_) {
      count += number < wanted_ && segment.sequence == 0 ? 1U : 0U;
    }
    return count;
  }

  std::optional<PlacedRecord> place(const SegmentLog::Record& record) {
    if (!fits(Segment{}, record)) {
      return std::nullopt;
    }
    bool turned = false;
    if (!active_ || !fits(segments_[*active_], record)) {
      if (free() < (record.why == WriteReason::kAdmit ? 2U : 1U)) {
        return std::nullopt;
      }
      turned = true;
      if (active_) {
        segments_[*active_].sealed = true;
      }
      std::uint32_t next = last_ < wanted_ ? last_ : 0;
      while (segments_[next].sequence != 0) {
        next = (next + 1) % wanted_;
      }
      last_ = next + 1;
      active_ = next;
      segments_[next] = {};
      segments_[next].sequence = ++sequence_;
    }
    Segment& segment = segments_[*active_];
    const std::uint64_t room = rounded(record.bytes);
    const std::uint64_t offset = next_offset(segment, room);
    segment.records.push_back({offset, room});
    if (record.names != 0) {
      segment.names[record.names] = record.names_bytes;
    }
    PlacedRecord placed{{3, *active_, static_cast<std::uint32_t>(offset / 64), room}, {}, ++order_};
    if (turned) {
      placed.turn = {3, *active_, segment.sequence};
    }
    return placed;
  }
  Record& at(const DiskPlace& place) {
    for (Record& record : segments_[place.segment].records) {
      if (record.offset == place.offset()) {
        return record;
      }
    }
    FAIL("no such record");
    return segments_[0].records[0];
  }
  std::optional<std::uint32_t> oldest() const {
    std::optional<std::uint32_t> found;
    for (const bool beyond : {true, false}) {
      std::uint64_t lowest = 0;
      for (const auto& [number, segment] : segments_) {
        if (!found || !beyond || number >= wanted_) {
          const bool counts =
              segment.sealed && !segment.reclaimed && (!beyond || number >= wanted_);
          if (counts && (lowest == 0 || segment.sequence < lowest)) {
            lowest = segment.sequence;
            found = number;
          }
        }
      }
      if (found) {
        return found;
      }
    }
    return found;
  }
  void begin(std::uint32_t number) { segments_[number].reclaimed = true; }
  bool end(std::uint32_t number) {
    if (!segments_[number].reclaimed || live(number).first != 0) {
      return false;
    }
    segments_[number] = {};
    trim();
    return true;
  }
  void resize(std::uint32_t segments) {
    wanted_ = segments;
    for (std::uint32_t i = 0; i < segments; ++i) {
      segments_.try_emplace(i);
    }
    if (active_ && *active_ >= wanted_) {
      segments_[*active_].sealed = true;
      active_.reset();
    }
    trim();
  }
  std::pair<std::uint64_t, std::uint64_t> live(std::uint32_t number) const {
    std::pair<std::uint64_t, std::uint64_t> sum{};
    for (const Record& record : segments_.at(number).records) {
      sum.first += record.live ? 1U : 0U;
      sum.second += record.live ? record.room : 0;
    }
    return sum;
  }
  std::uint32_t held() const { return segments_.empty() ? 0 : segments_.rbegin()->first + 1; }
  const std::map<std::uint32_t, Segment>& segments() const { return segments_; }

 private:
  static std::uint64_t rounded(std::uint64_t bytes) {
    std::uint64_t step = 64;
    while ((bytes + step - 1) / step > 2048) {
      step *= 2;
    }
    return (bytes + step - 1) / step * step;
  }
  static std::uint64_t next_offset(const Segment& segment, std::uint64_t room) {
    std::uint64_t offset = 4096;
    if (!segment.records.empty()) {
      offset = segment.records.back().offset + segment.records.back().room;
    }
    while (room >= 262'144 && offset % 4096 != 0) {
      offset += 64;
    }
    return offset;
  }
  static bool fits(Segment segment, const SegmentLog::Record& record) {
    const std::uint64_t end = next_offset(segment, rounded(record.bytes)) + rounded(record.bytes);
    if (record.names != 0) {
      segment.names[record.names] = record.names_bytes;
    }
    std::uint64_t footer = 64 + 48 * (segment.records.size() + 1);
    for (const auto& [number, bytes] : segment.names) {
      footer += 4 + bytes;
    }
    while (footer % 4096 != 0) {
      ++footer;
    }
    return end + footer <= kSegmentBytes;
  }
  void trim() {
    while (segments_.rbegin()->first >= wanted_ && segments_.rbegin()->second.sequence == 0) {
      segments_.erase(std::prev(segments_.end()));
    }
  }

  std::uint32_t wanted_;
  std::map<std::uint32_t, Segment> segments_;
  std::optional<std::uint32_t> active_;
  std::uint32_t last_ = 0;
  std::uint64_t sequence_ = 0;
  std::uint64_t order_ = 0;
};

SegmentLog::Record random_record(std::mt19937_64& random) {
  SegmentLog::Record record{.bytes = 1 + random() % (random() % 4 == 0 ? 90'000 : 3000)};
  if (random() % 64 == 0) {
    record.bytes = 200'000 + random() % (random() % 4 == 0 ? 350'000 : 200'000);
  }
  if (random() % 3 == 0) {
    record.names = static_cast<std::uint16_t>(1 + random() % 40);
    record.names_bytes = record.names * 25U;
  }
  record.why = random() % 4 == 0 ? WriteReason::kMove : WriteReason::kAdmit;
  return record;
}

// One random history on both.
class LogDriver {
 public:
  explicit LogDriver(std::uint64_t seed) : random_(seed) {}

  bool step() {
    bool same = true;
    switch (random_() % 40) {
      case 0:
        same = resize();
        break;
      case 1:
      case 2:
      case 3:
        same = reclaim();
        break;
      default:
        same = random_() % 3 == 0 ? die() : place();
    }
    return same && agree();
  }
  std::uint64_t refused = 0;
  std::uint64_t turns = 0;
  std::uint64_t gone = 0;

 private:
  bool place() {
    const SegmentLog::Record record = random_record(random_);
    const auto ours = log_.place(record);
    const auto theirs = model_.place(record);
    refused += ours ? 0U : 1U;
    if (!ours || !theirs) {
      return ours.has_value() == theirs.has_value();
    }
    turns += ours->turn.sequence != 0 ? 1U : 0U;
    live_.push_back(ours->place);
    return ours->place == theirs->place && ours->turn == theirs->turn &&
           ours->order == theirs->order;
  }
  bool die() {
    if (!live_.empty()) {
      const std::size_t which = random_() % live_.size();
      kill(live_[which]);
      live_.erase(live_.begin() + static_cast<std::ptrdiff_t>(which));
    }
    return true;
  }
  void kill(const DiskPlace& place) {
    log_.mark_dead(place);
    model_.at(place).live = false;
  }
  bool reclaim() {
    const auto ours = log_.oldest();
    if (ours != model_.oldest()) {
      return false;
    }
    if (!ours) {
      return true;
    }
    log_.begin_reclaim(*ours);
    model_.begin(*ours);
    if (log_.end_reclaim(*ours) != model_.end(*ours)) {
      return false;
    }
    std::erase_if(live_, [&](const DiskPlace& place) {
      if (place.segment == *ours) {
        kill(place);
      }
      return place.segment == *ours;
    });
    if (*ours < model_.held() && model_.segments().at(*ours).reclaimed) {
      return log_.end_reclaim(*ours) && model_.end(*ours);
    }
    return true;
  }
  bool resize() {
    const auto segments = static_cast<std::uint32_t>(1 + random_() % 12);
    const std::uint32_t before = log_.held_segments();
    log_.resize(segments);
    model_.resize(segments);
    gone += log_.held_segments() > segments ? 1U : 0U;
    return before != 0;
  }
  bool agree() {
    bool same = log_.free_segments() == model_.free() && log_.held_segments() == model_.held();
    std::uint64_t bytes = 0;
    for (const auto& [number, segment] : model_.segments()) {
      const auto [records, live] = model_.live(number);
      same = same && log_.segment(number).live_records == records &&
             log_.segment(number).live_bytes == live &&
             log_.segment(number).records == segment.records.size() &&
             log_.segment(number).sequence == segment.sequence;
      bytes += live;
    }
    same = same && log_.sequence() == model_.sequence();
    return same && log_.live_bytes() == bytes && log_.live_records() == live_.size();
  }

  std::mt19937_64 random_;
  SegmentLog log_{{.disk = 3, .segments = 8, .segment_bytes = kSegmentBytes}};
  LogModel model_{8};
  std::vector<DiskPlace> live_;
};

}  // namespace

TEST_CASE("The room of a record is what eleven digits say of it, and never less than it needs",
          "[cache][disk]") {
  CHECK(disk_room(1) == 64);
  CHECK(disk_room(64) == 64);
  CHECK(disk_room(65) == 128);
  CHECK(disk_room(131'008) == 131'008);
  std::mt19937_64 random(1);
  bool sound = true;
  for (int i = 0; i < 100'000; ++i) {
    const std::uint64_t bytes = 1 + (random() >> (36U + random() % 20U));
    const std::uint64_t room = disk_room(bytes);
    const std::uint64_t units = room / kDiskUnit;
    sound = sound && room >= bytes && room % kDiskUnit == 0 && disk_room(room) == room &&
            room - bytes < std::max<std::uint64_t>(kDiskUnit, bytes / 1024 + 1) &&
            (units >> static_cast<unsigned>(std::countr_zero(units))) < 2048;
  }
  CHECK(sound);
}

TEST_CASE("The ring of segments does what the naive model does, whatever is asked of it",
          "[cache][disk]") {
  const auto seed = GENERATE(range(std::uint64_t{1}, std::uint64_t{9}));
  INFO("seed " << seed);
  LogDriver driver(seed);
  int steps = 0;
  bool same = true;
  for (; same && steps < 10000; ++steps) {
    same = driver.step();
  }
  INFO("after " << steps << " operations");
  CHECK(same);
  CHECK(driver.refused > 100);
  CHECK(driver.turns > 100);
  CHECK(driver.gone > 10);
}

TEST_CASE("A ring that was found goes on behind its newest segment", "[cache][disk]") {
  SegmentLog log({.disk = 0, .segments = 6, .segment_bytes = kSegmentBytes});
  const std::vector<std::uint64_t> sequences = {7, 9, 0, 0, 5, 6, 8};  // one beyond the end
  log.attach(sequences);
  CHECK(log.free_segments() == 2);
  CHECK(log.oldest() == 6);
  const auto placed = log.place({.bytes = 1000});
  REQUIRE(placed);
  CHECK(placed->turn == SegmentTurn{0, 2, 11});
  log.begin_reclaim(6);
  CHECK(log.end_reclaim(6));
  CHECK(log.held_segments() == 6);
  CHECK(log.oldest() == 4);
  log.found({0, 4, 64, 4096}, true);
  log.begin_reclaim(4);
  CHECK_FALSE(log.end_reclaim(4));
  log.mark_dead({0, 4, 64, 4096});
  CHECK(log.end_reclaim(4));
}

TEST_CASE("A record that fits no segment is refused and leaves all as it was", "[cache][disk]") {
  SegmentLog log({.disk = 0, .segments = 4, .segment_bytes = kSegmentBytes});
  const std::uint64_t most = kSegmentBytes - kSegmentHeaderBytes - kDiskPage;
  CHECK_FALSE(log.place({.bytes = most + 1}));
  CHECK_FALSE(log.place({.bytes = ~std::uint64_t{0}}));
  CHECK(log.free_segments() == 4);
  CHECK(log.place({.bytes = most}));
  CHECK(log.free_segments() == 3);
}

}  // namespace encore::cache::test
