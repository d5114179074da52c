#include "proxy/observe/carried_counts.h"

#include "tests/catch.h"

namespace encore::server {
namespace {

Snapshot some() {
  Snapshot snapshot;
  snapshot.requests[3] = 5;
  snapshot.connections_accepted = 7;
  snapshot.latency[1].buckets[2] = 4;
  snapshot.latency[1].count = 4;
  snapshot.latency[1].sum_seconds = 0.25;
  snapshot.kernel.counters.evictions = 9;
  snapshot.connections_open = 11;
  snapshot.series.listeners.push_back({.name = "127.0.0.1:80", .accepted = 6});
  return snapshot;
}

}  // namespace

TEST_CASE("counters go over as text, gauges do not", "[observe][carried]") {
  const auto read = parse_counts(to_text(counts_of(some())));
  REQUIRE(read);
  CarriedCounts carried;
  carried.add(*read);
  carried.add(*read);
  Snapshot sum;
  sum.series.listeners.push_back({.name = "127.0.0.1:80", .accepted = 1});
  carried.add_to(sum);
  CHECK(sum.requests[3] == 10);
  CHECK(sum.connections_accepted == 14);
  CHECK(sum.latency[1].buckets[2] == 8);
  CHECK(sum.latency[1].count == 8);
  CHECK(sum.latency[1].sum_seconds == 0.5);
  CHECK(sum.kernel.counters.evictions == 18);
  CHECK(sum.series.listeners[0].accepted == 13);
  CHECK(sum.connections_open == 0);
}

TEST_CASE("what is counted after a moment is the difference", "[observe][carried]") {
  const CountTable before = counts_of(some());
  Snapshot later = some();
  later.requests[3] += 2;
  const CountTable since = difference(counts_of(later), before);
  CarriedCounts carried;
  carried.add(since);
  Snapshot sum;
  carried.add_to(sum);
  CHECK(sum.requests[3] == 2);
  CHECK(sum.connections_accepted == 0);
}

TEST_CASE("counters of another version are left out, damaged ones refused", "[observe][carried]") {
  const auto read = parse_counts("unknown\t1\nconnections_accepted\t2\t3\n");
  REQUIRE(read);
  CarriedCounts carried;
  carried.add(*read);
  Snapshot sum;
  carried.add_to(sum);
  CHECK(sum.connections_accepted == 2);
  for (const char* text :
       {"a", "a\n", "a\t\n", "a\tx\n", "\t1\n", "a\t1", "a\t-1\n", "a\t18446744073709551616\n"}) {
    INFO(text);
    CHECK_FALSE(parse_counts(text));
  }
  CHECK_FALSE(parse_counts(std::string(kCountsBytesMax + 1, '\n')));
}

}  // namespace encore::server
