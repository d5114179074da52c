#include "proxy/transfer/latest_responses.h"

#include <chrono>
#include <memory>

#include "tests/catch.h"

namespace encore::server {
namespace {

MonotonicTime at(int second) { return MonotonicTime{} + std::chrono::seconds(second); }

constexpr LatestResponses::Variant kOne{.key = {.lo = 7, .hi = 8}, .number = 0};
constexpr LatestResponses::Variant kOther{.key = {.lo = 7, .hi = 8}, .number = 1};

bool has_newer(const LatestResponses& answers, const LatestResponses::Variant& variant,
               const LatestResponses::Answer& answer, MonotonicTime now = at(20)) {
  return answers.newer_than(variant, answer, now).has_value();
}

TEST_CASE("the latest answer is the one with the later Date, and of two the one requested later",
          "[transfer]") {
  const auto answers = std::make_unique<LatestResponses>();
  CHECK_FALSE(has_newer(*answers, kOne, {.date = 100, .requested = at(1)}));
  answers->note(kOne, {.date = 100, .requested = at(5)}, at(9));
  CHECK(has_newer(*answers, kOne, {.date = 99, .requested = at(8)}));
  CHECK(has_newer(*answers, kOne, {.date = 100, .requested = at(4)}));
  CHECK_FALSE(has_newer(*answers, kOne, {.date = 100, .requested = at(5)}));
  CHECK_FALSE(has_newer(*answers, kOne, {.date = 101, .requested = at(1)}));
  // Without a Date of both the requests decide.
  CHECK(has_newer(*answers, kOne, {.date = http::kNoDate, .requested = at(4)}));
  CHECK_FALSE(has_newer(*answers, kOne, {.date = http::kNoDate, .requested = at(6)}));
  CHECK_FALSE(has_newer(*answers, kOther, {.date = 1, .requested = at(1)}));
}

TEST_CASE("a Date from a clock that is ahead counts while the response is fresh", "[transfer]") {
  const auto answers = std::make_unique<LatestResponses>();
  answers->note(kOne, {.date = 900, .requested = at(5), .fresh_until = at(30), .invalidations = 3},
                at(6));
  const LatestResponses::Answer later{.date = 100, .requested = at(6)};
  const auto newer = answers->newer_than(kOne, later, at(29));
  REQUIRE(newer);
  CHECK_FALSE(newer->came_meanwhile);
  CHECK(newer->invalidations == 3);
  CHECK_FALSE(has_newer(*answers, kOne, later, at(30)));
  // One that was in progress is older all the same.
  CHECK(has_newer(*answers, kOne, {.date = 100, .requested = at(5)}, at(99)));
  // A purged one is of no use: the next one takes its slot.
  answers->note(kOne, later, at(7));
  CHECK(has_newer(*answers, kOne, later, at(29)));
  answers->note(kOne, later, at(7), newer);
  CHECK_FALSE(has_newer(*answers, kOne, later, at(29)));
}

TEST_CASE("an older answer that is noted late changes nothing", "[transfer]") {
  const auto answers = std::make_unique<LatestResponses>();
  answers->note(kOne, {.date = 100, .requested = at(5)}, at(6));
  answers->note(kOne, {.date = 100, .requested = at(1)}, at(9));
  CHECK(has_newer(*answers, kOne, {.date = 100, .requested = at(4)}));
  CHECK(answers->has_since(kOne, at(5)));
  CHECK_FALSE(answers->has_since(kOne, at(6)));
  CHECK_FALSE(answers->has_since(kOther, at(1)));
}

TEST_CASE("a part is no newer than a whole with the same entity tag", "[transfer]") {
  const auto answers = std::make_unique<LatestResponses>();
  answers->note(kOne, {.date = 100, .requested = at(5), .etag = 7}, at(6));
  CHECK_FALSE(has_newer(*answers, kOne, {.date = 99, .requested = at(1), .etag = 7}));
  CHECK(has_newer(*answers, kOne, {.date = 99, .requested = at(1), .etag = 8}));
  CHECK(has_newer(*answers, kOne, {.date = 99, .requested = at(1)}));
  // The tag of a whole is not noted.
  answers->note(kOne, {.date = 101, .requested = at(7)}, at(8));
  CHECK(has_newer(*answers, kOne, {.date = 99, .requested = at(1), .etag = 7}));
}

TEST_CASE("parts of one second are of one age", "[transfer]") {
  const auto answers = std::make_unique<LatestResponses>();
  answers->note(kOne, {.date = 100, .requested = at(5)}, at(6));
  CHECK_FALSE(has_newer(*answers, kOne, {.date = 100, .requested = at(1), .is_part = true}));
  CHECK(has_newer(*answers, kOne, {.date = 99, .requested = at(1), .is_part = true}));
}

TEST_CASE("whether a noted answer is newer follows from dates, requests, tags and freshness",
          "[transfer]") {
  const auto answers = std::make_unique<LatestResponses>();
  std::uint64_t key = 1;
  int newer_ones = 0;
  for (const http::UnixSeconds noted_date : {http::kNoDate, http::UnixSeconds{100}}) {
    for (const http::UnixSeconds date :
         {http::kNoDate, http::UnixSeconds{99}, http::UnixSeconds{100}, http::UnixSeconds{101}}) {
      for (const int requested : {4, 5, 6, 7, 8}) {
        for (const std::uint64_t noted_etag : {0U, 7U}) {
          for (const std::uint64_t etag : {0U, 7U, 8U}) {
            for (const bool is_part : {false, true}) {
              for (const int now : {29, 30}) {
                // Requested at 5, it came at 7.
                const LatestResponses::Variant variant{.key = {.lo = ++key, .hi = 8}, .number = 0};
                answers->note(variant,
                              {.date = noted_date,
                               .requested = at(5),
                               .etag = noted_etag,
                               .fresh_until = at(30),
                               .invalidations = key},
                              at(7));
                bool is_newer = !is_part && requested < 5;
                if (noted_date != http::kNoDate && date != http::kNoDate && date != noted_date) {
                  is_newer = date < noted_date;
                }
                if (noted_etag != 0 && etag == noted_etag) is_newer = false;
                const bool came_meanwhile = requested < 7;
                if (!came_meanwhile && now >= 30) is_newer = false;
                const auto newer = answers->newer_than(
                    variant,
                    {.date = date, .requested = at(requested), .etag = etag, .is_part = is_part},
                    at(now));
                CAPTURE(noted_date, date, requested, noted_etag, etag, is_part, now);
                REQUIRE(newer.has_value() == is_newer);
                if (!newer) continue;
                ++newer_ones;
                CHECK(newer->came_meanwhile == came_meanwhile);
                CHECK(newer->invalidations == key);
                CHECK(newer->noted == at(7));
              }
            }
          }
        }
      }
    }
  }
  CHECK(newer_ones > 100);
}

TEST_CASE("of variants that share a slot the last one is known", "[transfer]") {
  const auto answers = std::make_unique<LatestResponses>();
  answers->note(kOne, {.date = 100, .requested = at(5)}, at(6));
  const LatestResponses::Variant same_slot{.key = {.lo = 7 ^ (1ULL << 40), .hi = 8}, .number = 0};
  answers->note(same_slot, {.date = 50, .requested = at(1)}, at(7));
  CHECK_FALSE(has_newer(*answers, kOne, {.date = 99, .requested = at(1)}));
  CHECK(has_newer(*answers, same_slot, {.date = 49, .requested = at(1)}));
}

}  // namespace
}  // namespace encore::server
