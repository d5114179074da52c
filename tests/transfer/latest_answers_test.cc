#include "proxy/transfer/latest_answers.h"

#include <chrono>
#include <memory>

#include "tests/catch.h"

namespace encore::server {
namespace {

MonotonicTime at(int second) { return MonotonicTime{} + std::chrono::seconds(second); }

constexpr LatestAnswers::Variant kOne{.key = {.lo = 7, .hi = 8}, .number = 0};
constexpr LatestAnswers::Variant kOther{.key = {.lo = 7, .hi = 8}, .number = 1};

TEST_CASE("the latest answer is the one with the later Date, and of two the one requested later",
          "[transfer]") {
  const auto answers = std::make_unique<LatestAnswers>();
  CHECK_FALSE(answers->has_newer(kOne, {.date = 100, .requested = at(1)}));
  answers->note(kOne, {.date = 100, .requested = at(5)}, at(6));
  CHECK(answers->has_newer(kOne, {.date = 99, .requested = at(9)}));
  CHECK(answers->has_newer(kOne, {.date = 100, .requested = at(4)}));
  CHECK_FALSE(answers->has_newer(kOne, {.date = 100, .requested = at(5)}));
  CHECK_FALSE(answers->has_newer(kOne, {.date = 101, .requested = at(1)}));
  // Without a Date of both the requests decide.
  CHECK(answers->has_newer(kOne, {.date = http::kNoDate, .requested = at(4)}));
  CHECK_FALSE(answers->has_newer(kOne, {.date = http::kNoDate, .requested = at(6)}));
  CHECK_FALSE(answers->has_newer(kOther, {.date = 1, .requested = at(1)}));
}

TEST_CASE("an older answer that is noted late changes nothing", "[transfer]") {
  const auto answers = std::make_unique<LatestAnswers>();
  answers->note(kOne, {.date = 100, .requested = at(5)}, at(6));
  answers->note(kOne, {.date = 100, .requested = at(1)}, at(9));
  CHECK(answers->has_newer(kOne, {.date = 100, .requested = at(4)}));
  CHECK(answers->has_since(kOne, at(5)));
  CHECK_FALSE(answers->has_since(kOne, at(6)));
  CHECK_FALSE(answers->has_since(kOther, at(1)));
}

TEST_CASE("a part is no newer than a whole with the same entity tag", "[transfer]") {
  const auto answers = std::make_unique<LatestAnswers>();
  answers->note(kOne, {.date = 100, .requested = at(5), .etag = 7}, at(6));
  CHECK_FALSE(answers->has_newer(kOne, {.date = 99, .requested = at(1), .etag = 7}));
  CHECK(answers->has_newer(kOne, {.date = 99, .requested = at(1), .etag = 8}));
  CHECK(answers->has_newer(kOne, {.date = 99, .requested = at(1)}));
  // Of a whole the tag is not noted.
  answers->note(kOne, {.date = 101, .requested = at(7)}, at(8));
  CHECK(answers->has_newer(kOne, {.date = 99, .requested = at(1), .etag = 7}));
}

TEST_CASE("of variants that share a slot the last one is known", "[transfer]") {
  const auto answers = std::make_unique<LatestAnswers>();
  answers->note(kOne, {.date = 100, .requested = at(5)}, at(6));
  const LatestAnswers::Variant same_slot{.key = {.lo = 7 ^ (1ULL << 40), .hi = 8}, .number = 0};
  answers->note(same_slot, {.date = 50, .requested = at(1)}, at(7));
  CHECK_FALSE(answers->has_newer(kOne, {.date = 99, .requested = at(1)}));
  CHECK(answers->has_newer(same_slot, {.date = 49, .requested = at(1)}));
}

}  // namespace
}  // namespace encore::server
