// The log with visits, compared with a list that is searched from its beginning.
#include "cache/visited_log.h"

#include <algorithm>
#include <cstdint>
#include <random>
#include <vector>

#include "tests/catch.h"

namespace encore::cache {
namespace {

using Log = VisitedLog;

struct NaiveLog {
  struct Line {
    std::uint64_t key = 0;
    std::uint64_t size = 0;
    std::uint64_t visits = 0;
    bool was_visited = false;
    bool is_filled = false;
    bool is_erased = false;
  };

  std::vector<Line> live() const {
    std::vector<Line> found;
    std::ranges::copy_if(lines, std::back_inserter(found),
                         [](const Line& line) { return !line.is_erased; });
    return found;
  }
  Line* find(std::uint64_t key) {
    const auto found = std::ranges::find_if(
        lines, [key](const Line& line) { return line.key == key && !line.is_erased; });
    return found == lines.end() ? nullptr : &*found;
  }
  static std::uint64_t sum(const std::vector<Line>& some) {
    std::uint64_t bytes = 0;
    for (const Line& line : some) bytes += line.size;
    return bytes;
  }
  void write(std::uint64_t key, std::uint64_t size, bool is_filled) {
    while (sum(lines) + size > settings.size_bytes) reclaim();
    lines.push_back({.key = key, .size = size, .is_filled = is_filled});
    (is_filled ? counts.fill_bytes : counts.first_bytes) += size;
    ++counts.objects_written;
  }
  void reclaim() {
    ++counts.reclaims;
    const auto present = live();
    std::uint64_t segment = settings.segment_bytes;
    if (!present.empty()) {
      segment = std::max(segment, Log::kSegmentObjects * sum(present) / present.size());
    }
    std::vector<Line> oldest;
    while (!lines.empty() && sum(oldest) < segment) {
      oldest.push_back(lines.front());
      lines.erase(lines.begin());
    }
    double room = settings.move_share * static_cast<double>(segment);
    // Most visits first, and in the order of their writes.
    for (std::uint64_t visits = Log::kVisitsMax + 1; visits-- > 0;) {
      for (Line& line : oldest) {
        if (line.is_erased || line.visits != visits) continue;
        if (visits >= Log::kMoveVisits && static_cast<double>(line.size) <= room) {
          room = static_cast<double>(static_cast<std::uint64_t>(room) - line.size);
          counts.moved_bytes += line.size;
          lines.push_back(line);
          lines.back().visits /= 2;
        } else {
          ++counts.objects_dropped;
          if (!line.is_filled) ++counts.admitted_dropped;
          if (!line.is_filled && line.was_visited) ++counts.admitted_visited;
        }
      }
    }
  }

  Log::Settings settings;
  std::vector<Line> lines;
  Log::Counts counts;
};

filter::Hash128 key_of(std::uint64_t number) { return {.lo = number * 7919, .hi = number}; }

TEST_CASE("a log with visits keeps, moves and drops as a list of its lines does", "[cache]") {
  const auto seed = GENERATE(range(1U, 11U));
  CAPTURE(seed);
  std::mt19937_64 random(seed);
  const Log::Settings settings{.size_bytes = 20'000 + random() % 20'000,
                               .segment_bytes = 500 + random() % 2'000,
                               .move_share = seed % 3 == 0 ? 1.0 : 0.5};
  Log log(settings);
  NaiveLog naive{.settings = settings, .lines = {}, .counts = {}};
  for (int step = 0; step < 3000; ++step) {
    // Small numbers come often, so that some objects have many visits.
    const std::uint64_t number = std::min(random() % 300, random() % 300);
    LoggedObject* const object = log.find(key_of(number));
    NaiveLog::Line* const line = naive.find(number);
    REQUIRE((object == nullptr) == (line == nullptr));
    if (object != nullptr && random() % 50 == 0) {
      CHECK(log.erase(key_of(number)));
      CHECK_FALSE(log.erase(key_of(number)));
      line->is_erased = true;
    } else if (object != nullptr) {
      Log::visit(*object);
      line->visits = std::min<std::uint64_t>(Log::kVisitsMax, line->visits + 1);
      line->was_visited = true;
    } else {
      const std::uint64_t size = 1 + random() % (step % 10 == 0 ? 2'000 : 300);
      REQUIRE(log.takes(size));
      const bool is_filled = random() % 4 == 0;
      log.write({.key = key_of(number), .size_bytes = size, .visits = 3, .was_visited = true},
                is_filled ? WrittenFor::kFill : WrittenFor::kAdmission);
      naive.write(number, size, is_filled);
    }
    CHECK(log.counts() == naive.counts);
    const auto live = naive.live();
    REQUIRE(log.objects() == live.size());
    CHECK(log.live_bytes() == NaiveLog::sum(live));
    std::size_t at = 0;
    bool is_alike = true;
    log.each([&](const LoggedObject& each) {
      const NaiveLog::Line& other = live[at++];
      is_alike = is_alike && each.key == key_of(other.key) && each.size_bytes == other.size &&
                 each.visits == other.visits && each.was_visited == other.was_visited &&
                 each.filled == other.is_filled;
    });
    REQUIRE(is_alike);
  }
  CHECK(log.has_been_full());
  CHECK(log.counts().moved_bytes > 0);
  CHECK_FALSE(log.takes(settings.size_bytes / Log::kLargestShare + 1));
}

}  // namespace
}  // namespace encore::cache
