#include "proxy/observe/series.h"

#include <cstdint>
#include <string>
#include <vector>

#include "proxy/observe/counter.h"
#include "proxy/observe/error_counts.h"
#include "proxy/observe/metrics_writer.h"
#include "proxy/observe/server_counters.h"
#include "proxy/observe/stats.h"
#include "tests/catch.h"

namespace encore::server {
namespace {

using Names = std::vector<std::string>;

std::uint64_t sum(const PerWorker<Counter>& counts) {
  std::uint64_t all = 0;
  counts.each([&](const Counter& part) { all += part.get(); });
  return all;
}

// "name=count ..." of a table.
std::string shown(const SeriesTable<Counter>& table) {
  std::string text;
  table.each([&](std::string_view name, const PerWorker<Counter>& counts) {
    text += std::string(name) + "=" + std::to_string(sum(counts)) + " ";
  });
  return text;
}

TEST_CASE("the first names have series, and what is beyond the bound is clipped",
          "[observe][series]") {
  for (const std::size_t most : {1U, 2U, 3U, 4U}) {
    const SeriesNames names(Names{"c", "a", "b", "a"}, most, nullptr);
    CHECK(names.own().size() == std::min<std::size_t>(most, 3));
    CHECK(names.clipped() == 3 - names.own().size());
    CHECK(names.has_others() == (most < 3));
    CHECK(names.has("c"));
    CHECK(names.has("a") == (most > 1));
    CHECK(names.has("b") == (most > 2));
  }
}

TEST_CASE("who has series keeps them, whoever comes in front", "[observe][series]") {
  const SeriesNames before(Names{"b", "c"}, 2, nullptr);
  const SeriesNames after(Names{"a", "c", "b"}, 2, &before);
  CHECK_FALSE(after.has("a"));
  CHECK(after.has("b"));
  CHECK(after.has("c"));
  const SeriesNames fewer(Names{"a", "c", "b"}, 1, &after);
  CHECK(fewer.own() == std::set<std::string, std::less<>>{"c"});
  CHECK(fewer.clipped() == 2);
}

TEST_CASE("a name that is called as the others are is counted with them", "[observe][series]") {
  const SeriesNames names(Names{"other", "a"}, 5, nullptr);
  CHECK_FALSE(names.has("other"));
  CHECK(names.has_others());
  CHECK(names.clipped() == 0);
}

TEST_CASE("what was counted goes on over a reload, also of the others, and goes with its name",
          "[observe][series]") {
  const SeriesBounds bounds{.most = 2, .workers = 3};
  const SeriesTable<Counter> before(Names{"a", "b", "c", "d"}, bounds, nullptr);
  for (std::size_t worker = 0; worker < 3; ++worker) {
    for (const char* name : {"a", "b", "c", "d"}) before.of(name)->of(worker).add(worker + 1);
  }
  CHECK(shown(before) == "a=6 b=6 other=12 ");
  CHECK(before.clipped() == 2);
  // d has taken a's place, and begins anew; what it had is among the others.
  const SeriesTable<Counter> after(Names{"d", "b", "c"}, bounds, &before);
  CHECK(shown(after) == "b=6 d=0 other=12 ");
  // Requests of the configuration before still count.
  before.of("b")->of(2).add();
  before.of("c")->of(2).add();
  CHECK(shown(after) == "b=7 d=0 other=13 ");
  const SeriesTable<Counter> all(Names{"d", "b"}, bounds, &after);
  CHECK(shown(all) == "b=7 d=0 ");
  const SeriesTable<Counter> again(Names{"d", "b", "c"}, bounds, &all);
  CHECK(shown(again) == "b=7 d=0 other=13 ");
}

TEST_CASE("errors are told apart by outcome and detail, up to a bound, and then no more",
          "[observe][series]") {
  ErrorNames names;
  WorkerStats first;
  WorkerStats second;
  first.errors.count(names, Outcome::kDenied, "a");
  second.errors.count(names, Outcome::kOriginTimeout, "a");
  second.errors.count(names, Outcome::kDenied, "a");
  second.errors.count(names, Outcome::kClientAborted, "");
  REQUIRE(names.names().size() == 3);
  CHECK(names.names()[2] == ErrorNames::Name{Outcome::kClientAborted, "client-aborted"});
  CHECK(first.errors.at(0) + second.errors.at(0) == 2);
  CHECK(second.errors.at(1) == 1);
  for (std::size_t i = 0; i < ErrorNames::kMax + ErrorNames::kClippedMax; ++i) {
    for (int twice = 0; twice < 2; ++twice) {
      first.errors.count(names, Outcome::kDenied, "rule-" + std::to_string(i));
    }
  }
  CHECK(names.names().size() == ErrorNames::kMax);
  CHECK(names.clipped() == ErrorNames::kClippedMax);
  CHECK(first.errors.at(ErrorNames::kMax - 1) == 2);
  CHECK(first.errors.at(ErrorNames::kOther) == 2 * (ErrorNames::kClippedMax + 3));
  first.errors.count(names, Outcome::kDenied, "other");
  CHECK(first.errors.at(ErrorNames::kOther) == 2 * (ErrorNames::kClippedMax + 3) + 1);
  CHECK(names.clipped() == ErrorNames::kClippedMax);
}

TEST_CASE("a label's value has nothing in it that ends it, and is UTF-8", "[observe][series]") {
  CHECK(label_value("a \"b\" \\ c\nd") == "a \\\"b\\\" \\\\ c\\nd");
  CHECK(label_value("Gr\u00FC\u00DFe \u20AC \U0001F600") == "Gr\u00FC\u00DFe \u20AC \U0001F600");
  // Bytes of no character, one that ends too soon, one in a longer form than need be, a surrogate,
  // and one beyond the last.
  CHECK(label_value("\xFF"
                    "a") == "\\\\xFFa");
  CHECK(label_value("\xE2\x82") == "\\\\xE2\\\\x82");
  CHECK(label_value("\xE2\x82\"") == "\\\\xE2\\\\x82\\\"");
  CHECK(label_value("\xC0\xAF") == "\\\\xC0\\\\xAF");
  CHECK(label_value("\xED\xA0\x80") == "\\\\xED\\\\xA0\\\\x80");
  CHECK(label_value("\xF4\x90\x80\x80") == "\\\\xF4\\\\x90\\\\x80\\\\x80");
}

TEST_CASE("a size is in the bucket whose bound it does not exceed", "[observe][series]") {
  CHECK(response_size_bucket(0) == 0);
  CHECK(response_size_bucket(1) == 0);
  for (std::size_t b = 1; b + 1 < kResponseSizeBuckets; ++b) {
    const std::uint64_t bound = std::uint64_t{1} << (2 * b);
    CAPTURE(b);
    CHECK(response_size_bucket(bound / 4 + 1) == b);
    CHECK(response_size_bucket(bound) == b);
    CHECK(response_size_bucket(bound + 1) == b + 1);
  }
  CHECK(response_size_bucket(UINT64_MAX) == kResponseSizeBuckets - 1);
}

TEST_CASE("a time is in the bucket whose bound it does not exceed", "[observe][series]") {
  CHECK(answer_bucket(Nanoseconds(-1)) == 0);
  CHECK(answer_bucket(std::chrono::microseconds(500)) == 0);
  CHECK(answer_bucket(std::chrono::microseconds(501)) == 1);
  CHECK(answer_bucket(std::chrono::seconds(60)) == kAnswerBuckets - 2);
  CHECK(answer_bucket(std::chrono::seconds(61)) == kAnswerBuckets - 1);
  ServerCounters counters(2);
  for (const std::size_t worker : {0U, 1U}) {
    ServerTally(&counters, nullptr, worker)
        .add_answer(worker == 0 ? 404 : 503, std::chrono::milliseconds(2));
  }
  const ServerSums sums = counters.sums();
  CHECK(sums.answers == 2);
  CHECK(sums.errors_4xx == 1);
  CHECK(sums.errors_5xx == 1);
  CHECK(sums.answer_microseconds == 4000);
  CHECK(sums.answer_times[2] == 2);
  // A tally without a server counts nothing.
  ServerTally().add_answer(200, {});
  ServerTally().note_failure("x", {});
}

}  // namespace
}  // namespace encore::server
