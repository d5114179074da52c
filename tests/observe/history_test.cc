// The rows that the live page draws: an hour of seconds, a day of minutes, whatever comes.
#include "proxy/observe/history.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>

#include "tests/catch.h"

namespace encore::server {
namespace {

using Json = nlohmann::json;

constexpr std::int64_t kStartMilliseconds = 1'800'000'000'000;  // a whole minute

Snapshot counted_hits(std::uint64_t hits, std::uint64_t bytes = 0) {
  Snapshot snapshot;
  snapshot.requests[static_cast<std::size_t>(Outcome::kHit)] = hits;
  snapshot.bytes_to_clients = bytes;
  return snapshot;
}

Json read(const History& history, std::int64_t since = 0) {
  return Json::parse(history.json(since));
}

TEST_CASE("a row has what was counted since the one before", "[observe][history]") {
  History history;
  history.note(counted_hits(5, 1000), kStartMilliseconds);
  CHECK(read(history)["seconds"]["end"].empty());
  history.note(counted_hits(12, 1500), kStartMilliseconds + 1000);
  history.note(counted_hits(12, 1500), kStartMilliseconds + 2500);
  const Json rows = read(history)["seconds"];
  CHECK(rows["end"] == Json({kStartMilliseconds + 1000, kStartMilliseconds + 2500}));
  CHECK(rows["span"] == Json({1000, 1500}));
  CHECK(rows["values"]["requests:hit"] == Json({7, 0}));
  CHECK(rows["values"]["bytes_to_clients"] == Json({500, 0}));
  CHECK_FALSE(rows["values"].contains("requests:stale"));
}

TEST_CASE("only what is new is told", "[observe][history]") {
  History history;
  for (int i = 0; i <= 10; ++i)
    history.note(counted_hits(static_cast<std::uint64_t>(i)), kStartMilliseconds + i * 1000);
  CHECK(read(history, kStartMilliseconds + 8000)["seconds"]["end"] ==
        Json({kStartMilliseconds + 9000, kStartMilliseconds + 10000}));
  CHECK(read(history, kStartMilliseconds + 10000)["seconds"]["end"].empty());
  CHECK(read(history, std::numeric_limits<std::int64_t>::max())["seconds"]["end"].empty());
  CHECK(read(history, std::numeric_limits<std::int64_t>::min())["seconds"]["end"].size() == 10);
}

TEST_CASE("a day and more takes the memory of its first second", "[observe][history]") {
  History history;
  const std::size_t memory = history.memory_bytes();
  CHECK(memory < 2'000'000);
  std::uint64_t hits = 0;
  constexpr std::int64_t kDays = 26 * 3600;
  for (std::int64_t i = 0; i <= kDays; ++i)
    history.note(counted_hits(hits += 3), kStartMilliseconds + i * 1000);
  CHECK(history.memory_bytes() == memory);
  const Json all = read(history);
  CHECK(all["seconds"]["end"].size() == History::kSeconds);
  CHECK(all["minutes"]["end"].size() == History::kMinutes);
  CHECK(all["seconds"]["end"].front() == kStartMilliseconds + (kDays - 3599) * 1000);
  CHECK(all["seconds"]["end"].back() == kStartMilliseconds + kDays * 1000);
  for (const char* const rows : {"seconds", "minutes"}) {
    CAPTURE(rows);
    const Json& ends = all[rows]["end"];
    CHECK(std::ranges::is_sorted(ends));
    const Json& values = all[rows]["values"]["requests:hit"];
    const int each = std::string(rows) == "seconds" ? 3 : 180;
    CHECK(std::ranges::all_of(values, [&](const Json& value) { return value == each; }));
  }
}

TEST_CASE("a gauge is what it was at the end, and a quantile that of its own time",
          "[observe][history]") {
  History history;
  Snapshot snapshot;
  history.note(snapshot, kStartMilliseconds);
  snapshot.connections_open = 7;
  snapshot.latency[0].buckets[20] = 99;
  snapshot.latency[0].buckets[60] = 1;
  history.note(snapshot, kStartMilliseconds + 1000);
  snapshot.connections_open = 3;
  snapshot.latency[0].buckets[40] = 10;
  history.note(snapshot, kStartMilliseconds + 2000);
  history.note(snapshot, kStartMilliseconds + 3000);
  const Json values = read(history)["seconds"]["values"];
  CHECK(values["connections_open"] == Json({7, 3, 3}));
  CHECK(values["hit_p50"][0].get<double>() == Approx(latency_bucket_bound(20)));
  CHECK(values["hit_p99"][0].get<double>() == Approx(latency_bucket_bound(20)));
  CHECK(values["hit_p50"][1].get<double>() == Approx(latency_bucket_bound(40)));
  CHECK(values["hit_p50"][2].is_null());
  CHECK(values["miss_p99"][0].is_null());
}

TEST_CASE("a clock that stands still or goes back makes no row", "[observe][history]") {
  History history;
  history.note(counted_hits(1), kStartMilliseconds);
  history.note(counted_hits(2), kStartMilliseconds);
  history.note(counted_hits(3), kStartMilliseconds - 5000);
  CHECK(read(history)["seconds"]["end"].empty());
  history.note(counted_hits(4), kStartMilliseconds + 1000);
  CHECK(read(history)["seconds"]["values"]["requests:hit"] == Json({3}));
}

TEST_CASE("who sleeps through a minute has a longer one", "[observe][history]") {
  History history;
  history.note(counted_hits(0), kStartMilliseconds);
  history.note(counted_hits(10), kStartMilliseconds + 200'000);
  const Json rows = read(history)["minutes"];
  CHECK(rows["end"] == Json({kStartMilliseconds + 200'000}));
  CHECK(rows["span"] == Json({200'000}));
  CHECK(rows["values"]["requests:hit"] == Json({10}));
}

TEST_CASE("each column has a name of its own", "[observe][history]") {
  auto names = history_columns();
  std::ranges::sort(names);
  CHECK(std::ranges::adjacent_find(names) == names.end());
  CHECK(std::ranges::find(names, "requests:client-aborted") != names.end());
}

}  // namespace
}  // namespace encore::server
